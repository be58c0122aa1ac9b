//! Names for texts that stay where they were sent (rule S10), and for what becomes of them at budgets at which they leave:
//! a document that the request brings again competes there, and state is sent again, at the end or in the head.

use super::key::Key;
use crate::{
    item::ItemId,
    planner::candidates::{CandidateId, Candidates, state_row},
};
use std::collections::BTreeMap;

/// The texts that were sent beside messages, each by the id of its row.
#[derive(Debug, Default)]
pub(super) struct Stays {
    keys: BTreeMap<(Place, ItemId), Key>,
    ids: Vec<ItemId>,
}

/// Documents have a namespace of their own (rule O5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Document,
    Item,
}

impl Stays {
    /// Of the first round of a request.
    pub(super) fn of(candidates: &Candidates<'_>) -> Self {
        let mut stays = Self::default();
        if !candidates.standing().stays {
            return stays;
        }
        let (log, request) = (candidates.log(), candidates.request());
        // One that the request brings again is that document, wherever it is sent.
        let again = request.rag.iter().enumerate().rev();
        let again = again.filter(|(_, item)| candidates.standing().has_document(&item.id));
        let again: BTreeMap<&ItemId, usize> = again.map(|(at, item)| (&item.id, at)).collect();
        for (_, sent) in log.sent_with().all_documents() {
            let brought = again.get(&sent.id).map(|at| Key::Document(*at));
            stays.add(Place::Document, sent.id.clone(), brought);
        }
        for (at, sent) in log.sent_with().all_state() {
            stays.add(Place::Item, state_row(&sent.id, at), None);
            stays.add(Place::Item, state_row(&sent.id, log.turns().messages()), None);
            stays.add(Place::Item, sent.id.clone(), None);
        }
        stays
    }

    fn add(&mut self, place: Place, id: ItemId, key: Option<Key>) {
        let key = key.unwrap_or(Key::Stays(self.ids.len() as u32));
        let next = (place, id.clone());
        if !self.keys.contains_key(&next) {
            if matches!(key, Key::Stays(_)) {
                self.ids.push(id);
            }
            self.keys.insert(next, key);
        }
    }

    /// The key of a row, if it is one of these texts.
    pub(super) fn key(&self, id: &ItemId, is_document: bool) -> Option<Key> {
        if self.keys.is_empty() {
            return None;
        }
        let place = if is_document { Place::Document } else { Place::Item };
        self.keys.get(&(place, id.clone())).copied()
    }

    /// The id of the row behind a key.
    pub(super) fn id(&self, number: u32) -> ItemId {
        self.ids[number as usize].clone()
    }

    /// The texts that are in with these candidates, where those before a position are no longer sent.
    pub(super) fn within(
        &self,
        candidates: &Candidates<'_>,
        kept: impl Iterator<Item = CandidateId>,
        released_before: u32,
    ) -> Vec<Key> {
        let mut keys = Vec::new();
        if self.keys.is_empty() {
            return keys;
        }
        for id in kept {
            if let CandidateId::System(at) = id {
                keys.extend(self.key(&candidates.system(at).0, false));
            }
            if let CandidateId::State(at) = id {
                keys.extend(self.key(&candidates.state(at).0, false));
            }
            let documents = candidates.documents_before(id, released_before);
            keys.extend(documents.iter().filter_map(|sent| self.key(&sent.id, true)));
            let rows = candidates.state_rows_before(id, released_before);
            keys.extend(rows.iter().filter_map(|row| self.key(row, false)));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
