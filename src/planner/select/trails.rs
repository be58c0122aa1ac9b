//! Selections under many budgets share what the walk meets: laid out when it is asked for again, and looked up from then on.

use super::{
    Selection, Selector,
    pin_fill::LaidOutPins,
    pin_slots::PinSlots,
    trail::{End, Reach, Trail, WindowTrail},
    walk_sums::WalkSums,
};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{candidates::CandidateId, observer::Observer},
    provider::weight::Weight,
};
use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

/// What selections under many budgets share, once it is known.
#[derive(Debug, Default)]
pub(crate) struct Trails {
    walk: RefCell<Option<Rc<Trail>>>,
    /// What was in beside the last walk that had no trail.
    asked: RefCell<Vec<CandidateId>>,
    /// The pins by their slots.
    pins: SharedPins,
    /// The minimum and the pins that come before everything else, for so many available tokens: what the budgets were divided
    /// with, until a selection begins with it.
    pub(super) pinned_first: RefCell<Option<(i128, Selection)>>,
    /// The last prompt's window, by what becomes of its pins.
    windows: [RefCell<Option<Rc<WindowTrail>>>; 2],
    /// The pins with their costs; `None` if they have to be looked at one by one.
    pub(super) laid_out_pins: OnceCell<Option<Rc<LaidOutPins>>>,
    /// The walk with the pinned messages on it.
    pub(super) beside_pins: RefCell<Option<Rc<Trail>>>,
    /// The steps of it that are not in as pins, by the number of the walk under its budget, with pins that
    /// are out or without.
    pub(super) walks: RefCell<BTreeMap<(usize, bool), WalkSums>>,
}

/// The pins of a request by their slots, once they are known, for all selections of its candidates: those that
/// share them are compared by what differs.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedPins(Rc<OnceCell<Rc<PinSlots>>>);

impl Trails {
    /// Begins without trails, with pins that others share.
    pub(crate) fn with_pins(pins: SharedPins) -> Self {
        Self { pins, ..Self::default() }
    }
}

/// A trail, and how far the walk comes on it.
pub(super) struct WalkFound {
    pub(super) trail: Rc<Trail>,
    pub(super) reach: Reach,
    /// The tokens of the steps that come in.
    pub(super) paid: u64,
}

/// Whether pins that got no room of their own budget are awaited from what is free, or paid for as the ordinary messages
/// that they are otherwise, where a window starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pins {
    Awaited,
    Paid,
}

