//! The kept window: newest turns first, whole while they fit, the first that does not trimmed (rule S4), or where it
//! stood before (rule S5).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, HeldBy, IncludedReason},
    planner::candidates::{Basis, Quantity, Scale, Unit},
    tokens::Weight,
};
use std::collections::{BTreeMap, BTreeSet};

/// How far the walk came in one turn.
enum Step {
    /// The turn is in, as far as it lives; the walk goes on.
    Whole,
    /// The walk stops here.
    Stop,
}

/// Walks from the live turn backwards. What is in already is free, so a later call with more room goes on where the
/// last one stopped. `otherwise` holds what does not fit, where that is no cap. Nothing before `floor` comes in.
pub(super) fn take(
    scale: &Scale<'_>,
    room: Room,
    otherwise: HeldBy,
    floor: Option<Unit>,
    chosen: &mut Selection,
) -> Result<(), Error> {
    chosen.behind = None;
    let what = room_for(scale, chosen)?;
    let only_headless = scale.turns() == 1;
    let (left, basis) = (room.tokens(what), room.basis(what));
    let from = chosen.walked_to.unwrap_or(scale.turns());
    let mut walk = Walk { scale, left, basis, only_headless, floor, chosen, new: Vec::new() };
    for turn in (0..from).rev() {
        if let Step::Stop = walk.turn(turn)? {
            walk.reach_for_the_goal(turn)?;
            let held_by = room.held_by(what, otherwise);
            let room = walk.left;
            walk.chosen.behind = Some(ExcludedReason::Budget { room, held_by });
            break;
        }
        walk.chosen.walked_to = Some(turn);
    }
    let new = walk.new;
    chosen.keep_all(new, Section::Conversation, IncludedReason::Recent);
    Ok(())
}

/// Whether pins that got no room of their own budget are awaited from what is left over, or paid for as the ordinary
/// messages that they are otherwise, where a window starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pins {
    Awaited,
    Paid,
}

/// Keeps everything that lives from `start` on, if it fits into `room`; otherwise changes nothing. Says whether it fits.
pub(super) fn resume(
    scale: &Scale<'_>,
    start: Unit,
    room: u64,
    pins: Pins,
    chosen: &mut Selection,
) -> Result<bool, Error> {
    let (mut new, mut awaited, mut too_much, mut left) = (Vec::new(), Vec::new(), Vec::new(), room);
    let basis = Basis::of(Quantity::Conversation);
    let first = scale.turn_of(start);
    for turn in (first..scale.turns()).rev() {
        let exchanges = scale.exchanges(turn);
        let from = match start {
            Unit::Exchange(at) if turn == first => at,
            _ => exchanges.start,
        };
        let trimmed = matches!(start, Unit::Exchange(_)) && turn == first;
        if head_is_dead(scale, turn, chosen)? || trimmed && !reaches(scale, turn, from, chosen)? {
            continue;
        }
        for unit in (from..exchanges.end).rev().map(Unit::Exchange).chain(scale.head(turn)) {
            if chosen.has(unit) || scale.dead(unit)?.is_some() {
                continue;
            }
            if pins == Pins::Awaited && chosen.fallen.contains_key(&unit) {
                awaited.push(unit);
                continue;
            }
            match scale.weigh(unit, left)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    new.push((unit, tokens));
                }
                Weight::Over if scale.is_traced() => too_much.push(unit),
                Weight::Over => return Ok(false),
            }
        }
    }
    if !too_much.is_empty() {
        // It is steady again where all of it fits, and not before.
        if let Some(missing) = scale.missing_of(too_much.into_iter(), |_| false)? {
            scale.trace(|trace| trace.over(basis, missing.saturating_sub(left).max(1)));
        }
        return Ok(false);
    }
    if !new.is_empty() {
        scale.trace(|trace| trace.fits(basis, left));
    }
    chosen.keep_all(new, Section::Conversation, IncludedReason::Recent);
    chosen.awaited = awaited;
    chosen.behind = Some(ExcludedReason::Budget { room: left, held_by: HeldBy::StickyWindow });
    Ok(true)
}

/// Whether a turn's user message has expired, and so takes its unpinned exchanges with it (rule T1).
fn head_is_dead(scale: &Scale<'_>, turn: u32, chosen: &Selection) -> Result<bool, Error> {
    match scale.head(turn).filter(|head| !chosen.has(*head)) {
        Some(head) => Ok(scale.dead(head)?.is_some()),
        None => Ok(false),
    }
}

