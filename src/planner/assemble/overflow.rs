//! The overflow of a minimum that does not fit.
//!
//! - Input: a laid-out prompt that exceeds its budget.
//! - Output: the excess, the items that cause it, and remedies.
//! - Rules: S6, S7, E3, N6.

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
    /// Returns the overflow of a prompt that exceeds its budget, with the changes that would make it fit
    /// (rule S6). Returns `None` if the prompt fits.
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
        // Items are counted here, the budget is in the provider's tokens (N6). Without a calibration both are
        // the same.
        let (needed, room) = match context.calibration {
            Some(calibration) => {
                (counted, u64::try_from(calibration.max_local_tokens(context.prompt_budget)).unwrap_or(0))
            }
            None => (total.tokens, context.prompt_budget),
        };
        // At least 1: converting with the calibration may round the difference to 0.
        let excess = needed.saturating_sub(room).max(1);
        // Clips save these tokens by themselves once a remedy saves the rest (S7).
        let clips = costs.clips_could_save()?.min(excess - 1);
        let excess = excess - clips;
        let to = match context.calibration {
            Some(calibration) => {
                u64::try_from(calibration.to_provider_tokens(i128::from(needed - clips))).unwrap_or(u64::MAX)
            }
            None => needed - clips,
        };
        let mut pins = Vec::new();
        // Unpinning a user message that an undroppable exchange brings would not remove it.
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
        // Most of an offloaded result is not sent, and its line with the id is no text of the caller.
        let is_offloaded = |row: &PlannedItem| {
            candidates.log().position_of(&row.id).is_some_and(|at| candidates.offloaded(at).is_some())
        };
        longest.retain(|row| !is_offloaded(row));
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

/// Returns the smallest set of items that exceeds the budget together with the overhead: the largest items,
/// as many as needed. Without any one of them, the others fit. Returns an empty list if the overhead alone
/// exceeds the budget.
fn conflict(rows: &[PlannedItem], excess: u64) -> Vec<ItemId> {
    let mut largest: Vec<usize> = (0..rows.len()).collect();
    largest.sort_by_key(|at| Reverse(rows[*at].token_estimate.tokens));
    // All items together exceed the budget by `excess`. The smallest may be removed while their sum is below
    // that.
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

/// Counts the text that the caller gave for an item, in tokens: the part that could be shorter. Added
/// wording, calls and placeholder results are not counted.
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
            let user_call = position.filter(|position| candidates.is_user_call(*position));
            user_call.map_or(row.body.text(), |position| candidates.log().message(position).text())
        }
    };
    Ok(meter.counter().count(own)?.tokens)
}
