//! A minimum that does not fit: by how much, and what would help (rule S6).

use super::Frame;
use crate::{
    error::Error,
    item::{ItemId, Source},
    plan::{Overflow, PlannedItem},
    planner::{
        budget::remedies::{self, Room},
        candidates::{Pool, Scale, Unit},
    },
    provider::meter::Meter,
    tokens::TokenCount,
};
use std::{cmp::Reverse, collections::BTreeSet};

/// By how much the prompt is over the budget, and what could give way (rule S6).
pub(super) fn of(
    frame: &Frame<'_>,
    total: TokenCount,
    counted: u64,
    rows: &[PlannedItem],
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    meter: &Meter,
) -> Result<Option<Overflow>, Error> {
    let tokens = total.n.saturating_sub(frame.prompt_budget);
    if tokens == 0 {
        return Ok(None);
    }
    // Items are counted here, the budget is in the provider's tokens (rule N6); without a token calibration the two are one.
    let (needed, room) = match frame.calibration {
        Some(calibration) => (counted, u64::try_from(calibration.within(frame.prompt_budget)).unwrap_or(0)),
        None => (total.n, frame.prompt_budget),
    };
    let excess = needed.saturating_sub(room).max(1);
    // With so much less, clips would do the rest (rule S7).
    let clips = scale.clips_could_save()?.min(excess - 1);
    let excess = excess - clips;
    let to = match frame.calibration {
        Some(calibration) => u64::try_from(calibration.of(i128::from(needed - clips))).unwrap_or(u64::MAX),
        None => needed - clips,
    };
    let mut pins = Vec::new();
    // A user message that an undroppable exchange brings stays, whatever becomes of its own pin.
    let brought: BTreeSet<Unit> = pool.pins.iter().filter_map(|pin| pin.brings).collect();
    for pin in pool.pins.iter().filter(|pin| pin.undroppable && !brought.contains(&pin.unit)) {
        if let Some(id) = pool.held_by_one_pin(pin.unit) {
            pins.push((id, scale.whole(pin.unit)?));
        }
    }
    let mut longest: Vec<&PlannedItem> = rows.iter().filter(|row| row.tokens.n > excess).collect();
    longest.retain(|row| clips == 0 || row.source != Source::Tool);
    longest.sort_by_key(|row| Reverse(row.tokens.n));
    let mut shortened = None;
    for row in longest {
        if own_tokens(row, pool, meter)? > excess {
            shortened = Some(row.id.clone());
            break;
        }
    }
    let over = to.saturating_sub(frame.prompt_budget);
    let room = Room { total: to, over, excess, limits: frame.limits, source: frame.budget_source };
    let minimum = rows.iter().map(|row| row.id.clone()).collect();
    let conflict = conflict(rows, excess);
    Ok(Some(Overflow { tokens, minimum, conflict, remedies: remedies::find(&room, pins, shortened) }))
}

/// The fewest items that together are too much beside what is sent in any case: the largest, as many as it takes. Without
/// any one of them the others fit. None where even nothing would be too much.
fn conflict(rows: &[PlannedItem], excess: u64) -> Vec<ItemId> {
    let mut largest: Vec<usize> = (0..rows.len()).collect();
    largest.sort_by_key(|at| Reverse(rows[*at].tokens.n));
    // All of them are `excess` too much; the smallest may be missing while what is missing is less than that.
    let mut missing = 0u64;
    while let Some(smallest) = largest.last().map(|at| rows[*at].tokens.n) {
        missing = missing.saturating_add(smallest);
        if missing >= excess {
            break;
        }
        largest.pop();
    }
    largest.sort_unstable();
    largest.into_iter().map(|at| rows[at].id.clone()).collect()
}

/// Tokens of the text that the caller gave for an item: what could be shorter. Our own words around it, calls and
/// made-up results are not among it.
fn own_tokens(row: &PlannedItem, pool: &Pool<'_>, meter: &Meter) -> Result<u64, Error> {
    let request = pool.request();
    let state = request.state.iter().find(|(id, _)| *id == row.id);
    let own = match (row.source, state) {
        (Source::Synthetic, _) => "",
        (Source::State, Some((_, text))) => text,
        (Source::System, _) if pool.focus().is_some_and(|(id, _)| id == row.id) => {
            request.focus.as_deref().unwrap_or_default()
        }
        _ => {
            let position = pool.log().position_of(&row.id);
            let fenced = position.filter(|position| pool.as_text_of_the_user(*position).is_some());
            fenced.map_or(row.body.text(), |position| pool.log().message(position).text())
        }
    };
    Ok(meter.counter().count(own)?.n)
}
