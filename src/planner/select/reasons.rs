//! The reasons of everything that a plan excludes, and the start of its window.
//!
//! Input: a complete selection. Output: its [`ExclusionReasons`](super::ExclusionReasons), and the oldest
//! candidate of its window. Rules: S2, S3 (pins that fall), S6 (overflow), T1 (expiry).

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
    /// Records the reasons of everything that is excluded, and the start of the window.
    ///
    /// # Errors
    ///
    /// Counters that fail.
    pub(crate) fn record_reasons(&self, budgets: &Budgets, chosen: &mut Selection) -> Result<(), Error> {
        if budgets.overflow {
            self.exclude_all(chosen);
        }
        // A pin is excluded because no offer was large enough: the largest one is the reason.
        let mut first_offer = std::mem::take(&mut chosen.reasons.pins_first);
        for (pin, reason) in &mut chosen.reasons.pins {
            if let Some(first) = first_offer.remove(pin).filter(|first| first.room() >= reason.room()) {
                *reason = first;
            }
        }
        if !chosen.gave_up_the_set {
            self.survey(chosen)?;
        }
        if budgets.overflow {
            chosen.reasons.ineligible.clear();
        } else {
            self.record_fallen_pins(chosen)?;
        }
        Ok(())
    }

    /// Excludes everything but the minimum unexamined, because the minimum exceeds the budget.
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

    /// Finds the pins without room that fall with the user message of their turn: without its pin an exchange
    /// is an ordinary message again (rule S3), and those leave with a user message that has expired (rule
    /// T1). So the window may continue after them.
    fn record_fallen_pins(&self, chosen: &mut Selection) -> Result<(), Error> {
        let mut fallen = BTreeMap::new();
        for pin in chosen.reasons.pins.keys().filter(|pin| matches!(pin, CandidateId::Exchange(_))) {
            let head = self.index.head(self.index.turn_of(*pin)).filter(|head| !chosen.has(*head));
            if let Some(reason) = head.map(|head| self.costs.ineligible(head)).transpose()?.flatten() {
                fallen.insert(*pin, reason);
            }
        }
        chosen.reasons.fallen_pins = fallen;
        Ok(())
    }

    /// Looks over the included candidates, from the newest turn back to the first thing that can be sent and
    /// is missing. Finds the start of the window, the oldest candidate that the conversation pays for, and a
    /// whole turn at its user message. Finds the candidates in between that can never be sent as they are.
    fn survey(&self, chosen: &mut Selection) -> Result<(), Error> {
        let (mut start, mut ineligible) = (None, BTreeMap::new());
        let of_the_window = |id: CandidateId| {
            chosen.included.find(id).is_some_and(|kept| kept.section == Section::Conversation)
        };
        for turn in TurnIndex::each(self.index.turns()).rev() {
            let head = self.index.head(turn);
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
                        // Under a user message that has expired, a pin without room is no part of the window.
                        None if user_message_expired => {}
                        None => {
                            whole = false;
                            break;
                        }
                    }
                }
            }
            // A turn that is included by its pins alone is not kept by recency, and one that is left out was
            // not examined.
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
        (chosen.window.start, chosen.reasons.ineligible) = (start, ineligible);
        Ok(())
    }
}
