//! Tool results as one prompt sends them (rule S7): whole, cleared to a stub, or clipped. The log is untouched.

use super::{Basis, Pool, Quantity, Scale, Unit};
use crate::{
    config::ToolResults,
    conversation::Place,
    error::Error,
    item::ItemId,
    message::{Message, Role},
    provider::{conform::Standing, wording},
    tokens::Weight,
};
use std::{borrow::Cow, collections::BTreeMap};

/// A clipped result keeps at least so many bytes; below that it says nothing any more.
const LEAST_KEPT: usize = 200;

/// Which results are shortened.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Results {
    /// Results before this position are sent as stubs.
    cleared_before: u32,
    /// Whether the boundary moved in this plan.
    moved: bool,
    /// By position, what is sent for results of the open exchange that are too long.
    clipped: BTreeMap<u32, Message>,
}

impl Results {
    /// What the last prompt left behind.
    pub(crate) fn remembered(pool: &Pool<'_>) -> Self {
        let cleared_before = pool.cleared_before.filter(|_| pool.clears_results()).unwrap_or_default();
        Self { cleared_before, ..Self::default() }
    }

    /// What is sent for a message.
    pub(crate) fn as_sent<'m>(&self, pool: &Pool<'m>, position: u32) -> Cow<'m, Message> {
        if let Some(text) = pool.as_text_of_the_user(position) {
            return Cow::Owned(text);
        }
        let message = pool.log.message(position);
        if let Some(clipped) = self.clipped.get(&position) {
            return Cow::Owned(clipped.clone());
        }
        let cleared = (position < self.cleared_before).then(|| stub(pool, position)).flatten();
        cleared.map_or(Cow::Borrowed(message), Cow::Owned)
    }

    /// The message before which results are cleared, if that is any.
    pub(crate) fn boundary(&self, pool: &Pool<'_>) -> Option<ItemId> {
        (self.cleared_before > 0).then(|| pool.log.message_id(self.cleared_before))
    }

    /// Whether results of the open exchange are sent without their middle.
    pub(crate) fn clips(&self) -> bool {
        !self.clipped.is_empty()
    }

    /// Whether the boundary moved in this plan.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether a message is sent shorter than it is, and whether that is a clip.
    pub(crate) fn shortens(&self, pool: &Pool<'_>, position: u32) -> Option<Shortened> {
        if self.clipped.contains_key(&position) {
            return Some(Shortened::Clipped);
        }
        let cleared = position < self.cleared_before && stub(pool, position).is_some();
        cleared.then_some(Shortened::Cleared)
    }
}

/// How a result is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortened {
    Cleared,
    Clipped,
}

