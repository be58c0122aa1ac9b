//! Which entries of two writers can stand one after the other although neither knew of the other's (rule J5).

use context_window::{ItemId, conversation::Event, events::LogEvent};
use std::collections::BTreeSet;

/// What an entry is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// What was said, in order.
    Order,
    /// The newest prompt.
    Prompt,
    /// The level of use.
    Level,
    /// One item.
    Item(ItemId),
}

/// What the entries of a writer are about, who knew of so many messages.
pub(super) fn topics(messages: u64, entries: &[LogEvent]) -> BTreeSet<Topic> {
    let mut topics = BTreeSet::new();
    let mut position = u32::try_from(messages).unwrap_or(u32::MAX);
    for entry in entries {
        if let Some(message) = entry.message() {
            let id = message.id().cloned().unwrap_or_else(|| ItemId::for_message(position));
            topics.extend([Topic::Order, Topic::Item(id)]);
            position = position.saturating_add(1);
        }
        match entry.event() {
            None => {}
            Some(Event::SystemText { id, .. }) => topics.extend([Topic::Order, Topic::Item(id)]),
            Some(Event::Pinned(item)) => topics.extend([Topic::Item(item.id)]),
            Some(Event::MessagePinned { id, .. } | Event::Unpinned(id) | Event::TtlSet { id, .. }) => {
                topics.extend([Topic::Item(id)]);
            }
            Some(Event::Sent { .. } | Event::PromptSettings { .. }) => topics.extend([Topic::Prompt]),
            Some(Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed }) => {
                let counted_down = counted_down.into_iter().map(|(id, _)| id);
                let ids = counted_down.chain(asked).chain(documents_asked).chain(documents_renewed);
                topics.extend(ids.map(Topic::Item));
            }
            // A compaction takes the level back.
            Some(Event::Compacted(_)) => topics.extend([Topic::Order, Topic::Level]),
            Some(Event::LevelCrossed { .. }) => topics.extend([Topic::Level]),
            Some(Event::SentWith { .. } | Event::CompactionUndone { .. } | Event::Rewound { .. }) => {
                topics.extend([Topic::Order]);
            }
        }
    }
    topics
}

/// Whether `ours` can come after `theirs`: no topic is in both.
pub(super) fn commute(messages: u64, theirs: &[LogEvent], ours: &[LogEvent]) -> bool {
    topics(messages, theirs).is_disjoint(&topics(messages, ours))
}
