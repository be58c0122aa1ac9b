//! Whether documents and state of earlier questions are worth their place (rule S11).
//!
//! Each prompt reads them again, from the cache. To leave them out costs once: everything behind the first of them is
//! written to the cache again. Nobody knows how many prompts are to come, so they leave when reading them has cost
//! as much as that (ski rental: rent until the rent paid is the price of buying).

use crate::{
    conversation::{Conversation, Place},
    plan::{Target, Upkeep, anchor::Anchor},
    provider::model::Model,
};

/// The costs of what stands in the last prompt, for a new question. None where nothing stands there, where the model has no
/// price, where the prompt went to another model, or while a question is being worked on.
pub(super) fn weigh(log: &Conversation, last: &Anchor, model: &Model) -> Option<Upkeep> {
    let prompt = last.prompt.as_deref()?;
    let same_target = last.target.as_ref().is_some_and(|target| target.is(&Target::of(model)));
    // Where the price of cached input is not known, it is not taken to be that of other input.
    let rates = model
        .price
        .as_ref()
        .filter(|price| price.cache_read.is_some())?
        .rates(prompt.iter().map(|piece| piece.2).sum(), None);
    let turn = log.live_turn().filter(|turn| log.turns().exchanges(*turn).is_empty())?;
    let question = log.turns().head(turn)?;
    let asked_already = last.live.as_ref() == Some(&log.message_id(question));
    if !same_target || asked_already {
        return None;
    }
    let replies = log.turns().exchanges(turn).start.to_usize() as u64;
    let (mut items, mut tokens, mut read_again, mut behind, mut thought) = (0u64, 0u64, 0u128, 0u64, 0u64);
    for piece in prompt {
        let is_message = log.position_of(&piece.0).is_some();
        let sent_with = log.sent_with();
        let place = sent_with.place_of(&piece.0, false).or_else(|| sent_with.place_of(&piece.0, true));
        if let Some(at) = place.filter(|_| !is_message) {
            items += 1;
            tokens += piece.2;
            // The first of the replies since was written from the prompt that they came with.
            let read = replies.saturating_sub(replies_before(log, at) + 1);
            read_again += u128::from(piece.2) * u128::from(read);
        } else if items > 0 {
            behind += piece.2;
            thought += if piece.has_reasoning() { piece.2 } else { 0 };
        }
    }
    if items == 0 {
        return None;
    }
    let thought = if model.thinking.is_some() { thought } else { 0 };
    let spent = billionths(read_again * u128::from(rates.cache_read));
    let written_anew = u128::from(behind) * u128::from(rates.cache_write.saturating_sub(rates.cache_read));
    let leaving = billionths(written_anew + u128::from(thought) * u128::from(rates.output));
    Some(Upkeep { items, tokens, spent, leaving, leave: spent > 0 && spent >= leaving })
}

/// How many replies there are before a position.
fn replies_before(log: &Conversation, position: u32) -> u64 {
    let turns = log.turns();
    match turns.place_of(position) {
        Place::Exchange(at) => at.to_usize() as u64,
        Place::Head(turn) => turns.exchanges(turn).start.to_usize() as u64,
        Place::Leading | Place::Archived => 0,
    }
}

fn billionths(rates: u128) -> u64 {
    u64::try_from(rates / 1000).unwrap_or(u64::MAX)
}
