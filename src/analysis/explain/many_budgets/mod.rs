//! Selection for many budgets.
//!
//! Input: the offers of the rules of selection, for one budget after the other. Output: the same decisions as
//! in a plan, and the distance that the budget may move before one of them changes. Rules: those of
//! [`planner::select`](crate::planner::select).
//!
//! An explanation selects for hundreds of thousands of budgets. [`ManyBudgets`] lays out once everything that
//! does not depend on the budget: pins by their slots, the walk as a trail, documents in a tree. From one
//! budget to the next it applies only the differences. So the work follows the number of candidates that come
//! or go. It records no reasons, because only plans need them.

use super::slack::{self, Slack};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    item::Section,
    planner::{
        candidates::{CandidateId, Costs, Slot},
        select::{Inclusion, Room, Selection, Selector, Walk, Walker},
    },
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    ops::Range,
    rc::Rc,
};

mod tree;
mod pin_slots;
mod trail;
mod shared;
mod fill;
mod pin_costs;
mod walk_sums;
mod layout;
mod pin_layout;
mod sequence_costs;

use fill::Filled;
use pin_costs::LaidOutPins;
pub(super) use pin_slots::PinSlots;
pub(super) use sequence_costs::{AddedTokens, SequenceCosts};
pub(crate) use shared::SharedInclusions;
use trail::{Trail, WindowTrail};
use tree::{Stretch, Tree};
use walk_sums::WalkSums;

/// The walker of explanations. It shares work between budgets, and records the slack of each decision.
pub(crate) struct ManyBudgets {
    /// The most tokens that any budget leaves. A larger candidate never fits.
    largest_budget: u64,
    /// The one requested message or exchange, if the walk alone decides about it.
    goal: Option<CandidateId>,
    slack: Cell<Slack>,
    pins: Rc<PinSlots>,
    /// The pins with their costs; `None` if they have to be examined one by one.
    laid_out_pins: OnceCell<Option<Rc<LaidOutPins>>>,
    /// The token costs of the documents by slot.
    documents: OnceCell<Tree<Stretch>>,
    walk: RefCell<Option<Rc<Trail>>>,
    /// The candidates that were included apart from the last walk without a trail.
    requested: RefCell<Vec<CandidateId>>,
    /// The last prompt's window, one for each way to handle pins.
    windows: [RefCell<Option<Rc<WindowTrail>>>; 2],
    /// The walk with the pinned messages on it.
    beside_pins: RefCell<Option<Rc<Trail>>>,
    /// The costs of its steps that no pin includes. The key holds the number of the walk under its budget,
    /// and true if excluded pins count.
    sums: RefCell<BTreeMap<(usize, bool), WalkSums>>,
}

impl ManyBudgets {
    /// Creates a walker for budgets that leave at most `most` tokens. Selections that share `pins` are
    /// compared by their differences.
    pub(super) fn new(largest_budget: u64, goal: Option<CandidateId>, pins: Rc<PinSlots>) -> Self {
        Self {
            largest_budget,
            goal,
            slack: Cell::default(),
            pins,
            laid_out_pins: OnceCell::new(),
            documents: OnceCell::new(),
            walk: RefCell::default(),
            requested: RefCell::default(),
            windows: Default::default(),
            beside_pins: RefCell::default(),
            sums: RefCell::default(),
        }
    }

    fn note(&self, change: impl FnOnce(&mut Slack)) {
        let mut slack = self.slack.get();
        change(&mut slack);
        self.slack.set(slack);
    }

    /// Checks if the comparison with an offer is irrelevant. With a goal, the comparisons of the walk are.
    fn ignores(&self, offer: Room) -> bool {
        offer.is_of_walk() && self.goal.is_some()
    }

    /// Returns the token costs of all documents, which are counted once.
    fn documents(&self, selector: &Selector<'_, Self>) -> Result<&Tree<Stretch>, Error> {
        if let Some(known) = self.documents.get() {
            return Ok(known);
        }
        let size = |slot| selector.tokens_up_to_largest(CandidateId::Document(selector.index.rank_at(slot)));
        let sizes: Vec<u64> =
            Slot::each(selector.index.document_slots()).map(size).collect::<Result<_, Error>>()?;
        Ok(self.documents.get_or_init(|| Tree::new(sizes.into_iter().map(Stretch::one))))
    }
}

impl Walker for ManyBudgets {
    type Shared = SharedInclusions;
    type Records = Slack;

    fn for_other_costs(&self) -> Self {
        Self::new(self.largest_budget, self.goal, Rc::clone(&self.pins))
    }

    fn take_records(&self) -> Slack {
        self.slack.take()
    }

    fn count_to(&self, offer: Room, left: u64) -> u64 {
        // Counted up to `most`, because the slack needs the exact number of missing tokens.
        if self.ignores(offer) { left } else { left.max(self.largest_budget) }
    }

    fn fits(&self, offer: Room, left: u64) {
        if !self.ignores(offer) {
            self.note(|slack| slack.fits(offer, left));
        }
    }

    fn too_large(&self, offer: Room, by: u64) {
        if !self.ignores(offer) {
            self.note(|slack| slack.too_large(offer, by));
        }
    }

