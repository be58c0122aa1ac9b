//! The cost of retained texts of earlier questions, compared with the cost of leaving them out.
//!
//! - Input: the last prompt, and the prices of the model.
//! - Output: a [`RetentionCost`], which also decides if the texts leave.
//! - Rules: S11.
//!
//! Each prompt reads the retained texts again, from the cache. Leaving them out costs once: everything after
//! the first of them is written to the cache again. The number of prompts to come is unknown. So the texts
//! leave once reading them has cost as much as leaving them out (ski rental: rent until the rent paid equals
//! the price).

use crate::{
    conversation::{Conversation, Place},
    item::ItemId,
    plan::{RetentionCost, TOOLS, Target, anchor::Anchor, reasoning_tokens},
    planner::request::PlanRequest,
    provider::model::Model,
};

/// Returns the costs of the retained texts of the last prompt, at a new question.
///
/// Returns `None` if there are no such texts, the model has no price, or the prompt went to another model.
/// Also returns `None` if the question was sent before or has a reply.
pub(crate) fn retention_cost(
    request: &PlanRequest<'_>,
    last: &Anchor,
    model: &Model,
) -> Option<RetentionCost> {
    let log = request.log;
    // After a compaction or a rewind, the last prompt is not continued.
    if log.archive_events() > 0 && !log.sent_since_the_record() {
        return None;
    }
    let prompt = last.prompt.as_deref()?;
    let same_target = last.target.as_ref().is_some_and(|target| target.is(&Target::from_model(model)));
    // Without a known price of cached input, its price is not assumed to be that of other input.
    let rates = model
        .price
        .as_ref()
        .filter(|price| price.cache_read.is_some())?
        .rates(prompt.iter().map(|piece| piece.tokens).sum(), None);
    let turn = log.live_turn().filter(|turn| log.turns().exchanges(*turn).is_empty())?;
    let question = log.turns().head(turn)?;
    let asked_already = last.live.as_ref() == Some(&log.message_id(question));
    if !same_target || asked_already {
        return None;
    }
    let replies = log.turns().exchanges(turn).start.to_usize() as u64;
    // One pass over the last prompt. The first retained text starts the part that would be written again.
    let (mut items, mut tokens, mut read_again, mut behind, mut thought) = (0u64, 0u64, 0u128, 0u64, 0u64);
    for piece in prompt {
        let is_message = log.position_of(&piece.id).is_some();
        let sent_with = log.sent_with();
        // A text that the request repeats, or one of the head, would be sent again: it does not count.
        let state = sent_with.state_at_row(&piece.id).filter(|(_, sent)| !comes_again(request, &sent.id));
        let state = state.map(|(at, _)| at);
        let document = sent_with.document_place(&piece.id);
        let document = document.filter(|_| !request.rag.iter().any(|item| item.id == piece.id));
        if let Some(at) = state.or(document).filter(|_| !is_message) {
            items += 1;
            tokens += piece.tokens;
            // The first reply after a text wrote it to the cache, so it did not read it again.
            let read = replies.saturating_sub(replies_before(log, at) + 1);
            read_again += u128::from(piece.tokens) * u128::from(read);
        } else if items > 0 {
            behind += piece.tokens;
            let message = log.position_of(&piece.id).filter(|_| piece.has_reasoning());
            thought += message.map_or(0, |at| reasoning_tokens(log.message(at), piece.tokens));
        }
    }
    if items == 0 {
        return None;
    }
    let thought = if model.thinking.is_some() { thought } else { 0 };
    let spent = billionths(read_again * u128::from(rates.cache_read));
    // Only the extra price counts: otherwise these tokens would be read from the cache.
    let written_anew = u128::from(behind) * u128::from(rates.cache_write.saturating_sub(rates.cache_read));
    let leaving = billionths(written_anew + u128::from(thought) * u128::from(rates.output));
    Some(RetentionCost { items, tokens, spent, leaving, leave: spent > 0 && spent >= leaving })
}

/// Checks if a state entry would be sent again: it is in the request, or it is a system text or a list of
/// tools (rule S12).
fn comes_again(request: &PlanRequest<'_>, state: &ItemId) -> bool {
    let of_the_request = request.state.iter().any(|(id, _)| id == state);
    let of_the_head = request.log.system().iter().any(|text| text.id() == Some(state));
    of_the_request || of_the_head || state.as_str() == TOOLS
}

/// Returns the number of replies before a position.
fn replies_before(log: &Conversation, position: u32) -> u64 {
    let turns = log.turns();
    match turns.place_of(position) {
        Place::Exchange(at) => at.to_usize() as u64,
        Place::Head(turn) => turns.exchanges(turn).start.to_usize() as u64,
        Place::Leading | Place::Archived => 0,
    }
}

/// Converts an amount of a price table to billionths of a US dollar.
fn billionths(rates: u128) -> u64 {
    u64::try_from(rates / 1000).unwrap_or(u64::MAX)
}
