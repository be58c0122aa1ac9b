//! Retrieved documents by rank.
//!
//! - Input: the lists of documents of a request, and the set that the last prompt contained.
//! - Output: documents in the order of selection, each with the reason that already excludes it.
//! - Rules: S8 (order), S9 (policies and duplicates that need no budget), S5 (the set), T1.

use crate::{
    config::{ListOptions, RagOptions},
    error::{Error, Repr},
    item::ItemId,
    plan::{
        anchor::{SentDocument, StickyDocuments},
        reason::{ExcludedReason, PolicyRule},
    },
    planner::eligibility::{Eligibility, EligibilityRules},
    provider::meter::Meter,
    provider::weight::Weight,
    rag::{RagItem, RankedList, RetrievedItems},
    text::hash::text_hash,
};
use foldhash::{fast::FixedState, quality::RandomState};
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
};

/// A document of one request: its place, its origin, and the reason that already excludes it.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its index in the request.
    pub(crate) at: usize,
    /// The number of its origin; `None` for a document without one.
    pub(crate) origin: Option<u32>,
    pub(crate) out: Option<ExcludedReason>,
    /// The hash of its text.
    pub(crate) hash: u64,
    /// Its ranks in the lists that contain it, by number of the list. Empty if there is one list.
    pub(crate) ranks: SmallVec<[(u32, u32); 2]>,
    /// Its place in the last prompt, if it stays from there (rule S5).
    pub(crate) sent_at: Option<u32>,
    /// True if it was sent there as one text with the document before it (rule S14).
    pub(crate) was_joined: bool,
}

impl Document {
    /// Returns the number of the list that ranks the document best; the first of several.
    pub(crate) fn best_list(&self) -> Option<u32> {
        self.ranks.iter().min_by_key(|(list, rank)| (*rank, *list)).map(|(list, _)| *list)
    }
}

/// The value of rank 0 in a list of weight 1. Large enough that neighbouring ranks differ up to the largest
/// number of documents.
const FUSED_UNIT: u64 = 1 << 40;

/// The constant of reciprocal rank fusion: the influence of the first ranks falls as it grows (Cormack,
/// Clarke and Buettcher 2009).
const FUSION_K: u64 = 60;

/// The places of one document by which it is ordered.
struct Order {
    at: usize,
    /// The rank in the last prompt, if it stays from there.
    set: usize,
    /// The score as an integer, or the fused ranks.
    value: i64,
    ranks: SmallVec<[(u32, u32); 2]>,
}

/// Sorts the documents at the indices `new` of the request, then excludes them by TTL, policy and repetition.
///
/// The documents of the last prompt (`set`) come first, in the order of their ranks then. The others follow
/// by score or fused ranks, then date, id, text and origin. Also returns the number of documents in the set.
/// That number is `None` if none of them may be sent.
pub(super) fn in_order(
    items: &RetrievedItems,
    new: &[usize],
    set: StickyDocuments<'_>,
    rules: &RagOptions,
    eligibility: &EligibilityRules<'_>,
    meter: &Meter,
) -> Result<(Vec<Document>, Option<u32>), Error> {
    check_scores(items)?;
    let lengths = || items.iter().map(|item| item.text.len() as u64);
    let longest = lengths().max().unwrap_or_default();
    // Lets the counter reserve its cache for all documents at once.
    meter.counter().reserve_documents(items.len() as u64, lengths().sum(), longest);
    let places = set.places();
    let order = ordered(items, new, &places, rules);
    let of_the_set = order.iter().take_while(|one| one.set < usize::MAX).count();

    let mut origins: IndexMap<&str, ()> = IndexMap::new();
    let mut ids = IndexMap::with_capacity_and_hasher(items.len(), RandomState::default());
    let mut texts = IndexMap::with_capacity_and_hasher(items.len(), FixedState::default());
    if new.len() < items.len() {
        let known: BTreeSet<usize> = new.iter().copied().collect();
        for (_, item) in items.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
            // A retained document is in the prompt already, so a repetition of it is not sent either.
            find_repeat(&mut ids, &mut texts, item, text_hash(&item.text));
        }
    }
    let mut documents = Vec::with_capacity(items.len());
    for Order { at, ranks, .. } in order {
        let item = &items[at];
        let hash = text_hash(&item.text);
        let out = match policy(item, hash, rules, eligibility, meter)? {
            Some(reason) => Some(reason),
            None => find_repeat(&mut ids, &mut texts, item, hash),
        };
        let origin = item.origin.as_deref();
        let origin = origin.map(|origin| origins.insert_full(origin, ()).0 as u32);
        let before = places.get(&item.id);
        documents.push(Document {
            at,
            origin,
            out,
            hash,
            ranks,
            sent_at: before.map(|before| before.place),
            was_joined: before.is_some_and(|before| before.joined),
        });
    }
    // If no document of the set may be sent, rank all documents as if there were no set. Recurses once at
    // most.
    if !set.is_empty() && documents[..of_the_set].iter().all(|document| document.out.is_some()) {
        return in_order(items, new, StickyDocuments::default(), rules, eligibility, meter);
    }
    Ok((documents, (of_the_set > 0).then_some(of_the_set as u32)))
}

