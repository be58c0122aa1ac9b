//! Active and archived messages, computed from the log's compactions and rewinds (rule C1).

use super::Compaction;
use crate::plan::reason::ExcludedReason;
use std::ops::Range;

/// The archived ranges of the log by position, and the summaries that replace them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ArchiveIndex {
    /// The compactions in force, oldest first. Rewinds and undos remove theirs.
    records: Vec<ResolvedCompaction>,
    /// The ranges that rewinds archived, oldest first.
    rewound: Vec<Range<u32>>,
    /// The archived ranges in order, disjoint, each with the record that archived it first.
    gone: Vec<(Range<u32>, ArchivedBy)>,
    /// The union of `gone`: all archived ranges in order, adjacent ones merged.
    all: Vec<Range<u32>>,
    /// Indexes into `records` of the compactions whose summaries are not archived by a later compaction.
    unfolded: Vec<usize>,
    /// Pairs of indexes into `records`: a compaction, and an earlier one whose summary it archived. Sorted by
    /// the first.
    folded: Vec<(usize, usize)>,
}

/// The record that archived a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ArchivedBy {
    /// The compaction with this number.
    Compaction(u32),
    /// A rewind to a message at or before it.
    Rewind,
}

impl ArchivedBy {
    /// Returns the number of the compaction, or `None` if it was a rewind.
    pub(crate) fn compaction(self) -> Option<u32> {
        match self {
            Self::Compaction(number) => Some(number),
            Self::Rewind => None,
        }
    }
}

impl From<ArchivedBy> for ExcludedReason {
    fn from(by: ArchivedBy) -> Self {
        Self::Archived { compaction: by.compaction() }
    }
}

/// A compaction with its ids resolved to positions in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedCompaction {
    pub(crate) number: u32,
    /// The number of messages in the log before the compaction.
    pub(crate) before: u32,
    /// The archived positions, including `head` although it stays active.
    pub(crate) range: Range<u32>,
    pub(crate) head: Option<u32>,
    /// The user message that stays and the results of its calls (rule H9), in log order.
    apart: Vec<u32>,
    /// True if a summary or state entries replace the messages in the prompt.
    pub(crate) has_summary: bool,
}

impl ResolvedCompaction {
    pub(crate) fn new(
        record: &Compaction,
        before: u32,
        range: Range<u32>,
        head: Option<u32>,
        apart: Vec<u32>,
    ) -> Self {
        let has_summary = record.summary.is_some() || !record.state.is_empty();
        Self { number: record.number, before, range, head, apart, has_summary }
    }
}

impl ArchiveIndex {
    pub(super) fn compact(&mut self, record: ResolvedCompaction) {
        self.records.push(record);
        self.take(self.records.len() - 1);
    }

    /// Archives everything from a position on, in a log of `messages` messages. Removes the compactions made
    /// after that position.
    pub(super) fn rewind(&mut self, position: u32, messages: u32) {
        // A compaction after that position was made in the removed part of the conversation.
        self.records.retain(|record| record.before <= position);
        self.rewound.push(position..messages);
        self.fold();
    }

    /// Removes a compaction. Its messages become active again, unless another record archived them too.
    pub(super) fn undo(&mut self, number: u32) {
        self.records.retain(|record| record.number != number);
        self.fold();
    }

    /// Rebuilds all ranges from the records. The first record to archive a message keeps it.
    fn fold(&mut self) {
        self.gone.clear();
        self.all.clear();
        self.unfolded.clear();
        self.folded.clear();
        // Rewinds first: a message that a rewind removed is never attributed to a compaction.
        for range in self.rewound.clone() {
            self.fill(range, ArchivedBy::Rewind);
        }
        for at in 0..self.records.len() {
            self.take(at);
        }
    }

    /// Archives the range of one record, and marks the summaries inside the range as replaced.
    fn take(&mut self, at: usize) {
        let ResolvedCompaction { number, range, apart, .. } = self.records[at].clone();
        let by = ArchivedBy::Compaction(number);
        let mut from = range.start;
        for stays in apart.into_iter().filter(|position| range.contains(position)) {
            self.fill(from..stays, by);
            from = stays + 1;
        }
        self.fill(from..range.end, by);
        let records = &self.records;
        let is_inside = |one: &mut usize| {
            let one = &records[*one].range;
            range.start < one.end && one.end <= range.end
        };
        self.folded.extend(self.unfolded.extract_if(.., is_inside).map(|one| (at, one)));
        self.unfolded.push(at);
    }

