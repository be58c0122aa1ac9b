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
}

/// The groups of one request.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    /// The number of the group of each member that is not in the last prompt.
    numbers: BTreeMap<Rank, usize>,
}

impl Groups {
    /// Finds the groups of the documents. Members that are retained need no check: one that has left the
    /// prompt is sent again, and is a document like the others then (rule S10).
    pub(super) fn find(items: &RetrievedItems, documents: &[Document]) -> Self {
        if items.iter().all(|item| item.group.is_none()) {
            return Self::default();
        }
        let names = shared_names(items, documents);
        let mut groups = Self::default();
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut number = |groups: &mut Self, name| {
            *by_name.entry(names.get(name).copied().unwrap_or(name)).or_insert_with(|| {
                groups.all.push(Group::default());
                groups.all.len() - 1
            })
        };
        let ids = ranks_by_id(items, documents);
        for (rank, document) in ranked(documents) {
            let item = &items[document.at];
            let Some(name) = item.group.as_deref() else { continue };
            let other = match &document.out {
                None if document.sent_at.is_none() => {
                    let at = number(&mut groups, name);
                    groups.all[at].members.push(rank);
                    groups.numbers.insert(rank, at);
                    continue;
                }
                // It stays in the prompt whatever its group does (rule S5).
                None => Some(rank),
                // The document that a duplicate repeats represents it.
                Some(ExcludedReason::Duplicate { of }) => ids.get(of).copied(),
                Some(_) => None,
            };
            if let Some(other) = other {
                let at = number(&mut groups, name);
                groups.all[at].others.insert(other);
            }
        }
        // A duplicate of a member needs nothing else.
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

/// Returns, for the name of each group that shares a text with others, the first name of these groups: they
/// are one group.
fn shared_names<'a>(items: &'a RetrievedItems, documents: &[Document]) -> BTreeMap<&'a str, &'a str> {
    let ids = ranks_by_id(items, documents);
    let mut beside: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for document in documents {
        let Some(ExcludedReason::Duplicate { of }) = &document.out else { continue };
        let repeated = ids.get(of).map(|rank| &documents[rank.to_usize()]);
        // A document of the last prompt stays without its group.
        let repeated = repeated.filter(|one| one.sent_at.is_none()).map(|one| &items[one.at]);
        let own = items[document.at].group.as_deref();
        if let Some((a, b)) = own.zip(repeated.and_then(|item| item.group.as_deref())) {
            beside.entry(a).or_default().push(b);
            beside.entry(b).or_default().push(a);
        }
    }
    let mut first_of: BTreeMap<&str, &str> = BTreeMap::new();
    // In ascending order, so that the first name that reaches another one is the first of all.
    for start in beside.keys() {
        let mut reached = vec![*start];
        while let Some(name) = reached.pop() {
            if !first_of.contains_key(name) {
                first_of.insert(name, start);
                reached.extend(&beside[name]);
            }
        }
    }
    first_of
}

/// Returns the ranks of the documents that no policy excludes, by id.
fn ranks_by_id<'a>(items: &'a RetrievedItems, documents: &[Document]) -> BTreeMap<&'a ItemId, Rank> {
    let admitted = ranked(documents).filter(|(_, document)| document.out.is_none());
    admitted.map(|(rank, document)| (&items[document.at].id, rank)).collect()
}

fn ranked(documents: &[Document]) -> impl Iterator<Item = (Rank, &Document)> {
    (0..).map(Rank::new).zip(documents)
}
