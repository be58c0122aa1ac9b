//! Retrieved documents by rank.
//!
//! - Input: the documents of a request, and the set that the last prompt contained.
//! - Output: documents in the order of selection, each with the reason that already excludes it.
//! - Rules: S8 (order), S9 (policies and duplicates that need no budget), S5 (the set), T1.

use crate::{
    config::RagOptions,
    error::{Error, Repr},
    item::{ItemId, RagItem},
    plan::reason::{ExcludedReason, PolicyRule},
    planner::eligibility::{Eligibility, EligibilityRules},
    provider::meter::Meter,
    provider::weight::Weight,
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
}

/// Sorts the documents at the indices `new` of the request, then excludes them by TTL, policy and repetition.
///
/// The `set` of the last prompt comes first, in its order. The others follow by score descending, id, text
/// and origin. Also returns the number of documents in the set. That number is `None` if none of them may be
/// sent.
pub(super) fn in_order(
    items: &[RagItem],
    new: &[usize],
    set: &[ItemId],
    rules: &RagOptions,
    eligibility: &EligibilityRules<'_>,
    meter: &Meter,
) -> Result<(Vec<Document>, Option<u32>), Error> {
    if let Some(item) = items.iter().find(|item| !item.score.is_finite()) {
        return Err(Error::new(Repr::Score { id: item.id.clone(), score: item.score }));
    }
    let lengths = || items.iter().map(|item| item.text.len() as u64);
    let longest = lengths().max().unwrap_or_default();
    // Lets the counter reserve its cache for all documents at once.
    meter.counter().reserve_documents(items.len() as u64, lengths().sum(), longest);
    // Reversed, so that the first place counts if the set names an id twice.
    let places: BTreeMap<&ItemId, usize> = set.iter().enumerate().map(|(at, id)| (id, at)).rev().collect();
    let place = |at: usize| {
        let known = if places.is_empty() { None } else { places.get(&items[at].id) };
        known.copied().unwrap_or(usize::MAX)
    };
    // The score is part of the key, so documents are compared only if two scores are equal.
    let mut ranks: Vec<(usize, Reverse<i64>, usize)> =
        new.iter().map(|at| (place(*at), Reverse(order_of(items[*at].score)), *at)).collect();
    ranks.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| compare(&items[a.2], &items[b.2])));
    let of_the_set = ranks.iter().take_while(|(place, ..)| *place < usize::MAX).count();

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
    for (.., at) in ranks {
        let item = &items[at];
        let hash = text_hash(&item.text);
        let out = match policy(item, hash, rules, eligibility, meter)? {
            Some(reason) => Some(reason),
            None => find_repeat(&mut ids, &mut texts, item, hash),
        };
        let origin = item.origin.as_deref();
        let origin = origin.map(|origin| origins.insert_full(origin, ()).0 as u32);
        documents.push(Document { at, origin, out, hash });
    }
    // If no document of the set may be sent, rank all documents as if there were no set. Recurses once at
    // most.
    if !set.is_empty() && documents[..of_the_set].iter().all(|document| document.out.is_some()) {
        return in_order(items, new, &[], rules, eligibility, meter);
    }
    Ok((documents, (of_the_set > 0).then_some(of_the_set as u32)))
}

/// Maps a score to an integer with the same order.
fn order_of(score: f64) -> i64 {
    // Adding 0.0 turns -0.0 into 0.0. The bits of a negative number decrease as the number grows.
    let bits = (score + 0.0).to_bits().cast_signed();
    if bits < 0 { i64::MIN - bits } else { bits }
}

/// Compares two documents with the same score.
fn compare(a: &RagItem, b: &RagItem) -> Ordering {
    a.id.cmp(&b.id)
        .then_with(|| a.text.cmp(&b.text))
        .then_with(|| a.origin.cmp(&b.origin))
        .then_with(|| a.ttl.cmp(&b.ttl))
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
}
