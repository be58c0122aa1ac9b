//! Documents that are sent together or not at all.
//!
//! - Input: the documents of a request in order, and the group of each.
//! - Output: the groups of which no member is out, with the texts that have to be sent for each.
//! - Rules: S19.

use super::{Rank, documents::Document};
use crate::{item::ItemId, plan::reason::ExcludedReason, rag::RetrievedItems};
use std::collections::{BTreeMap, BTreeSet};

/// A group of documents.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Its members that are not in the last prompt, by rank.
    pub(crate) members: Vec<Rank>,
    /// Other documents that have to be in the prompt: members of the last prompt, and the documents that
    /// duplicates repeat.
    pub(crate) others: BTreeSet<Rank>,
    /// The texts that earlier prompts have, by id, with the messages before which they were sent.
    pub(crate) retained: BTreeMap<ItemId, Vec<u32>>,
}

/// The groups of one request.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    /// The number of the group of each member that is not in the last prompt.
    numbers: BTreeMap<Rank, usize>,
}

impl Groups {
    /// Finds the groups of the documents. `places_of` returns the positions at which a document is retained,
    /// and `new` has the indices of those that are not.
    pub(super) fn find(
        items: &RetrievedItems,
        documents: &[Document],
        new: &[usize],
        places_of: impl Fn(&ItemId) -> Vec<u32>,
    ) -> Self {
        if items.iter().all(|item| item.group.is_none()) {
            return Self::default();
        }
        let names = Names::of_duplicates(items, documents);
        let mut groups = Self::default();
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut number = |groups: &mut Self, name| {
            *by_name.entry(names.first(name)).or_insert_with(|| {
                groups.all.push(Group::default());
                groups.all.len() - 1
            })
        };
        let ids = ranks_by_id(items, documents);
        for (rank, document) in ranked(documents) {
            let item = &items[document.at];
            let Some(name) = item.group.as_deref() else { continue };
            let at = match &document.out {
                None | Some(ExcludedReason::Duplicate { .. }) => number(&mut groups, name),
                Some(_) => continue,
            };
            match &document.out {
                None if document.sent_at.is_none() => {
                    groups.all[at].members.push(rank);
                    groups.numbers.insert(rank, at);
                }
                // It stays in the prompt whatever its group does (rule S5).
                None => drop(groups.all[at].others.insert(rank)),
                Some(ExcludedReason::Duplicate { of }) => match ids.get(of) {
                    Some(other) => drop(groups.all[at].others.insert(*other)),
                    None => drop(groups.all[at].retained.insert(of.clone(), places_of(of))),
                },
                Some(_) => {}
            }
        }
        let known: BTreeSet<usize> = new.iter().copied().collect();
        for item in items.iter().enumerate().filter(|(at, _)| !known.contains(at)).map(|(_, item)| item) {
            if let Some(name) = item.group.as_deref() {
                let at = number(&mut groups, name);
                groups.all[at].retained.insert(item.id.clone(), places_of(&item.id));
            }
        }
        for group in &mut groups.all {
            group.others.retain(|other| group.members.binary_search(other).is_err());
        }
        groups
    }

    /// Returns the group of a document that is not in the last prompt. Returns `None` if it has none.
    pub(crate) fn group(&self, rank: Rank) -> Option<&Group> {
        self.numbers.get(&rank).map(|at| &self.all[*at])
    }

    /// Checks if no document has a group.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// The names of groups, of which some are names of one group: groups that share a text are one.
struct Names<'a> {
    same_as: BTreeMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    /// Joins the group of each duplicate with that of the document that it repeats.
    fn of_duplicates(items: &'a RetrievedItems, documents: &[Document]) -> Self {
        let mut names = Self { same_as: BTreeMap::new() };
        let ids = ranks_by_id(items, documents);
        for document in documents {
            let Some(ExcludedReason::Duplicate { of }) = &document.out else { continue };
            let repeated = ids.get(of).map(|rank| &documents[rank.to_usize()]);
            // A document of the last prompt stays without its group.
            let repeated = repeated.filter(|one| one.sent_at.is_none()).map(|one| &items[one.at]);
            let pair =
                items[document.at].group.as_deref().zip(repeated.and_then(|item| item.group.as_deref()));
            if let Some((a, b)) = pair {
                let (a, b) = (names.found(a), names.found(b));
                if a != b {
                    names.same_as.insert(a.max(b), a.min(b));
                }
            }
        }
        names.flatten();
        names
    }

    /// Lets each name lead to the first one at once.
    fn flatten(&mut self) {
        let mut flat: BTreeMap<&str, &str> = BTreeMap::new();
        // In ascending order, so that the name to which one leads is flat already.
        for (name, other) in &self.same_as {
            flat.insert(name, flat.get(other).copied().unwrap_or(other));
        }
        self.same_as = flat;
    }

    /// Returns the first of the names of a group, and lets the names on the way lead to it.
    fn found(&mut self, name: &'a str) -> &'a str {
        let first = self.first(name);
        let mut at = name;
        while let Some(next) = self.same_as.get(at).copied().filter(|next| *next != first) {
            self.same_as.insert(at, first);
            at = next;
        }
        first
    }

    /// Returns the first of the names of a group.
    fn first(&self, name: &'a str) -> &'a str {
        let mut name = name;
        // Ends, because each name leads to one before it in the alphabet.
        while let Some(other) = self.same_as.get(name) {
            name = other;
        }
        name
    }
}

/// Returns the ranks of the documents that no policy excludes, by id.
fn ranks_by_id<'a>(items: &'a RetrievedItems, documents: &[Document]) -> BTreeMap<&'a ItemId, Rank> {
    let admitted = ranked(documents).filter(|(_, document)| document.out.is_none());
    admitted.map(|(rank, document)| (&items[document.at].id, rank)).collect()
}

fn ranked(documents: &[Document]) -> impl Iterator<Item = (Rank, &Document)> {
    (0..).map(Rank::new).zip(documents)
}
