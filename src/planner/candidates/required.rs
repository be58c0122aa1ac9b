//! Required candidates: system texts, focus hint, state, the live question, the open exchange, summaries.
//!
//! - Input: a request, its conversation, and the texts that are retained where they were sent.
//! - Output: texts and ids of the required candidates.
//! - Rules: S1, S10, S12, O1.

use super::{CandidateId, Candidates, candidate_at};
use crate::{
    conversation::{Conversation, ExchangeIndex},
    error::Error,
    item::{ItemId, Source},
    message::Message,
    plan::anchor::SentAgain,
    planner::{eligibility::EligibilityRules, request::PlanRequest, retained::RetainedItems},
    provider::wording,
};

/// Returns the system texts at the head of the prompt, then the leading system messages. Empty ones are left
/// out.
pub(super) fn system_texts(
    log: &Conversation,
    retained: &RetainedItems<'_>,
    again: &SentAgain,
) -> Vec<(ItemId, Message)> {
    let texts = log
        .system()
        .iter()
        .map(|text| (id_of(text), text))
        .filter(|(id, text)| !text.is_empty() && !retained.is_late(id, text.text(), again));
    let leading =
        (0..log.turns().leading()).map(|position| (log.message_id(position), log.message(position)));
    texts
        .chain(leading.filter(|(_, message)| !message.is_empty()))
        .map(|(id, text)| (id, text.clone()))
        .collect()
}

/// Returns the state entries that this prompt sends, then the system texts and tools that are sent at its end
/// (late additions, S12). A state entry that the prompt already contains is recorded and left out (rule S10).
pub(super) fn state_entries(
    request: &PlanRequest<'_>,
    retained: &mut RetainedItems<'_>,
    again: &SentAgain,
) -> Vec<(ItemId, Message)> {
    let is_retained = retained.retains_state();
    let mut entries = Vec::new();
    for (id, text) in request.state.iter().filter(|(_, text)| !text.trim().is_empty()) {
        let text = wording::state(id.as_str(), text);
        let message = Message::user(&*text);
        if is_retained {
            entries.extend(retained.add_state(id, &text, message, again));
        } else {
            entries.push((id.clone(), message));
        }
    }
    entries.extend(retained.add_late(again));
    entries
}

/// Returns the ids of the required system candidates: system texts, focus hint, state.
pub(super) fn ids(
    system: &[(ItemId, Message)],
    has_focus: bool,
    state: &[(ItemId, Message)],
) -> Vec<CandidateId> {
    let system = (0..system.len() as u32).map(CandidateId::System);
    let state = (0..state.len() as u32).map(CandidateId::State);
    system.chain(has_focus.then_some(CandidateId::Focus)).chain(state).collect()
}

/// Returns the required candidates of the conversation: the live question and the open exchange, then each
/// summary with the question before it (rules S1, O1). Without a user message, the newest exchange takes the
/// place of the question.
///
/// # Errors
///
/// Fails if a call has no result and the policy is to reject it (rule H2).
pub(super) fn conversation(
    rules: &EligibilityRules<'_>,
    open: Option<ExchangeIndex>,
) -> Result<Vec<CandidateId>, Error> {
    let log = rules.log();
    let mut required = live_candidates(rules, open)?;
    for (placed, at) in log.archive_index().summaries().zip(0..) {
        let active = |head: &u32| log.archive_index().archived(*head).is_none();
        let head = placed.head.filter(active).and_then(|head| candidate_at(log, head));
        required.extend(head.filter(|head| !required.contains(head)));
        required.push(CandidateId::Summary(at));
    }
    Ok(required)
}

/// Returns the live question and the open exchange, or their substitutes.
fn live_candidates(
    rules: &EligibilityRules<'_>,
    open: Option<ExchangeIndex>,
) -> Result<Vec<CandidateId>, Error> {
    let turns = rules.log().turns();
    let Some(live) = rules.log().live_turn() else { return Ok(Vec::new()) };
    let sound = |at: &ExchangeIndex| match rules.refuse_exchange(*at) {
        Ok(refusal) => refusal.is_none().then_some(Ok(*at)),
        Err(error) => Some(Err(error)),
    };
    let mut required: Vec<CandidateId> = Vec::new();
    match turns.head(live) {
        Some(_) => required.push(CandidateId::UserMessage(live)),
        None => {
            // An exchange that policy refuses cannot take the place of the question (S1).
            let newest = ExchangeIndex::each(turns.exchanges(live)).rev().find_map(|at| sound(&at));
            required.extend(newest.transpose()?.map(CandidateId::Exchange));
        }
    }
    let open = open.as_ref().and_then(sound).transpose()?.map(CandidateId::Exchange);
    // Without a user message, the newest exchange may be the open one: it is listed once.
    required.extend(open.filter(|open| required.first() != Some(open)));
    Ok(required)
}

impl Candidates<'_> {
    /// Returns the system texts and state entries without content, which can never be sent.
    pub(crate) fn empty_texts(&self) -> impl Iterator<Item = (ItemId, Source)> {
        let system = self.log.system().iter().filter(|text| text.is_empty());
        let state = self.request.state.iter().filter(|(_, text)| text.trim().is_empty());
        let system = system.map(|text| (id_of(text), Source::System));
        system.chain(state.map(|(id, _)| (id.clone(), Source::State)))
    }

    /// Returns the positions of the leading system messages without content.
    pub(crate) fn empty_leading(&self) -> impl Iterator<Item = u32> {
        (0..self.log.turns().leading()).filter(|position| self.log.message(*position).is_empty())
    }
}

/// Returns the id of a system text, or an empty id if it has none.
fn id_of(text: &Message) -> ItemId {
    text.id().cloned().unwrap_or_else(|| ItemId::from(""))
}
