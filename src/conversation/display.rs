//! Two views of a log: what a person sees, and what is sent (rule C1).

use super::{ArchivedBy, Compaction, Conversation, Entry, Event, Place, ResolvedCompaction};
use crate::{item::ItemId, message::Message};

/// One row of what a person sees: everything, with markers where messages were archived.
#[derive(Debug, Clone)]
pub enum HistoryRow<'a> {
    /// A message.
    Message {
        /// Its id.
        id: ItemId,
        /// The message.
        message: &'a Message,
        /// What archived it, if it is no longer sent.
        archived: Option<ArchivedBy>,
    },
    /// Messages were archived here.
    Compaction(&'a Compaction),
    /// The conversation went on from before this message.
    Rewound(&'a ItemId),
    /// The compaction of this number was taken back.
    CompactionUndone(u32),
}

/// One part of what is still sent of a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ActiveEntry<'a> {
    /// A message.
    Message {
        /// Its id.
        id: ItemId,
        /// The message.
        message: &'a Message,
    },
    /// A summary, at the position of the messages that it replaces.
    Summary(&'a Compaction),
}

impl Conversation {
    /// Everything that was said, in order, with a marker wherever messages were archived or taken back.
    pub fn display(&self) -> impl Iterator<Item = HistoryRow<'_>> {
        let mut position = 0;
        self.entries().filter_map(move |entry| match entry {
            Entry::Message(message) => {
                let row = HistoryRow::Message {
                    id: self.message_id(position),
                    message,
                    archived: self.archive_index.archived(position),
                };
                position += 1;
                Some(row)
            }
            Entry::Event(Event::Compacted(record)) => Some(HistoryRow::Compaction(record)),
            Entry::Event(Event::Rewound { before }) => Some(HistoryRow::Rewound(before)),
            Entry::Event(Event::CompactionUndone { number }) => Some(HistoryRow::CompactionUndone(*number)),
            Entry::Event(_) => None,
        })
    }

    /// What is still sent, in its order: what the newest compaction kept before its summary, the summary, pinned messages
    /// among the archived ones, what it kept after, and what came since.
    pub fn active(&self) -> impl Iterator<Item = ActiveEntry<'_>> {
        let mut parts: Vec<((u32, u8, u32), ActiveEntry<'_>)> = (0..self.len())
            .filter(|position| self.turns.place_of(*position) != Place::Archived)
            .map(|position| {
                let (id, message) = (self.message_id(position), self.message(position));
                (self.order_of(position), ActiveEntry::Message { id, message })
            })
            .collect();
        parts.extend(self.archive_index.summaries().filter_map(|placed| {
            Some((Self::order_of_summary(placed), ActiveEntry::Summary(self.compaction(placed.number)?)))
        }));
        parts.sort_by_key(|(order, _)| *order);
        parts.into_iter().map(|(_, part)| part)
    }

    /// The sort key of a message in the prompt. An archived message that a pin keeps comes after the summary.
    pub(crate) fn order_of(&self, position: u32) -> (u32, u8, u32) {
        let archived = self.archive_index.archived(position).and_then(|by| match by {
            ArchivedBy::Compaction(number) => Some(self.archive_index.place_of(number)),
            ArchivedBy::Rewind => None,
        });
        archived.map_or((position, 2, 0), |place| (place, 1, position))
    }

    pub(crate) fn order_of_summary(placed: &ResolvedCompaction) -> (u32, u8, u32) {
        (placed.range.end, 0, placed.number)
    }
}