    /// Archives the part of a range that is still active. Time: a binary search and an insertion for each new
    /// range.
    fn fill(&mut self, range: Range<u32>, by: ArchivedBy) {
        if range.is_empty() {
            return;
        }
        for new in self.active_in(range.clone()) {
            let place = self.gone.partition_point(|(known, _)| known.start < new.start);
            self.gone.insert(place, (new, by));
        }
        // Adjacent ranges are included, so that the union stays merged.
        let first = self.all.partition_point(|known| known.end < range.start);
        let last = self.all.partition_point(|known| known.start <= range.end);
        let start = self.all[first..last].first().map_or(range.start, |known| known.start.min(range.start));
        let end = self.all[first..last].last().map_or(range.end, |known| known.end.max(range.end));
        self.all.splice(first..last, std::iter::once(start..end));
    }

    /// Returns the active parts of a range, in order.
    pub(crate) fn active_in(&self, range: Range<u32>) -> Vec<Range<u32>> {
        let first = self.all.partition_point(|known| known.end <= range.start);
        let (mut active, mut at) = (Vec::new(), range.start);
        for known in self.all[first..].iter().take_while(|known| known.start < range.end) {
            if at < known.start {
                active.push(at..known.start);
            }
            at = known.end;
        }
        if at < range.end {
            active.push(at..range.end);
        }
        active
    }

    /// Returns the record that archived the message at a position, or `None` if the message is active.
    pub(crate) fn archived(&self, position: u32) -> Option<ArchivedBy> {
        let at = self.gone.partition_point(|(range, _)| range.end <= position);
        self.gone.get(at).filter(|(range, _)| range.contains(&position)).map(|(_, by)| *by)
    }

    /// Returns the archived ranges inside a range, clipped to it, in order.
    pub(crate) fn archived_in(&self, within: Range<u32>) -> impl Iterator<Item = (Range<u32>, ArchivedBy)> {
        let from = self.gone.partition_point(|(range, _)| range.end <= within.start);
        let inside = self.gone[from..]
            .iter()
            .map(move |(range, by)| (range.start.max(within.start)..range.end.min(within.end), *by));
        // Clipping makes the first range behind `within` empty, which ends the iteration.
        inside.take_while(|(range, _)| !range.is_empty())
    }

