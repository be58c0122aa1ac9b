//! Token counts of every part of the active conversation. Retention and freed tokens are computed from them.

use crate::{
    conversation::{Conversation, ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        candidates::{CandidateId, Costs},
        manager::ContextWindowManager,
        rendering::ToolResultRendering,
        replan::Replan,
        request::PlanRequest,
    },
    provider::model::Limits,
};

/// The active conversation with its token counts.
pub(super) struct TurnCosts<'a> {
    pub(super) log: &'a Conversation,
    pub(super) limits: Limits,
    /// The prompt budget in tokens.
    pub(super) budget: u64,
    /// The base of percentage options, in tokens.
    pub(super) window: u64,
    /// Tokens of system texts, focus hint, notes, tools and the overhead of the wire format.
    pub(super) fixed: u64,
    /// Tokens of the summaries.
    pub(super) summaries: u64,
    /// The turns, oldest first, without archived messages that a pin keeps.
    pub(super) turns: Vec<Turn>,
    /// Tokens of archived messages that a pin keeps.
    pub(super) pinned: u64,
}

/// A turn of the active conversation.
pub(super) struct Turn {
    pub(super) user_message: Option<Part>,
    pub(super) exchanges: Vec<Part>,
}

/// A user message or an exchange.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The position of its first message.
    pub(super) at: u32,
    pub(super) messages: u64,
    pub(super) tokens: u64,
    /// The position of its last message. Messages of other parts may lie between the two.
    pub(super) last: u32,
    /// True if the model is still waiting for it or working on it.
    pub(super) open: bool,
}

impl Turn {
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.user_message.iter().chain(&self.exchanges)
    }

    pub(super) fn tokens(&self) -> u64 {
        self.parts().map(|part| part.tokens).sum()
    }

    pub(super) fn messages(&self) -> u64 {
        self.parts().map(|part| part.messages).sum()
    }

    /// Returns the position of the first message, or `None` if the turn is empty.
    pub(super) fn first(&self) -> Option<u32> {
        self.parts().map(|part| part.at).min()
    }
}

impl<'a> TurnCosts<'a> {
    /// Counts every part of a request's conversation. Messages that can never be sent count 0 tokens.
    pub(super) fn from_request(
        manager: &ContextWindowManager,
        request: &PlanRequest<'a>,
    ) -> Result<Self, Error> {
        let context = manager.context(request)?;
        let log = request.log;
        let candidates =
            manager.candidates(request, ContextWindowManager::sent_forms(request), &Replan::default())?;
        let costs = Costs::new(&candidates, candidates.meter(), ToolResultRendering::default());
        let sum = |ids: &[CandidateId]| -> Result<u64, Error> {
            ids.iter().try_fold(0u64, |sum, id| Ok(sum.saturating_add(costs.whole(*id)?)))
        };
        let overhead: i64 = context.overhead.iter().map(|line| line.tokens).sum();
        let notes = log.note_entries().iter().map(|(number, _)| CandidateId::Note(number));
        let user_message: Vec<CandidateId> =
            candidates.index().required_system.iter().copied().chain(notes).collect();
        let rules = candidates.index().pins.iter().filter(|pin| pin.is_rule).map(|pin| pin.id);
        let rules = sum(&rules.collect::<Vec<_>>())?.min(manager.config().compaction.rules_limit);
        let fixed = sum(&user_message)?.saturating_add(rules).saturating_add_signed(overhead);
        let summaries: Vec<CandidateId> =
            (0..log.archive_index().summaries().count() as u32).map(CandidateId::Summary).collect();
        let mut turn_costs = Self {
            log,
            limits: context.limits,
            budget: context.prompt_budget,
            window: context.window(),
            fixed,
            summaries: sum(&summaries)?,
            turns: Vec::new(),
            pinned: 0,
        };
        for turn in TurnIndex::each(log.turns().all()) {
            let part = |id: CandidateId| -> Result<Option<Part>, Error> {
                let members = candidates.members(id);
                let Some((at, last)) = members.iter().min().zip(members.iter().max()) else {
                    return Ok(None);
                };
                Ok(Some(Part {
                    at: *at,
                    last: *last,
                    messages: members.len() as u64,
                    // A faulty exchange is never sent, but its messages still count as active.
                    tokens: if log.turns().is_faulty(exchange_of(id)) { 0 } else { costs.whole(id)? },
                    open: exchange_of(id).is_some_and(|at| candidates.open == Some(at)),
                }))
            };
            let user_message = match candidates.index().user_message(turn) {
                Some(user_message) => part(user_message)?,
                None => None,
            };
            let mut exchanges = Vec::new();
            for at in ExchangeIndex::each(log.turns().exchanges(turn)) {
                exchanges.extend(part(CandidateId::Exchange(at))?);
            }
            let archived = |part: &Part| log.archive_index().archived(part.at).is_some();
            let mut turn = Turn { user_message, exchanges };
            let pinned = turn.parts().filter(|part| archived(part)).map(|part| part.tokens).sum::<u64>();
            turn_costs.pinned = turn_costs.pinned.saturating_add(pinned);
            turn.user_message = turn.user_message.filter(|user_message| !archived(user_message));
            turn.exchanges.retain(|part| !archived(part));
            if turn.user_message.is_some() || !turn.exchanges.is_empty() {
                turn_costs.turns.push(turn);
            }
        }
        Ok(turn_costs)
    }

    /// Returns the total token count.
    pub(super) fn total(&self) -> u64 {
        self.fixed_and_pinned().saturating_add(self.turns.iter().map(Turn::tokens).sum())
    }

    /// Returns the tokens that are sent in addition to the turns.
    pub(super) fn fixed_and_pinned(&self) -> u64 {
        self.fixed.saturating_add(self.summaries).saturating_add(self.pinned)
    }

    pub(super) fn messages(&self) -> u64 {
        self.turns.iter().map(Turn::messages).sum()
    }
}

fn exchange_of(id: CandidateId) -> Option<ExchangeIndex> {
    match id {
        CandidateId::Exchange(at) => Some(at),
        _ => None,
    }
}
