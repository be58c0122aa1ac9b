//! Pins in order; one that does not fit is passed over and smaller ones are still tried (rules S2, S3).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    config::RagFill,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, HeldBy, IncludedReason},
    planner::candidates::{Basis, List, Pin, Pool, Scale, Unit},
    tokens::Weight,
};

pub(super) fn take(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    chosen: &mut Selection,
) -> Result<(), Error> {
    chosen.fallen.clear();
    if pool.pins_are_notes() {
        return fill_up(pool, scale, room, chosen);
    }
    let mut spent = 0;
    // Once something follows the live question, what merging state into it would save is gone for the rest too.
    let mut followed = false;
    for pin in &pool.pins {
        if chosen.has(pin.unit) {
            continue;
        }
        let units = missing(pin, chosen);
        let follows = pool.live_turn().is_some_and(|live| scale.is_exchange_of(pin.unit, live));
        let what = if follows || followed { For::Following } else { For::Anything };
        let left = room.tokens(what).saturating_sub(spent);
        match cost(scale, &units, left, room.basis(what))? {
            Some(costs) => {
                followed |= follows;
                for (unit, tokens) in units.into_iter().zip(costs) {
                    spent += tokens;
                    let reason = IncludedReason::Pinned;
                    chosen.keep(unit, Section::SystemPinned, reason, tokens);
                }
            }
            None => {
                let held_by = room.held_by(what, HeldBy::Size);
                let reason = ExcludedReason::Budget { room: left, held_by };
                chosen.fallen.insert(pin.unit, reason);
            }
        }
    }
    Ok(())
}

/// Where all pins are notes: none brings anything along, and none follows the live question.
fn fill_up(pool: &Pool<'_>, scale: &Scale<'_>, room: Room, chosen: &mut Selection) -> Result<(), Error> {
    if chosen.notes.is_empty() {
        let undroppable = pool.pins.iter().zip(0..).filter(|(pin, _)| pin.undroppable);
        for (_, place) in undroppable {
            chosen.notes.insert(place);
        }
    }
    let filled =
        chosen.notes.fill(&scale.sizes(List::Notes)?, room.tokens(For::Anything), RagFill::Backfill)?;
    scale.trace(|trace| filled.note(trace, room.basis(For::Anything)));
    chosen.notes.extend(&filled);
    for place in filled.runs.into_iter().flatten() {
        let unit = pool.pins[place as usize].unit;
        chosen.keep(unit, Section::SystemPinned, IncludedReason::Pinned, scale.whole(unit)?);
    }
    if scale.is_traced() {
        return Ok(());
    }
    let held_by = room.held_by(For::Anything, HeldBy::Size);
    for (range, left) in filled.passed_over {
        for place in range.filter(|place| !chosen.notes.has(*place)) {
            let reason = ExcludedReason::Budget { room: left, held_by };
            chosen.fallen.insert(pool.pins[place as usize].unit, reason);
        }
    }
    Ok(())
}

/// The pin and the user message it brings, as far as they are not in.
fn missing(pin: &Pin, chosen: &Selection) -> Vec<Unit> {
    let units = [Some(pin.unit), pin.brings].into_iter().flatten();
    units.filter(|unit| !chosen.has(*unit)).collect()
}

/// What each costs, if all of them fit.
fn cost(scale: &Scale<'_>, units: &[Unit], room: u64, basis: Basis) -> Result<Option<Vec<u64>>, Error> {
    let mut left = room;
    let mut costs = Vec::with_capacity(units.len());
    for unit in units {
        match scale.offer(*unit, left, basis)? {
            Weight::Exactly(n) => {
                left -= n;
                costs.push(n);
            }
            Weight::Over => return Ok(None),
        }
    }
    Ok(Some(costs))
}
