//! The window: the part of the conversation that is included, without gaps.
//!
//! - Input: the turns, and a room.
//! - Output: the included messages and exchanges, and the window.
//! - Rules: S4 (the walk), S5 (the last prompt's window), S10 (retained texts that leave).
//!
//! The walk starts at the live turn and goes back turn by turn, and inside of a turn exchange by exchange,
//! while the candidates fit. It stops at the first one that does not fit. A trimmed turn keeps its user
//! message and its newest exchanges.
//!
//! If the last prompt had a window, that window is kept while it fits: provider caches reward a prompt that
//! begins with the same bytes as the last one. If it no longer fits, it is cut once, to a low mark, so that
//! the next prompts can grow.
//!
//! Invariants:
//!
//! - If an unpinned item is included, no newer item is excluded for lack of tokens.
//! - A call is included with all its results, or not at all.
//! - A candidate that can never be sent (expired, or without a result) is passed over and does not stop the
//!   walk.

use super::{Room, Selection, Selector, Walk, Walker, Window, left_of, within};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::{
        budget::{BudgetVariable, Budgets},
        candidates::CandidateId,
    },
    provider::weight::Weight,
};
use std::ops::{ControlFlow, Range};

impl<W: Walker> Selector<'_, W> {
    /// Includes as much of the conversation as fits, unless the window starts where the last one did.
    pub(super) fn include_window(&self, room: Room, chosen: &mut Selection<W>) -> Result<(), Error> {
        match chosen.window {
            Window::Fresh => self.walk(room, LimitedBy::Window, None, chosen),
            // Pins that were included since may let the walk go further, up to the low mark.
            Window::Cut { low, .. } => self.cut(room, low, chosen),
            Window::Sticky => Ok(()),
        }
    }

    /// Cuts a window that no longer fits to its low mark.
    pub(super) fn cut_window(&self, budgets: &Budgets, chosen: &mut Selection<W>) -> Result<(), Error> {
        let room = within(budgets, Section::Conversation, chosen);
        let (budget, low) = (budgets.budget(Section::Conversation), budgets.low_mark(self.config));
        self.cut(room, low, chosen)?;
        chosen.window = Window::Cut { budget, low };
        Ok(())
    }

    /// Returns the room for the last prompt's window as it is.
    pub(super) fn room_for_resuming(&self, budgets: &Budgets, chosen: &Selection<W>) -> Room {
        let (budget, variable) = self.budget_for_resuming(budgets);
        Room::new(left_of(budget, Section::Conversation, chosen), variable)
    }

    /// Returns the maximum tokens of a window that stays as it is, and their budget variable.
    ///
    /// This is the budget of the conversation, or the low mark if this plan evicts retained texts that do not
    /// fit: the prompt changes from there on anyway (rules S5, S10).
    pub(super) fn budget_for_resuming(&self, budgets: &Budgets) -> (u64, BudgetVariable) {
        if self.costs.rendering().cuts {
            (budgets.low_mark(self.config), BudgetVariable::LowMark)
        } else {
            (budgets.budget(Section::Conversation), BudgetVariable::Conversation)
        }
    }

    /// Walks up to the low mark, and no further back than the start of the last window.
    ///
    /// Includes the newest turn before the live one even beyond the mark, if it fits. Without it the prompt
    /// could consist of the question alone.
    fn cut(&self, room: Room, low: u64, chosen: &mut Selection<W>) -> Result<(), Error> {
        let left = left_of(low, Section::Conversation, chosen);
        let newest = self.newest_answered(room, left, chosen)?;
        let room = room.at_most(newest.unwrap_or(left), BudgetVariable::LowMark);
        self.walk(room, LimitedBy::StickyWindow, self.index.window_start, chosen)
    }

    /// Walks backwards from the live turn (rule S4). Items that are already included cost nothing, so a later
    /// walk with more room continues at the end of this one.
    ///
    /// `otherwise` is the reason for a candidate that does not fit, unless a cap is the reason. Nothing
    /// before `floor` is included.
    fn walk(
        &self,
        room: Room,
        otherwise: LimitedBy,
        floor: Option<CandidateId>,
        chosen: &mut Selection<W>,
    ) -> Result<(), Error> {
        chosen.reasons.before_window = None;
        // State is merged only while nothing follows the question. If an exchange may follow, the tokens that
        // merging would save cannot be spent.
        let may_not_merge = room.counts_on_merge() && self.may_follow_the_question(chosen)?;
        let room = if may_not_merge { room.without_merge() } else { room }.for_walk();
        if self.walker.walk(self, room, floor, chosen)? {
            return Ok(());
        }
        let turns = self.index.turns();
        // Continues before the oldest turn that an earlier walk included as a whole.
        let from = chosen.walked_to.unwrap_or(turns.end);
        let left = room.tokens();
        let mut walk = Walk { selector: self, room, left, floor, chosen, new: Vec::new() };
        for turn in TurnIndex::each(turns.start..from).rev() {
            if walk.include_turn(turn)?.is_break() {
                self.walker.walk_ends(&walk, turn)?;
                let reason =
                    ExcludedReason::Budget { room: walk.left, limited_by: room.limited_by(otherwise) };
                walk.chosen.reasons.before_window = Some(reason);
                break;
            }
            walk.chosen.walked_to = Some(turn);
        }
        let Walk { new, chosen, .. } = walk;
        chosen.included.keep_walked(&new);
        Ok(())
    }

    /// Returns the tokens of the newest turn before the live one, together with those of the live turn's
    /// missing exchanges.
    ///
    /// Returns `None` if they fit into `low` tokens anyway, or do not fit into the room. Also returns `None`
    /// if the last prompt's window did not contain that turn as a whole.
    fn newest_answered(&self, room: Room, low: u64, chosen: &Selection<W>) -> Result<Option<u64>, Error> {
        let Some(turn) = TurnIndex::each(self.index.turns()).rev().nth(1) else { return Ok(None) };
        let exchanges = self.index.exchanges(turn);
        let start = self.index.user_message(turn).unwrap_or(CandidateId::Exchange(exchanges.start));
        // A cut never reaches further back than the last window, so that window must have contained the turn.
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
        let room = if self.may_follow_the_question(chosen)? { room.without_merge() } else { room };
        let left = room.tokens();
        let (mut needed, mut of_it) = (0u64, false);
        let fits = self.each_from(start, chosen, |id| {
            let Weight::Exactly(tokens) = self.offer(id, left - needed, room)? else {
                return Ok(false);
            };
            needed += tokens;
            of_it |= self.index.turn_of(id) == turn;
            Ok(true)
        })?;
        Ok(Some(needed).filter(|needed| fits && of_it && *needed > low))
    }

    /// Checks if the conversation is a single turn.
    pub(crate) fn is_one_turn(&self) -> bool {
        let Range { start, end } = self.index.turns();
        start.next() == end
    }

    /// Includes the last prompt's window if all of it fits: everything from `start` on that can be sent.
    /// Otherwise changes nothing and returns false.
    pub(super) fn resume(
        &self,
        start: CandidateId,
        room: Room,
        chosen: &mut Selection<W>,
    ) -> Result<bool, Error> {
        if let Some(fits) = self.walker.resume(self, start, room, chosen)? {
            return Ok(fits);
        }
        let is_awaited = |id: CandidateId, chosen: &Selection<W>| {
            !chosen.pays_for_pins && chosen.reasons.pins.contains_key(&id)
        };
        let (mut new, mut awaited) = (Vec::with_capacity(self.costs.weighed()), Vec::new());
        let mut left = room.tokens();
        let fits = self.each_from(start, chosen, |id| {
            if is_awaited(id, chosen) {
                awaited.push(id);
                return Ok(true);
            }
            // Not `offer`: the window is compared as a whole, and reported once below.
            let Weight::Exactly(cost) = self.costs.weigh(id, left)? else { return Ok(false) };
            left -= cost;
            new.push((id, cost));
            Ok(true)
        })?;
        if !fits {
            self.walker.too_large_together(room, &self.costs, &|| {
                let mut needed = Vec::new();
                self.each_from(start, chosen, |id| {
                    if !is_awaited(id, chosen) {
                        needed.push(id);
                    }
                    Ok(true)
                })?;
                Ok(needed)
            })?;
            return Ok(false);
        }
        if !new.is_empty() {
            self.walker.fits(room, left);
        }
        chosen.included.keep_walked(&new);
        chosen.resumed(awaited, left);
        Ok(true)
    }

    /// Visits everything from `start` on that can be sent and is not included, newest turn first, until a
    /// visit returns false. Returns true if all visits returned true.
    pub(crate) fn each_from(
        &self,
        start: CandidateId,
        chosen: &Selection<W>,
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
            // An expired user message takes its exchanges with it, and a cut turn may have no exchange left.
            if self.has_expired_user_message(turn, chosen)?
                || cut_at.is_some() && !self.reaches(turn, from, chosen)?
            {
                continue;
            }
            let exchanges = ExchangeIndex::each(from..exchanges.end).rev().map(CandidateId::Exchange);
            for id in exchanges.chain(self.index.user_message(turn)) {
                if !chosen.has(id) && self.costs.ineligible(id)?.is_none() && !visit(id)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Checks if the user message of a turn has expired. Its exchanges without pins leave with it (rule T1).
    pub(crate) fn has_expired_user_message(
        &self,
        turn: TurnIndex,
        chosen: &Selection<W>,
    ) -> Result<bool, Error> {
        if self.costs.nothing_leaves() {
            return Ok(false);
        }
        match self.index.user_message(turn).filter(|head| !chosen.has(*head)) {
            Some(head) => Ok(self.costs.ineligible(head)?.is_some()),
            None => Ok(false),
        }
    }

    /// Checks if the window still contains a part of a cut turn: an exchange from `from` on that the
    /// conversation pays for or could include. A turn without a user message is never cut unless it is the
    /// only turn, so none of its earlier exchanges may be missing.
    pub(crate) fn reaches(
        &self,
        turn: TurnIndex,
        from: ExchangeIndex,
        chosen: &Selection<W>,
    ) -> Result<bool, Error> {
        let exchanges = self.index.exchanges(turn);
        let lives = |at: ExchangeIndex| -> Result<bool, Error> {
            let id = CandidateId::Exchange(at);
            Ok(match chosen.included.find(id) {
                Some(inclusion) => inclusion.section == Section::Conversation,
                None => self.costs.ineligible(id)?.is_none(),
            })
        };
        let Range { start, end } = exchanges;
        if self.index.user_message(turn).is_none() && !self.is_one_turn() {
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

    /// Checks if an exchange of the live turn may still be included. If one may, the walk must not spend the
    /// tokens that merging state saves: state is merged into the live question only while nothing follows it.
    fn may_follow_the_question(&self, chosen: &Selection<W>) -> Result<bool, Error> {
        if W::has_live_turn(&chosen.included.shared) {
            return Ok(false);
        }
        let turns = self.index.turns();
        if let Some(live) = TurnIndex::each(turns).next_back() {
            for id in ExchangeIndex::each(self.index.exchanges(live)).map(CandidateId::Exchange) {
                if !chosen.has(id) && self.costs.ineligible(id)?.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl<W: Walker> Selection<W> {
    /// Records that the last prompt's window is included, with `left` tokens left.
    pub(crate) fn resumed(&mut self, awaited: Vec<CandidateId>, left: u64) {
        self.awaited_pins = awaited;
        self.window = Window::Sticky;
        let reason = ExcludedReason::Budget { room: left, limited_by: LimitedBy::StickyWindow };
        self.reasons.before_window = Some(reason);
    }
}

impl<W: Walker> Walk<'_, '_, W> {
    /// Includes a turn as far as it fits. Continues the walk if everything of the turn that can be sent is
    /// included.
    fn include_turn(&mut self, turn: TurnIndex) -> Result<ControlFlow<()>, Error> {
        let Selector { index, walker, .. } = self.selector;
        if self.floor.is_some_and(|floor| turn < index.turn_of(floor)) {
            return Ok(ControlFlow::Break(()));
        }
        let head = index.user_message(turn);
        let mut left = self.left;
        let mut new_head = None;
        // Only pins of such a turn can be sent, so it does not end the walk.
        if self.selector.has_expired_user_message(turn, self.chosen)? {
            return Ok(ControlFlow::Continue(()));
        }
        walker.walk_reaches(self, turn)?;
        if let Some(head) = head.filter(|head| !self.chosen.has(*head)) {
            match self.selector.offer(head, left, self.room)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    new_head = Some((head, tokens));
                }
                Weight::Over => return Ok(ControlFlow::Break(())),
            }
        }
        let (newest, is_whole) = self.newest_exchanges(turn, &mut left)?;
        // A turn without a user message is trimmed only if it is the whole conversation.
        let may_be_cut = (head.is_some() || self.selector.is_one_turn()) && !newest.is_empty();
        if is_whole || may_be_cut {
            self.left = left;
            // From the newest to the oldest, so the user message comes last.
            self.new.extend(newest.into_iter().chain(new_head));
        }
        Ok(if is_whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    /// Returns the newest exchanges of a turn that fit into `left` and are not included yet, with their
    /// tokens. The flag is true if nothing else of the turn can be sent.
    fn newest_exchanges(
        &self,
        turn: TurnIndex,
        left: &mut u64,
    ) -> Result<(Vec<(CandidateId, u64)>, bool), Error> {
        let mut newest = Vec::new();
        for at in ExchangeIndex::each(self.selector.index.exchanges(turn)).rev() {
            let id = CandidateId::Exchange(at);
            if self.chosen.has(id) || self.selector.costs.ineligible(id)?.is_some() {
                continue;
            }
            let before_the_floor = matches!(self.floor, Some(CandidateId::Exchange(floor)) if at < floor);
            match self.selector.offer(id, *left, self.room)? {
                Weight::Exactly(tokens) if !before_the_floor => {
                    *left -= tokens;
                    newest.push((id, tokens));
                }
                _ => return Ok((newest, false)),
            }
        }
        Ok((newest, true))
    }
}
