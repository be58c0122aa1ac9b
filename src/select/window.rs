//! The kept window: newest turns first, whole while they fit, the first that does not trimmed (rule S4), or where it
//! stood before (rule S5).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    candidates::{Scale, Unit},
    error::Error,
    item::Section,
    reason::{ExcludedReason, HeldBy, IncludedReason},
    tokens::Weight,
};

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
    let mut walk = Walk { scale, left: room.tokens(what), only_headless, floor, chosen };
    for turn in (0..scale.turns()).rev() {
        if let Step::Stop = walk.turn(turn)? {
            let held_by = room.held_by(what, otherwise);
            let room = walk.left;
            walk.chosen.behind = Some(ExcludedReason::Budget { room, held_by });
            break;
        }
    }
    Ok(())
}

/// Keeps everything that lives from `start` on, if it fits into `room`; otherwise changes nothing. Says whether it fits.
/// Where `await_pins`, pins that got no room yet are not paid for here, but noted.
pub(super) fn resume(
    scale: &Scale<'_>,
    start: Unit,
    room: u64,
    await_pins: bool,
    chosen: &mut Selection,
) -> Result<bool, Error> {
    let mut resumed =
        Resumed { new: Vec::new(), dead: Vec::new(), awaited: Vec::new(), await_pins, left: room };
    let first = scale.turn_of(start);
    for turn in (first..scale.turns()).rev() {
        let exchanges = scale.exchanges(turn);
        let from = match start {
            Unit::Exchange(at) if turn == first => at,
            _ => exchanges.start,
        };
        let trimmed = matches!(start, Unit::Exchange(_)) && turn == first;
        if trimmed && !reaches(scale, turn, from, chosen)? {
            continue;
        }
        let head = scale.head(turn);
        if head_is_dead(scale, turn, chosen)? {
            resumed.dead.extend(dead_of(scale, turn, chosen)?);
            continue;
        }
        for unit in (from..exchanges.end).rev().map(Unit::Exchange).chain(head) {
            if !resumed.unit(scale, unit, chosen)? {
                return Ok(false);
            }
        }
    }
    for (unit, tokens) in resumed.new {
        chosen.keep(unit, Section::Conversation, IncludedReason::Recent, tokens);
    }
    chosen.dead.extend(resumed.dead);
    chosen.awaited = resumed.awaited;
    let (room, held_by) = (resumed.left, HeldBy::Steady);
    chosen.behind = Some(ExcludedReason::Budget { room, held_by });
    Ok(true)
}

/// Whether a turn's user message has expired, and so takes its unpinned exchanges with it (rule T1).
fn head_is_dead(scale: &Scale<'_>, turn: u32, chosen: &Selection) -> Result<bool, Error> {
    match scale.head(turn).filter(|head| !chosen.has(*head)) {
        Some(head) => Ok(scale.dead(head)?.is_some()),
        None => Ok(false),
    }
}