    /// Returns the compactions whose summaries are part of the prompt, in prompt order.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &ResolvedCompaction> {
        let unfolded = self.unfolded.iter().map(|at| &self.records[*at]);
        let mut active: Vec<&ResolvedCompaction> = unfolded.filter(|record| record.has_summary).collect();
        // A summary comes right before the message at the end of its range.
        active.sort_by_key(|record| (record.range.end, record.number));
        active.into_iter()
    }

    /// Returns the position of the message that the summary of a compaction comes before. If a later
    /// compaction archived that summary, returns the position of the later summary. Returns 0 for an unknown
    /// number.
    pub(crate) fn place_of(&self, number: u32) -> u32 {
        let at = self.records.iter().position(|record| record.number == number);
        let Some(at) = at else { return 0 };
        let covers = |record: &&ResolvedCompaction| record.range.contains(&self.records[at].range.start);
        self.records[at..].iter().rfind(covers).map_or(0, |record| record.range.end)
    }

    /// Returns the numbers of the earlier compactions whose summaries this compaction replaced, in prompt
    /// order.
    pub(crate) fn folded_by(&self, number: u32) -> Vec<u32> {
        let Some(at) = self.records.iter().rposition(|record| record.number == number) else {
            return Vec::new();
        };
        // `folded` is sorted by its first index, because records are added in order.
        let first = self.folded.partition_point(|(by, _)| *by < at);
        let folded = self.folded[first..].iter().take_while(|(by, _)| *by == at);
        let mut folded: Vec<&ResolvedCompaction> = folded.map(|(_, one)| &self.records[*one]).collect();
        folded.retain(|record| record.has_summary);
        folded.sort_by_key(|record| (record.range.end, record.number));
        folded.into_iter().map(|record| record.number).collect()
    }

    /// Returns the newest compaction in force.
    pub(crate) fn newest(&self) -> Option<&ResolvedCompaction> {
        self.records.last()
    }

    /// Returns true if nothing is archived.
    pub(crate) fn is_whole(&self) -> bool {
        self.gone.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placed(number: u32, before: u32, range: Range<u32>, head: Option<u32>) -> ResolvedCompaction {
        let apart = head.into_iter().collect();
        ResolvedCompaction { number, before, range, head, apart, has_summary: true }
    }

    fn numbers(archive_index: &ArchiveIndex) -> Vec<u32> {
        archive_index.summaries().map(|record| record.number).collect()
    }

    #[test]
    fn second_compaction_covers_the_first_and_rewind_restores_it() {
        let mut archive_index = ArchiveIndex::default();
        archive_index.compact(placed(1, 10, 0..6, None));
        let once = archive_index.clone();
        archive_index.compact(placed(2, 20, 0..15, Some(12)));
        assert_eq!(numbers(&archive_index), [2]);
        assert_eq!([1, 2, 3].map(|number| archive_index.folded_by(number)), [vec![], vec![1], vec![]]);
        let by: Vec<Option<ArchivedBy>> = [0, 5, 6, 12, 13, 15].map(|at| archive_index.archived(at)).into();
        let [first, second] = [1, 2].map(|number| Some(ArchivedBy::Compaction(number)));
        assert_eq!(by, [first, first, second, None, second, None]);
        archive_index.rewind(18, 22);
        assert_eq!(numbers(&archive_index), [1]);
        assert_eq!([6, 17, 18, 21, 22].map(|at| archive_index.archived(at)), {
            let rewound = Some(ArchivedBy::Rewind);
            [None, None, rewound, rewound, None]
        });
        let all = once.all.clone();
        assert_eq!(ArchiveIndex { rewound: Vec::new(), gone: once.gone.clone(), all, ..archive_index }, once);
    }

    proptest! {
        /// For any sequence of ranges, each message is attributed to the first compaction that archived it,
        /// and adjacent ranges are merged.
        #[test]
        fn archived_message_keeps_its_first_compaction(
            ranges in prop::collection::vec((0u32..30, 0u32..30), 1..12),
        ) {
            let (mut archive_index, mut by) = (ArchiveIndex::default(), [None; 40]);
            for ((from, length), number) in ranges.into_iter().zip(1..) {
                archive_index.compact(placed(number, 40, from..from + length, None));
                for one in by.iter_mut().take((from + length).min(40) as usize).skip(from as usize) {
                    one.get_or_insert(ArchivedBy::Compaction(number));
                }
                let found: Vec<_> = (0..40).map(|at| archive_index.archived(at)).collect();
                prop_assert_eq!(found, by.to_vec());
                let active: Vec<u32> = archive_index.active_in(0..40).into_iter().flatten().collect();
                let expected: Vec<u32> = (0..40).filter(|at| by[*at as usize].is_none()).collect();
                prop_assert_eq!(active, expected);
                prop_assert!(archive_index.all.windows(2).all(|two| two[0].end < two[1].start), "{:?}", archive_index.all);
            }
        }
    }

    #[test]
    fn a_range_by_hand_leaves_earlier_summaries_alone() {
        let mut archive_index = ArchiveIndex::default();
        archive_index.compact(placed(1, 10, 0..4, None));
        archive_index.compact(placed(2, 10, 6..8, None));
        assert_eq!(numbers(&archive_index), [1, 2]);
        assert_eq!(archive_index.archived_in(2..9).collect::<Vec<_>>(), {
            let by = ArchivedBy::Compaction;
            vec![(2..4, by(1)), (6..8, by(2))]
        });
        archive_index.compact(placed(3, 10, 0..9, None));
        assert_eq!(numbers(&archive_index), [3]);
        assert_eq!(archive_index.folded_by(3), [1, 2]);
    }
}
