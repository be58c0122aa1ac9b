//! What is archived and what is active, for those who show a log and those who plan from it (rules C1, C9, U4).

use super::{ArchivedBy, Compaction, CompactionKind, Conversation, Entry, Event, Place, Placed, Run, View};
use crate::{
    item::ItemId,
    message::{Message, Role},
    usage::{ContextEvent, ContextUsage, Level, Usage},
};
use std::{collections::BTreeSet, ops::Range};

/// One row of what a person sees: everything, with markers in their places.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Row<'a> {
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
}

/// One part of what is still sent of a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Active<'a> {
    /// A message.
    Message {
        /// Its id.
        id: ItemId,
        /// The message.
        message: &'a Message,
    },
    /// A summary, where the messages stood that it stands for.
    Summary(&'a Compaction),
}

impl Conversation {
    /// Everything that was said, in order, with a marker wherever messages were archived or taken back.
    pub fn display(&self) -> impl Iterator<Item = Row<'_>> {
        let mut position = 0;
        self.entries().filter_map(move |entry| match entry {
            Entry::Message(message) => {
                let row = Row::Message {
                    id: self.message_id(position),
                    message,
                    archived: self.view.archived(position),
                };
                position += 1;
                Some(row)
            }
            Entry::Event(Event::Compacted(record)) => Some(Row::Compaction(record)),
            Entry::Event(Event::Rewound { before }) => Some(Row::Rewound(before)),
            Entry::Event(_) => None,
        })
    }

    /// What is still sent, in its order: what the newest compaction kept before its summary, the summary, pinned messages
    /// among the archived ones, what it kept after, and what came since.
    pub fn active(&self) -> impl Iterator<Item = Active<'_>> {
        let mut parts: Vec<((u32, u8, u32), Active<'_>)> = (0..self.len())
            .filter(|position| self.turns.place_of(*position) != Place::Archived)
            .map(|position| {
                let (id, message) = (self.message_id(position), self.message(position));
                (self.order_of(position), Active::Message { id, message })
            })
            .collect();
        parts.extend(self.view.summaries().filter_map(|placed| {
            Some((Self::order_of_summary(placed), Active::Summary(self.compaction(placed.number)?)))
        }));
        parts.sort_by_key(|(order, _)| *order);
        parts.into_iter().map(|(_, part)| part)
    }

    /// Every compaction, the oldest first, undone ones among them.
    #[must_use]
    pub fn compactions(&self) -> impl DoubleEndedIterator<Item = &Compaction> {
        self.compactions.iter().filter_map(|at| match &self.events[*at].1 {
            Event::Compacted(record) => Some(&**record),
            _ => None,
        })
    }

    /// The compaction of a number.
    #[must_use]
    pub fn compaction(&self, number: u32) -> Option<&Compaction> {
        self.compactions().rev().find(|record| record.number == number)
    }

    /// Takes note of the figures of the window (`ContextWindowManager::usage`) and says what a user interface is to be told:
    /// the figures, and one event where the level crossed a boundary since the last call (rule U3). The log remembers the
    /// level.
    pub fn observe(&mut self, usage: ContextUsage) -> Vec<ContextEvent> {
        let mut events = vec![ContextEvent::Usage(usage)];
        let (from, to) = (self.level, usage.level);
        if from != to {
            self.record(Event::LevelCrossed { level: to });
            events.push(ContextEvent::LevelCrossed { from, to });
        }
        events
    }

    /// The level of use that was told last.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Says that a reply is being received: until [`Conversation::push_reply`], or until this is taken back, nothing is
    /// compacted (rule C2).
    pub fn responding(&mut self, is: bool) {
        self.responding = is;
    }

    /// Says that the log is being played back: nothing is compacted meanwhile (rule C2).
    pub fn playback(&mut self, is: bool) {
        self.playback = is;
    }

    /// Says that a summary failed or was cancelled. After three in a row nothing more is asked for, until a compaction helps or
    /// the user speaks again (rule C5).
    pub fn compaction_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// What every reply together was billed for.
    #[must_use]
    pub fn billed(&self) -> Usage {
        self.billed
    }

    /// How many messages are archived.
    pub(crate) fn archived_messages(&self) -> u64 {
        let ranges = self.view.archived_in(0..self.len());
        ranges.map(|(range, _)| u64::from(range.end - range.start)).sum()
    }

    /// How many messages are active, those that lead the prompt apart.
    pub(crate) fn active_messages(&self) -> u64 {
        u64::from(self.len() - self.turns.leading()).saturating_sub(self.archived_messages())
    }

    /// How often the log was compacted or rewound.
    pub(crate) fn archive_events(&self) -> usize {
        self.archive_events
    }

    /// Every compaction with the number of messages before it.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = (u32, &Compaction)> {
        self.compactions.iter().filter_map(|at| match &self.events[*at] {
            (before, Event::Compacted(record)) => Some((*before, &**record)),
            _ => None,
        })
    }

    /// The position of the newest user message with anything in it, archived or not.
    pub(crate) fn last_user_message(&self) -> Option<u32> {
        self.last_asked
    }

    /// Whether a prompt that was planned since the newest compaction was sent.
    pub(crate) fn sent_since_the_record(&self) -> bool {
        let newest = self.sent.last().map(|at| &self.events[*at].1);
        matches!(newest, Some(Event::Sent { archives, .. }) if *archives == self.archive_events)
    }

    /// How many active turns there are.
    pub(crate) fn active_turns(&self) -> u64 {
        let archived =
            |turn: &u32| self.turns.first_of(*turn).is_some_and(|at| self.view.archived(at).is_some());
        if self.view.is_whole() {
            return u64::from(self.turns.count());
        }
        (0..self.turns.count()).filter(|turn| !archived(turn)).count() as u64
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn is_responding(&self) -> bool {
        self.responding
    }

    pub(crate) fn is_played_back(&self) -> bool {
        self.playback
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Where a message stands in the prompt: one that a pin keeps of what is archived, after the summary.
    pub(crate) fn order_of(&self, position: u32) -> (u32, u8, u32) {
        let archived = self.view.archived(position).and_then(|by| match by {
            ArchivedBy::Compaction(number) => Some(self.view.place_of(number)),
            ArchivedBy::Rewind => None,
        });
        archived.map_or((position, 2, 0), |place| (place, 1, position))
    }

    pub(crate) fn order_of_summary(placed: &Placed) -> (u32, u8, u32) {
        (placed.range.end, 0, placed.number)
    }

    /// Whether no message followed the newest compaction.
    pub(crate) fn ends_in_a_record(&self) -> bool {
        let newest = self.archived_at.map(|at| &self.events[at]);
        matches!(newest, Some((before, Event::Compacted(_))) if *before == self.len())
    }

    /// Messages that stood before the newest compaction in force.
    pub(crate) fn newest_record(&self) -> Option<(u32, &Compaction)> {
        let placed = self.view.newest()?;
        Some((placed.before, self.compaction(placed.number)?))
    }

    /// A record that archives what is active from `from` on, up to `first_active`, `head` apart. Tokens and summary are
    /// for the caller to say.
    pub(crate) fn record_of(
        &self,
        kind: CompactionKind,
        head: Option<u32>,
        from: Option<u32>,
        first_active: Option<u32>,
    ) -> Compaction {
        // What is archived right behind the range is no active message: the range reaches to the first one that is.
        let first_active = first_active.and_then(|first| self.active_from(first));
        let range = from.unwrap_or(self.turns.leading())..first_active.unwrap_or(self.len());
        let archived = self.runs(&range, head);
        let id = |position: Option<u32>| position.map(|position| self.message_id(position));
        let mut number = self.compactions().map(|record| record.number).max().unwrap_or(0).saturating_add(1);
        while self.position_of(&Compaction::summary_id(number)).is_some() {
            number = number.saturating_add(1);
        }
        Compaction {
            number,
            kind,
            head: id(head),
            from: id(from),
            first_active: id(first_active),
            messages_archived: archived.iter().map(|run| run.count).sum(),
            archived,
            tokens_before: 0,
            tokens_after: 0,
            summary: None,
            state: Vec::new(),
            progress: kind == CompactionKind::Fresh,
            timestamp: None,
        }
    }

    /// The first active message from a position on.
    pub(crate) fn active_from(&self, position: u32) -> Option<u32> {
        (position..self.len()).find(|at| self.view.archived(*at).is_none())
    }

    /// From the first to behind the last message of each active exchange that has more than one.
    pub(crate) fn active_spans(&self) -> impl Iterator<Item = Range<u32>> {
        self.turns.spans().filter(|span| self.view.archived(span.start).is_none())
    }

    /// A boundary moved back until no active exchange is on both sides of it.
    pub(crate) fn unparted(&self, mut boundary: u32) -> u32 {
        let spans: Vec<Range<u32>> = self.active_spans().collect();
        loop {
            let before = boundary;
            // From the newest back, so that a chain of them takes one pass.
            for span in spans.iter().rev() {
                if span.start < boundary && boundary < span.end {
                    boundary = span.start;
                }
            }
            if boundary == before {
                return boundary;
            }
        }
    }

    /// The active messages of a range, `head` apart, in runs.
    fn runs(&self, range: &Range<u32>, head: Option<u32>) -> Vec<Run> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for position in range.clone() {
            if self.view.archived(position).is_some() || head == Some(position) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == position => run.end += 1,
                _ => runs.push(position..position + 1),
            }
        }
        let run = |run: Range<u32>| Run {
            id: self.message_id(run.start),
            last_id: self.message_id(run.end - 1),
            count: u64::from(run.end - run.start),
        };
        runs.into_iter().map(run).collect()
    }

    /// A record by positions; none where it names what is not there, or archives nothing: then the messages stay.
    pub(super) fn placed(&self, record: &Compaction) -> Option<Placed> {
        let at = |id: &Option<ItemId>, otherwise: u32| match id {
            Some(id) => self.position_of(id),
            None => Some(otherwise),
        };
        let leading = self.turns.leading();
        let range = at(&record.from, leading)?.max(leading)..at(&record.first_active, self.len())?;
        let head = match &record.head {
            Some(id) => Some(self.position_of(id)?),
            None => None,
        };
        let whole = range.start < range.end || record.kind == CompactionKind::Fresh;
        let range = range.start..range.end.max(range.start);
        // What stays before a summary is a question, and no exchange is parted from its results.
        let asks = |head: u32| range.contains(&head) && self.message(head).role() == Role::User;
        let parted = |span: Range<u32>| {
            let parts = |at: u32| span.start < at && at < span.end;
            record.kind != CompactionKind::Fresh && (parts(range.start) || parts(range.end))
        };
        let sound = head.is_none_or(asks) && !self.active_spans().any(parted);
        (whole && sound).then(|| Placed::new(record, self.len(), range, head))
    }

    /// Whether a record would archive anything here, and soundly.
    pub(crate) fn would_archive(&self, record: &Compaction) -> bool {
        self.placed(record).is_some()
    }

    /// Files the messages into turns again, the archived ones left out.
    pub(super) fn reshape(&mut self) {
        let kept = self.kept_by_pins();
        let view = &self.view;
        let is_archived = |position: u32| view.archived(position).is_some();
        let said = |position: u32| matches!(view.archived(position), Some(ArchivedBy::Compaction(_)));
        self.turns =
            self.turns.without(&self.messages, is_archived, |position| kept.contains(&position), said);
    }

    /// The same, where a pin on this message changes what is left out.
    pub(super) fn reshape_for(&mut self, position: u32) {
        if self.view.archived(position).is_some() {
            self.reshape();
        }
    }

    /// Archived messages that pins keep: whole exchanges, with the user messages of their turns (rule S3).
    fn kept_by_pins(&self) -> BTreeSet<u32> {
        let archived =
            |position: &&u32| matches!(self.view.archived(**position), Some(ArchivedBy::Compaction(_)));
        let mut pinned = self.pins.keys().filter(archived).peekable();
        if pinned.peek().is_none() {
            return BTreeSet::new();
        }
        let rewound = |position: u32| self.view.archived(position) == Some(ArchivedBy::Rewind);
        let all = self.turns.without(&self.messages, rewound, |_| false, |_| false);
        let mut kept = BTreeSet::new();
        for position in pinned {
            match all.place_of(*position) {
                Place::Head(_) => drop(kept.insert(*position)),
                Place::Exchange(at) => {
                    kept.extend(all.exchange(at).members());
                    kept.extend(all.head(all.turn_of(at)));
                }
                Place::Leading | Place::Archived => {}
            }
        }
        kept
    }
}
