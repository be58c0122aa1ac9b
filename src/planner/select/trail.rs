//! The walk of rule S4 laid out, for selections under many budgets.
//!
//! Where nothing but room stops it, the walk meets the same candidates in the same order under every budget, from the newest
//! back. A trail holds them with the running sum of their tokens, so the walk of one budget is a search for the first step
//! that no longer fits. What is in beside the walk, pins for example, changes what it meets: a trail holds for one such set.

use super::tree::{Summary, Tree};
use crate::planner::candidates::CandidateId;
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::rc::Rc;

/// What the walk meets: of each turn its user message, then its exchanges, the newest first; without what is in already and
/// what can never be sent.
#[derive(Debug)]
pub(super) struct Trail {
    /// The messages and exchanges that were in when the walk began: the live question, and what is pinned.
    pub(super) beside: Vec<CandidateId>,
    /// Nothing before this comes in.
    pub(super) floor: Option<CandidateId>,
    /// True if pinned messages are on it, in or not: of two such trails one is the beginning of the other.
    pub(super) holds_pins: bool,
    steps: IndexMap<CandidateId, Step, FixedState>,
    end: End,
    /// After so many steps the live turn is in, as far as it can be sent.
    pub(super) live: Option<usize>,
}

/// What comes after the last step.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// Nothing: the conversation begins there.
    Whole,
    /// Something of this turn that never comes in, and stops the walk under every budget: an exchange that is larger than
    /// all of them, or one before the floor.
    Barrier(Turn),
    /// That was not looked at: there is more than this much room before it; tokens.
    LaidOutFor(u64),
    /// That was not looked at, however much room there is: the walk itself has to.
    Unknown,
}

/// The last prompt's window (rule S5) laid out: all that comes in where it fits. It starts at the floor of its trail.
#[derive(Debug)]
pub(super) struct WindowTrail {
    /// The pins that had no room when it was laid out, where those are awaited.
    pub(super) dropped: Vec<CandidateId>,
    /// Those of them that are part of the window.
    pub(super) awaited: Vec<CandidateId>,
    pub(super) trail: Rc<Trail>,
    /// What all of it costs; tokens, none where some of it fits no budget.
    pub(super) tokens: Option<u64>,
}

/// A message or exchange that the walk meets.
#[derive(Debug)]
struct Step {
    /// What it and everything before it costs; tokens.
    sum: u64,
    turn: Turn,
}

/// A turn on a trail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Its first step.
    pub(super) first: usize,
    /// Whether that one is its user message.
    pub(super) has_head: bool,
    /// Whether some of it may be in without the rest.
    may_be_cut: bool,
}

/// Steps of a trail that are not in as pins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub(super) tokens: u64,
    pub(super) count: u32,
}

impl Summary for Steps {
    const NOTHING: Self = Self { tokens: 0, count: 0 };

    fn join(self, after: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(after.tokens), count: self.count + after.count }
    }
}

/// How far a budget lets the walk come.
pub(super) struct Reach {
    /// So many steps are in.
    pub(super) steps: usize,
    /// What is left of the room then; tokens.
    pub(super) left: u64,
    /// What was left after the last step that fitted, whether it came in or not; none where none did.
    pub(super) least_left: Option<u64>,
    /// By how much the first step that did not fit is too large, where that is known.
    pub(super) over: Option<u64>,
    /// Whether the walk ended before the conversation did.
    pub(super) stopped: bool,
}

impl Trail {
    pub(super) fn new(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { beside, floor, holds_pins: false, steps: IndexMap::default(), end: End::Whole, live: None }
    }

    /// Begins one with the pinned messages on it; `beside` is the minimum.
    pub(super) fn with_pins(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { holds_pins: true, ..Self::new(beside, floor) }
    }

    /// A turn that begins at the end of the trail.
    pub(super) fn turn(&self, has_head: bool, may_be_cut: bool) -> Turn {
        Turn { first: self.len(), has_head, may_be_cut }
    }

    pub(super) fn push(&mut self, id: CandidateId, tokens: u64, turn: Turn) {
        let sum = self.sum(self.len()).saturating_add(tokens);
        self.steps.insert(id, Step { sum, turn });
    }