impl<O: Observer> Selector<'_, O> {
    /// The pins by their slots.
    pub(super) fn pins_by_slots(&self) -> Rc<PinSlots> {
        Rc::clone(self.trails.pins.0.get_or_init(|| Rc::new(PinSlots::new(&self.index.pins))))
    }

    /// How far a trail leads, where many budgets are asked about and what is in beside the walk is what it was made for.
    pub(super) fn walk_along(
        &self,
        room: u64,
        floor: Option<CandidateId>,
        chosen: &mut Selection,
    ) -> Option<WalkFound> {
        let most = self.most_on_a_trail(chosen)?;
        let begun = chosen.kept.trail().map(|(trail, steps)| (Rc::clone(trail), steps));
        let (known, from) = match begun {
            Some((trail, steps)) => (Some(trail), steps),
            None => (self.trails.walk.borrow().clone(), 0),
        };
        let holds = |trail: &Rc<Trail>| {
            trail.floor == floor && beside_the_walk(chosen).eq(trail.beside.iter().copied())
        };
        let trail = match known.filter(holds) {
            Some(trail) if !trail.is_too_short(from, room) => Some(trail),
            // Its steps are those of the shorter one, and more.
            Some(short) => {
                let room = short.sum(from).saturating_add(room);
                Some(self.lay_out_and_share(most, room, Trail::new(short.beside.clone(), floor)))
            }
            None if from > 0 => None,
            None => {
                let beside: Vec<CandidateId> = beside_the_walk(chosen).collect();
                // More is laid out than one walk looks at, which pays where the same is asked again.
                let asked = self.trails.asked.replace(beside.clone());
                (asked == beside).then(|| self.lay_out_and_share(most, room, Trail::new(beside, floor)))
            }
        };
        let reached = trail.and_then(|trail| Some((trail.walk(from, room)?, trail)));
        if reached.is_none() {
            chosen.kept.leave_the_trail();
        }
        reached.map(|(reach, trail)| {
            let paid = trail.sum(reach.steps) - trail.sum(from);
            WalkFound { trail, reach, paid }
        })
    }

    /// Lays out the walk with twice this room, for the next budgets too.
    fn lay_out_and_share(&self, most: u64, room: u64, trail: Trail) -> Rc<Trail> {
        let trail = Rc::new(self.lay_out(most, room, trail));
        *self.trails.walk.borrow_mut() = Some(Rc::clone(&trail));
        trail
    }

    /// Lays out the walk with twice this room: the next budgets mostly need no more, and no more is counted
    /// than that. `most` is what any budget leaves; tokens.
    pub(super) fn lay_out(&self, most: u64, room: u64, mut trail: Trail) -> Trail {
        let mut chosen = Selection::begin(self.index);
        chosen.kept.extend(trail.beside.iter().copied());
        let end = self.lay_out_turns(most, room.saturating_mul(2), &chosen, &mut trail);
        // An error is for the walk to run into, where it comes so far.
        trail.ending(end.unwrap_or(End::Unknown))
    }

    pub(super) fn lay_out_turns(
        &self,
        most: u64,
        room: u64,
        chosen: &Selection,
        trail: &mut Trail,
    ) -> Result<End, Error> {
        let (turns, floor) = (self.index.turns(), trail.floor);
        for turn in TurnIndex::each(turns.clone()).rev() {
            let head = self.index.head(turn);
            let new_head = head.filter(|head| !chosen.has(*head));
            let of_this = trail.turn(new_head.is_some(), head.is_some() || self.is_one_turn());
            if floor.is_some_and(|floor| turn < self.index.turn_of(floor)) {
                return Ok(End::Barrier(of_this));
            }
            if self.user_message_expired(turn, chosen)? {
                continue;
            }
            let exchanges = ExchangeIndex::each(self.index.exchanges(turn)).rev().map(CandidateId::Exchange);
            for id in new_head.into_iter().chain(exchanges) {
                if chosen.has(id) || Some(id) != new_head && self.costs.ineligible(id)?.is_some() {
                    continue;
                }
                let before_the_floor = match (id, floor) {
                    (CandidateId::Exchange(at), Some(CandidateId::Exchange(floor))) => at < floor,
                    _ => false,
                };
                match self.costs.weigh(id, most)? {
                    Weight::Exactly(tokens) if !before_the_floor => trail.push(id, tokens, of_this),
                    _ => return Ok(End::Barrier(of_this)),
                }
                if trail.sum(trail.len()) > room {
                    return Ok(End::LaidOutFor(room));
                }
            }
            if turn.next() == turns.end {
                trail.live = Some(trail.len());
            }
        }
        Ok(End::Whole)
    }

    /// The most tokens that any budget leaves, where selections share their trails and this one is on one still.
    fn most_on_a_trail(&self, chosen: &Selection) -> Option<u64> {
        let shares = !self.observer.follows_the_walk() && !chosen.kept.is_off_the_trail();
        self.costs.most().filter(|_| shares)
    }

    /// The last prompt's window, where many budgets are asked about.
    pub(super) fn window_along(
        &self,
        start: CandidateId,
        pins: Pins,
        chosen: &Selection,
    ) -> Result<Option<Rc<WindowTrail>>, Error> {
        let Some(most) = self.most_on_a_trail(chosen).filter(|_| chosen.kept.trail().is_none()) else {
            return Ok(None);
        };
        let known = &self.trails.windows[pins as usize];
        let dropped = || chosen.dropped_pins.keys().copied().filter(|_| pins == Pins::Awaited);
        let holds = |window: &WindowTrail| {
            window.trail.floor == Some(start)
                && dropped().eq(window.dropped.iter().copied())
                && beside_the_walk(chosen).eq(window.trail.beside.iter().copied())
        };
        let found = known.borrow().clone().filter(|window| holds(window));
        if found.is_some() {
            return Ok(found);
        }
        let mut trail = Trail::new(beside_the_walk(chosen).collect(), Some(start));
        let (dropped, mut awaited) = (dropped().collect(), Vec::new());
        let of_the_window = trail.turn(false, false);
        let fits = self.each_from(start, chosen, |id| {
            if pins == Pins::Awaited && chosen.dropped_pins.contains_key(&id) {
                awaited.push(id);
                return Ok(true);
            }
            let Weight::Exactly(tokens) = self.costs.weigh(id, most)? else { return Ok(false) };
            trail.push(id, tokens, of_the_window);
            Ok(true)
        })?;
        let tokens = fits.then(|| trail.sum(trail.len()));
        let trail = Rc::new(trail.ending(End::Unknown));
        let window = Rc::new(WindowTrail { dropped, awaited, trail, tokens });
        *known.borrow_mut() = Some(Rc::clone(&window));
        Ok(Some(window))
    }
}

/// What of the conversation is in one by one: as pins, or required.
pub(super) fn beside_the_walk(chosen: &Selection) -> impl Iterator<Item = CandidateId> {
    let walked = |id: &CandidateId| matches!(id, CandidateId::UserMessage(_) | CandidateId::Exchange(_));
    chosen.kept.each().filter(walked)
}
