//! Entries of two concurrent writers that can be appended one after the other (commuting entries, rule J5).

use context_window::{ItemId, conversation::Event, events::LogEvent};
use std::collections::BTreeSet;

/// A part of the session's state that an entry changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// The order of messages, system texts, compactions and rewinds.
    Order,
    /// The newest prompt.
    Prompt,
    /// The level of use.
    Level,
    /// One item.
    Item(ItemId),
}

/// Returns the topics of a writer's entries. `messages` is the number of messages that the writer knew before
/// them.
pub(super) fn topics(messages: u64, entries: &[LogEvent]) -> BTreeSet<Topic> {
    let mut topics = BTreeSet::new();
    let mut position = u32::try_from(messages).unwrap_or(u32::MAX);
    for entry in entries {
        if let Some(message) = entry.message() {
            // Messages without an id get one from their position, as in the conversation.
            let id = message.id().cloned().unwrap_or_else(|| ItemId::for_message(position));
            topics.extend([Topic::Order, Topic::Item(id)]);
            position = position.saturating_add(1);
        }
        match entry.event() {
            None => {}
            Some(Event::SystemText { id, .. }) => topics.extend([Topic::Order, Topic::Item(id)]),
            Some(Event::Pinned(item)) => topics.extend([Topic::Item(item.id)]),
            Some(Event::RuleKept(rule)) => topics.extend([Topic::Item(rule.id().clone())]),
            Some(
                Event::MessagePinned { id, .. }
                | Event::Unpinned(id)
                | Event::RuleDropped(id)
                | Event::TtlSet { id, .. },
            ) => {
                topics.extend([Topic::Item(id)]);
            }
            Some(Event::Sent { .. } | Event::PromptSettings { .. }) => topics.extend([Topic::Prompt]),
            Some(Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed }) => {
                let counted_down = counted_down.into_iter().map(|(id, _)| id);
                let ids = counted_down.chain(asked).chain(documents_asked).chain(documents_renewed);
                topics.extend(ids.map(Topic::Item));
            }
            // A compaction resets the level.
            Some(Event::Compacted(_)) => topics.extend([Topic::Order, Topic::Level]),
            Some(Event::LevelCrossed { .. }) => topics.extend([Topic::Level]),
            Some(Event::SentWith { .. } | Event::CompactionUndone { .. } | Event::Rewound { .. }) => {
                topics.extend([Topic::Order]);
            }
        }
    }
    topics
}

/// Checks if `ours` can follow `theirs`: they have no topic in common.
pub(super) fn can_merge(messages: u64, theirs: &[LogEvent], ours: &[LogEvent]) -> bool {
    topics(messages, theirs).is_disjoint(&topics(messages, ours))
}
