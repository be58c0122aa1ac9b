//! What is active and what is archived: a fold over the log's compactions and rewinds (rule C1).

use super::Compaction;
use crate::reason::ExcludedReason;
use std::ops::Range;

/// Which messages are no longer sent, and where summaries stand for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The compactions in force, the oldest first.
    records: Vec<Placed>,
    /// What rewinds took away, in order.
    rewound: Vec<Range<u32>>,
    /// What is archived, in order, each range with what archived it.
    gone: Vec<(Range<u32>, ArchivedBy)>,
}

/// Why a message is no longer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArchivedBy {
    /// The compaction of this number.
    Compaction(u32),
    /// The conversation was rewound to before it.
    Rewind,
}

impl From<ArchivedBy> for ExcludedReason {
    fn from(by: ArchivedBy) -> Self {
        let compaction = match by {
            ArchivedBy::Compaction(number) => Some(number),
            ArchivedBy::Rewind => None,
        };
        Self::Archived { compaction }
    }
}

/// A compaction by positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) number: u32,
    /// Messages that stood before it in the log.
    pub(crate) before: u32,
    /// What it archives, its head apart.
    pub(crate) range: Range<u32>,
    pub(crate) head: Option<u32>,
    /// Whether something stands for it in the prompt.
    pub(crate) has_summary: bool,
    /// Whether a later one covers its place.
    folded: bool,
}

impl Placed {
    pub(crate) fn new(record: &Compaction, before: u32, range: Range<u32>, head: Option<u32>) -> Self {
        let has_summary = record.summary.is_some() || !record.state.is_empty();
        Self { number: record.number, before, range, head, has_summary, folded: false }
    }
}

impl View {
    pub(super) fn compact(&mut self, record: Placed) {
        self.records.push(record);
        self.take(self.records.len() - 1);
    }

    /// Takes away everything from a position on, of so many messages: compactions made since are undone.
    pub(super) fn rewind(&mut self, position: u32, messages: u32) {
        self.records.retain(|record| record.before <= position);
        self.rewound.push(position..messages);
        self.fold();
    }

    /// The ranges, from the records: what is gone already stays with what archived it first.
    fn fold(&mut self) {
        self.gone.clear();
        for range in self.rewound.clone() {
            self.fill(range, ArchivedBy::Rewind);
        }
        for at in 0..self.records.len() {
            self.take(at);
        }
    }

    /// Archives what a record says, and folds the summaries that stand in its range.
    fn take(&mut self, at: usize) {
        let Placed { number, range, head, .. } = self.records[at].clone();
        let by = ArchivedBy::Compaction(number);
        let head = head.filter(|head| range.contains(head));
        self.fill(range.start..head.unwrap_or(range.end), by);
        self.fill(head.map_or(range.end, |head| head + 1)..range.end, by);
        let (earlier, this) = self.records.split_at_mut(at);
        this[0].folded = false;
        for one in earlier {
            one.folded |= range.start < one.range.end && one.range.end <= range.end;
        }
    }

    /// Archives what of a range is not archived yet.
    fn fill(&mut self, range: Range<u32>, by: ArchivedBy) {
        let mut at = range.start;
        let mut new = Vec::new();
        for (known, _) in &self.gone {
            if known.end <= at || known.start >= range.end {
                continue;
            }
            if at < known.start {
                new.push((at..known.start, by));
            }
            at = known.end;
        }
        if at < range.end {
            new.push((at..range.end, by));
        }
        self.gone.extend(new);
        self.gone.sort_by_key(|(range, _)| range.start);
    }

    /// What archived the message at a position, if it is archived.
    pub(crate) fn archived(&self, position: u32) -> Option<ArchivedBy> {
        let at = self.gone.partition_point(|(range, _)| range.end <= position);
        self.gone.get(at).filter(|(range, _)| range.contains(&position)).map(|(_, by)| *by)
    }

    /// The archived ranges inside a range, in order.
    pub(crate) fn archived_in(&self, within: Range<u32>) -> impl Iterator<Item = (Range<u32>, ArchivedBy)> {
        let from = self.gone.partition_point(|(range, _)| range.end <= within.start);
        let inside = self.gone[from..]
            .iter()
            .map(move |(range, by)| (range.start.max(within.start)..range.end.min(within.end), *by));
        inside.take_while(|(range, _)| !range.is_empty())
    }

    /// The compactions whose summaries are sent, in the order of their places.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &Placed> {
        let mut active: Vec<&Placed> =
            self.records.iter().filter(|record| record.has_summary && !record.folded).collect();
        active.sort_by_key(|record| (record.range.end, record.number));
        active.into_iter()
    }

    /// Where the summary of a compaction stands, or would: before this position. Where a later one folded it, that one's.
    pub(crate) fn place_of(&self, number: u32) -> u32 {
        let at = self.records.iter().position(|record| record.number == number);
        let Some(at) = at else { return 0 };
        let covers = |record: &&Placed| record.range.contains(&self.records[at].range.start);
        self.records[at..].iter().rfind(covers).map_or(0, |record| record.range.end)
    }

    /// The newest compaction in force.
    pub(crate) fn newest(&self) -> Option<&Placed> {
        self.records.last()
    }

    /// Whether anything is archived.
    pub(crate) fn is_whole(&self) -> bool {
        self.gone.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(number: u32, before: u32, range: Range<u32>, head: Option<u32>) -> Placed {
        Placed { number, before, range, head, has_summary: true, folded: false }
    }

    fn numbers(view: &View) -> Vec<u32> {
        view.summaries().map(|record| record.number).collect()
    }

    #[test]
    fn the_second_compaction_folds_the_first_and_a_rewind_brings_it_back() {
        let mut view = View::default();
        view.compact(placed(1, 10, 0..6, None));
        let once = view.clone();
        view.compact(placed(2, 20, 0..15, Some(12)));
        assert_eq!(numbers(&view), [2]);
        let by: Vec<Option<ArchivedBy>> = [0, 5, 6, 12, 13, 15].map(|at| view.archived(at)).into();
        let [first, second] = [1, 2].map(|number| Some(ArchivedBy::Compaction(number)));
        assert_eq!(by, [first, first, second, None, second, None]);
        view.rewind(18, 22);
        assert_eq!(numbers(&view), [1]);
        assert_eq!([6, 17, 18, 21, 22].map(|at| view.archived(at)), {
            let rewound = Some(ArchivedBy::Rewind);
            [None, None, rewound, rewound, None]
        });
        assert_eq!(View { rewound: Vec::new(), gone: once.gone.clone(), ..view }, once);
    }

    #[test]
    fn a_range_by_hand_leaves_earlier_summaries_alone() {
        let mut view = View::default();
        view.compact(placed(1, 10, 0..4, None));
        view.compact(placed(2, 10, 6..8, None));
        assert_eq!(numbers(&view), [1, 2]);
        assert_eq!(view.archived_in(2..9).collect::<Vec<_>>(), {
            let by = ArchivedBy::Compaction;
            vec![(2..4, by(1)), (6..8, by(2))]
        });
        view.compact(placed(3, 10, 0..9, None));
        assert_eq!(numbers(&view), [3]);
    }
}