    pub(super) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Whether a longer one may lead further, for so much room after a step.
    pub(super) fn is_too_short(&self, from: usize, room: u64) -> bool {
        matches!(self.end, End::LaidOutFor(most) if most < self.sum(from).saturating_add(room))
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// What so many steps cost; tokens.
    pub(super) fn sum(&self, steps: usize) -> u64 {
        steps.checked_sub(1).map_or(0, |last| self.steps[last].sum)
    }

    pub(super) fn id(&self, place: usize) -> CandidateId {
        self.steps.get_index(place).map_or_else(|| unreachable!("no step {place}"), |(id, _)| *id)
    }

    /// Returns the turn of the last step.
    pub(super) fn last_turn(&self) -> Option<Turn> {
        self.steps.last().map(|(_, step)| step.turn)
    }

    /// Returns the tokens of one step.
    pub(super) fn cost(&self, place: usize) -> u64 {
        self.sum(place + 1) - self.sum(place)
    }

    /// Returns the room that it was laid out for. Returns `None` if no more of it can be laid out.
    pub(super) fn laid_out_for(&self) -> Option<u64> {
        match self.end {
            End::LaidOutFor(room) => Some(room),
            End::Whole | End::Barrier(_) | End::Unknown => None,
        }
    }

    pub(super) fn place(&self, id: CandidateId) -> Option<usize> {
        self.steps.get_index_of(&id)
    }

    /// The first so many.
    pub(super) fn ids(
        &self,
        steps: usize,
    ) -> impl DoubleEndedIterator<Item = CandidateId> + ExactSizeIterator {
        self.steps.as_slice()[..steps].keys().copied()
    }

    /// How far the walk comes from a step on with so much room; none where the trail does not say.
    pub(super) fn walk(&self, from: usize, room: u64) -> Option<Reach> {
        // Where the room ends, as a running sum.
        let end = self.sum(from).saturating_add(room);
        let fitting = from + self.steps.as_slice()[from..].partition_point(|_, step| step.sum <= end);
        let next = self.steps.get_index(fitting).map(|(_, step)| step);
        let stopped_in = match (next, self.end) {
            (Some(step), _) => Some(step.turn),
            (None, End::Whole) => None,
            (None, End::Barrier(turn)) => Some(turn),
            (None, End::LaidOutFor(_) | End::Unknown) => return None,
        };
        // Of a turn that is cut its user message and at least one exchange are in; otherwise nothing of it.
        let is_kept = |turn: Turn| turn.may_be_cut && fitting > turn.first + usize::from(turn.has_head);
        let steps = match stopped_in {
            Some(turn) if !is_kept(turn) => turn.first.max(from),
            _ => fitting,
        };
        Some(Reach {
            steps,
            left: end - self.sum(steps),
            least_left: (fitting > from).then(|| end - self.sum(fitting)),
            over: next.map(|step| step.sum - end),
            stopped: stopped_in.is_some(),
        })
    }

    /// Finds the end of the walk, and the tokens that it pays, with some of the steps in as pins; `not_in`
    /// holds the others, and `ends_whole` is true if the pins complete the turn that the trail ends in.
    /// Returns `None` if the trail ends before that is known.
    pub(super) fn walk_beside_pins(
        &self,
        from: usize,
        room: u64,
        not_in: &Tree<Steps>,
        ends_whole: bool,
    ) -> Option<(Reach, u64)> {
        let (fitting, passed) = not_in.search(from, self.len(), |steps| steps.tokens <= room);
        let next = self.steps.get_index(fitting).map(|(_, step)| step);
        let stopped_in = match (next, self.end) {
            (Some(step), _) => Some(step.turn),
            (None, End::Whole) => None,
            (None, End::Barrier(_)) if ends_whole => Some(self.turn(false, false)),
            (None, End::Barrier(turn)) => Some(turn),
            (None, End::LaidOutFor(_) | End::Unknown) => return None,
        };
        // Of a turn that is cut its user message and at least one exchange come in, now or before; otherwise
        // nothing of it.
        let is_kept = |turn: Turn| {
            let exchanges = turn.first + usize::from(turn.has_head);
            let comes_in = || fitting > exchanges && not_in.fold(exchanges, fitting).count > 0;
            turn.may_be_cut && (from > turn.first || comes_in())
        };
        let steps = match stopped_in {
            Some(turn) if !is_kept(turn) => turn.first.max(from),
            _ => fitting,
        };
        let paid = not_in.fold(from, steps).tokens;
        let reach = Reach {
            steps,
            left: room - paid,
            least_left: (passed.count > 0).then(|| room - passed.tokens),
            over: next.map(|_| passed.tokens.saturating_add(not_in.get(fitting).tokens) - room),
            stopped: stopped_in.is_some(),
        };
        Some((reach, paid))
    }
}
