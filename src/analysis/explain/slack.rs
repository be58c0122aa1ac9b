//! How far the prompt budget may move before something is decided differently.
//!
//! Every decision of selection compares tokens with what is left of a [`BudgetVariable`]. None of these variables falls
//! when the prompt budget grows, as long as the same pins come first (rules S2, B5). So a decision stays as it is while its variable moves by less than what was
//! left, or by less than what was missing; and while that holds for every decision, the same is in. The [`Recorder`]
//! listens to the decisions and keeps, for each variable, the smallest growth and the smallest fall that changes one.
//!
//! Where only one message of the conversation is asked about, a second form keeps the ranges long. Whether that goal is
//! in is a matter of one sum: of everything newer, and of its own turn up to it. The recorder then ignores what the walk
//! compares, and keeps how far that one sum is from what the walk may spend.

use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        candidates::{CandidateId, Costs},
        observer::{BudgetVariable, Constraint, Observer, WalkState},
    },
};
use std::{cell::Cell, collections::BTreeSet};

/// How far each variable may move, by its number, before some decision is made differently; tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slack {
    /// The growth at which something changes.
    pub(super) growth: [u64; BudgetVariable::ALL.len()],
    /// The fall at which something changes.
    pub(super) fall: [u64; BudgetVariable::ALL.len()],
}

impl Default for Slack {
    fn default() -> Self {
        let never = [u64::MAX; BudgetVariable::ALL.len()];
        Self { growth: never, fall: never }
    }
}

impl Slack {
    /// Something larger than what it was offered by `by` tokens is out. Where a cap stops the offer before it has grown by
    /// so much, it is out however the variable grows.
    fn too_large(&mut self, offer: Constraint, by: u64) {
        if by <= offer.below_cap {
            let growth = &mut self.growth[offer.variable as usize];
            *growth = by.min(*growth);
        }
    }

    /// Something is in that leaves `left` tokens of what it was offered. It is out once one of the two variables of the
    /// offer leaves a token less than that.
    fn fits(&mut self, offer: Constraint, left: u64) {
        let binding = (offer.variable, offer.above_offer);
        for (variable, above_offer) in [Some(binding), offer.second].into_iter().flatten() {
            let fall = &mut self.fall[variable as usize];
            *fall = left.saturating_add(above_offer).saturating_add(1).min(*fall);
        }
    }
}

/// Keeps the slack of the decisions it hears.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    /// The most tokens that any budget leaves: what is larger than that never fits.
    most: u64,
    /// The one message or exchange that is asked about, where the walk alone decides about it.
    goal: Option<CandidateId>,
    slack: Cell<Slack>,
}

impl Recorder {
    pub(super) fn new(most: u64, goal: Option<CandidateId>) -> Self {
        Self { most, goal, slack: Cell::default() }
    }

    fn note(&self, change: impl FnOnce(&mut Slack)) {
        let mut slack = self.slack.get();
        change(&mut slack);
        self.slack.set(slack);
    }

    /// Whether a comparison says nothing about what is asked.
    fn ignores(&self, offer: Constraint) -> bool {
        offer.in_walk && self.goal.is_some()
    }

    /// The goal needs so many tokens of what the walk may still spend.
    fn note_goal(&self, walk: &WalkState<'_>, needed: u64) {
        match walk.left.checked_sub(needed) {
            Some(left) => self.note(|slack| slack.fits(walk.constraint, left)),
            None => self.note(|slack| slack.too_large(walk.constraint, needed - walk.left)),
        }
    }
}

impl Observer for Recorder {
    type Heard = Slack;

    fn count_to(&self, offer: Constraint, left: u64) -> u64 {
        if self.ignores(offer) { left } else { left.max(self.most) }
    }

    fn follows_the_walk(&self) -> bool {
        self.goal.is_some()
    }

    fn fits(&self, offer: Constraint, left: u64) {
        if !self.ignores(offer) {
            self.note(|slack| slack.fits(offer, left));
        }
    }

    fn too_large(&self, offer: Constraint, by: u64) {
        if !self.ignores(offer) {
            self.note(|slack| slack.too_large(offer, by));
        }
    }