impl Scale<'_> {
    /// The results with the boundary at the newest `keep_results`, if moving it there frees at least `clear_at_least`
    /// inside the window that starts at `start`.
    ///
    /// The newest are looked at first, and no more of them than `most` tokens: the cost follows the budget (rule N5).
    pub(crate) fn cleared_further(&self, start: Unit, most: u64) -> Result<Option<Results>, Error> {
        let (pool, results) = (self.pool(), self.results());
        let options = &pool.config.conversation;
        let first = pool.members(start).first().copied().unwrap_or_default();
        if !pool.clears_results() {
            return Ok(None);
        }
        let boundary = newest_boundary(pool, options.keep_results, first);
        let (mut freed, mut weighed) = (0, 0);
        let conversation = Basis::of(Quantity::Conversation);
        for position in (results.cleared_before.max(first)..boundary).rev() {
            let Some(stub) = stub(pool, position) else { continue };
            if !self.is_in_the_window(position, start)? {
                continue;
            }
            let (saved, cost) = self.saved(position, &stub, options.clear_at_least.max(1) - freed)?;
            freed += saved;
            weighed += cost;
            if freed >= options.clear_at_least.max(1) {
                return Ok(Some(Results { cleared_before: boundary, moved: true, ..Results::default() }));
            }
            self.trace(|trace| match most.checked_sub(weighed) {
                Some(left) => trace.fits(conversation, left),
                None => trace.over(conversation, weighed - most),
            });
            if weighed > most {
                break;
            }
        }
        Ok(None)
    }

    /// Whether a result's exchange lives, and stands in a window that starts at `start`.
    fn is_in_the_window(&self, position: u32, start: Unit) -> Result<bool, Error> {
        let Some(at) = answered_exchange(self.pool(), position) else { return Ok(false) };
        let unit = Unit::Exchange(at);
        let inside = match start {
            Unit::Exchange(first) => at >= first,
            _ => self.turn_of(unit) >= self.turn_of(start),
        };
        Ok(inside && self.dead(unit)?.is_none())
    }

    /// What a stub saves, and what the result was found to cost: neither further than `wanted` matters.
    fn saved(&self, position: u32, stub: &Message, wanted: u64) -> Result<(u64, u64), Error> {
        let stub = self.meter().message(stub, Standing::Past, u64::MAX)?.in_full();
        let limit = stub.saturating_add(wanted);
        Ok(match self.meter().message(self.pool().log.message(position), Standing::Past, limit)? {
            Weight::Exactly(tokens) => (tokens.saturating_sub(stub), tokens),
            Weight::Over => (wanted, limit),
        })
    }

    /// The results with those of the open exchange clipped so that a minimum of `least` tokens takes no more than
    /// `total`: all to the same length, the longest that fits. Nothing, where there is none or even the shortest is
    /// too long.
    pub(crate) fn clipped(&self, least: u64, total: u64) -> Result<Option<Results>, Error> {
        let Some(open) = self.clippable() else { return Ok(None) };
        let others = least.saturating_sub(self.whole(Unit::Exchange(open))?);
        let Some(room) = total.checked_sub(others) else { return Ok(None) };
        let texts = self.texts_of(open);
        let longest = texts.iter().map(|(_, text)| text.len()).max().unwrap_or_default();
        let mut best = None;
        let (mut low, mut high) = (LEAST_KEPT, longest);
        while low <= high {
            let middle = usize::midpoint(low, high);
            let tried = self.clipped_to(&texts, middle);
            let fits = |scale: Self| scale.weigh(Unit::Exchange(open), room);
            if !tried.clipped.is_empty() && fits(self.with(tried.clone()))? != Weight::Over {
                best = Some(tried);
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        Ok(best)
    }

    /// What the shortest clips would save of the minimum: a budget that is smaller by so much would do.
    pub(crate) fn clips_could_save(&self) -> Result<u64, Error> {
        let Some(open) = self.clippable() else { return Ok(0) };
        let shortest = self.with(self.clipped_to(&self.texts_of(open), LEAST_KEPT));
        let unit = Unit::Exchange(open);
        Ok(self.whole(unit)?.saturating_sub(shortest.whole(unit)?))
    }

    /// The exchange whose results may be clipped and are not.
    fn clippable(&self) -> Option<u32> {
        let (pool, results) = (self.pool(), self.results());
        let clips = pool.config.conversation.tool_results == ToolResults::Clip;
        let required = |open: &u32| pool.required_conversation.contains(&Unit::Exchange(*open));
        pool.open.filter(required).filter(|_| clips && results.clipped.is_empty())
    }

    /// The results of an exchange that are nothing but text.
    fn texts_of(&self, exchange: u32) -> Vec<(u32, String)> {
        let answers = self.pool().log.turns().exchange(exchange).answers.iter().flatten();
        answers.filter_map(|at| Some((*at, text_of(self.pool(), *at)?))).collect()
    }

    fn clipped_to(&self, texts: &[(u32, String)], bytes: usize) -> Results {
        let log = self.pool().log;
        let clip = |(at, text): &(u32, String)| {
            let text = wording::clipped_result(&log.message_id(*at), text, bytes)?;
            Some((*at, log.message(*at).saying(text)))
        };
        Results { clipped: texts.iter().filter_map(clip).collect(), ..self.results().clone() }
    }

    fn with(&self, results: Results) -> Self {
        Self::new(self.pool(), self.meter(), results)
    }
}

/// The position of the oldest of the newest `keep` results, and never past the open exchange; `first` where there are
/// fewer from there on.
fn newest_boundary(pool: &Pool<'_>, keep: u64, first: u32) -> u32 {
    let messages = pool.log.turns().messages();
    let open = pool.open.map_or(messages, |open| pool.log.turns().exchange(open).at);
    let mut left = keep;
    let mut boundary = messages;
    for position in (first..messages).rev() {
        if left == 0 {
            return boundary.min(open).min(messages - 1);
        }
        if is_answer(pool, position) {
            left -= 1;
            boundary = position;
        }
    }
    first
}

fn is_answer(pool: &Pool<'_>, position: u32) -> bool {
    pool.log.message(position).role() == Role::Tool && answered_exchange(pool, position).is_some()
}

/// The exchange that a result is part of.
fn answered_exchange(pool: &Pool<'_>, position: u32) -> Option<u32> {
    let turns = pool.log.turns();
    match turns.place_of(position) {
        Place::Exchange(at) => (turns.exchange(at).at != position).then_some(at),
        Place::Leading | Place::Head(_) | Place::Archived => None,
    }
}

/// What stands for a cleared result. Pinned and required exchanges are never cleared, and nothing that is shorter than
/// its stub.
fn stub(pool: &Pool<'_>, position: u32) -> Option<Message> {
    let message = pool.log.message(position);
    if message.role() != Role::Tool {
        return None;
    }
    let unit = Unit::Exchange(answered_exchange(pool, position)?);
    if pool.brought.contains_key(&unit) || pool.required_conversation.contains(&unit) {
        return None;
    }
    let bytes: usize = message.texts().map(str::len).sum();
    let id = pool.log.message_id(position);
    let stub = message.stub(&id, || wording::cleared_result(&id, bytes));
    (stub.text().len() < bytes || message.images().next().is_some()).then_some(stub)
}

/// The text of a result, where it is nothing but text.
fn text_of(pool: &Pool<'_>, position: u32) -> Option<String> {
    let message = pool.log.message(position);
    let plain = message.images().next().is_none() && !message.has_opaque_parts();
    let texts: Vec<&str> = message.plain_texts().collect();
    plain.then(|| texts.join("\n"))
}
