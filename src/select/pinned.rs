//! Pins in order; one that does not fit is passed over and smaller ones are still tried (rules S2, S3).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    candidates::{Basis, Pin, Pool, Scale, Shelf, Unit},
    error::Error,
    item::Section,
    reason::{ExcludedReason, HeldBy, IncludedReason},
    tokens::Weight,
};

pub(super) fn take(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    chosen: &mut Selection,
) -> Result<(), Error> {
    if let (Some(notes), None) = (scale.notes()?, pool.window_start) {
        take_from(notes, pool, scale, room, chosen);
        return Ok(());
    }
    chosen.fallen.clear();
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

/// The same decisions about notes, without a word on what is passed over.
fn take_from(notes: &Shelf, pool: &Pool<'_>, scale: &Scale<'_>, room: Room, chosen: &mut Selection) {
    let (mut left, basis) = (room.tokens(For::Anything), room.basis(For::Anything));
    let mut at = 0;
    while at < notes.len() {
        let (next, skipped) = notes.next(at, left);
        if skipped < u64::MAX {
            scale.trace(|trace| trace.over(basis, skipped - left));
        }
        let Some(next) = next else { return };
        let unit = pool.pins[next as usize].unit;
        if !chosen.has(unit) {
            let tokens = notes.size(next);
            left -= tokens;
            scale.trace(|trace| trace.fits(basis, left));
            chosen.keep(unit, Section::SystemPinned, IncludedReason::Pinned, tokens);
        }
        at = next + 1;
    }
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
