//! The kept window: newest turns first, whole while they fit, the first that does not trimmed (rule S4).

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
/// last one stopped.
pub(super) fn take(scale: &Scale<'_>, room: Room, chosen: &mut Selection) -> Result<(), Error> {
    chosen.start = None;
    chosen.behind = None;
    let what = room_for(scale, chosen)?;
    let mut walk = Walk { scale, left: room.tokens(what), only_headless: scale.turns() == 1, chosen };
    for turn in (0..scale.turns()).rev() {
        if let Step::Stop = walk.turn(turn)? {
            let held_by = room.held_by(what, HeldBy::Window);
            let room = walk.left;
            walk.chosen.behind = Some(ExcludedReason::Budget { room, held_by });
            break;
        }
    }
    Ok(())
}

/// Where the window starts when only what is required is in: the oldest kept unit behind which nothing is missing.
pub(super) fn start_of_the_required(scale: &Scale<'_>, chosen: &Selection) -> Result<Option<Unit>, Error> {
    let Some(live) = scale.turns().checked_sub(1) else { return Ok(None) };
    let mut oldest = None;
    for unit in scale.exchanges(live).rev().map(Unit::Exchange) {
        match chosen.kept.get(&unit) {
            Some(kept) if kept.section == Section::Conversation => oldest = Some(unit),
            None if scale.dead(unit)?.is_none() => return Ok(oldest),
            _ => {}
        }
    }
    Ok(scale.head(live).or(oldest))
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
        let trimmed = (head.is_some() || self.only_headless) && !suffix.new.is_empty();
        if suffix.whole || trimmed {
            self.left = suffix.left;
            for (unit, tokens) in new_head.into_iter().chain(suffix.new) {
                self.chosen.keep(unit, Section::Conversation, IncludedReason::Recent, tokens);
            }
        }
        let of_the_window = |unit: &Unit| {
            self.chosen.kept.get(unit).is_some_and(|kept| kept.section == Section::Conversation)
        };
        let oldest = suffix.oldest.map(Unit::Exchange).filter(of_the_window);
        let of_the_window = oldest.is_some() || head.as_ref().is_some_and(of_the_window);
        // Of a turn that is left out altogether nothing counts as looked at.
        if suffix.whole || of_the_window {
            self.chosen.dead.extend(suffix.dead);
        }
        // A turn that is in by its pins alone is not kept by recency.
        let start = if suffix.whole { head.or(oldest).filter(|_| of_the_window) } else { oldest };
        self.chosen.start = start.or(self.chosen.start);
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
