//! The seam between the rules of selection and the machinery of explanations.
//!
//! Input: offers of the rules, each to many candidates at once. Output: true if the walker made the offer
//! itself. Rules: none. A walker may find the same decisions faster, and hears every comparison; it changes
//! no decision.
//!
//! A plan is selected once, by [`OneBudget`]: it makes no offer itself and hears nothing, so it compiles to
//! nothing. An explanation asks the same of hundreds of thousands of budgets. Its walker shares work between
//! them, and keeps for each decision how far the budget may move before the decision is another one.
//!
//! Every comparison with a limit must be reported: [`Selector::offer`] for one candidate, `resume` and
//! `shorter_old_results` for the window, [`Walker::compared`] for minimums. A comparison that is not reported
//! makes `explain` wrong.

use super::{Kept, Pins, Room, Selection, Selector};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        budget::BudgetVariable,
        candidates::{CandidateId, Costs},
    },
};
use std::ops::Range;

/// The way to go through candidates, and the listener to comparisons.
pub(crate) trait Walker: Sized {
    /// Included candidates in a form that selections share.
    type Shared: Default;

    /// The facts that were heard about decisions.
    type Heard;

    /// Builds a walker of the same kind for other costs.
    fn for_other_costs(&self) -> Self;

    /// Returns the facts that were heard since the last call.
    fn take_heard(&self) -> Self::Heard;

    /// Returns the number of tokens up to which a candidate that is offered `left` tokens is counted: more
    /// than that if it matters by how much it is too large.
    fn count_to(&self, _offer: Room, left: u64) -> u64 {
        left
    }

    /// Hears that something fits, and leaves so many tokens of its offer.
    fn fits(&self, _offer: Room, _left: u64) {}

    /// Hears that something is larger than its offer, by so many tokens.
    fn too_large(&self, _offer: Room, _by: u64) {}

    /// Hears that these do not fit together into their offer.
    fn too_large_together(
        &self,
        _offer: Room,
        _costs: &Costs<'_>,
        _ids: &dyn Fn() -> Result<Vec<CandidateId>, Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Hears that the walk comes to a turn.
    fn walk_reaches(&self, _walk: &Walk<'_, '_, Self>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// Hears that the walk ends inside a turn, or before it.
    fn walk_ends(&self, _walk: &Walk<'_, '_, Self>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// Hears the comparison of an amount with the least that it has to be.
    fn compared(&self, variable: BudgetVariable, amount: u64, least: u64) {
        let room = Room::new(amount, variable);
        match amount.checked_sub(least) {
            Some(left) => self.fits(room, left),
            None => self.too_large(room, least - amount),
        }
    }

    /// Returns the section and reason of a candidate that is included in the shared form.
    fn find(_shared: &Self::Shared, _id: CandidateId) -> Option<Kept> {
        None
    }

    /// Counts the candidates in the shared form.
    fn count(_shared: &Self::Shared) -> usize {
        0
    }

    /// Checks if one of these exchanges is included in the shared form by the walk.
    fn has_walked_any(_shared: &Self::Shared, _exchanges: &Range<ExchangeIndex>) -> bool {
        false
    }

    /// Checks if the whole live turn is included in the shared form, as far as it can be sent.
    fn has_live_turn(_shared: &Self::Shared) -> bool {
        false
    }

    /// Offers a room to all pins (rule S2).
    fn offer_pins(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to all documents (rule S8).
    fn offer_documents(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to the conversation (rule S4); nothing before `floor` is included.
    fn walk(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _floor: Option<CandidateId>,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to the last prompt's window (rule S5). Returns `Some(true)` if it fits and is included.
    fn resume(
        &self,
        _selector: &Selector<'_, Self>,
        _start: CandidateId,
        _room: Room,
        _pins: Pins,
        _chosen: &mut Selection<Self>,
    ) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    /// Checks if the window in the shared form waits for pins that are not included.
    fn waits_in_vain(
        &self,
        _selector: &Selector<'_, Self>,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }
}

/// The walk through the conversation (rule S4).
pub(crate) struct Walk<'a, 'b, W: Walker> {
    pub(crate) selector: &'a Selector<'b, W>,
    pub(crate) room: Room,
    /// The tokens left of the room.
    pub(crate) left: u64,
    /// Nothing before this is included.
    pub(crate) floor: Option<CandidateId>,
    pub(crate) chosen: &'a mut Selection<W>,
    /// The candidates that this walk includes, with their tokens.
    pub(crate) new: Vec<(CandidateId, u64)>,
}

/// The walker of plans: each candidate by itself, and nobody hears the comparisons.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneBudget;

impl Walker for OneBudget {
    type Shared = ();
    type Heard = ();

    fn for_other_costs(&self) -> Self {
        Self
    }

    fn take_heard(&self) {}
}
