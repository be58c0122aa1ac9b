//! Retrieved documents in the order of rule S8, with the policies of rule S9 that need no budget.

use crate::{
    config::RagOptions,
    error::{Error, Repr},
    item::{ItemId, RagItem},
    plan::reason::{ExcludedReason, PolicyRule},
    planner::expiry::{Eligibility, Expiry},
    provider::meter::Meter,
    tokens::Weight,
};
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// A document of one request: its position there, whose it is, and what already keeps it out.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its position in the request.
    pub(crate) at: usize,
    /// The number of its origin; documents without one share none.
    pub(crate) origin: Option<u32>,
    pub(crate) out: Option<ExcludedReason>,
}

/// Orders the documents at the places `new` of the request: first the `set` that the last prompt held, in its order, then by score descending, id, text and
/// origin. Then TTL and policy decide, then repetition. Says how many documents are the set, if any of it is left.
pub(super) fn in_order(
    items: &[RagItem],
    new: Vec<usize>,
    set: &[ItemId],
    rules: &RagOptions,
    expiry: &Expiry<'_>,
    meter: &Meter,
) -> Result<(Vec<Document>, Option<u32>), Error> {
    if let Some(item) = items.iter().find(|item| !item.score.is_finite()) {
        return Err(Error::new(Repr::Score { id: item.id.clone(), score: item.score }));
    }
    let places: BTreeMap<&ItemId, usize> = set.iter().enumerate().map(|(at, id)| (id, at)).rev().collect();
    let place = |at: &usize| places.get(&items[*at].id).copied().unwrap_or(usize::MAX);
    let mut ranks = new.clone();
    ranks.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| compare(&items[*a], &items[*b])));
    let of_the_set = ranks.iter().take_while(|at| place(at) < usize::MAX).count();

    let mut origins: IndexMap<&str, ()> = IndexMap::new();
    let mut seen = Seen::default();
    let known: BTreeSet<usize> = new.iter().copied().collect();
    for (_, item) in items.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
        seen.repeats(item); // it stands already: what repeats it is not sent either
    }
    let mut documents = Vec::with_capacity(items.len());
    for at in ranks {
        let item = &items[at];
        let out = match policy(item, rules, expiry, meter)? {
            Some(reason) => Some(reason),
            None => seen.repeats(item),
        };
        let origin = item.origin.as_deref();
        let origin = origin.map(|origin| origins.insert_full(origin, ()).0 as u32);
        documents.push(Document { at, origin, out });
    }
    if !set.is_empty() && documents[..of_the_set].iter().all(|document| document.out.is_some()) {
        return in_order(items, new, &[], rules, expiry, meter);
    }
    Ok((documents, (of_the_set > 0).then_some(of_the_set as u32)))
}

fn compare(a: &RagItem, b: &RagItem) -> Ordering {
    // Adding 0.0 makes -0.0 the 0.0 it is equal to.
    let score = (b.score + 0.0).total_cmp(&(a.score + 0.0));
    score
        .then_with(|| a.id.cmp(&b.id))
        .then_with(|| a.text.cmp(&b.text))
        .then_with(|| a.origin.cmp(&b.origin))
        .then_with(|| a.ttl.cmp(&b.ttl))
}

fn policy(
    item: &RagItem,
    rules: &RagOptions,
    expiry: &Expiry<'_>,
    meter: &Meter,
) -> Result<Option<ExcludedReason>, Error> {
    if let Eligibility::Out(reason) = expiry.document(&item.id, item.ttl) {
        return Ok(Some(reason));
    }
    if let Some(limit) = rules.min_score.filter(|limit| item.score < *limit) {
        let score = item.score;
        let rule = PolicyRule::MinScore { score, limit };
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    if let Some(limit) = rules.max_item_tokens
        && meter.document(item, limit)? == Weight::Over
    {
        let rule = PolicyRule::MaxItemTokens { limit };
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    Ok(None)
}

/// Ids and texts of the documents that stay.
#[derive(Default)]
struct Seen<'a> {
    ids: IndexMap<&'a str, &'a RagItem, RandomState>,
    texts: IndexMap<&'a str, &'a RagItem, RandomState>,
}

impl<'a> Seen<'a> {
    /// The reason to leave an item out whose id or text is there already; otherwise it is there from now on.
    fn repeats(&mut self, item: &'a RagItem) -> Option<ExcludedReason> {
        let same = self.ids.get(item.id.as_str()).or_else(|| self.texts.get(&*item.text));
        if let Some(first) = same {
            let of = first.id.clone();
            return Some(ExcludedReason::Duplicate { of });
        }
        self.ids.insert(item.id.as_str(), item);
        self.texts.insert(&item.text, item);
        None
    }
}
