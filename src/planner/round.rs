//! Planning in rounds: reasoning that a plan loses, and texts that have left it although the request brings them again,
//! change what the prompt costs. So the request is planned again until nothing more is lost (rules K4, S10).

use crate::{
    config::ReasoningPolicy,
    conversation::Conversation,
    plan::{
        DropReason,
        anchor::{SentAgain, Sticky},
    },
    planner::thoughts::Withheld,
};
use std::collections::BTreeMap;

/// What one round of planning starts from.
#[derive(Debug)]
pub(crate) struct Round {
    /// Messages that are sent without their reasoning.
    pub(crate) withheld: Withheld,
    /// Texts that are sent again.
    pub(crate) again: SentAgain,
}

/// What follows from the plan of a round.
pub(crate) enum Next {
    /// It lost something: another round is planned without it.
    Again,
    /// It is the plan.
    Settled {
        /// Reasoning that is sent all the same, for the provider to leave out.
        left: BTreeMap<u32, DropReason>,
    },
}

impl Round {
    /// Begins with nothing lost but what the options drop.
    pub(crate) fn first(log: &Conversation, policy: ReasoningPolicy) -> Self {
        Self { withheld: Withheld::at_first(log, policy), again: SentAgain::default() }
    }

    /// Returns what is continued of the last prompt in this round.
    pub(crate) fn continued<'s>(&'s self, sticky: Sticky<'s>) -> Sticky<'s> {
        Sticky { withheld: Some(&self.withheld.positions), sent_again: Some(&self.again), ..sticky }
    }
}
