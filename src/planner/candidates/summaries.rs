//! Summaries that are sent in place of archived messages.
//!
//! - Input: the compactions of the conversation, and the target.
//! - Output: the summaries that are sent, in prompt order.
//! - Rules: C1, C11, O1.

use super::Candidates;
use crate::{
    conversation::{Compaction, Conversation, ProviderSummary, ResolvedCompaction},
    item::ItemId,
    message::{Message, Part},
    plan::Target,
    provider::wording,
};

/// A summary that is sent in place of archived messages.
pub(super) struct Summary {
    id: ItemId,
    /// The number of its compaction.
    compaction: u32,
    message: Message,
    /// True if another provider made it. A text is then sent in its place (rule C11).
    pub(super) foreign: bool,
    /// Its sort key among the messages.
    pub(super) order: (u32, u8, u32),
}

impl Candidates<'_> {
    /// Returns the summary with this number among those that are sent: its id, the number of its compaction,
    /// and its message.
    pub(crate) fn summary(&self, at: u32) -> (&ItemId, u32, &Message) {
        let Summary { id, compaction, message, .. } = &self.summaries[at as usize];
        (id, *compaction, message)
    }

    /// Returns the message of the compaction with this number.
    pub(crate) fn summary_message(&self, number: u32) -> Message {
        let summary = self.summaries.iter().find(|summary| summary.compaction == number);
        summary.map_or_else(|| Message::user(""), |summary| summary.message.clone())
    }

    /// Returns the ids of summaries that another provider made.
    pub(crate) fn foreign_summaries(&self) -> impl Iterator<Item = &ItemId> {
        self.summaries.iter().filter(|summary| summary.foreign).map(|summary| &summary.id)
    }
}

impl Summary {
    pub(super) fn id(&self) -> &ItemId {
        &self.id
    }
}

/// Finds the summaries that are sent, in prompt order.
pub(super) fn find_summaries(log: &Conversation, target: &Target) -> Vec<Summary> {
    let summary = |placed: &ResolvedCompaction| {
        let record = log.compaction(placed.number)?;
        let own = record.provider_summary.as_ref().filter(|made| reads(target, made));
        Some(Summary {
            id: Compaction::summary_id(placed.number),
            compaction: placed.number,
            message: sent_for(record, own),
            foreign: record.provider_summary.is_some() && own.is_none(),
            order: Conversation::order_of_summary(placed),
        })
    };
    log.archive_index().summaries().filter_map(summary).collect()
}

/// Checks if a target reads a summary that a provider made.
fn reads(target: &Target, made: &ProviderSummary) -> bool {
    target.provider == made.provider && target.wire_format == Some(made.wire_format)
}

/// Returns the message of a compaction for a target.
pub(crate) fn sent_to(target: &Target, record: &Compaction) -> Message {
    sent_for(record, record.provider_summary.as_ref().filter(|made| reads(target, made)))
}

/// Returns the message of a compaction: the provider's own items as they came, or the text of the summary.
pub(crate) fn sent_for(record: &Compaction, own: Option<&ProviderSummary>) -> Message {
    let Some(own) = own else {
        let text = record.summary.as_deref().unwrap_or_default();
        return Message::user(wording::summary(text, record.messages_archived, &record.state));
    };
    let part = |json: &String| Part::Opaque { wire_format: own.wire_format, json: json.clone() };
    Message::assistant("").with_parts(own.items.iter().map(part))
}

/// Checks if a compaction inside the live turn put its summary after the live question. Nothing is then
/// merged into the question.
pub(super) fn follow_the_question(summaries: &[Summary], log: &Conversation) -> bool {
    let question = log.live_question().map(|position| log.order_of(position));
    question.is_some_and(|question| summaries.iter().any(|summary| summary.order > question))
}
