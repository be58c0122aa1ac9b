//! Documents that are sent only beside others.
//!
//! - Input: the documents of a request with the ids that each requires.
//! - Output: for each document, the documents beside which it may be sent.
//! - Rules: S18.

use super::{Document, Rank};
use crate::{
    error::{Error, Repr},
    item::ItemId,
    plan::reason::{ExcludedReason, PolicyRule},
    rag::RetrievedItems,
};
use std::collections::{BTreeMap, BTreeSet};

/// The documents beside which a document is sent: one of them is enough.
#[derive(Debug, Clone)]
pub(crate) struct Required {
    /// The first required id, which the reason names.
    first: ItemId,
    /// Those of the request.
    pub(crate) ranks: Vec<Rank>,
    /// The messages before which some were sent with earlier questions.
    pub(crate) retained_at: Vec<u32>,
}

impl Required {
    /// Returns the reason to exclude a document while none that it requires is in the prompt.
    pub(crate) fn reason(&self) -> ExcludedReason {
        ExcludedReason::Policy(PolicyRule::Requires { of: self.first.clone() })
    }
}

/// Checks that no documents require each other.
///
/// # Errors
///
/// Fails with the ids of a circle.
pub(super) fn check_circles(items: &RetrievedItems) -> Result<(), Error> {
    if items.iter().all(|item| item.requires.is_empty()) {
        return Ok(());
    }
    // A document that was also retrieved for itself depends on nothing.
    let independent: BTreeSet<&ItemId> =
        items.iter().filter(|item| item.requires.is_empty()).map(|item| &item.id).collect();
    let mut requires: BTreeMap<&ItemId, Vec<&ItemId>> = BTreeMap::new();
    for item in items.iter().filter(|item| !independent.contains(&item.id)) {
        requires.entry(&item.id).or_default().extend(&item.requires);
    }
    // Documents are done once all that they require are done. Each is on the path once at most.
    let mut done: BTreeSet<&ItemId> = BTreeSet::new();
    for start in requires.keys().copied() {
        let mut path: Vec<(&ItemId, usize)> = vec![(start, 0)];
        let mut on_path = BTreeSet::from([start]);
        while let Some((id, at)) = path.pop() {
            let next = requires.get(id).and_then(|all| all.get(at)).copied();
            let Some(next) = next.filter(|_| !done.contains(id)) else {
                on_path.remove(id);
                done.insert(id);
                continue;
            };
            path.push((id, at + 1));
            if !on_path.insert(next) {
                let first = path.iter().position(|(id, _)| *id == next).unwrap_or_default();
                let ids = path[first..].iter().map(|(id, _)| (*id).clone()).collect();
                return Err(Error::new(Repr::RequiredInCircle { ids }));
            }
            path.push((next, 0));
        }
    }
    Ok(())
}

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