    fn too_large_together(
        &self,
        offer: Constraint,
        tokens: u64,
        costs: &Costs<'_>,
        ids: &dyn Fn() -> Result<Vec<CandidateId>, Error>,
    ) -> Result<(), Error> {
        if let Some(needed) = costs.together(ids()?)? {
            self.note(|slack| slack.too_large(offer, needed.saturating_sub(tokens).max(1)));
        }
        Ok(())
    }

    /// The goal is in this turn: is there enough for it?
    fn walk_reaches(&self, walk: &WalkState<'_>, turn: TurnIndex) -> Result<(), Error> {
        let Some(goal) = self.goal.filter(|goal| walk.index.turn_of(*goal) == turn) else { return Ok(()) };
        let decided = (walk.is_in)(goal) || is_before_the_floor(walk, goal);
        if decided || walk.costs.ineligible(goal)?.is_some() {
            return Ok(());
        }
        if let Some(needed) = needed_of_its_turn(walk, goal)? {
            self.note_goal(walk, needed);
        }
        Ok(())
    }

    /// The walk ends before the turn of the goal: all that is between has to fit before it comes in.
    fn walk_ends(&self, walk: &WalkState<'_>, turn: TurnIndex) -> Result<(), Error> {
        let Some(goal) = self.goal else { return Ok(()) };
        let its_turn = walk.index.turn_of(goal);
        if its_turn >= turn || is_before_the_floor(walk, goal) {
            return Ok(());
        }
        // What came in of the turn that is cut came in last.
        let newest_first = walk.new.iter().rev().map(|(id, _)| *id);
        let of_the_cut: BTreeSet<CandidateId> =
            newest_first.take_while(|id| walk.index.turn_of(*id) == turn).collect();
        let turns = TurnIndex::each(its_turn.next()..turn.next());
        let between = turns.flat_map(|turn| {
            let exchanges = ExchangeIndex::each(walk.index.exchanges(turn)).map(CandidateId::Exchange);
            walk.index.head(turn).into_iter().chain(exchanges)
        });
        let missing = between.filter(|id| !(walk.is_in)(*id) && !of_the_cut.contains(id));
        let (missing, own) = (walk.costs.together(missing)?, needed_of_its_turn(walk, goal)?);
        if let (Some(missing), Some(own)) = (missing, own) {
            let by = missing.saturating_add(own).saturating_sub(walk.left).max(1);
            self.note(|slack| slack.too_large(walk.constraint, by));
        }
        Ok(())
    }

    fn take(&self) -> Slack {
        self.slack.take()
    }
}

/// Whether nothing that this walk does lets the goal in.
fn is_before_the_floor(walk: &WalkState<'_>, goal: CandidateId) -> bool {
    let before = |floor: CandidateId| match (goal, floor) {
        (CandidateId::Exchange(goal), CandidateId::Exchange(floor)) => goal < floor,
        _ => walk.index.turn_of(goal) < walk.index.turn_of(floor),
    };
    walk.floor.is_some_and(before)
}

/// What of the goal's own turn has to fit for it to come in, as far as it can be sent and is not in; tokens, none where
/// some of it fits no budget.
///
/// For an exchange: the user message of its turn, the exchange itself and the newer exchanges; in a turn that is kept
/// whole or not at all, all of the turn. For a user message: that message and the newest exchange.
fn needed_of_its_turn(walk: &WalkState<'_>, goal: CandidateId) -> Result<Option<u64>, Error> {
    let turn = walk.index.turn_of(goal);
    let (head, exchanges) = (walk.index.head(turn), walk.index.exchanges(turn));
    let newest_down_to =
        |from: ExchangeIndex| ExchangeIndex::each(from..exchanges.end).rev().map(CandidateId::Exchange);
    let is_out = |id: &CandidateId| !(walk.is_in)(*id);
    if let CandidateId::Exchange(at) = goal {
        let whole = head.is_none() && !walk.only_headless;
        let from = if whole { exchanges.start } else { at };
        return walk.costs.together(head.into_iter().chain(newest_down_to(from)).filter(is_out));
    }
    let mut newest = None;
    for id in newest_down_to(exchanges.start).filter(is_out) {
        if walk.costs.ineligible(id)?.is_none() {
            newest = Some(id);
            break;
        }
    }
    walk.costs.together(head.into_iter().chain(newest).filter(is_out))
}
