//! The walk through the conversation (S4) and the last prompt's window (S5), laid out without pins on them.
//!
//! Input: the turns of a request, and the candidates that are included apart from the walk. Output: trails,
//! laid out when the same candidates occur again, and the ends of walks on them. Rules: conversation (S4),
//! sticky window (S5).

use super::{
    ManyBudgets,
    trail::{Trail, TrailEnd, WalkEnd, WindowTrail},
};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        candidates::CandidateId,
        select::{Selection, Selector},
    },
    provider::weight::Weight,
};
use std::rc::Rc;

impl Selector<'_, ManyBudgets> {
    /// Finds the end of the walk on a trail. Returns `None` if the walk has to be examined step by step, or
    /// if the set of included candidates is new.
    pub(super) fn walk_along(
        &self,
        room: u64,
        floor: Option<CandidateId>,
        chosen: &mut Selection<ManyBudgets>,
    ) -> Option<WalkEnd> {
        if !self.is_on_trail(chosen) {
            return None;
        }
        let begun = chosen.included.shared.trail().map(|(trail, steps)| (Rc::clone(trail), steps));
        let (known, from) = match begun {
            Some((trail, steps)) => (Some(trail), steps),
            None => (self.walker.walk.borrow().clone(), 0),
        };
        let holds = |trail: &Rc<Trail>| {
            trail.floor == floor && included_apart(chosen).eq(trail.apart.iter().copied())
        };
        let trail = match known.filter(holds) {
            Some(trail) if !trail.is_too_short(from, room) => Some(trail),
            // The longer trail begins with the steps of this one, so the step `from` stays valid.
            Some(short) => {
                let room = short.sum(from).saturating_add(room);
                Some(self.lay_out_and_share(room, Trail::new(short.apart.clone(), floor)))
            }
            None if from > 0 => None,
            None => {
                let apart: Vec<CandidateId> = included_apart(chosen).collect();
                // A layout covers more than one walk examines, so it pays only if the next budget has the
                // same set. A new set is only remembered.
                let requested = self.walker.requested.replace(apart.clone());
                (requested == apart).then(|| self.lay_out_and_share(room, Trail::new(apart, floor)))
            }
        };
        let walk_end = trail.and_then(|trail| trail.walk(from, room));
        if walk_end.is_none() {
            chosen.included.convert_trail();
        }
        walk_end
    }

    /// Lays out the walk with twice this room, and keeps it for the next budgets.
    fn lay_out_and_share(&self, room: u64, trail: Trail) -> Rc<Trail> {
        let trail = Rc::new(self.lay_out(room, trail));
        *self.walker.walk.borrow_mut() = Some(Rc::clone(&trail));
        trail
    }

    /// Lays out the walk with twice this room. The next budgets rarely need more, and tokens beyond that are
    /// not counted.
    pub(super) fn lay_out(&self, room: u64, mut trail: Trail) -> Trail {
        let mut chosen = Selection::new(self.index);
        chosen.included.insert_walked(trail.apart.iter().copied());
        let end = self.lay_out_turns(room.saturating_mul(2), &chosen, &mut trail);
        // An error is not reported here, because no walk may come that far. The walk that does will meet it.
        trail.ending(end.unwrap_or(TrailEnd::Unknown))
    }

    /// Adds the steps of the turns to a trail until their sum exceeds `room` tokens. Returns the end of the
    /// trail.
    ///
    /// # Errors
    ///
    /// Any error of the token counter.
    pub(super) fn lay_out_turns(
        &self,
        room: u64,
        chosen: &Selection<ManyBudgets>,
        trail: &mut Trail,
    ) -> Result<TrailEnd, Error> {
        let (turns, floor) = (self.index.turns(), trail.floor);
        for turn in TurnIndex::each(turns.clone()).rev() {
            let head = self.index.user_message(turn);
            let new_head = head.filter(|head| !chosen.has(*head));
            let of_this = trail.turn(new_head.is_some(), head.is_some() || self.is_one_turn());
            if floor.is_some_and(|floor| turn < self.index.turn_of(floor)) {
                return Ok(TrailEnd::Barrier(of_this));
            }
            if self.has_expired_user_message(turn, chosen)? {
                continue;
            }
            let exchanges = ExchangeIndex::each(self.index.exchanges(turn)).rev().map(CandidateId::Exchange);
            for id in new_head.into_iter().chain(exchanges) {
                // The user message is not examined again: a turn whose user message has expired was skipped
                // above.
                if chosen.has(id) || Some(id) != new_head && self.costs.ineligible(id)?.is_some() {
                    continue;
                }
                let before_the_floor = match (id, floor) {
                    (CandidateId::Exchange(at), Some(CandidateId::Exchange(floor))) => at < floor,
                    _ => false,
                };
                match self.costs.weigh(id, self.walker.largest_budget)? {
                    Weight::Exactly(tokens) if !before_the_floor => trail.push(id, tokens, of_this),
                    _ => return Ok(TrailEnd::Barrier(of_this)),
                }
                // The step that exceeds the room is part of the trail, because the walk needs its tokens to
                // stop there.
                if trail.sum(trail.len()) > room {
                    return Ok(TrailEnd::LaidOutFor(room));
                }
            }
            if turn.next() == turns.end {
                trail.live = Some(trail.len());
            }
        }
        Ok(TrailEnd::Whole)
    }

    /// Checks if selections share trails, and this one has not left its trail.
    fn is_on_trail(&self, chosen: &Selection<ManyBudgets>) -> bool {
        self.walker.goal.is_none() && !chosen.included.shared.has_left_trail
    }

    /// Returns the last prompt's window as a trail. Returns `None` if it has to be examined step by step.
    pub(super) fn window_along(
        &self,
        start: CandidateId,
        chosen: &Selection<ManyBudgets>,
    ) -> Result<Option<Rc<WindowTrail>>, Error> {
        if !self.is_on_trail(chosen) || chosen.included.shared.trail().is_some() {
            return Ok(None);
        }
        let known = &self.walker.windows[usize::from(chosen.pays_for_pins)];
        // Pins without room change the window only if it awaits them.
        let dropped = || chosen.reasons.pins.keys().copied().filter(|_| !chosen.pays_for_pins);
        let holds = |window: &WindowTrail| {
            window.trail.floor == Some(start)
                && dropped().eq(window.dropped.iter().copied())
                && included_apart(chosen).eq(window.trail.apart.iter().copied())
        };
        let found = known.borrow().clone().filter(|window| holds(window));
        if found.is_some() {
            return Ok(found);
        }
        let mut trail = Trail::new(included_apart(chosen).collect(), Some(start));
        let (dropped, mut awaited) = (dropped().collect(), Vec::new());
        let of_the_window = trail.turn(false, false);
        let fits = self.each_from(start, chosen, |id| {
            if !chosen.pays_for_pins && chosen.reasons.pins.contains_key(&id) {
                awaited.push(id);
                return Ok(true);
            }
            let Weight::Exactly(tokens) = self.costs.weigh(id, self.walker.largest_budget)? else {
                return Ok(false);
            };
            trail.push(id, tokens, of_the_window);
            Ok(true)
        })?;
        let tokens = fits.then(|| trail.sum(trail.len()));
        let trail = Rc::new(trail.ending(TrailEnd::Unknown));
        let window = Rc::new(WindowTrail { dropped, awaited, trail, tokens });
        *known.borrow_mut() = Some(Rc::clone(&window));
        Ok(Some(window))
    }
}

/// Returns the messages and exchanges that are included one by one: as pins, or because they are required.
pub(super) fn included_apart(chosen: &Selection<ManyBudgets>) -> impl Iterator<Item = CandidateId> {
    let walked = |id: &CandidateId| matches!(id, CandidateId::UserMessage(_) | CandidateId::Exchange(_));
    chosen.included.ids().filter(walked)
}
