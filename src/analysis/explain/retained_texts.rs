//! The keys of texts that stay where they were sent (retained texts, rule S10). They also cover budgets at
//! which these texts leave. There, a document that the request brings again competes, and state is sent
//! again, at the end of the prompt or at its beginning.

use super::{gathered::Rounds, key::Key};
use crate::{
    conversation::sent_state_row,
    item::ItemId,
    planner::candidates::{CandidateId, Candidates},
};
use std::collections::BTreeMap;

/// The texts that were sent together with messages.
#[derive(Debug, Default)]
pub(super) struct RetainedTexts {
    /// Documents by the position of the message after them and their number among its documents. Several may
    /// have one id (rule O5).
    documents: BTreeMap<(u32, usize), Key>,
    /// The same documents by their row ids in the present plan.
    rows: BTreeMap<ItemId, Key>,
    /// State and instructions by their row ids.
    items: BTreeMap<ItemId, Key>,
    /// The row id for each number of a [`Key::RetainedTexts`].
    ids: Vec<ItemId>,
}

impl RetainedTexts {
    /// Collects the retained texts with which a request may be planned.
    pub(super) fn new(rounds: &Rounds<'_>) -> Self {
        let mut retained_texts = Self::default();
        let (first, present) = (&rounds.first.first, &rounds.present().first);
        if !first.retained().retains_texts() {
            return retained_texts;
        }
        let (log, request) = (first.log(), first.request());
        for (at, documents) in log.sent_with().all_documents() {
            for (nth, (sent, row)) in
                documents.iter().zip(present.retained().document_rows(documents, at)).enumerate()
            {
                // A retained document that the request brings again has the key of the request's document, in
                // whatever place it is sent.
                let is_in_place = first.retained().place_of_document(&sent.id) == Some(at);
                let again = request.rag.iter().position(|item| is_in_place && item.id == sent.id);
                let key = again.map_or_else(|| retained_texts.number(row.clone()), Key::Document);
                retained_texts.documents.insert((at, nth), key);
                retained_texts.rows.insert(row, key);
            }
        }
        for (at, sent) in log.sent_with().all_state() {
            // A state entry has one row id at its old place, one at the end of the prompt and one at its
            // beginning.
            for row in [sent.state_row(at), sent_state_row(&sent.id, log.turns().messages()), sent.id.clone()]
            {
                if !retained_texts.items.contains_key(&row) {
                    let key = retained_texts.number(row.clone());
                    retained_texts.items.insert(row, key);
                }
            }
        }
        retained_texts
    }

    fn number(&mut self, row: ItemId) -> Key {
        self.ids.push(row);
        Key::RetainedTexts((self.ids.len() - 1) as u32)
    }

    /// Returns the key of a row of the present plan, or `None` if the row is not one of these texts.
    pub(super) fn key(&self, id: &ItemId, is_document: bool) -> Option<Key> {
        let rows = if is_document { &self.rows } else { &self.items };
        rows.get(id).copied()
    }

    /// Returns the row id for a number.
    pub(super) fn id(&self, number: u32) -> ItemId {
        self.ids[number as usize].clone()
    }

    /// Returns the keys of the texts that are included together with the candidates `kept`. Texts before the
    /// position `released_before` are no longer sent.
    pub(super) fn within(
        &self,
        candidates: &Candidates<'_>,
        kept: impl Iterator<Item = CandidateId>,
        released_before: u32,
    ) -> Vec<Key> {
        let mut keys = Vec::new();
        // Most requests retain no texts, and then no candidate has to be examined.
        if self.ids.is_empty() && self.documents.is_empty() {
            return keys;
        }
        for id in kept {
            if let CandidateId::System(at) = id {
                keys.extend(self.key(&candidates.system(at).0, false));
            }
            if let CandidateId::State(at) = id {
                keys.extend(self.key(&candidates.state(at).0, false));
            }
            let Some(at) = candidates.place_of(id) else { continue };
            if candidates.retained().is_sent_at(at, released_before) {
                keys.extend(self.documents.range((at, 0)..=(at, usize::MAX)).map(|(_, key)| *key));
            }
            let state = candidates.retained().state_before(at, released_before);
            keys.extend(state.iter().filter_map(|(row, _)| self.key(row, false)));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
