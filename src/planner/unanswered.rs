//! Unanswered user messages that a plan leaves out.
//!
//! - Input: a plan, and its request.
//! - Output: a notice with these messages, their tokens, and a budget that holds them.
//! - Rules: S13.

use super::manager::ContextWindowManager;
use crate::{
    conversation::Conversation,
    error::Error,
    item::ItemId,
    message::{Message, Role},
    plan::{ContextPlan, Notice, NoticeCode},
    planner::request::PlanRequest,
    text::plain::grouped,
};
use std::collections::BTreeSet;

impl ContextWindowManager {
    /// Adds a notice to a plan that leaves out user messages without an answer. Only the last user message is
    /// required, and the one before it may hold the subject.
    pub(super) fn tell_of_unanswered(
        &self,
        plan: &mut ContextPlan,
        request: &PlanRequest<'_>,
    ) -> Result<(), Error> {
        let unanswered = unanswered(request.log);
        let ids = if unanswered.len() < 2 { Vec::new() } else { left_out(plan, &unanswered) };
        let Some(first) = ids.first() else { return Ok(()) };
        let others = match ids.len() {
            1 => "is".to_owned(),
            n => format!("and {} more are", grouped(n as u64 - 1)),
        };
        let cost = match self.holding(plan, request, &ids)? {
            Some((tokens, budget)) => {
                format!("{} tokens; a prompt budget of {} includes all", grouped(tokens), grouped(budget))
            }
            None => "no larger budget that includes all was found".to_owned(),
        };
        let text = format!("`{first}` {others} left out without a reply: {cost}");
        plan.notices.push(Notice { code: NoticeCode::UnansweredLeftOut, ids, text });
        Ok(())
    }

    /// Returns the tokens of these messages, and a prompt budget that holds them. Returns `None` if none was
    /// found.
    fn holding(
        &self,
        plan: &ContextPlan,
        request: &PlanRequest<'_>,
        ids: &[ItemId],
    ) -> Result<Option<(u64, u64)>, Error> {
        let messages = request.log.messages();
        let bytes = ids.iter().filter_map(|id| messages.get(request.log.position_of(id)? as usize));
        // A message has no more tokens than bytes, plus the tokens that its wire format adds.
        let bytes: u64 = bytes.map(|message| message.texts().map(str::len).sum::<usize>() as u64 + 64).sum();
        // Plans again, at most three times, and only if unanswered messages are left out.
        let planned = |budget: u64| -> Result<Option<ContextPlan>, Error> {
            let mut wider = request.clone();
            wider.limits.prompt_budget = Some(budget);
            let wider = self.plan(&wider)?;
            Ok(Some(wider).filter(|plan| left_out(plan, ids).is_empty()))
        };
        let largest = plan.prompt_budget.saturating_add(bytes);
        let Some(wide) = planned(largest)? else { return Ok(None) };
        let rows = wide.included.iter().filter(|row| ids.contains(&row.id));
        let tokens: u64 = rows.map(|row| row.token_estimate.tokens).sum();
        // The sum of both is enough, unless a rule gives the tokens to other items.
        for budget in
            [plan.estimated_tokens_total.tokens.saturating_add(tokens), wide.estimated_tokens_total.tokens]
        {
            if planned(budget)?.is_some() {
                return Ok(Some((tokens, budget)));
            }
        }
        Ok(Some((tokens, largest)))
    }
}

/// Returns the ids that a plan leaves out.
fn left_out(plan: &ContextPlan, ids: &[ItemId]) -> Vec<ItemId> {
    let included: BTreeSet<&ItemId> = plan.included.iter().map(|row| &row.id).collect();
    ids.iter().filter(|id| !included.contains(id)).cloned().collect()
}

/// Maximum number of latest messages that are examined. In a longer run without an answer, no answer is
/// expected.
const MOST: usize = 1_000;

/// Returns the user messages after the last message of anybody else. Returns an empty list if nobody else
/// ever speaks, or if they come from several speakers, who answer each other.
fn unanswered(log: &Conversation) -> Vec<ItemId> {
    let messages = log.messages();
    let is_users = |message: &Message| message.role() == Role::User || message.role().instructs();
    let run = messages.iter().rev().take(MOST).take_while(|message| is_users(message)).count();
    let first = messages.len() - run;
    let asked = || messages[first..].iter().filter(|message| message.role() == Role::User);
    // Nobody else speaks, the run is too long, or several speakers answer each other.
    let is_answered_by_itself =
        first == 0 || run == MOST || asked().map(Message::name).collect::<BTreeSet<_>>().len() > 1;
    if is_answered_by_itself || asked().count() < 2 {
        return Vec::new();
    }
    let [from, to] = [first, messages.len()].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    // Archived messages are part of a summary, so they are not left out.
    let active = log.archive_index().active_in(from..to).into_iter().flatten();
    let of_user = active.filter(|at| messages[*at as usize].role() == Role::User);
    of_user.map(|at| log.message_id(at)).collect()
}