/// Whether a trimmed turn has anything left from the exchange `from` on that the conversation pays for. Of a turn
/// without a head, unless it is the only one, nothing may be missing before it either.
fn reaches(scale: &Scale<'_>, turn: u32, from: u32, chosen: &Selection) -> Result<bool, Error> {
    let mut exchanges = scale.exchanges(turn);
    let lives = |at: u32| -> Result<bool, Error> {
        let unit = Unit::Exchange(at);
        Ok(match chosen.kept.get(&unit) {
            Some(kept) => kept.section == Section::Conversation,
            None => scale.dead(unit)?.is_none(),
        })
    };
    if scale.head(turn).is_none() && scale.turns() > 1 {
        for at in exchanges.start..from {
            if !chosen.has(Unit::Exchange(at)) && lives(at)? {
                return Ok(false);
            }
        }
    }
    exchanges.start = from;
    for at in exchanges {
        if lives(at)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks over what is kept, from the newest turn back to the first thing that lives and is missing. Finds where the
/// window starts: at the oldest unit that the conversation pays for, a whole turn at its user message. And finds what
/// stands in between and can never come in as it is.
pub(super) fn survey(scale: &Scale<'_>, chosen: &mut Selection) -> Result<(), Error> {
    let (mut start, mut dead) = (None, BTreeMap::new());
    let of_the_window =
        |unit: Unit| chosen.kept.get(&unit).is_some_and(|kept| kept.section == Section::Conversation);
    for turn in (0..scale.turns()).rev() {
        let head = scale.head(turn);
        let head_is_dead = head_is_dead(scale, turn, chosen)?;
        if !head_is_dead && head.is_some_and(|head| !chosen.has(head)) {
            break;
        }
        let (mut whole, mut oldest, mut here) = (true, None, Vec::new());
        for unit in scale.exchanges(turn).rev().map(Unit::Exchange).chain(head.filter(|_| head_is_dead)) {
            if of_the_window(unit) {
                oldest = Some(unit);
            } else if !chosen.has(unit) {
                match scale.dead(unit)? {
                    Some(reason) => here.push((unit, reason)),
                    // Under a user message that has expired, a pin without room is no part of the window.
                    None if head_is_dead => {}
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
            dead.extend(here);
        }
        let begins = if whole { head.or(oldest).filter(|_| recent) } else { oldest };
        start = begins.or(start);
        if !whole {
            break;
        }
    }
    (chosen.start, chosen.dead) = (start, dead);
    Ok(())
}

/// State is merged into the live question only while nothing follows it: where an exchange of the live turn could
/// still come in, the walk may not spend what the merge saves.
fn room_for(scale: &Scale<'_>, chosen: &Selection) -> Result<For, Error> {
    if let Some(live) = scale.turns().checked_sub(1) {
        for unit in scale.exchanges(live).map(Unit::Exchange) {
            if !chosen.has(unit) && scale.dead(unit)?.is_none() {
                return Ok(For::Following);
            }
        }
    }
    Ok(For::Anything)
}

struct Walk<'a, 'b> {
    scale: &'a Scale<'b>,
    left: u64,
    basis: Basis,
    /// The conversation has no user message: its one turn is trimmed all the same.
    only_headless: bool,
    floor: Option<Unit>,
    chosen: &'a mut Selection,
    /// What comes in, with what it costs.
    new: Vec<(Unit, u64)>,
}

impl Walk<'_, '_> {
    /// Where the walk stopped before the turn of the goal, everything up to it has to fit before it comes in.
    fn reach_for_the_goal(&self, stopped: u32) -> Result<(), Error> {
        let Some((turn, goal)) = self.scale.goal().filter(|(turn, _)| *turn < stopped) else { return Ok(()) };
        if self.is_before_the_floor(turn, goal) {
            return Ok(());
        }
        // What came in of the turn that was trimmed came in last.
        let trimmed = self.new.iter().rev().map(|(unit, _)| *unit);
        let trimmed: BTreeSet<Unit> =
            trimmed.take_while(|unit| self.scale.turn_of(*unit) == stopped).collect();
        let is_in = |unit: Unit| self.chosen.has(unit) || trimmed.contains(&unit);
        let up_to_it = self.scale.missing(turn + 1..stopped + 1, is_in)?;
        if let (Some(missing), Some(own)) = (up_to_it, self.needed_of_its_turn(turn, goal)?) {
            self.over(missing.saturating_add(own), self.left);
        }
        Ok(())
    }

    /// Whether nothing that this walk does lets the goal in.
    fn is_before_the_floor(&self, turn: u32, goal: Unit) -> bool {
        let before = |floor: Unit| match (goal, floor) {
            (Unit::Exchange(goal), Unit::Exchange(floor)) => goal < floor,
            _ => turn < self.scale.turn_of(floor),
        };
        self.floor.is_some_and(before)
    }

    /// What of the goal's own turn has to fit for it to come in, as far as it lives and is not in: the user message, and of
    /// the exchanges the goal and what is newer; of a turn that is kept whole or not at all, everything; with a user message
    /// that is the goal itself, the newest exchange. None where some of it fits no budget.
    fn needed_of_its_turn(&self, turn: u32, goal: Unit) -> Result<Option<u64>, Error> {
        let (head, exchanges) = (self.scale.head(turn), self.scale.exchanges(turn));
        let is_in = |unit: Unit| self.chosen.has(unit);
        let newest = |from: u32| (from..exchanges.end).rev().map(Unit::Exchange);
        match goal {
            Unit::Exchange(at) => {
                let whole = head.is_none() && !self.only_headless;
                let from = if whole { exchanges.start } else { at };
                self.scale.missing_of(head.into_iter().chain(newest(from)), is_in)
            }
            _ => {
                let mut newest = newest(exchanges.start);
                let lives = |unit: &Unit| Ok(!is_in(*unit) && self.scale.dead(*unit)?.is_none());
                let first =
                    newest.find_map(|unit| lives(&unit).map(|lives| lives.then_some(unit)).transpose());
                let first = first.transpose()?;
                self.scale.missing_of(head.into_iter().chain(first), is_in)
            }
        }
    }

    /// So much would have to fit where there is less.
    fn over(&self, needed: u64, left: u64) {
        let by = needed.saturating_sub(left).max(1);
        self.scale.trace(|trace| trace.over(self.basis, by));
    }

    /// What a unit costs, if it fits. Where one unit is asked about, only what decides about that is noted: see
    /// [`Walk::note_the_goal`].
    fn weigh(&self, unit: Unit, left: u64) -> Result<Weight, Error> {
        match self.scale.goal() {
            Some(_) => self.scale.weigh(unit, left),
            None => self.scale.offer(unit, left, self.basis),
        }
    }

    /// Whether the goal is in is a matter of one sum, of what is newer and of its own turn up to it: how far that is from
    /// what is left is how far the decision bears. Whatever else comes in or not is none of its matter.
    fn note_the_goal(&self, turn: u32) -> Result<(), Error> {
        let Some((_, goal)) = self.scale.goal().filter(|(of, _)| *of == turn) else { return Ok(()) };
        let known = self.chosen.has(goal) || self.is_before_the_floor(turn, goal);
        if known || self.scale.dead(goal)?.is_some() {
            return Ok(());
        }
        match self.needed_of_its_turn(turn, goal)? {
            Some(needed) if needed <= self.left => {
                self.scale.trace(|trace| trace.fits(self.basis, self.left - needed));
            }
            Some(needed) => self.over(needed, self.left),
            None => {}
        }
        Ok(())
    }

    fn turn(&mut self, turn: u32) -> Result<Step, Error> {
        if self.floor.is_some_and(|floor| turn < self.scale.turn_of(floor)) {
            return Ok(Step::Stop);
        }
        let head = self.scale.head(turn);
        let mut left = self.left;
        let mut new_head = None;
        if head_is_dead(self.scale, turn, self.chosen)? {
            return Ok(Step::Whole);
        }
        self.note_the_goal(turn)?;
        if let Some(head) = head.filter(|head| !self.chosen.has(*head)) {
            match self.weigh(head, left)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    new_head = Some((head, tokens));
                }
                Weight::Over => return Ok(Step::Stop),
            }
        }
        let suffix = self.suffix(turn, left)?;
        let trimmed = (head.is_some() || self.only_headless) && !suffix.new.is_empty();
        if suffix.whole || trimmed {
            self.left = suffix.left;
            self.new.extend(new_head.into_iter().chain(suffix.new));
        }
        Ok(if suffix.whole { Step::Whole } else { Step::Stop })
    }

    /// The longest suffix of a turn's exchanges that fits into `left`.
    fn suffix(&self, turn: u32, left: u64) -> Result<Suffix, Error> {
        let mut suffix = Suffix { new: Vec::new(), whole: true, left };
        for at in self.scale.exchanges(turn).rev() {
            let unit = Unit::Exchange(at);
            if self.chosen.has(unit) {
                continue;
            }
            if self.scale.dead(unit)?.is_some() {
                continue;
            }
            let before_the_floor = matches!(self.floor, Some(Unit::Exchange(floor)) if at < floor);
            match self.weigh(unit, suffix.left)? {
                Weight::Exactly(tokens) if !before_the_floor => {
                    suffix.left -= tokens;
                    suffix.new.push((unit, tokens));
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
    new: Vec<(Unit, u64)>,
    /// Whether that is all that lives of the turn.
    whole: bool,
    left: u64,
}
