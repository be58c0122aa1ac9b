//! Which part of the conversation is in (rules S4, S5).
//!
//! The walk starts at the live turn and goes back turn by turn, and inside of a turn exchange by exchange, while what it
//! meets fits. It stops at the first thing that does not: what is kept is one window without gaps, as a reader of the
//! conversation would cut it. A turn that is cut keeps its user message and its newest exchanges. Where the last prompt had
//! a window, that one is kept while it fits: a prompt that begins with the same bytes as the last one is what provider
//! caches pay for. When it no longer fits it is cut once, to a low mark, so that the next prompts have tokens to grow into.
//!
//! Invariants: what is newer is never out for want of tokens while something older that is not pinned is in; a call is in
//! with all its results or not at all; what can never be sent (expired, without a result) is passed over and does not stop
//! the walk.

use super::{
    Selection, Selector, Window,
    room::{AfterQuestion, Room},
    trails::{Pins, WalkFound},
};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::{
        candidates::CandidateId,
        observer::{BudgetVariable, Constraint, Observer, WalkState},
    },
    provider::weight::Weight,
};
use std::{collections::BTreeMap, ops::Range, rc::Rc};

/// How far the walk came in one turn.
enum Step {
    /// The turn is in, as far as it can be sent; the walk goes on.
    Whole,
    /// The walk stops here.
    Stop,
}

