//! The walk through the conversation (rule S4) as a list of steps.
//!
//! Input: the candidates that the walk meets, from the newest to the oldest, with their tokens, and a room in
//! tokens. Output: the step at which the walk ends. Rules: conversation (S4), sticky window (S5).
//!
//! If only the room stops the walk, it meets the same candidates in the same order under every budget. A
//! trail holds them with the running sum of their tokens. So the walk of one budget is a search for the first
//! step that no longer fits. Candidates that are included apart from the walk, such as pins, change its
//! steps: a trail is valid for one set of them.

use super::tree::{Stretch, Tree};
use crate::planner::{candidates::CandidateId, select::SlotSet};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::{ops::Range, rc::Rc};

/// The steps of a walk. Each turn has its user message first, then its exchanges from the newest to the
/// oldest. Candidates that are already included or can never be sent are left out.
#[derive(Debug)]
pub(super) struct Trail {
    /// The messages and exchanges that were included before the walk: the live question and pins.
    pub(super) beside: Vec<CandidateId>,
    /// The oldest candidate that may be included; `None` without such a limit.
    pub(super) floor: Option<CandidateId>,
    /// True if pinned messages are on the trail, included or not. Of two such trails one is the beginning of
    /// the other.
    pub(super) holds_pins: bool,
    /// The steps, each with the tokens of all steps up to it and with its turn.
    steps: IndexMap<CandidateId, (u64, Turn), FixedState>,
    end: End,
    /// Number of steps after which the current turn is included, as far as it can be sent.
    pub(super) live: Option<usize>,
}

/// The end of a trail, after its last step.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// The beginning of the conversation.
    Whole,
    /// A part of this turn that no budget includes, and that stops the walk under every budget. It is an
    /// exchange larger than any budget, or one before the floor.
    Barrier(Turn),
    /// An end of the layout: the steps need more than this number of tokens, and older ones were not
    /// examined.
    LaidOutFor(u64),
    /// An unknown end, for any room. The walk itself has to examine the steps.
    Unknown,
}

/// The last prompt's window laid out (sticky window, rule S5): all candidates that are included if it fits.
/// It starts at the floor of its trail.
#[derive(Debug)]
pub(super) struct WindowTrail {
    /// The pins that had no room when the window was laid out, if it awaits such pins.
    pub(super) dropped: Vec<CandidateId>,
    /// Those of them that are part of the window.
    pub(super) awaited: Vec<CandidateId>,
    pub(super) trail: Rc<Trail>,
    /// Tokens of the whole window; `None` if part of it fits no budget.
    pub(super) tokens: Option<u64>,
}

/// The last prompt's window with pins on it (sticky window, rule S5): all steps of a trail that ends at the
/// window's oldest candidate.
#[derive(Debug)]
pub(super) struct WindowSteps {
    pub(super) trail: Rc<Trail>,
    /// The turn in which the window starts. `None` if the window starts with a user message, or if the
    /// minimum includes an exchange of that turn from the start on. The exchanges are included together with
    /// the user message of the turn, or its pins alone include the whole turn.
    pub(super) cut: Option<Turn>,
    /// The slots of the candidates of that turn before the window; `None` if some of them are not pins.
    pub(super) before: Option<Vec<Range<u32>>>,
}

impl WindowSteps {
    /// Checks if the pins include everything of the window's first turn that is before the window.
    pub(super) fn has_whole_turn(&self, pins: &SlotSet) -> bool {
        self.before.as_ref().is_some_and(|before| before.iter().all(|slots| pins.covers(slots)))
    }
}

/// A turn on a trail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// The index of its first step.
    pub(super) first: usize,
    /// True if its first step is its user message.
    pub(super) has_head: bool,
    /// True if a part of the turn may be included without the rest.
    may_be_cut: bool,
}

impl Turn {
    /// Returns the index of its first step that is not the user message.
    pub(super) fn exchanges(self) -> usize {
        self.first + usize::from(self.has_head)
    }
}

