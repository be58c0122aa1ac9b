//! Documents by rank.
//!
//! - Input: the lists of documents of a request, and the places of documents in the last prompt.
//! - Output: documents in the order of selection, with their ranks in the lists.
//! - Rules: S8 (order, fusion), S9 (versions of one id), S5 (the set of the last prompt).

use crate::{
    config::{ListOptions, RagOptions},
    item::ItemId,
    plan::anchor::SentDocument,
    rag::{RagItem, RankedList, RetrievedItems, fused_value},
};
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// The ranks of a document by the numbers of the lists that contain it.
pub(super) type ListRanks = SmallVec<[(u32, u32); 2]>;

/// A document at its rank.
pub(super) struct RankedItem {
    /// Its index in the request.
    pub(super) at: usize,
    /// The rank in the last prompt, if it stays from there.
    set: usize,
    /// The score as an integer, or the fused ranks.
    value: i64,
    pub(super) ranks: ListRanks,
}

impl RankedItem {
    /// Checks if the document stays from the last prompt (rule S5).
    pub(super) fn stays(&self) -> bool {
        self.set < usize::MAX
    }
}

/// Returns the documents at the indices `new` in the order of selection: those of the last prompt, whose
/// `places` are known, by their ranks then; the others by score or fused ranks, then date, id, text and
/// origin.
pub(super) fn ranked_items(
    items: &RetrievedItems,
    new: &[usize],
    places: &BTreeMap<&ItemId, SentDocument<'_>>,
    rules: &RagOptions,
) -> Vec<RankedItem> {
    // A list alone is ordered by its scores; its ranks count only for its limits.
    let (lists, is_fused) = (items.named_lists(), !items.fused_lists().is_empty());
    let mut ranks = vec![SmallVec::new(); if lists.is_empty() { 0 } else { items.len() }];
    for (number, list) in (0..).zip(lists) {
        for (rank, at) in (1..).zip(ranked(items, list)) {
            ranks[at].push((number, rank));
        }
    }
    let weights: Vec<u64> = lists.iter().map(|list| list_options(rules, list).weight.into()).collect();
    let order = |at: &usize| {
        let place = if places.is_empty() { None } else { places.get(&items[*at].id) };
        let ranks = ranks.get_mut(*at).map(std::mem::take).unwrap_or_default();
        let value = if is_fused { fused(&ranks, &weights) } else { order_of(items[*at].score) };
        RankedItem { at: *at, set: place.map_or(usize::MAX, |sent| sent.rank), value, ranks }
    };
    let mut order: Vec<RankedItem> = new.iter().map(order).collect();
    order.sort_by(|a, b| {
        let key = |one: &RankedItem| (one.set, Reverse(one.value));
        key(a)
            .cmp(&key(b))
            .then_with(|| compare_ranks(&a.ranks, &b.ranks))
            .then_with(|| compare(&items[a.at], &items[b.at]))
    });
    newest_first(items, &mut order);
    order
}

/// Returns the options of a list.
fn list_options(rules: &RagOptions, list: &RankedList) -> ListOptions {
    rules.lists.get(&*list.name).copied().unwrap_or_default()
}

/// Returns the documents of a list, as indices of the items, best first.
fn ranked(items: &RetrievedItems, list: &RankedList) -> Vec<usize> {
    let mut hits: Vec<(Reverse<i64>, usize)> =
        list.hits.iter().map(|(at, score)| (Reverse(order_of(*score)), *at)).collect();
    hits.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(&items[a.1], &items[b.1])));
    hits.into_iter().map(|(_, at)| at).collect()
}

/// Returns the fused value of a document's ranks in lists with these weights: the sum of weight / (60 +
/// rank).
fn fused(ranks: &[(u32, u32)], weights: &[u64]) -> i64 {
    let value = |(list, rank): &(u32, u32)| fused_value(weights[*list as usize], u64::from(*rank));
    let sum = ranks.iter().map(value).fold(0, u64::saturating_add);
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// Compares documents with the same fused value: the better rank in the first list comes first, then in the
/// second. A list that does not contain a document ranks it last.
fn compare_ranks(a: &[(u32, u32)], b: &[(u32, u32)]) -> Ordering {
    for ((list, rank), (other_list, other_rank)) in a.iter().zip(b) {
        let same = list.cmp(other_list).then(rank.cmp(other_rank));
        if same != Ordering::Equal {
            return same;
        }
    }
    b.len().cmp(&a.len())
}

/// Orders versions of one id, newest first, at the places that they have.
fn newest_first(items: &RetrievedItems, order: &mut [RankedItem]) {
    if !order.iter().any(|one| items[one.at].date.is_some()) {
        return;
    }
    let mut versions: IndexMap<&ItemId, SmallVec<[usize; 2]>, RandomState> = IndexMap::default();
    for (place, one) in order.iter().enumerate() {
        versions.entry(&items[one.at].id).or_default().push(place);
    }
    for places in versions.into_values().filter(|places| places.len() > 1) {
        // The place keeps its value. Each version keeps the ranks that its lists gave it.
        let mut version = |place: &usize| (order[*place].at, std::mem::take(&mut order[*place].ranks));
        let mut by_date: Vec<(usize, ListRanks)> = places.iter().map(&mut version).collect();
        by_date.sort_by_key(|(at, _)| Reverse(items[*at].date));
        for (place, (at, ranks)) in places.into_iter().zip(by_date) {
            (order[place].at, order[place].ranks) = (at, ranks);
        }
    }
}

/// Maps a score to an integer with the same order.
fn order_of(score: f64) -> i64 {
    // Adding 0.0 turns -0.0 into 0.0. The bits of a negative number decrease as the number grows.
    let bits = (score + 0.0).to_bits().cast_signed();
    if bits < 0 { i64::MIN - bits } else { bits }
}

/// Compares two documents with the same score: the newer one comes first.
fn compare(a: &RagItem, b: &RagItem) -> Ordering {
    // Copies that differ in nothing else may be joined with different chunks.
    let place = |item: &RagItem| {
        let messages = item.messages.as_ref().map(|messages| (messages.start, messages.end));
        (item.span.as_ref().map(|span| (span.start, span.end)), item.position, messages)
    };
    b.date
        .cmp(&a.date)
        .then_with(|| a.id.cmp(&b.id))
        .then_with(|| a.text.cmp(&b.text))
        .then_with(|| a.origin.cmp(&b.origin))
        .then_with(|| a.ttl.cmp(&b.ttl))
        .then_with(|| place(a).cmp(&place(b)))
        .then_with(|| a.variants.cmp(&b.variants))
        .then_with(|| a.requires.cmp(&b.requires))
        .then_with(|| a.group.cmp(&b.group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_ordered_numerically() {
        let scores = [f64::MIN, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.0, 2.5, f64::MAX];
        assert!(scores.map(order_of).is_sorted_by(|a, b| a < b), "{:?}", scores.map(order_of));
        assert_eq!(order_of(-0.0), order_of(0.0));
    }

    #[test]
    fn fused_value_is_the_sum_of_weighted_reciprocal_ranks() {
        let expected = (3 << 40) / 61 + (2 << 40) / 64_u64;
        assert_eq!(fused(&[(0, 1), (2, 4)], &[3, 1, 2]), i64::try_from(expected).unwrap());
        // The best rank of the largest weight, in as many lists as anyone has, is no overflow.
        let ranks: Vec<(u32, u32)> = (0..100).map(|list| (list, 1)).collect();
        assert!(fused(&ranks, &[1000; 100]) < i64::MAX);
    }
}
