//! Reasons of everything that a plan excludes, and the start of its window.
//!
//! - Input: a complete selection.
//! - Output: its [`ExclusionReasons`](super::ExclusionReasons), and the oldest candidate of its window.
//! - Rules: S2, S3 (fallen pins), S6 (overflow), T1 (expiry).

use super::{OneBudget, Selection, Selector};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::{budget::Budgets, candidates::CandidateId},
};
use std::collections::BTreeMap;

impl Selector<'_, OneBudget> {
    /// Records the reason of every excluded candidate, and the start of the window.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn record_reasons(&self, budgets: &Budgets, chosen: &mut Selection) -> Result<(), Error> {
        if budgets.overflow {
            self.exclude_all(chosen);
        }
        // A pin is excluded because no offer was large enough, so the largest offer is the reason.
        let mut first_offer = std::mem::take(&mut chosen.reasons.pins_first);
        for (pin, reason) in &mut chosen.reasons.pins {
            if let Some(first) = first_offer.remove(pin).filter(|first| first.room() >= reason.room()) {
                *reason = first;
            }
        }
        if !chosen.set_does_not_fit {
            self.survey(chosen)?;
        }
        if budgets.overflow {
            chosen.reasons.ineligible.clear();
        } else {
            self.record_fallen_pins(chosen)?;
        }
        Ok(())
    }

    /// Excludes everything but the minimum without examining it, because the minimum exceeds the budget.
    fn exclude_all(&self, chosen: &mut Selection) {
        let reason = ExcludedReason::Budget { room: 0, limited_by: LimitedBy::Overflow };
        for pin in &self.index.pins {
            if !chosen.has(pin.id) {
                chosen.reasons.pins.insert(pin.id, reason.clone());
            }
        }
        let competing = self.index.documents().filter(|(_, document)| document.out.is_none());
        chosen.reasons.documents = competing.map(|(rank, _)| (rank, reason.clone())).collect();
        chosen.reasons.before_window = Some(reason);
    }

    /// Records pins that did not fit and fall with the user message of their turn.
    ///
    /// Without its pin, an exchange is an ordinary message again (rule S3). It then leaves with its expired
    /// user message (rule T1), and the window may continue after it.
    fn record_fallen_pins(&self, chosen: &mut Selection) -> Result<(), Error> {
        let mut fallen = BTreeMap::new();
        for pin in chosen.reasons.pins.keys().filter(|pin| matches!(pin, CandidateId::Exchange(_))) {
            let head = self.index.user_message(self.index.turn_of(*pin)).filter(|head| !chosen.has(*head));
            if let Some(reason) = head.map(|head| self.costs.ineligible(head)).transpose()?.flatten() {
                fallen.insert(*pin, reason);
            }
        }
        chosen.reasons.fallen_pins = fallen;
        Ok(())
    }

    /// Examines the included candidates from the newest turn back, to the first one that can be sent and is
    /// missing.
    ///
    /// Records the start of the window: the oldest candidate that the conversation pays for, or the user
    /// message of a turn that is whole. Also records the candidates in between that can never be sent as they
    /// are.
    fn survey(&self, chosen: &mut Selection) -> Result<(), Error> {
        let (mut start, mut ineligible) = (None, BTreeMap::new());
        let of_the_window = |id: CandidateId| {
            chosen.included.find(id).is_some_and(|inclusion| inclusion.section == Section::Conversation)
        };
        for turn in TurnIndex::each(self.index.turns()).rev() {
            let head = self.index.user_message(turn);
            let user_message_expired = self.has_expired_user_message(turn, chosen)?;
            if !user_message_expired && head.is_some_and(|head| !chosen.has(head)) {
                break;
            }
            let (mut whole, mut oldest, mut here) = (true, None, Vec::new());
            let exchanges = ExchangeIndex::each(self.index.exchanges(turn)).rev().map(CandidateId::Exchange);
            for id in exchanges.chain(head.filter(|_| user_message_expired)) {
                if of_the_window(id) {
                    oldest = Some(id);
                } else if !chosen.has(id) {
                    match self.costs.ineligible(id)? {
                        Some(reason) => here.push((id, reason)),
                        // Under an expired user message, a pin that did not fit is not part of the window.
                        None if user_message_expired => {}
                        None => {
                            whole = false;
                            break;
                        }
                    }
                }
            }
            // A turn that is included by its pins alone is not part of the window, and a turn that is left
            // out was not examined.
            let recent = oldest.is_some() || head.is_some_and(of_the_window);
            if whole || recent {
                ineligible.extend(here);
            }
            let begins = if whole { head.or(oldest).filter(|_| recent) } else { oldest };
            start = begins.or(start);
            if !whole {
                break;
            }
        }
        (chosen.window_start, chosen.reasons.ineligible) = (start, ineligible);
        Ok(())
    }
}
