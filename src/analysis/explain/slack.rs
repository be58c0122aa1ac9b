//! The distance that the prompt budget may move before a decision of selection changes.
//!
//! Input: the comparisons of selection. Output: for each variable, the smallest growth and the smallest fall
//! that change a decision. Rule: counterfactual budgets (E1).
//!
//! Every decision of selection compares tokens with the remaining amount of a [`BudgetVariable`]. None of
//! these variables falls when the prompt budget grows, as long as the same pins come first (rules S2, B5). So
//! a decision stays the same while its variable moves by less than the tokens that were left or missing.
//! While this is true of every decision, the same candidates are included.
//!
//! If only one message of the conversation is requested, a second form keeps the ranges long. That message,
//! the goal, is included if one sum fits: the tokens of everything newer, and of its own turn up to it. Then
//! the comparisons of the walk are ignored, and only the distance of this sum from the tokens of the walk is
//! recorded.

use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        budget::BudgetVariable,
        candidates::CandidateId,
        select::{Room, Selector, Walk, Walker},
    },
};
use std::collections::BTreeSet;

/// By number of the variable, the tokens by which it may move before a decision changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slack {
    /// The growth at which a decision changes.
    pub(super) growth: [u64; BudgetVariable::ALL.len()],
    /// The fall at which a decision changes.
    pub(super) fall: [u64; BudgetVariable::ALL.len()],
}

impl Default for Slack {
    fn default() -> Self {
        let never = [u64::MAX; BudgetVariable::ALL.len()];
        Self { growth: never, fall: never }
    }
}

impl Slack {
    /// Records the exclusion of a candidate that needs `by` more tokens than its offer. If a cap stops the
    /// offer before it grows by `by` tokens, the candidate stays excluded however much the variable grows.
    pub(super) fn too_large(&mut self, offer: Room, by: u64) {
        if by <= offer.below_cap()
            && let Some((variable, _)) = offer.limits().next()
        {
            let growth = &mut self.growth[variable as usize];
            *growth = by.min(*growth);
        }
    }

    /// Records the inclusion of a candidate that leaves `left` tokens of its offer. It is excluded once
    /// one of the variables of the offer leaves one token less than that.
    pub(super) fn fits(&mut self, offer: Room, left: u64) {
        for (variable, above_offer) in offer.limits() {
            let fall = &mut self.fall[variable as usize];
            *fall = left.saturating_add(above_offer).saturating_add(1).min(*fall);
        }
    }
}

/// Returns the tokens that the goal needs of the rest of the walk when the walk comes to `turn`. Returns
/// `None` if the goal is in another turn, or is not decided here.
pub(super) fn needed_in_turn<W: Walker>(
    walk: &Walk<'_, '_, W>,
    goal: CandidateId,
    turn: TurnIndex,
) -> Result<Option<u64>, Error> {
    let Selector { index, costs, .. } = walk.selector;
    let is_decided = walk.chosen.has(goal) || is_before_the_floor(walk, goal);
    if index.turn_of(goal) != turn || is_decided || costs.ineligible(goal)?.is_some() {
        return Ok(None);
    }
    needed_of_its_turn(walk, goal)
}

/// Returns the tokens that the goal needs of the rest of the walk when the walk ends at `turn`. Everything
/// between that turn and the goal has to fit before the goal is included. Returns `None` if the goal is not
/// before that turn, or if no budget includes it.
pub(super) fn needed_behind_turn<W: Walker>(
    walk: &Walk<'_, '_, W>,
    goal: CandidateId,
    turn: TurnIndex,
) -> Result<Option<u64>, Error> {
    let Selector { index, costs, .. } = walk.selector;
    let its_turn = index.turn_of(goal);
    if its_turn >= turn || is_before_the_floor(walk, goal) {
        return Ok(None);
    }
    // The walk includes the candidates of the cut turn last, so they are at the end of `new`.
    let newest_first = walk.new.iter().rev().map(|(id, _)| *id);
    let of_the_cut: BTreeSet<CandidateId> =
        newest_first.take_while(|id| index.turn_of(*id) == turn).collect();
    let turns = TurnIndex::each(its_turn.next()..turn.next());
    let between = turns.flat_map(|turn| {
        let exchanges = ExchangeIndex::each(index.exchanges(turn)).map(CandidateId::Exchange);
        index.user_message(turn).into_iter().chain(exchanges)
    });
    let missing = between.filter(|id| !walk.chosen.has(*id) && !of_the_cut.contains(id));
    let (missing, own) = (costs.together(missing)?, needed_of_its_turn(walk, goal)?);
    Ok(missing.zip(own).map(|(missing, own)| missing.saturating_add(own)))
}

/// Checks if the goal is before everything that this walk may include.
fn is_before_the_floor<W: Walker>(walk: &Walk<'_, '_, W>, goal: CandidateId) -> bool {
    let index = walk.selector.index;
    let before = |floor: CandidateId| match (goal, floor) {
        (CandidateId::Exchange(goal), CandidateId::Exchange(floor)) => goal < floor,
        _ => index.turn_of(goal) < index.turn_of(floor),
    };
    walk.floor.is_some_and(before)
}

/// Returns the tokens of the goal's own turn that have to fit before the goal is included. Only candidates
/// count that can be sent and are not included yet. Returns `None` if some of them fit no budget.
///
/// For an exchange these are the user message of its turn, the exchange itself and the newer exchanges. In a
/// turn that is kept whole or not at all, they are the whole turn. For a user message they are that message
/// and the newest exchange.
fn needed_of_its_turn<W: Walker>(walk: &Walk<'_, '_, W>, goal: CandidateId) -> Result<Option<u64>, Error> {
    let Selector { index, costs, .. } = walk.selector;
    let turn = index.turn_of(goal);
    let (head, exchanges) = (index.user_message(turn), index.exchanges(turn));
    let newest_down_to =
        |from: ExchangeIndex| ExchangeIndex::each(from..exchanges.end).rev().map(CandidateId::Exchange);
    let is_out = |id: &CandidateId| !walk.chosen.has(*id);
    if let CandidateId::Exchange(at) = goal {
        let whole = head.is_none() && !walk.selector.is_one_turn();
        let from = if whole { exchanges.start } else { at };
        return costs.together(head.into_iter().chain(newest_down_to(from)).filter(is_out));
    }
    let mut newest = None;
    for id in newest_down_to(exchanges.start).filter(is_out) {
        if costs.ineligible(id)?.is_none() {
            newest = Some(id);
            break;
        }
    }
    costs.together(head.into_iter().chain(newest).filter(is_out))
}
