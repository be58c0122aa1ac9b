//! What stands for archived messages (rules C1, O1).

use super::Pool;
use crate::{
    conversation::{Compaction, Conversation, ResolvedCompaction},
    item::ItemId,
    message::Message,
    provider::wording,
};

/// What stands for archived messages.
pub(super) struct Summary {
    id: ItemId,
    /// The number of its compaction.
    compaction: u32,
    message: Message,
    /// Where it stands among the messages.
    pub(super) order: (u32, u8, u32),
}

impl Pool<'_> {
    /// The summary of a place among those that are sent: its id, the number of its compaction, and
    /// what is sent for it.
    pub(crate) fn summary(&self, at: u32) -> (&ItemId, u32, &Message) {
        let Summary { id, compaction, message, .. } = &self.summaries[at as usize];
        (id, *compaction, message)
    }

    /// Whether a compaction inside the live turn put its summary after the live question: nothing is merged into that.
    pub(crate) fn summary_follows_the_question(&self) -> bool {
        let question = self.log.live_question().map(|position| self.log.order_of(position));
        question.is_some_and(|question| self.summaries.iter().any(|summary| summary.order > question))
    }

    /// The ids of the summaries.
    pub(super) fn summary_ids(&self) -> impl Iterator<Item = &ItemId> {
        self.summaries.iter().map(|summary| &summary.id)
    }
}

/// What stands for archived messages, in the order of the prompt.
pub(super) fn of(log: &Conversation) -> Vec<Summary> {
    let summary = |placed: &ResolvedCompaction| {
        let record = log.compaction(placed.number)?;
        let text = record.summary.as_deref().unwrap_or_default();
        Some(Summary {
            id: Compaction::summary_id(placed.number),
            compaction: placed.number,
            message: Message::user(wording::summary(text, record.messages_archived, &record.state)),
            order: Conversation::order_of_summary(placed),
        })
    };
    log.archive_index().summaries().filter_map(summary).collect()
}
