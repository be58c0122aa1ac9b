//! The sliding window (rule C7): archived messages get no replacement, and earlier summaries stay.

use super::{
    due,
    retention::RetentionBoundary,
    turn_costs::{Turn, TurnCosts},
};
use crate::{
    conversation::Conversation,
    error::Error,
    planner::{manager::ContextWindowManager, request::PlanRequest},
};

/// Finds the boundary of the sliding window. Drops the oldest turns, then the oldest exchanges of the last
/// turn, until no trigger fires or nothing more can be dropped. Returns `None` if nothing can be dropped. The
/// first kept message is a user message if possible.
pub(super) fn boundary(
    manager: &ContextWindowManager,
    request: &PlanRequest<'_>,
) -> Result<Option<RetentionBoundary>, Error> {
    let kept = without_turns(&TurnCosts::from_request(manager, request)?, manager);
    Ok(kept.map(|kept| after_summaries(request.log, kept)))
}

/// Moves the start of the range behind the summaries inside it, if no active message before them is archived.
/// The summaries then stay in place.
fn after_summaries(log: &Conversation, kept: RetentionBoundary) -> RetentionBoundary {
    let first = kept.first.unwrap_or_else(|| log.turns().messages());
    let apart = log.apart(kept.head);
    let places = log.archive_index().summaries().map(|summary| summary.range.end);
    let Some(from) = places.filter(|place| *place <= first).max() else { return kept };
    let archives = |position| !apart.contains(&position) && log.archive_index().archived(position).is_none();
    if from >= first || (log.turns().leading()..from).any(archives) {
        return kept;
    }
    RetentionBoundary { head: kept.head.filter(|head| *head >= from), from: Some(from), ..kept }
}

/// Joins the texts of the summaries inside of a range. They are sent as the summary of the new record,
/// because the range archives messages before them.
pub(super) fn carried(log: &Conversation, kept: &RetentionBoundary) -> Option<String> {
    let first = kept.first.unwrap_or_else(|| log.turns().messages());
    let from = kept.from.unwrap_or_else(|| log.turns().leading());
    let placed = log.archive_index().summaries();
    let folded = placed.filter(|summary| from < summary.range.end && summary.range.end <= first);
    let texts = folded.filter_map(|summary| log.compaction(summary.number)?.summary.as_deref());
    let texts: Vec<&str> = texts.map(str::trim).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Drops the oldest turns, then exchanges of the last turn.
fn without_turns(turn_costs: &TurnCosts<'_>, manager: &ContextWindowManager) -> Option<RetentionBoundary> {
    let options = super::options(manager);
    let fixed_and_pinned = turn_costs.fixed_and_pinned();
    let cap = manager.config().sections.conversation.cap.unwrap_or(u64::MAX);
    // The conversation may use the rest of the budget, up to the cap of its section.
    let room = turn_costs.budget.saturating_sub(fixed_and_pinned).min(cap);
    let mut tokens: u64 = turn_costs.turns.iter().map(Turn::tokens).sum();
    let (mut messages, mut turns) = (turn_costs.messages(), turn_costs.turns.len() as u64);
    let fires = |tokens: u64, messages: u64, turns: u64| {
        let conversation_tokens = fixed_and_pinned.saturating_add(tokens);
        due::fires(&options, conversation_tokens, &turn_costs.limits, messages, turns).is_some()
            || options.on_drop && tokens > room
    };
    // Overwritten with each turn that may be dropped, so that the newest allowed boundary is used.
    let mut kept = None;
    // The last position of the dropped messages. A boundary before it would split a call from its result.
    let mut last = 0;
    for (at, turn) in turn_costs.turns.iter().enumerate() {
        if kept.is_some() && !fires(tokens, messages, turns) {
            return kept;
        }
        let reaches_to = last;
        let Some(next) = turn_costs.turns.get(at + 1) else {
            return inside(turn, reaches_to, &fires, (tokens, messages, turns)).or(kept);
        };
        tokens = tokens.saturating_sub(turn.tokens());
        messages = messages.saturating_sub(turn.messages());
        turns -= 1;
        last = turn.parts().map(|part| part.last).fold(last, u32::max);
        if next.first().is_some_and(|first| last < first) {
            kept = Some(RetentionBoundary { head: None, from: None, first: next.first() });
        }
    }
    kept
}

/// Drops the oldest exchanges of the last turn. The newest exchange is never dropped.
fn inside(
    turn: &Turn,
    mut last: u32,
    fires: &impl Fn(u64, u64, u64) -> bool,
    (mut tokens, mut messages, turns): (u64, u64, u64),
) -> Option<RetentionBoundary> {
    let head = turn.head.as_ref().map(|head| head.at);
    let mut kept = None;
    for pair in turn.exchanges.windows(2) {
        if !fires(tokens, messages, turns) {
            break;
        }
        let [dropped, next] = pair else { break };
        tokens = tokens.saturating_sub(dropped.tokens);
        messages = messages.saturating_sub(dropped.messages);
        last = last.max(dropped.last);
        if last < next.at {
            kept = Some(RetentionBoundary { head, from: None, first: Some(next.at) });
        }
    }
    kept
}
