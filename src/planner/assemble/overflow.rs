//! A minimum that does not fit: by how much, and what would help (rule S6).

use super::{LaidOut, remedies};
use crate::{
    error::Error,
    item::{ItemId, Source},
    plan::{Overflow, PlannedItem},
    planner::candidates::{CandidateId, Candidates},
    provider::meter::Meter,
};
use std::{cmp::Reverse, collections::BTreeSet};

impl LaidOut<'_> {
    /// Returns the overflow of a prompt that is over its budget, with the changes that would help (rule S6).
    /// Returns `None` if the prompt fits.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub(super) fn overflow(&self) -> Result<Option<Overflow>, Error> {
        let Self { context, candidates, costs, meter, .. } = *self;
        let (rows, total, counted) = (self.rows(), self.total, self.counted);
        let tokens = self.excess();
        if tokens == 0 {
            return Ok(None);
        }
        // Items are counted here, the budget is in the provider's tokens (rule N6); without a token
        // calibration the two are one.
        let (needed, room) = match context.calibration {
            Some(calibration) => {
                (counted, u64::try_from(calibration.within(context.prompt_budget)).unwrap_or(0))
            }
            None => (total.tokens, context.prompt_budget),
        };
        let excess = needed.saturating_sub(room).max(1);
        // With so much less, clips would do the rest (rule S7).
        let clips = costs.clips_could_save()?.min(excess - 1);
        let excess = excess - clips;
        let to = match context.calibration {
            Some(calibration) => {
                u64::try_from(calibration.to_provider_tokens(i128::from(needed - clips))).unwrap_or(u64::MAX)
            }
            None => needed - clips,
        };
        let mut pins = Vec::new();
        // A user message that an undroppable exchange brings stays, whatever becomes of its own pin.
        let brought: BTreeSet<CandidateId> =
            candidates.index().pins.iter().filter_map(|pin| pin.brings).collect();
        for pin in candidates.index().pins.iter().filter(|pin| pin.undroppable && !brought.contains(&pin.id))
        {
            if let Some(id) = candidates.held_by_one_pin(pin.id) {
                pins.push((id, costs.whole(pin.id)?));
            }
        }
        let mut longest: Vec<&PlannedItem> =
            rows.iter().filter(|row| row.token_estimate.tokens > excess).collect();
        longest.retain(|row| clips == 0 || row.source != Source::Tool);
        longest.sort_by_key(|row| Reverse(row.token_estimate.tokens));
        let mut shortened = None;
        for row in longest {
            if own_tokens(row, candidates, meter)? > excess {
                shortened = Some(row.id.clone());
                break;
            }
        }
        let minimum = rows.iter().map(|row| row.id.clone()).collect();
        let conflict = conflict(rows, excess);
        Ok(Some(Overflow {
            tokens,
            minimum,
            conflict,
            remedies: remedies::find(context, (to, excess), pins, shortened),
        }))
    }
}

/// The fewest items that together are too much beside what is sent in any case: the largest, as many as it
/// takes. Without any one of them the others fit. None where even nothing would be too much.
fn conflict(rows: &[PlannedItem], excess: u64) -> Vec<ItemId> {
    let mut largest: Vec<usize> = (0..rows.len()).collect();
    largest.sort_by_key(|at| Reverse(rows[*at].token_estimate.tokens));
    // All of them are `excess` too much; the smallest may be missing while what is missing is less than that.
    let mut missing = 0u64;
    while let Some(smallest) = largest.last().map(|at| rows[*at].token_estimate.tokens) {
        missing = missing.saturating_add(smallest);
        if missing >= excess {
            break;
        }
        largest.pop();
    }
    largest.sort_unstable();
    largest.into_iter().map(|at| rows[at].id.clone()).collect()
}

/// Tokens of the text that the caller gave for an item: what could be shorter. Our own words around it, calls
/// and placeholder results are not part of it.
fn own_tokens(row: &PlannedItem, candidates: &Candidates<'_>, meter: &Meter) -> Result<u64, Error> {
    let request = candidates.request();
    let state = request.state.iter().find(|(id, _)| *id == row.id);
    let own = match (row.source, state) {
        (Source::Synthetic, _) => "",
        (Source::State, Some((_, text))) => text,
        (Source::System, _) if candidates.focus().is_some_and(|(id, _)| id == row.id) => {
            request.focus.as_deref().unwrap_or_default()
        }
        _ => {
            let position = candidates.log().position_of(&row.id);
            let fenced = position.filter(|position| candidates.is_call_of_a_user(*position));
            fenced.map_or(row.body.text(), |position| candidates.log().message(position).text())
        }
    };
    Ok(meter.counter().count(own)?.tokens)
}
