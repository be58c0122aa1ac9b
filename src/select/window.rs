//! The kept window: newest turns first, whole while they fit, the first that does not trimmed (rule S4).

use super::{Selection, purse::Room};
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
/// last one stopped.
pub(super) fn take(scale: &Scale<'_>, room: Room, chosen: &mut Selection) -> Result<(), Error> {
    let mut walk =
        Walk { scale, left: room_for(scale, room, chosen)?, only_headless: scale.turns() == 1, chosen };
    for turn in (0..scale.turns()).rev() {
        if let Step::Stop = walk.turn(turn)? {
            let held_by = if room.capped { HeldBy::Cap } else { HeldBy::Window };
            let room = walk.left;
            walk.chosen.behind = Some(ExcludedReason::Budget { room, held_by });
            return Ok(());
        }
    }
    walk.chosen.behind = None;
    Ok(())
}

/// Where the window starts when only what is required is in: the oldest kept unit behind which nothing is missing.
pub(super) fn start_of_the_required(scale: &Scale<'_>, chosen: &Selection) -> Result<Option<Unit>, Error> {
    let Some(live) = scale.turns().checked_sub(1) else {
        return Ok(None);
    };
    let mut oldest = None;
    for unit in scale.exchanges(live).rev().map(Unit::Exchange) {
        if chosen.has(unit) {
            oldest = Some(unit);
        } else if scale.dead(unit)?.is_none() {
            return Ok(oldest);
        }
    }
    Ok(scale.head(live).or(oldest))
}

/// State is merged into the live question only while nothing follows it: where an exchange of the live turn could
/// still come in, the walk may not spend what the merge saves.
fn room_for(scale: &Scale<'_>, room: Room, chosen: &Selection) -> Result<u64, Error> {
    let Some(live) = scale.turns().checked_sub(1) else {
        return Ok(room.tokens);
    };
    for at in scale.exchanges(live) {
        let unit = Unit::Exchange(at);
        if !chosen.has(unit) && scale.dead(unit)?.is_none() {
            return Ok(room.following);
        }
    }
    Ok(room.tokens)
}

struct Walk<'a, 'b> {
    scale: &'a Scale<'b>,
    left: u64,
    /// The conversation has no user message: its one turn is trimmed all the same.
    only_headless: bool,
    chosen: &'a mut Selection,
}

impl Walk<'_, '_> {
    fn turn(&mut self, turn: u32) -> Result<Step, Error> {
        let head = self.scale.head(turn);
        let mut left = self.left;
        let mut new_head = None;
        if let Some(head) = head.filter(|head| !self.chosen.has(*head)) {
            if let Some(reason) = self.scale.dead(head)? {
                self.bury(turn, head, reason)?;
                return Ok(Step::Whole);
            }
            match self.scale.weigh(head, left)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    new_head = Some((head, tokens));
                }
                Weight::Over => return Ok(Step::Stop),
            }
        }
        let suffix = self.suffix(turn, left)?;
        let oldest = suffix.oldest.map(Unit::Exchange);
        let trimmable = head.is_some() || self.only_headless;
        if !suffix.whole && (!trimmable || suffix.new.is_empty()) {
            if suffix.new.is_empty() {
                self.chosen.start = oldest.or(self.chosen.start);
            }
            return Ok(Step::Stop);
        }
        self.left = suffix.left;
        let new = new_head.into_iter().chain(suffix.new);
        for (unit, tokens) in new {
            let reason = IncludedReason::Recent;
            self.chosen.keep(unit, Section::Conversation, reason, tokens);
        }
        if suffix.whole {
            self.chosen.start = head.or(oldest).or(self.chosen.start);
            Ok(Step::Whole)
        } else {
            self.chosen.start = oldest.or(self.chosen.start);
            Ok(Step::Stop)
        }
    }

    /// The longest suffix of a turn's exchanges that fits into `left`.
    fn suffix(&mut self, turn: u32, mut left: u64) -> Result<Suffix, Error> {
        let mut new = Vec::new();
        let mut oldest = None;
        let mut whole = true;
        for at in self.scale.exchanges(turn).rev() {
            let unit = Unit::Exchange(at);
            if let Some(kept) = self.chosen.kept.get(&unit) {
                if kept.section == Section::Conversation {
                    oldest = Some(at);
                }
                continue;
            }
            if let Some(reason) = self.scale.dead(unit)? {
                self.chosen.dead.insert(unit, reason);
                continue;
            }
            match self.scale.weigh(unit, left)? {
                Weight::Exactly(tokens) => {
                    left -= tokens;
                    oldest = Some(at);
                    new.push((unit, tokens));
                }
                Weight::Over => {
                    whole = false;
                    break;
                }
            }
        }
        Ok(Suffix { new, oldest, whole, left })
    }

    /// An expired user message takes its unpinned exchanges with it (rule T1).
    fn bury(&mut self, turn: u32, head: Unit, reason: ExcludedReason) -> Result<(), Error> {
        self.chosen.dead.insert(head, reason);
        for unit in self.scale.exchanges(turn).map(Unit::Exchange) {
            if !self.chosen.has(unit)
                && let Some(reason) = self.scale.dead(unit)?
            {
                self.chosen.dead.insert(unit, reason);
            }
        }
        Ok(())
    }
}

struct Suffix {
    /// What was not in before, newest first.
    new: Vec<(Unit, u64)>,
    /// The oldest exchange of the suffix that the conversation pays for.
    oldest: Option<u32>,
    /// Whether the suffix is all that lives of the turn.
    whole: bool,
    left: u64,
}