/// Checks that all scores are numbers.
fn check_scores(items: &RetrievedItems) -> Result<(), Error> {
    let score = |id: &ItemId, score: f64| Err(Error::new(Repr::Score { id: id.clone(), score }));
    if let Some(item) = items.iter().find(|item| !item.score.is_finite()) {
        return score(&item.id, item.score);
    }
    let hits = items.fused_lists().iter().flat_map(|list| &list.hits);
    hits.into_iter()
        .find(|(_, score)| !score.is_finite())
        .map_or(Ok(()), |(at, found)| score(&items[*at].id, *found))
}

/// Returns the documents in the order of selection.
fn ordered(
    items: &RetrievedItems,
    new: &[usize],
    places: &BTreeMap<&ItemId, SentDocument>,
    rules: &RagOptions,
) -> Vec<Order> {
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
        Order { at: *at, set: place.map_or(usize::MAX, |sent| sent.rank), value, ranks }
    };
    let mut order: Vec<Order> = new.iter().map(order).collect();
    order.sort_by(|a, b| {
        let key = |one: &Order| (one.set, Reverse(one.value));
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
    let value = |(list, rank): &(u32, u32)| {
        weights[*list as usize].saturating_mul(FUSED_UNIT) / (FUSION_K + u64::from(*rank))
    };
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
fn newest_first(items: &RetrievedItems, order: &mut [Order]) {
    if !order.iter().any(|one| items[one.at].date.is_some()) {
        return;
    }
    let mut versions: IndexMap<&ItemId, SmallVec<[usize; 2]>, RandomState> = IndexMap::default();
    for (place, one) in order.iter().enumerate() {
        versions.entry(&items[one.at].id).or_default().push(place);
    }
    for places in versions.into_values().filter(|places| places.len() > 1) {
        // The value and ranks stay at their place; only the versions change places.
        let mut by_date: SmallVec<[usize; 2]> = places.iter().map(|place| order[*place].at).collect();
        by_date.sort_by_key(|at| Reverse(items[*at].date));
        for (place, at) in places.into_iter().zip(by_date) {
            order[place].at = at;
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
    let place = |item: &RagItem| (item.span.as_ref().map(|span| (span.start, span.end)), item.position);
    b.date
        .cmp(&a.date)
        .then_with(|| a.id.cmp(&b.id))
        .then_with(|| a.text.cmp(&b.text))
        .then_with(|| a.origin.cmp(&b.origin))
        .then_with(|| a.ttl.cmp(&b.ttl))
        .then_with(|| place(a).cmp(&place(b)))
}

/// Returns the reason to exclude a document by its TTL, score or size. Returns `None` if it may be included.
fn policy(
    item: &RagItem,
    hash: u64,
    rules: &RagOptions,
    eligibility: &EligibilityRules<'_>,
    meter: &Meter,
) -> Result<Option<ExcludedReason>, Error> {
    if let Eligibility::Out(reason) = eligibility.document(&item.id, item.ttl) {
        return Ok(Some(reason));
    }
    if let Some(limit) = rules.min_score.filter(|limit| item.score < *limit) {
        let score = item.score;
        let rule = PolicyRule::MinScore { score, limit };
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    // The cheap checks come first: only this one counts tokens.
    if let Some(limit) = rules.max_item_tokens
        && meter.document(item, hash, limit)? == Weight::Over
    {
        let rule = PolicyRule::MaxItemTokens { limit };
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    Ok(None)
}

/// Returns the reason to exclude a document if an earlier one has its id or its text. Otherwise records both,
/// the text by its hash.
fn find_repeat<'a>(
    ids: &mut IndexMap<&'a str, &'a RagItem, RandomState>,
    texts: &mut IndexMap<u64, SmallVec<[&'a RagItem; 1]>, FixedState>,
    item: &'a RagItem,
    hash: u64,
) -> Option<ExcludedReason> {
    let with_hash = texts.entry(hash).or_default();
    // Texts with equal hashes are compared, so a collision excludes nothing.
    let same_text = || with_hash.iter().copied().find(|first| first.text == item.text);
    if let Some(first) = ids.get(item.id.as_str()).copied().or_else(same_text) {
        return Some(ExcludedReason::Duplicate { of: first.id.clone() });
    }
    ids.insert(item.id.as_str(), item);
    with_hash.push(item);
    None
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
        let expected = 3 * FUSED_UNIT / 61 + 2 * FUSED_UNIT / 64;
        assert_eq!(fused(&[(0, 1), (2, 4)], &[3, 1, 2]), i64::try_from(expected).unwrap());
        // The best rank of the largest weight, in as many lists as anyone has, is no overflow.
        let ranks: Vec<(u32, u32)> = (0..100).map(|list| (list, 1)).collect();
        assert!(fused(&ranks, &[1000; 100]) < i64::MAX);
    }
}
