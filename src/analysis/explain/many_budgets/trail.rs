//! The walk of rule S4 as a list of steps.
//!
//! Input: the candidates that the walk meets, from the newest back, with their tokens, and a room. Output:
//! the step at which the walk ends. Rules: S4, S5.
//!
//! If nothing but room stops it, the walk meets the same candidates in the same order under every budget. A
//! trail holds them with the running sum of their tokens, so the walk of one budget is a search for the first
//! step that no longer fits. The candidates that are included beside the walk, pins for example, change its
//! steps: a trail holds for one such set.

use super::tree::{Stretch, Tree};
use crate::planner::{candidates::CandidateId, select::SlotSet};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::{ops::Range, rc::Rc};

/// The steps of a walk: of each turn its user message, then its exchanges, the newest first; without the
/// candidates that are included already or can never be sent.
#[derive(Debug)]
pub(super) struct Trail {
    /// The messages and exchanges that were included when the walk began: the live question, and pins.
    pub(super) beside: Vec<CandidateId>,
    /// Nothing before this is included.
    pub(super) floor: Option<CandidateId>,
    /// True if pinned messages are on it, included or not: of two such trails one is the beginning of the
    /// other.
    pub(super) holds_pins: bool,
    /// Each with the tokens of all up to it, and its turn.
    steps: IndexMap<CandidateId, (u64, Turn), FixedState>,
    end: End,
    /// The number of steps after which the live turn is included, as far as it can be sent.
    pub(super) live: Option<usize>,
}

/// The end of a trail, after its last step.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// Nothing: the conversation begins there.
    Whole,
    /// Something of this turn that never comes in, and stops the walk under every budget: an exchange that is
    /// larger than all of them, or one before the floor.
    Barrier(Turn),
    /// Not looked at: there is more than this much room before it; tokens.
    LaidOutFor(u64),
    /// Not looked at, however much room there is: the walk itself has to.
    Unknown,
}

/// The last prompt's window (rule S5) laid out: all candidates that are included if it fits. It starts at the
/// floor of its trail.
#[derive(Debug)]
pub(super) struct WindowTrail {
    /// The pins that had no room when it was laid out, if those are awaited.
    pub(super) dropped: Vec<CandidateId>,
    /// Those of them that are part of the window.
    pub(super) awaited: Vec<CandidateId>,
    pub(super) trail: Rc<Trail>,
    /// The tokens of all of it; `None` if some of it fits no budget.
    pub(super) tokens: Option<u64>,
}

/// The last prompt's window (rule S5) among pins: all steps of a trail that ends before it.
#[derive(Debug)]
pub(super) struct WindowSteps {
    pub(super) trail: Rc<Trail>,
    /// The turn that it starts in, if it starts at one of its exchanges, and no exchange from there on is
    /// part of the minimum: they are included with the user message, or all of the turn is included by its
    /// pins alone.
    pub(super) cut: Option<Turn>,
    /// The slots of the candidates of that turn before the window; `None` if some of them are no pins.
    pub(super) before: Option<Vec<Range<u32>>>,
}

impl WindowSteps {
    /// Checks if nothing of the turn that the window starts in is missing before it.
    pub(super) fn has_whole_turn(&self, pins: &SlotSet) -> bool {
        self.before.as_ref().is_some_and(|before| before.iter().all(|slots| pins.covers(slots)))
    }
}

/// A turn on a trail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Its first step.
    pub(super) first: usize,
    /// True if that one is its user message.
    pub(super) has_head: bool,
    /// True if some of it may be included without the rest.
    may_be_cut: bool,
}

impl Turn {
    /// Returns its first step that is no user message.
    pub(super) fn exchanges(self) -> usize {
        self.first + usize::from(self.has_head)
    }
}

/// The end of a walk on a trail.
pub(super) struct Reach {
    pub(super) trail: Rc<Trail>,
    /// The number of steps that are included.
    pub(super) steps: usize,
    /// The tokens of the steps that this walk includes.
    pub(super) paid: u64,
    /// The tokens left after the last step that fitted, included or not; `None` if none fitted.
    pub(super) least_left: Option<u64>,
    /// The tokens by which the first step that did not fit is too large, if that is known.
    pub(super) over: Option<u64>,
}

impl Trail {
    pub(super) fn new(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { beside, floor, holds_pins: false, steps: IndexMap::default(), end: End::Whole, live: None }
    }

    /// Begins one with the pinned messages on it; `beside` is the minimum.
    pub(super) fn with_pins(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { holds_pins: true, ..Self::new(beside, floor) }
    }