/// The units of a turn that can never come in as they are.
fn dead_of(scale: &Scale<'_>, turn: u32, chosen: &Selection) -> Result<Vec<(Unit, ExcludedReason)>, Error> {
    let mut dead = Vec::new();
    for unit in scale.head(turn).into_iter().chain(scale.exchanges(turn).map(Unit::Exchange)) {
        if !chosen.has(unit)
            && let Some(reason) = scale.dead(unit)?
        {
            dead.push((unit, reason));
        }
    }
    Ok(dead)
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
    if head_is_dead(scale, turn, chosen)? {
        return Ok(false);
    }
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

/// What joins when a window starts where it stood before.
struct Resumed {
    new: Vec<(Unit, u64)>,
    dead: Vec<(Unit, ExcludedReason)>,
    awaited: Vec<Unit>,
    await_pins: bool,
    left: u64,
}

impl Resumed {
    /// Takes one unit, unless it is in already or can never be; says whether there was room for it.
    fn unit(&mut self, scale: &Scale<'_>, unit: Unit, chosen: &Selection) -> Result<bool, Error> {
        if chosen.has(unit) {
            return Ok(true);
        }
        if let Some(reason) = scale.dead(unit)? {
            self.dead.push((unit, reason));
            return Ok(true);
        }
        if self.await_pins && chosen.fallen.contains_key(&unit) {
            self.awaited.push(unit);
            return Ok(true);
        }
        match scale.weigh(unit, self.left)? {
            Weight::Exactly(tokens) => {
                self.left -= tokens;
                self.new.push((unit, tokens));
                Ok(true)
            }
            Weight::Over => Ok(false),
        }
    }
}

/// Where the window starts: the oldest unit that the conversation pays for and behind which nothing that lives is
/// missing; a whole turn by its user message.
pub(super) fn start(scale: &Scale<'_>, chosen: &Selection) -> Result<Option<Unit>, Error> {
    let of_the_window =
        |unit: Unit| chosen.kept.get(&unit).is_some_and(|kept| kept.section == Section::Conversation);
    let mut start = None;
    for turn in (0..scale.turns()).rev() {
        let head = scale.head(turn);
        if let Some(head) = head.filter(|head| !chosen.has(*head)) {
            if scale.dead(head)?.is_some() {
                continue;
            }
            break;
        }
        let (mut whole, mut oldest) = (true, None);
        for unit in scale.exchanges(turn).rev().map(Unit::Exchange) {
            if of_the_window(unit) {
                oldest = Some(unit);
            } else if !chosen.has(unit) && scale.dead(unit)?.is_none() {
                whole = false;
                break;
            }
        }
        // A turn that is in by its pins alone is not kept by recency.
        let recent = oldest.is_some() || head.is_some_and(of_the_window);
        let begins = if whole { head.or(oldest).filter(|_| recent) } else { oldest };
        start = begins.or(start);
        if !whole {
            break;
        }
    }
    Ok(start)
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
    /// The conversation has no user message: its one turn is trimmed all the same.
    only_headless: bool,
    floor: Option<Unit>,
    chosen: &'a mut Selection,
}

impl Walk<'_, '_> {
    fn turn(&mut self, turn: u32) -> Result<Step, Error> {
        if self.floor.is_some_and(|floor| turn < self.scale.turn_of(floor)) {
            return Ok(Step::Stop);
        }
        let head = self.scale.head(turn);
        let mut left = self.left;
        let mut new_head = None;
        if head_is_dead(self.scale, turn, self.chosen)? {
            self.chosen.dead.extend(dead_of(self.scale, turn, self.chosen)?);
            return Ok(Step::Whole);
        }
        if let Some(head) = head.filter(|head| !self.chosen.has(*head)) {
            match self.scale.weigh(head, left)? {
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
            for (unit, tokens) in new_head.into_iter().chain(suffix.new) {
                self.chosen.keep(unit, Section::Conversation, IncludedReason::Recent, tokens);
            }
        }
        // Of a turn that is left out altogether nothing counts as looked at.
        let of_the_window = |unit: Unit| {
            self.chosen.kept.get(&unit).is_some_and(|kept| kept.section == Section::Conversation)
        };
        let oldest = suffix.oldest.map(Unit::Exchange);
        if suffix.whole || oldest.is_some_and(of_the_window) || head.is_some_and(of_the_window) {
            self.chosen.dead.extend(suffix.dead);
        }
        Ok(if suffix.whole { Step::Whole } else { Step::Stop })
    }

    /// The longest suffix of a turn's exchanges that fits into `left`.
    fn suffix(&self, turn: u32, left: u64) -> Result<Suffix, Error> {
        let mut suffix = Suffix { new: Vec::new(), dead: Vec::new(), oldest: None, whole: true, left };
        for at in self.scale.exchanges(turn).rev() {
            let unit = Unit::Exchange(at);
            if let Some(kept) = self.chosen.kept.get(&unit) {
                if kept.section == Section::Conversation {
                    suffix.oldest = Some(at);
                }
            } else if matches!(self.floor, Some(Unit::Exchange(floor)) if at < floor) {
                suffix.whole = false;
                break;
            } else if let Some(reason) = self.scale.dead(unit)? {
                suffix.dead.push((unit, reason));
            } else if let Weight::Exactly(tokens) = self.scale.weigh(unit, suffix.left)? {
                suffix.left -= tokens;
                suffix.oldest = Some(at);
                suffix.new.push((unit, tokens));
            } else {
                suffix.whole = false;
                break;
            }
        }
        Ok(suffix)
    }
}

struct Suffix {
    /// What was not in before and fits, newest first.
    new: Vec<(Unit, u64)>,
    /// What can never come in as it is.
    dead: Vec<(Unit, ExcludedReason)>,
    /// The oldest exchange of the suffix that the conversation pays for, if it is kept.
    oldest: Option<u32>,
    /// Whether the suffix is all that lives of the turn.
    whole: bool,
    left: u64,
}
