//! Two views of a log: the full history for a person, and the active part, which is sent (rule C1).

use super::{ArchivedBy, Compaction, Conversation, Entry, Event, Place, ResolvedCompaction};
use crate::{item::ItemId, message::Message};

/// One row of a conversation, either of its full history or of its active part. The history has markers at
/// the points at which messages were archived.
#[derive(Debug, Clone)]
pub enum HistoryRow<'a> {
    /// A message.
    Message {
        /// Its id.
        id: ItemId,
        /// The message.
        message: &'a Message,
        /// True if the message is no longer sent.
        is_archived: bool,
        /// The number of the compaction that archived the message. `None` for an active message, and for one
        /// that a rewind removed.
        compaction: Option<u32>,
    },
    /// A compaction. In the history it comes at the point at which it archived messages; in the active part,
    /// at the position of its summary.
    Compaction(&'a Compaction),
    /// The conversation was rewound to before this message.
    Rewound(&'a ItemId),
    /// The compaction of this number was undone.
    CompactionUndone(u32),
}

impl Conversation {
    /// Returns every message in order, with a marker at each compaction, undo and rewind. This is the view
    /// for a person.
    pub fn history(&self) -> impl Iterator<Item = HistoryRow<'_>> {
        let mut position = 0;
        self.entries().filter_map(move |entry| match entry {
            Entry::Message(message) => {
                let archived = self.archive_index.archived(position);
                let row = HistoryRow::Message {
                    id: self.message_id(position),
                    message,
                    is_archived: archived.is_some(),
                    compaction: archived.and_then(ArchivedBy::compaction),
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

    /// Returns the active part of the conversation in prompt order. For a compaction, that is: the messages
    /// before the archived range, the summary, pinned messages of the range, and the messages after it.
    pub fn active(&self) -> impl Iterator<Item = HistoryRow<'_>> {
        let mut parts: Vec<((u32, u8, u32), HistoryRow<'_>)> = (0..self.len())
            .filter(|position| self.turns.place_of(*position) != Place::Archived)
            .map(|position| {
                let (id, message) = (self.message_id(position), self.message(position));
                (
                    self.order_of(position),
                    HistoryRow::Message { id, message, is_archived: false, compaction: None },
                )
            })
            .collect();
        parts.extend(self.archive_index.summaries().filter_map(|placed| {
            Some((Self::order_of_summary(placed), HistoryRow::Compaction(self.compaction(placed.number)?)))
        }));
        // Stable order without ties: a summary (0) comes before its pinned messages (1), and both before
        // the message at the range's end (2).
        parts.sort_by_key(|(order, _)| *order);
        parts.into_iter().map(|(_, part)| part)
    }

    /// Returns the sort key of a message in the prompt. An archived message that a pin keeps sorts right
    /// after the summary.
    pub(crate) fn order_of(&self, position: u32) -> (u32, u8, u32) {
        let archived = self.archive_index.archived(position).and_then(|by| match by {
            ArchivedBy::Compaction(number) => Some(self.archive_index.place_of(number)),
            ArchivedBy::Rewind => None,
        });
        archived.map_or((position, 2, 0), |place| (place, 1, position))
    }

    /// Returns the sort key of a summary: right before the first message after its range.
    pub(crate) fn order_of_summary(placed: &ResolvedCompaction) -> (u32, u8, u32) {
        (placed.range.end, 0, placed.number)
    }
}