    /// Builds a turn that begins at the end of the trail.
    pub(super) fn turn(&self, has_head: bool, may_be_cut: bool) -> Turn {
        Turn { first: self.len(), has_head, may_be_cut }
    }

    pub(super) fn push(&mut self, id: CandidateId, tokens: u64, turn: Turn) {
        let sum = self.sum(self.len()).saturating_add(tokens);
        self.steps.insert(id, (sum, turn));
    }

    pub(super) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Checks if a longer trail may lead further, for so much room after a step.
    pub(super) fn is_too_short(&self, from: usize, room: u64) -> bool {
        matches!(self.end, End::LaidOutFor(most) if most < self.sum(from).saturating_add(room))
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns the tokens of so many steps.
    pub(super) fn sum(&self, steps: usize) -> u64 {
        steps.checked_sub(1).map_or(0, |last| self.steps[last].0)
    }

    pub(super) fn id(&self, place: usize) -> CandidateId {
        self.steps.get_index(place).map_or_else(|| unreachable!("no step {place}"), |(id, _)| *id)
    }

    /// Returns the turn of the last step.
    pub(super) fn last_turn(&self) -> Option<Turn> {
        self.steps.last().map(|(_, (_, turn))| *turn)
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

    /// Returns the first so many steps.
    pub(super) fn ids(
        &self,
        steps: usize,
    ) -> impl DoubleEndedIterator<Item = CandidateId> + ExactSizeIterator {
        self.steps.as_slice()[..steps].keys().copied()
    }

    /// Finds the end of the walk from a step on with so much room. Returns `None` if the trail ends before
    /// that is known.
    pub(super) fn walk(self: &Rc<Self>, from: usize, room: u64) -> Option<Reach> {
        // The end of the room as a running sum.
        let end = self.sum(from).saturating_add(room);
        let fitting = from + self.steps.as_slice()[from..].partition_point(|_, (sum, _)| *sum <= end);
        let next = self.steps.get_index(fitting).map(|(_, step)| *step);
        // Of a turn that is cut its user message and at least one exchange are included; otherwise nothing of
        // it.
        let is_kept = |turn: Turn| turn.may_be_cut && fitting > turn.exchanges();
        let steps = self.steps_within((from, fitting), false, is_kept)?;
        Some(Reach {
            trail: Rc::clone(self),
            steps,
            paid: self.sum(steps) - self.sum(from),
            least_left: (fitting > from).then(|| end - self.sum(fitting)),
            over: next.map(|(sum, _)| sum - end),
        })
    }

    /// Finds the end of the walk from a step on with so much room, with some of the steps included as pins.
    /// `not_in` holds the others; `ends_whole` is true if the pins complete the turn that the trail ends in.
    /// Returns `None` if the trail ends before that is known.
    pub(super) fn walk_beside_pins(
        self: &Rc<Self>,
        from: usize,
        room: u64,
        not_in: &Tree<Stretch>,
        ends_whole: bool,
    ) -> Option<Reach> {
        let (fitting, passed) = not_in.search(from, self.len(), |steps| steps.tokens <= room);
        let next = self.steps.get_index(fitting).map(|(_, step)| *step);
        // Of a turn that is cut its user message and at least one exchange are included, now or before;
        // otherwise nothing of it.
        let is_kept = |turn: Turn| {
            let comes_in = || fitting > turn.exchanges() && not_in.fold(turn.exchanges(), fitting).count > 0;
            turn.may_be_cut && (from > turn.first || comes_in())
        };
        let steps = self.steps_within((from, fitting), ends_whole, is_kept)?;
        Some(Reach {
            trail: Rc::clone(self),
            steps,
            paid: not_in.fold(from, steps).tokens,
            least_left: (passed.count > 0).then(|| room - passed.tokens),
            over: next.map(|_| passed.tokens.saturating_add(not_in.get(fitting).tokens) - room),
        })
    }

    /// Returns the number of steps that are included by a walk from a step on, if so many fit: of the turn
    /// that it stops in, nothing comes in unless `is_kept`. Returns `None` if the trail ends before that turn
    /// is known.
    fn steps_within(
        &self,
        (from, fitting): (usize, usize),
        ends_whole: bool,
        is_kept: impl Fn(Turn) -> bool,
    ) -> Option<usize> {
        let stopped_in = match (self.steps.get_index(fitting), self.end) {
            (Some((_, (_, turn))), _) => *turn,
            (None, End::Whole) => return Some(fitting),
            (None, End::Barrier(_)) if ends_whole => self.turn(false, false),
            (None, End::Barrier(turn)) => turn,
            (None, End::LaidOutFor(_) | End::Unknown) => return None,
        };
        Some(if is_kept(stopped_in) { fitting } else { stopped_in.first.max(from) })
    }
}