    fn too_large_together(
        &self,
        offer: Room,
        costs: &Costs<'_>,
        ids: &dyn Fn() -> Result<Vec<CandidateId>, Error>,
    ) -> Result<(), Error> {
        if let Some(needed) = costs.together(ids()?)? {
            // At least 1: with a slack of 0 the range would not even contain the present budget.
            self.note(|slack| slack.too_large(offer, needed.saturating_sub(offer.tokens()).max(1)));
        }
        Ok(())
    }

    fn walk_reaches(&self, walk: &Walk<'_, '_, Self>, turn: TurnIndex) -> Result<(), Error> {
        let Some(goal) = self.goal else { return Ok(()) };
        // Only the distance to the goal is recorded; the other comparisons of the walk are ignored.
        if let Some(needed) = slack::needed_in_turn(walk, goal, turn)? {
            match walk.left.checked_sub(needed) {
                Some(left) => self.note(|slack| slack.fits(walk.room, left)),
                None => self.note(|slack| slack.too_large(walk.room, needed - walk.left)),
            }
        }
        Ok(())
    }

    fn walk_ends(&self, walk: &Walk<'_, '_, Self>, turn: TurnIndex) -> Result<(), Error> {
        let Some(goal) = self.goal else { return Ok(()) };
        if let Some(needed) = slack::needed_behind_turn(walk, goal, turn)? {
            self.note(|slack| slack.too_large(walk.room, needed.saturating_sub(walk.left).max(1)));
        }
        Ok(())
    }

    fn find(shared: &SharedInclusions, id: CandidateId) -> Option<Inclusion> {
        shared.find(id)
    }

    fn count(shared: &SharedInclusions) -> usize {
        shared.count()
    }

    fn has_walked_any(shared: &SharedInclusions, exchanges: &Range<ExchangeIndex>) -> bool {
        shared.walked().any(|id| matches!(id, CandidateId::Exchange(at) if exchanges.contains(&at)))
    }

    fn has_live_turn(shared: &SharedInclusions) -> bool {
        shared.trail().is_some_and(|(trail, steps)| trail.live.is_some_and(|live| live <= steps))
    }

    fn offer_pins(
        &self,
        selector: &Selector<'_, Self>,
        room: Room,
        chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        let Some(pins) = selector.laid_out_pins(chosen)? else { return Ok(false) };
        let shared = &mut chosen.included.shared;
        // Each budget starts with the pins of the minimum.
        if shared.offers == 0 {
            shared.start_with_pins(&pins.slots, &pins.required);
        }
        let filled = pins.offer(shared.offers, room.tokens(), shared);
        filled.report(self, room);
        shared.offers += 1;
        chosen.included.pay(Section::SystemPinned, filled.tokens);
        Ok(true)
    }

    fn offer_documents(
        &self,
        selector: &Selector<'_, Self>,
        room: Room,
        chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        let rules = &selector.config.rag;
        // These limits count documents and their sources one by one, which sums over slots cannot do. So do
        // comparisons with the texts of other items.
        if rules.counts_documents() || selector.costs.documents_are_decided_one_by_one(rules) {
            return Ok(false);
        }
        let (costs, included) = (self.documents(selector)?, &mut chosen.included);
        let filled = Filled::from_offer(&included.documents, costs, room.tokens(), rules.fill);
        filled.report(self, room);
        included.documents.extend(&filled);
        included.pay(Section::Rag, filled.tokens);
        Ok(true)
    }

    fn walk(
        &self,
        selector: &Selector<'_, Self>,
        room: Room,
        floor: Option<CandidateId>,
        chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        let walk_end = match selector.laid_out_pins(chosen)?.filter(|pins| pins.are_walked) {
            Some(pins) => selector.walk_around_pins(&pins, room.tokens(), chosen),
            None => selector.walk_along(room.tokens(), floor, chosen),
        };
        let Some(walk_end) = walk_end else { return Ok(false) };
        walk_end.least_left.into_iter().for_each(|left| self.fits(room, left));
        walk_end.over.into_iter().for_each(|by| self.too_large(room, by));
        chosen.included.pay(Section::Conversation, walk_end.paid);
        chosen.included.shared.walk_to(walk_end.trail, walk_end.steps);
        Ok(true)
    }

    fn resume(
        &self,
        selector: &Selector<'_, Self>,
        start: CandidateId,
        room: Room,
        chosen: &mut Selection<Self>,
    ) -> Result<Option<bool>, Error> {
        if let Some(laid_out) = selector.laid_out_pins(chosen)?
            && let Some(window) = &laid_out.window
        {
            return Ok(Some(selector.resume_around_pins(&laid_out, window, room, chosen)));
        }
        let Some(window) = selector.window_along(start, chosen)? else { return Ok(None) };
        let tokens = room.tokens();
        let Some(left) = window.tokens.and_then(|needed| tokens.checked_sub(needed)) else {
            if let Some(needed) = window.tokens {
                self.too_large(room, needed - tokens);
            }
            return Ok(Some(false));
        };
        let steps = window.trail.len();
        if steps > 0 {
            self.fits(room, left);
        }
        chosen.included.pay(Section::Conversation, window.trail.sum(steps));
        chosen.included.shared.walk_to(Rc::clone(&window.trail), steps);
        chosen.resumed(window.awaited.clone(), left);
        Ok(Some(true))
    }

    fn lacks_awaited_pins(
        &self,
        selector: &Selector<'_, Self>,
        chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        selector.awaits_missing_pins(chosen)
    }
}

#[cfg(test)]
mod tests;