impl<O: Observer> Selector<'_, O> {
    /// Walks from the live turn backwards. What is in already is free, so a later call with more room goes on where the
    /// last one stopped. `otherwise` holds what does not fit, where that is no cap. Nothing before `floor` comes in.
    pub(super) fn walk(
        &self,
        room: Room,
        otherwise: LimitedBy,
        floor: Option<CandidateId>,
        chosen: &mut Selection,
    ) -> Result<(), Error> {
        chosen.before_window = None;
        let after = if room.is_one_for_all() { AfterQuestion::No } else { self.after_question(chosen)? };
        let constraint = Constraint { in_walk: true, ..room.constraint(after) };
        let left = room.tokens(after);
        let found = match self.laid_out_pins(chosen)? {
            Some(pins) => self.walk_beside_pins(&pins, left, chosen),
            None => self.walk_along(left, floor, chosen),
        };
        if let Some(WalkFound { trail, reach, paid }) = found {
            reach.least_left.into_iter().for_each(|left| self.observer.fits(constraint, left));
            reach.over.into_iter().for_each(|by| self.observer.too_large(constraint, by));
            if reach.stopped {
                let limited_by = room.limited_by(after, otherwise);
                chosen.before_window = Some(ExcludedReason::Budget { room: reach.left, limited_by });
            }
            chosen.pay_for_the_walk(paid);
            chosen.kept.walk_to(trail, reach.steps);
            return Ok(());
        }
        let turns = self.index.turns();
        let only_headless = self.is_one_turn();
        let from = chosen.walked_to.unwrap_or(turns.end);
        let mut walk =
            Walk { selector: self, left, constraint, only_headless, floor, chosen, new: Vec::new() };
        for turn in TurnIndex::each(turns.start..from).rev() {
            if let Step::Stop = walk.turn(turn)? {
                self.observer.walk_ends(&walk.state(&|id| walk.chosen.has(id)), turn)?;
                let limited_by = room.limited_by(after, otherwise);
                let room = walk.left;
                walk.chosen.before_window = Some(ExcludedReason::Budget { room, limited_by });
                break;
            }
            walk.chosen.walked_to = Some(turn);
        }
        let new = walk.new;
        chosen.keep_walked(&new);
        Ok(())
    }

    /// Returns the tokens of the newest turn before the live one, with those that are missing of the live one. Returns `None` if
    /// `low` tokens hold them anyway, the room does not, or the last prompt's window did not hold that turn as a whole.
    pub(super) fn newest_answered(
        &self,
        room: Room,
        low: u64,
        chosen: &Selection,
    ) -> Result<Option<u64>, Error> {
        let Some(turn) = TurnIndex::each(self.index.turns()).rev().nth(1) else { return Ok(None) };
        let exchanges = self.index.exchanges(turn);
        let start = self.index.head(turn).unwrap_or(CandidateId::Exchange(exchanges.start));
        match self.index.window_start {
            Some(floor) if self.index.turn_of(floor) > turn => return Ok(None),
            Some(floor @ CandidateId::Exchange(at)) if self.index.turn_of(floor) == turn => {
                for id in ExchangeIndex::each(exchanges.start..at).map(CandidateId::Exchange) {
                    if !chosen.has(id) && self.costs.ineligible(id)?.is_none() {
                        return Ok(None);
                    }
                }
            }
            _ => {}
        }
        let after = self.after_question(chosen)?;
        let (left, constraint) = (room.tokens(after), room.constraint(after));
        let (mut needed, mut of_it) = (0u64, false);
        let fits = self.each_from(start, chosen, |id| {
            let Weight::Exactly(tokens) = self.offer(id, left - needed, constraint)? else {
                return Ok(false);
            };
            needed += tokens;
            of_it |= self.index.turn_of(id) == turn;
            Ok(true)
        })?;
        Ok(Some(needed).filter(|needed| fits && of_it && *needed > low))
    }

    /// Whether the conversation is one turn.
    pub(super) fn is_one_turn(&self) -> bool {
        let Range { start, end } = self.index.turns();
        start.next() == end
    }

    /// Keeps everything that can be sent from `start` on, the last prompt's window, if it fits into so many tokens of a
    /// variable; otherwise changes nothing. Says whether it fits.
    pub(super) fn resume(
        &self,
        start: CandidateId,
        tokens: u64,
        variable: BudgetVariable,
        pins: Pins,
        chosen: &mut Selection,
    ) -> Result<bool, Error> {
        let constraint = Constraint::of(variable);
        if let Some(laid_out) = self.laid_out_pins(chosen)?
            && let Some(window) = &laid_out.window
        {
            return Ok(self.resume_beside_pins(&laid_out, window, (tokens, constraint), pins, chosen));
        }
        if let Some(window) = self.window_along(start, pins, chosen)? {
            let Some(left) = window.tokens.and_then(|needed| tokens.checked_sub(needed)) else {
                if let Some(needed) = window.tokens {
                    self.observer.too_large(constraint, needed - tokens);
                }
                return Ok(false);
            };
            let trail = Rc::clone(&window.trail);
            let steps = trail.len();
            if steps > 0 {
                self.observer.fits(constraint, left);
            }
            chosen.pay_for_the_walk(trail.sum(steps));
            chosen.kept.walk_to(trail, steps);
            chosen.note_resumed(window.awaited.clone(), left);
            return Ok(true);
        }
        let (mut new, mut awaited, mut left) = (Vec::with_capacity(self.costs.weighed()), Vec::new(), tokens);
        let fits = self.each_from(start, chosen, |id| {
            if pins == Pins::Awaited && chosen.dropped_pins.contains_key(&id) {
                awaited.push(id);
                return Ok(true);
            }
            let Weight::Exactly(cost) = self.costs.weigh(id, left)? else { return Ok(false) };
            left -= cost;
            new.push((id, cost));
            Ok(true)
        })?;
        if !fits {
            self.observer.too_large_together(constraint, tokens, self.costs, &|| {
                let mut needed = Vec::new();
                self.each_from(start, chosen, |id| {
                    if pins == Pins::Paid || !chosen.dropped_pins.contains_key(&id) {
                        needed.push(id);
                    }
                    Ok(true)
                })?;
                Ok(needed)
            })?;
            return Ok(false);
        }
        if !new.is_empty() {
            self.observer.fits(constraint, left);
        }
        chosen.keep_walked(&new);
        chosen.note_resumed(awaited, left);
        Ok(true)
    }

    /// Visits everything from `start` on that can be sent and is not in, the newest turn first, until a visit says no.
    /// Says whether none did.
    pub(super) fn each_from(
        &self,
        start: CandidateId,
        chosen: &Selection,
        mut visit: impl FnMut(CandidateId) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let first = self.index.turn_of(start);
        for turn in TurnIndex::each(first..self.index.turns().end).rev() {
            let exchanges = self.index.exchanges(turn);
            let cut_at = match start {
                CandidateId::Exchange(at) if turn == first => Some(at),
                _ => None,
            };
            let from = cut_at.unwrap_or(exchanges.start);
            if self.user_message_expired(turn, chosen)?
                || cut_at.is_some() && !self.reaches(turn, from, chosen)?
            {
                continue;
            }
            let exchanges = ExchangeIndex::each(from..exchanges.end).rev().map(CandidateId::Exchange);
            for id in exchanges.chain(self.index.head(turn)) {
                if !chosen.has(id) && self.costs.ineligible(id)?.is_none() && !visit(id)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a turn's user message has expired, and so takes its unpinned exchanges with it (rule T1).
    pub(super) fn user_message_expired(&self, turn: TurnIndex, chosen: &Selection) -> Result<bool, Error> {
        if self.costs.nothing_leaves() {
            return Ok(false);
        }
        match self.index.head(turn).filter(|head| !chosen.has(*head)) {
            Some(head) => Ok(self.costs.ineligible(head)?.is_some()),
            None => Ok(false),
        }
    }

    /// Finds the pins without room that fall with the user message of their turn: without its pin an exchange is an ordinary
    /// message again (rule S3), and those leave with a user message that has expired (rule T1). So the window may go on
    /// behind them.
    pub(super) fn let_pins_fall(&self, chosen: &mut Selection) -> Result<(), Error> {
        let mut fallen = BTreeMap::new();
        for pin in chosen.dropped_pins.keys().filter(|pin| matches!(pin, CandidateId::Exchange(_))) {
            let head = self.index.head(self.index.turn_of(*pin)).filter(|head| !chosen.has(*head));
            if let Some(reason) = head.map(|head| self.costs.ineligible(head)).transpose()?.flatten() {
                fallen.insert(*pin, reason);
            }
        }
        chosen.fallen_pins = fallen;
        Ok(())
    }

    /// Whether a turn that is cut has anything left from the exchange `from` on that the conversation pays for. Of a turn
    /// without a user message, unless it is the only one, nothing may be missing before it either.
    pub(super) fn reaches(
        &self,
        turn: TurnIndex,
        from: ExchangeIndex,
        chosen: &Selection,
    ) -> Result<bool, Error> {
        let exchanges = self.index.exchanges(turn);
        let lives = |at: ExchangeIndex| -> Result<bool, Error> {
            let id = CandidateId::Exchange(at);
            Ok(match chosen.kept.get(id) {
                Some(kept) => kept.section == Section::Conversation,
                None => self.costs.ineligible(id)?.is_none(),
            })
        };
        let Range { start, end } = exchanges;
        if self.index.head(turn).is_none() && !self.is_one_turn() {
            for at in ExchangeIndex::each(start..from) {
                if !chosen.has(CandidateId::Exchange(at)) && lives(at)? {
                    return Ok(false);
                }
            }
        }
        for at in ExchangeIndex::each(from..end) {
            if lives(at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks over what is kept, from the newest turn back to the first thing that can be sent and is missing. Finds where
    /// the window starts: at the oldest candidate that the conversation pays for, a whole turn at its user message. And
    /// finds what is in between and can never come in as it is.
    pub(super) fn survey(&self, chosen: &mut Selection) -> Result<(), Error> {
        let (mut start, mut ineligible) = (None, BTreeMap::new());
        let of_the_window =
            |id: CandidateId| chosen.kept.get(id).is_some_and(|kept| kept.section == Section::Conversation);
        for turn in TurnIndex::each(self.index.turns()).rev() {
            let head = self.index.head(turn);
            let user_message_expired = self.user_message_expired(turn, chosen)?;
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
            // A turn that is in by its pins alone is not kept by recency, and one that is left out was not looked at.
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
        (chosen.start, chosen.ineligible) = (start, ineligible);
        Ok(())
    }

    /// State is merged into the live question only while nothing follows it: where an exchange of the live turn could
    /// still come in, the walk may not spend what the merge saves.
    fn after_question(&self, chosen: &Selection) -> Result<AfterQuestion, Error> {
        let trail = chosen.kept.trail();
        if trail.is_some_and(|(trail, steps)| trail.live.is_some_and(|live| live <= steps)) {
            return Ok(AfterQuestion::No);
        }
        let turns = self.index.turns();
        if let Some(live) = TurnIndex::each(turns).next_back() {
            for id in ExchangeIndex::each(self.index.exchanges(live)).map(CandidateId::Exchange) {
                if !chosen.has(id) && self.costs.ineligible(id)?.is_none() {
                    return Ok(AfterQuestion::Yes);
                }
            }
        }
        Ok(AfterQuestion::No)
    }
}

impl Selection {
    /// The last prompt's window is in, and leaves so many tokens.
    pub(super) fn note_resumed(&mut self, awaited: Vec<CandidateId>, left: u64) {
        self.awaited = awaited;
        self.window = Window::Sticky;
        self.before_window = Some(ExcludedReason::Budget { room: left, limited_by: LimitedBy::StickyWindow });
    }
}

struct Walk<'a, 'b, O> {
    selector: &'a Selector<'b, O>,
    left: u64,
    constraint: Constraint,
    /// The conversation has no user message: its one turn is cut all the same.
    only_headless: bool,
    floor: Option<CandidateId>,
    chosen: &'a mut Selection,
    /// What comes in, with what it costs.
    new: Vec<(CandidateId, u64)>,
}

impl<O: Observer> Walk<'_, '_, O> {
    /// The walk as the observer sees it.
    fn state<'w>(&'w self, is_in: &'w dyn Fn(CandidateId) -> bool) -> WalkState<'w> {
        WalkState {
            index: self.selector.index,
            costs: self.selector.costs,
            left: self.left,
            constraint: self.constraint,
            only_headless: self.only_headless,
            floor: self.floor,
            is_in,
            new: &self.new,
        }
    }

    fn turn(&mut self, turn: TurnIndex) -> Result<Step, Error> {
        let Selector { index, observer, .. } = *self.selector;
        if self.floor.is_some_and(|floor| turn < index.turn_of(floor)) {
            return Ok(Step::Stop);
        }
        let head = index.head(turn);
        let mut left = self.left;
        let mut new_head = None;
        if self.selector.user_message_expired(turn, self.chosen)? {
            return Ok(Step::Whole);
        }
        observer.walk_reaches(&self.state(&|id| self.chosen.has(id)), turn)?;
        if let Some(head) = head.filter(|head| !self.chosen.has(*head)) {
            match self.selector.offer(head, left, self.constraint)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    new_head = Some((head, tokens));
                }
                Weight::Over => return Ok(Step::Stop),
            }
        }
        let suffix = self.suffix(turn, left)?;
        let cut = (head.is_some() || self.only_headless) && !suffix.new.is_empty();
        if suffix.whole || cut {
            self.left = suffix.left;
            self.new.extend(suffix.new.into_iter().chain(new_head));
        }
        Ok(if suffix.whole { Step::Whole } else { Step::Stop })
    }

    /// The longest suffix of a turn's exchanges that fits into `left`.
    fn suffix(&self, turn: TurnIndex, left: u64) -> Result<Suffix, Error> {
        let mut suffix = Suffix { new: Vec::new(), whole: true, left };
        for at in ExchangeIndex::each(self.selector.index.exchanges(turn)).rev() {
            let id = CandidateId::Exchange(at);
            if self.chosen.has(id) {
                continue;
            }
            if self.selector.costs.ineligible(id)?.is_some() {
                continue;
            }
            let before_the_floor = matches!(self.floor, Some(CandidateId::Exchange(floor)) if at < floor);
            match self.selector.offer(id, suffix.left, self.constraint)? {
                Weight::Exactly(tokens) if !before_the_floor => {
                    suffix.left -= tokens;
                    suffix.new.push((id, tokens));
                }
                _ => {
                    suffix.whole = false;
                    break;
                }
            }
        }
        Ok(suffix)
    }
}

/// The end of a turn, as far back as it fits.
struct Suffix {
    /// What was not in before and fits, newest first.
    new: Vec<(CandidateId, u64)>,
    /// Whether that is all of the turn that can be sent.
    whole: bool,
    left: u64,
}
