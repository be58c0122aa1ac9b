//! Documents that are sent only beside others.
//!
//! - Input: the documents of a request in order, and the ids that each requires.
//! - Output: for each document, the documents beside which it may be sent.
//! - Rules: S18.

use super::{
    Rank,
    documents::{Document, Required},
};
use crate::{item::ItemId, plan::reason::ExcludedReason, rag::RetrievedItems};
use std::collections::{BTreeMap, BTreeSet};

/// Finds the documents beside which documents are sent. Those of the last prompt stay without them (rule S5),
/// and a duplicate that requires nothing frees the document that it repeats. `places_of` returns the
/// positions at which a document is retained.
pub(super) fn add_required(
    items: &RetrievedItems,
    documents: &mut [Document],
    places_of: impl Fn(&ItemId) -> Vec<u32>,
) {
    if items.iter().all(|item| item.requires.is_empty()) {
        return;
    }
    let mut by_id: BTreeMap<&ItemId, Vec<Rank>> = BTreeMap::new();
    for (rank, document) in (0..).map(Rank::new).zip(&*documents).filter(|(_, one)| one.out.is_none()) {
        by_id.entry(&items[document.at].id).or_default().push(rank);
    }
    // A duplicate is represented by the document that it repeats.
    let mut represented: BTreeMap<&ItemId, BTreeSet<&ItemId>> = BTreeMap::new();
    let mut free: BTreeSet<&ItemId> = BTreeSet::new();
    let outs: Vec<(usize, ItemId)> = documents
        .iter()
        .filter_map(|document| match &document.out {
            Some(ExcludedReason::Duplicate { of }) => Some((document.at, of.clone())),
            _ => None,
        })
        .collect();
    for (at, of) in &outs {
        represented.entry(&items[*at].id).or_default().insert(of);
        if items[*at].requires.is_empty() {
            free.insert(of);
        }
    }
    let found: Vec<Option<Required>> = documents
        .iter()
        .map(|document| {
            let requires = &items[document.at].requires;
            let depends = document.sent_at.is_none() && !free.contains(&items[document.at].id);
            let first = requires.first().filter(|_| depends)?.clone();
            let others = requires.iter().filter_map(|id| represented.get(id)).flatten().copied();
            let ids: BTreeSet<&ItemId> = requires.iter().chain(others).collect();
            let ranks = ids.iter().filter_map(|id| by_id.get(*id)).flatten().copied().collect();
            let retained_at = ids.into_iter().flat_map(&places_of).collect();
            Some(Required { first, ranks, retained_at })
        })
        .collect();
    for (document, required) in documents.iter_mut().zip(found) {
        document.required = required;
    }
}
