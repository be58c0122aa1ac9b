//! Checks of the documents of a request.
//!
//! - Input: the documents as they were retrieved.
//! - Output: an error that names the first faulty document.
//! - Rules: S8 (scores), S17 (variants), S18 (cycles), S19 (groups).

use crate::{
    error::{Error, Repr},
    item::ItemId,
    rag::{RagItem, RetrievedItems},
};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of variants of a document. Each is counted if those before it do not fit.
const MOST_VARIANTS: usize = 16;

/// Checks that all scores are numbers, that variants have different names, and that no documents require each
/// other or have a group beside.
pub(super) fn check(items: &RetrievedItems) -> Result<(), Error> {
    check_scores(items)?;
    items.iter().try_for_each(check_variants)?;
    if let Some(item) = items.iter().find(|item| item.group.is_some() && !item.requires.is_empty()) {
        return Err(Error::new(Repr::DependentInGroup { id: item.id.clone() }));
    }
    check_cycles(items)
}

/// Checks that a document has a possible number of variants, with different names: a form that was sent is
/// found by its name.
fn check_variants(item: &RagItem) -> Result<(), Error> {
    let (id, count) = (&item.id, item.variants.len());
    if count > MOST_VARIANTS {
        return Err(Error::new(Repr::TooManyVariants { id: id.clone(), count, most: MOST_VARIANTS }));
    }
    let mut names = BTreeSet::new();
    match item.variants.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(Error::new(Repr::RepeatedVariant { id: id.clone(), name: name.to_string() })),
        None => Ok(()),
    }
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

/// Checks that no documents require each other.
///
/// # Errors
///
/// Fails with the ids of a cycle.
fn check_cycles(items: &RetrievedItems) -> Result<(), Error> {
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
                return Err(Error::new(Repr::RequirementCycle { ids }));
            }
            path.push((next, 0));
        }
    }
    Ok(())
}