/// The end of a walk on a trail.
pub(super) struct Reach {
    pub(super) trail: Rc<Trail>,
    /// Number of included steps.
    pub(super) steps: usize,
    /// Tokens of the steps that this walk includes.
    pub(super) paid: u64,
    /// Tokens left after the last step that fitted, even if it was not included; `None` if none fitted.
    pub(super) least_left: Option<u64>,
    /// Tokens that the first step that did not fit is too large by, if known.
    pub(super) over: Option<u64>,
}

impl Trail {
    pub(super) fn new(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { beside, floor, holds_pins: false, steps: IndexMap::default(), end: End::Whole, live: None }
    }

    /// Creates a trail with the pinned messages on it. `beside` is the minimum.
    pub(super) fn with_pins(beside: Vec<CandidateId>, floor: Option<CandidateId>) -> Self {
        Self { holds_pins: true, ..Self::new(beside, floor) }
    }

    /// Creates a turn that begins at the end of the trail.
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

    /// Checks if a longer trail could lead further, for `room` tokens after the step `from`.
    pub(super) fn is_too_short(&self, from: usize, room: u64) -> bool {
        matches!(self.end, End::LaidOutFor(most) if most < self.sum(from).saturating_add(room))
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns the tokens of the first `steps` steps.
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

    /// Returns the tokens of the step at a place.
    pub(super) fn cost(&self, place: usize) -> u64 {
        self.sum(place + 1) - self.sum(place)
    }

    /// Returns the number of tokens that the trail was laid out for, or `None` if no more of it can be laid
    /// out.
    pub(super) fn laid_out_for(&self) -> Option<u64> {
        match self.end {
            End::LaidOutFor(room) => Some(room),
            End::Whole | End::Barrier(_) | End::Unknown => None,
        }
    }

    pub(super) fn place(&self, id: CandidateId) -> Option<usize> {
        self.steps.get_index_of(&id)
    }

    /// Returns the first `steps` steps.
    pub(super) fn ids(
        &self,
        steps: usize,
    ) -> impl DoubleEndedIterator<Item = CandidateId> + ExactSizeIterator {
        self.steps.as_slice()[..steps].keys().copied()
    }

    /// Finds the end of a walk that starts at the step `from` with `room` tokens. Returns `None` if the trail
    /// ends before that is known.
    pub(super) fn walk(self: &Rc<Self>, from: usize, room: u64) -> Option<Reach> {
        // The running sum at which the room is used up.
        let end = self.sum(from).saturating_add(room);
        // The sums never fall along the trail, so a bisection finds the first step that does not fit.
        let fitting = from + self.steps.as_slice()[from..].partition_point(|_, (sum, _)| *sum <= end);
        let next = self.steps.get_index(fitting).map(|(_, step)| *step);
        // A cut turn keeps its user message and at least one exchange. Otherwise nothing of it is included.
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

    /// Finds the end of a walk that starts at the step `from` with `room` tokens, if pins include some of the
    /// steps. `not_in` holds the costs of the other steps. `ends_whole` is true if the pins complete the turn
    /// in which the trail ends. Returns `None` if the trail ends before the end is known.
    pub(super) fn walk_beside_pins(
        self: &Rc<Self>,
        from: usize,
        room: u64,
        not_in: &Tree<Stretch>,
        ends_whole: bool,
    ) -> Option<Reach> {
        let (fitting, passed) = not_in.search(from, self.len(), |steps| steps.tokens <= room);
        let next = self.steps.get_index(fitting).map(|(_, step)| *step);
        // A cut turn keeps its user message and at least one exchange, included now or before. Otherwise
        // nothing of it is included.
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

    /// Returns the number of steps that are included by a walk from the step `from`, if the first `fitting`
    /// steps fit. Nothing of the turn in which it stops is included unless `is_kept` is true for that turn.
    /// Returns `None` if the trail ends before that turn is known.
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
