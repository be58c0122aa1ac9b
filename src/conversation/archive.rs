//! Compactions in a log: the archived messages of each, and the turns that remain (rules C1, S3).

use super::{
    ArchiveIndex, ArchivedBy, Compaction, CompactionKind, Conversation, Event, MessageRange, Place,
    ResolvedCompaction, TurnIndex,
};
use crate::{item::ItemId, message::Role};
use std::{collections::BTreeSet, ops::Range};

impl Conversation {
    /// Returns every compaction, oldest first, including undone ones.
    #[must_use]
    pub fn compactions(&self) -> impl DoubleEndedIterator<Item = &Compaction> {
        self.compactions.iter().filter_map(|at| match &self.events[*at].1 {
            Event::Compacted(record) => Some(&**record),
            _ => None,
        })
    }

    /// Returns the compaction with this number, or `None` if there is none.
    #[must_use]
    pub fn compaction(&self, number: u32) -> Option<&Compaction> {
        self.compactions().rev().find(|record| record.number == number)
    }

    /// Returns the number of archived messages.
    pub(crate) fn archived_messages(&self) -> u64 {
        let ranges = self.archive_index.archived_in(0..self.len());
        ranges.map(|(range, _)| u64::from(range.end - range.start)).sum()
    }

    /// Returns the number of active messages, without the system messages that lead the prompt.
    pub(crate) fn active_messages(&self) -> u64 {
        u64::from(self.len() - self.turns.leading()).saturating_sub(self.archived_messages())
    }

    /// Returns the largest compaction number assigned so far, 0 before the first compaction.
    pub(crate) fn last_compaction_number(&self) -> u32 {
        self.last_number
    }

    /// Returns the number of compactions, undos and rewinds in the log.
    #[doc(hidden)]
    #[must_use]
    pub fn archive_events(&self) -> usize {
        self.archive_events
    }

