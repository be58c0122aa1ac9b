//! The tokens of a prompt, line by line.
//!
//! - Input: a draft in the provider's form.
//! - Output: the lines of the overhead, and the total.
//! - Rules: B3, N3, N6.

use super::{PlanContext, laid_out::Draft};
use crate::{
    error::Error,
    plan::{LedgerLine, Overhead, PlannedItem},
    provider::meter::Meter,
    tokens::{Certainty, TokenCount},
};

/// Counts a draft in the provider's form.
///
/// Returns the tokens that are not part of a row, and the total twice: as the provider is expected to count
/// it, and as counted here, without calibration.
///
/// # Errors
///
/// `ErrorKind::Count` if the counter fails on the whole prompt.
pub(super) fn count(
    context: &PlanContext<'_>,
    meter: &Meter,
    draft: &Draft,
) -> Result<(Vec<LedgerLine>, TokenCount, u64), Error> {
    let mut overhead = context.overhead.clone();
    overhead.extend(draft.overhead.iter().copied());
    let whole = whole(meter, draft)?;
    overhead.extend(whole.map(|whole| joins(whole, draft, &overhead)));
    let counted = sum(&draft.rows, &overhead);
    // The calibration comes last, because it scales the sum of all other lines.
    overhead.extend(calibration(context, counted));
    overhead.retain(|line| line.tokens != 0);
    let mut total = total(&draft.rows, &overhead);
    if let Some(whole) = whole {
        total.certainty = whole.certainty;
    }
    Ok((overhead, total, u64::try_from(counted.max(0)).unwrap_or(u64::MAX)))
}

/// Counts the prompt as a whole, if prompts for this target are rendered by a chat template (rule N3).
#[cfg(feature = "chat-template")]
fn whole(meter: &Meter, draft: &Draft) -> Result<Option<TokenCount>, Error> {
    meter.whole(&draft.prompt)
}

#[cfg(not(feature = "chat-template"))]
#[expect(clippy::unnecessary_wraps, reason = "with chat templates it can fail")]
fn whole(_: &Meter, _: &Draft) -> Result<Option<TokenCount>, Error> {
    Ok(None)
}

/// Returns the difference between the whole prompt and the sum of its messages. The whole is counted exactly,
/// the messages are estimates.
fn joins(whole: TokenCount, draft: &Draft, overhead: &[LedgerLine]) -> LedgerLine {
    let tokens = i64::try_from(i128::from(whole.tokens) - sum(&draft.rows, overhead)).unwrap_or(i64::MAX);
    LedgerLine { what: Overhead::Joins, tokens, certainty: Certainty::Estimate }
}

/// Returns the tokens that the provider is expected to count in addition to those counted here (rule N6).
fn calibration(context: &PlanContext<'_>, counted: i128) -> Option<LedgerLine> {
    let tokens =
        i64::try_from(context.calibration?.to_provider_tokens(counted) - counted).unwrap_or(i64::MAX);
    Some(LedgerLine { what: Overhead::TokenCalibration, tokens, certainty: Certainty::Estimate })
}

/// Returns the sum of all rows and lines in tokens. It may be negative, because lines may be.
fn sum(rows: &[PlannedItem], overhead: &[LedgerLine]) -> i128 {
    let items = rows.iter().map(|row| i128::from(row.token_estimate.tokens));
    items.chain(overhead.iter().map(|line| i128::from(line.tokens))).sum()
}

/// Returns the sum of all rows and lines, with the lowest certainty among them.
fn total(rows: &[PlannedItem], overhead: &[LedgerLine]) -> TokenCount {
    let certainties = rows.iter().map(|row| row.token_estimate.certainty);
    let certainty = certainties.chain(overhead.iter().map(|line| line.certainty));
    TokenCount {
        tokens: u64::try_from(sum(rows, overhead).max(0)).unwrap_or(u64::MAX),
        certainty: certainty.max().unwrap_or(Certainty::Exact),
    }
}