    /// Returns every compaction with the number of messages before it, oldest first.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = (u32, &Compaction)> {
        self.compactions.iter().filter_map(|at| match &self.events[*at] {
            (before, Event::Compacted(record)) => Some((*before, &**record)),
            _ => None,
        })
    }

    /// Returns the position of the newest user message that is not empty, archived or not.
    pub(crate) fn last_user_message(&self) -> Option<u32> {
        self.last_asked
    }

    /// Returns true if the newest sent prompt was planned after the newest compaction, undo or rewind.
    pub(crate) fn has_sent_since_compaction(&self) -> bool {
        let newest = self.sent.last().map(|at| &self.events[*at].1);
        matches!(newest, Some(Event::Sent { archives, .. }) if *archives == self.archive_events)
    }

    /// Returns the number of active turns.
    pub(crate) fn active_turns(&self) -> u64 {
        let archived = |turn: &TurnIndex| {
            self.turns.first_of(*turn).is_some_and(|at| self.archive_index.archived(at).is_some())
        };
        // The common case, in constant time.
        if self.archive_index.is_whole() {
            return u64::from(self.turns.count());
        }
        TurnIndex::each(self.turns.all()).filter(|turn| !archived(turn)).count() as u64
    }

    pub(crate) fn archive_index(&self) -> &ArchiveIndex {
        &self.archive_index
    }

    /// Returns true if the newest of all compactions, undos and rewinds is not a rewind, and no message
    /// follows it.
    pub(crate) fn ends_with_compaction(&self) -> bool {
        let newest = self.archived_at.map(|at| &self.events[at]);
        let is_one = |event: &Event| matches!(event, Event::Compacted(_) | Event::CompactionUndone { .. });
        matches!(newest, Some((before, event)) if *before == self.len() && is_one(event))
    }

    /// Returns the newest compaction that was not undone, with the number of messages before it.
    pub(crate) fn newest_compaction(&self) -> Option<(u32, &Compaction)> {
        let placed = self.archive_index.newest()?;
        Some((placed.before, self.compaction(placed.number)?))
    }

    /// Builds a record that archives the active messages from `from` up to `first_active`, except `head`. The
    /// caller fills in token counts and summary.
    #[doc(hidden)]
    #[must_use]
    pub fn compaction_record(
        &self,
        kind: CompactionKind,
        head: Option<u32>,
        from: Option<u32>,
        first_active: Option<u32>,
    ) -> Compaction {
        // If the message after the range is archived already, the range extends to the first active message.
        let first_active = first_active.and_then(|first| self.active_from(first));
        let range = from.unwrap_or(self.turns.leading())..first_active.unwrap_or(self.len());
        let archived = self.runs(&range, head);
        let id = |position: Option<u32>| position.map(|position| self.message_id(position));
        let mut number = self.last_number.saturating_add(1);
        // A summary's id shares the namespace of message ids, so a number whose summary id is taken is
        // skipped.
        while self.position_of(&Compaction::summary_id(number)).is_some() {
            number = number.saturating_add(1);
        }
        Compaction {
            rules: Vec::new(),
            left_out: Vec::new(),
            number,
            kind,
            head: id(head),
            from: id(from),
            first_active: id(first_active),
            messages_archived: archived.iter().map(|run| run.count).sum(),
            archived,
            tokens_before: 0,
            tokens_after: 0,
            limit: 0,
            summary: None,
            provider_summary: None,
            state: Vec::new(),
            // A fresh start leaves no message that could fire a trigger; the caller measures all other kinds.
            progress: kind == CompactionKind::Fresh,
            timestamp: None,
        }
    }

    /// Returns the first active message at or after a position.
    pub(crate) fn active_from(&self, position: u32) -> Option<u32> {
        (position..self.len()).find(|at| self.archive_index.archived(*at).is_none())
    }

    /// Returns the span of each active exchange with more than one message: from its first message to one
    /// past its last.
    pub(crate) fn active_spans(&self) -> impl Iterator<Item = Range<u32>> {
        self.turns.spans().filter(|span| self.archive_index.archived(span.start).is_none())
    }

    /// Moves a boundary back until no active exchange is split by it. The boundary never moves forward, so
    /// the loop ends.
    pub(crate) fn align_to_exchange(&self, mut boundary: u32) -> u32 {
        let spans: Vec<Range<u32>> = self.active_spans().collect();
        loop {
            let before = boundary;
            // Newest first, so that a chain of overlapping spans takes one pass.
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

    /// Returns the user message kept before a summary and the results of its calls (rule H9), in log order.
    pub(crate) fn kept_with_user_message(&self, head: Option<u32>) -> Vec<u32> {
        let Some(head) = head else { return Vec::new() };
        match self.turns.place_of(head) {
            Place::UserMessage(turn) => self.turns.user_message_members(turn).into_vec(),
            _ => vec![head],
        }
    }

    /// Returns the active messages of a range without `user_message`, grouped into runs of neighbours.
    fn runs(&self, range: &Range<u32>, head: Option<u32>) -> Vec<MessageRange> {
        let kept_members = self.kept_with_user_message(head);
        let around = |run: Range<u32>| {
            let stays =
                kept_members.iter().copied().filter(|position| run.contains(position)).collect::<Vec<u32>>();
            let starts = std::iter::once(run.start).chain(stays.iter().map(|position| position + 1));
            let ends = stays.iter().copied().chain([run.end]);
            starts.zip(ends).map(|(start, end)| start..end).collect::<Vec<_>>()
        };
        let run = |run: Range<u32>| MessageRange {
            id: self.message_id(run.start),
            last_id: self.message_id(run.end - 1),
            count: u64::from(run.end - run.start),
        };
        let runs = self.archive_index.active_in(range.clone()).into_iter().flat_map(around);
        runs.filter(|run| !run.is_empty()).map(run).collect()
    }

    /// Resolves the ids of a record to positions. Returns `None` if the record names an unknown message,
    /// archives nothing, or would split an exchange. The messages of such a record stay active.
    pub(super) fn resolve(&self, record: &Compaction) -> Option<ResolvedCompaction> {
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
        // A fresh start may archive an empty range; every other kind must archive a message.
        let whole = range.start < range.end || record.kind == CompactionKind::Fresh;
        let range = range.start..range.end.max(range.start);
        // The message kept before a summary must be a user message, and no exchange may lose its results.
        let asks = |head: u32| range.contains(&head) && self.message(head).role() == Role::User;
        let splits_exchange = |span: Range<u32>| {
            // The kept message is not part of the range, so its exchange is not split by it.
            let parts = |at: u32| span.start < at && at < span.end && head != Some(span.start);
            record.kind != CompactionKind::Fresh && (parts(range.start) || parts(range.end))
        };
        let is_valid = head.is_none_or(asks) && !self.active_spans().any(splits_exchange);
        (whole && is_valid).then(|| {
            ResolvedCompaction::new(record, self.len(), range, head, self.kept_with_user_message(head))
        })
    }

    /// Returns true if a record is valid for this log and would archive at least one message.
    #[doc(hidden)]
    #[must_use]
    pub fn would_archive(&self, record: &Compaction) -> bool {
        self.resolve(record).is_some()
    }

    /// Rebuilds the turns from all messages, without the archived ones.
    pub(super) fn rebuild_turns(&mut self) {
        let kept = self.kept_by_pins();
        let archive_index = &self.archive_index;
        let is_archived = |position: u32| archive_index.archived(position).is_some();
        let is_compacted =
            |position: u32| matches!(archive_index.archived(position), Some(ArchivedBy::Compaction(_)));
        self.turns = self.turns.without_archived(
            &self.messages,
            is_archived,
            |position| kept.contains(&position),
            is_compacted,
        );
    }

    /// Rebuilds the turns right after a compaction. Visits only the active messages and those that this
    /// compaction archived, not the whole log.
    pub(super) fn apply_compaction_to_turns(&mut self) {
        // Pins may keep messages anywhere in the archive, which only the full rebuild handles.
        if !self.kept_by_pins().is_empty() {
            return self.rebuild_turns();
        }
        let archive_index = &self.archive_index;
        let is_compacted =
            |position: u32| matches!(archive_index.archived(position), Some(ArchivedBy::Compaction(_)));
        let is_archived = |position: u32| archive_index.archived(position).is_some();
        // Moved out, because `compacted` reuses its vectors.
        let turns = std::mem::take(&mut self.turns);
        self.turns = turns.compacted(&self.messages, is_archived, is_compacted);
    }

    /// Rebuilds the turns after this message was pinned or unpinned. Does nothing unless the message is
    /// archived.
    pub(super) fn rebuild_turns_for(&mut self, position: u32) {
        if self.archive_index.archived(position).is_some() {
            self.rebuild_turns();
        }
    }

    /// Returns the archived messages that pins keep: whole exchanges with the user messages of their turns
    /// (rule S3).
    fn kept_by_pins(&self) -> BTreeSet<u32> {
        let archived = |position: &&u32| {
            matches!(self.archive_index.archived(**position), Some(ArchivedBy::Compaction(_)))
        };
        let mut pinned = self.pins.keys().filter(archived).peekable();
        // The common case, without building all turns.
        if pinned.peek().is_none() {
            return BTreeSet::new();
        }
        let rewound = |position: u32| self.archive_index.archived(position) == Some(ArchivedBy::Rewind);
        // The turns as they were before any compaction: exchanges are whole there.
        let all = self.turns.without_archived(&self.messages, rewound, |_| false, |_| false);
        let mut kept = BTreeSet::new();
        for position in pinned {
            match all.place_of(*position) {
                Place::UserMessage(turn) => kept.extend(all.user_message_members(turn)),
                Place::Exchange(at) => {
                    kept.extend(all.exchange(at).members());
                    kept.extend(all.user_message(all.turn_of(at)));
                }
                Place::Leading | Place::Archived => {}
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{ExchangeIndex, Members};
    use crate::{
        item::Priority,
        message::{Message, ToolCall},
    };
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Say(u8, u8),
        Compact(u32, u32, Option<u32>),
        Rewind(u32),
        Pin(u32),
        Fresh,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0u8..6, 0u8..3).prop_map(|(kind, id)| Step::Say(kind, id)),
            4 => (0u32..3, 0u32..20, prop::option::weighted(0.3, 0u32..20))
                .prop_map(|(from, to, head)| Step::Compact(from, to, head)),
            1 => (0u32..30).prop_map(Step::Rewind),
            1 => (0u32..30).prop_map(Step::Pin),
            1 => Just(Step::Fresh),
        ]
    }

    fn message(kind: u8, id: u8) -> Message {
        let id = ["a", "b", "c"][usize::from(id)];
        match kind {
            0 => Message::system("s"),
            1 => Message::user("u").with_tool_calls([ToolCall::new(id, "f", "{}")]),
            2 => Message::assistant("")
                .with_tool_calls([ToolCall::new(id, "f", "{}"), ToolCall::new("d", "f", "{}")]),
            3 => Message::tool(id, "r"),
            4 => Message::user("u"),
            _ => Message::assistant("x"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// A compaction in one pass gives the same turns as filing all messages again, and later messages are
        /// filed the same way.
        #[test]
        fn compaction_files_active_messages(steps in prop::collection::vec(step(), 1..40)) {
            let mut log = Conversation::new();
            for step in steps {
                match step {
                    Step::Say(kind, id) => drop(log.push(message(kind, id))),
                    Step::Compact(from, to, head) => {
                        let of = |position: u32| Some(position).filter(|at| *at < log.len());
                        let (from, to) = (of(from).filter(|from| *from > 0), of(to));
                        let mut record = log.compaction_record(CompactionKind::Summary, head.and_then(of), from, to);
                        record.summary = Some("s".into());
                        if log.would_archive(&record) {
                            let turns = &log.turns;
                            let heads = TurnIndex::each(turns.all()).map(|turn| turns.user_message_members(turn));
                            let exchanges = TurnIndex::each(turns.all())
                                .flat_map(|turn| ExchangeIndex::each(turns.exchanges(turn)))
                                .map(|at| turns.exchange(at).members());
                            let active = |unit: &Members| unit.iter().all(|at| log.archive_index.archived(*at).is_none());
                            let units: Vec<Members> = heads.chain(exchanges).filter(active).collect();
                            log.record(Event::Compacted(Box::new(record)));
                            // A call and its results are archived together or not at all.
                            for unit in units {
                                let gone: BTreeSet<bool> =
                                    unit.iter().map(|position| log.archive_index.archived(*position).is_some()).collect();
                                prop_assert!(gone.len() < 2, "{unit:?}");
                            }
                        }
                    }
                    Step::Rewind(to) => drop(log.rewind_before(format!("m{to}"))),
                    Step::Pin(at) => drop(log.pin_message(format!("m{at}"), Priority::Normal)),
                    Step::Fresh => log.start_fresh(),
                }
                let mut again = log.clone();
                again.rebuild_turns();
                // A result may have been filed before its call was archived, so the turns of `log` itself may
                // differ. Both copies are filed again.
                let mut once = log.clone();
                once.apply_compaction_to_turns();
                prop_assert_eq!(once.turns.shape(), again.turns.shape());
                for next in [message(3, 0), message(2, 1), message(3, 1), message(4, 0)] {
                    once.push(next.clone());
                    again.push(next);
                }
                prop_assert_eq!(once.turns.shape(), again.turns.shape());
            }
        }
    }
}
