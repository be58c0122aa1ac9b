//! The tokens of a prompt, line by line (rules B3, N3, N6).

use super::{PlanContext, included::Draft};
use crate::{
    error::Error,
    plan::{LedgerLine, Overhead, PlannedItem},
    provider::meter::Meter,
    tokens::{Certainty, TokenCount},
};

/// Counts a draft that is in the provider's form. Returns the tokens beside those of its rows, all tokens as
/// the provider is expected to count them, and all tokens as they are counted here, without the calibration.
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
    overhead.extend(calibration(context, counted));
    overhead.retain(|line| line.tokens != 0);
    let mut total = total(&draft.rows, &overhead);
    if let Some(whole) = whole {
        total.certainty = whole.certainty;
    }
    Ok((overhead, total, u64::try_from(counted.max(0)).unwrap_or(u64::MAX)))
}

/// Counts the prompt as a whole, if it is counted as it is rendered (rule N3).
#[cfg(feature = "chat-template")]
fn whole(meter: &Meter, draft: &Draft) -> Result<Option<TokenCount>, Error> {
    meter.whole(&draft.prompt)
}

#[cfg(not(feature = "chat-template"))]
#[expect(clippy::unnecessary_wraps, reason = "with chat templates it can fail")]
fn whole(_: &Meter, _: &Draft) -> Result<Option<TokenCount>, Error> {
    Ok(None)
}

/// Returns the tokens by which the whole prompt differs from the sum of its messages: those are estimates,
/// the whole is counted exactly.
fn joins(whole: TokenCount, draft: &Draft, overhead: &[LedgerLine]) -> LedgerLine {
    let tokens = i64::try_from(i128::from(whole.tokens) - sum(&draft.rows, overhead)).unwrap_or(i64::MAX);
    LedgerLine { what: Overhead::Joins, tokens, certainty: Certainty::Estimate }
}

/// Returns the tokens that the provider is expected to count beside those counted here (rule N6).
fn calibration(context: &PlanContext<'_>, counted: i128) -> Option<LedgerLine> {
    let tokens =
        i64::try_from(context.calibration?.to_provider_tokens(counted) - counted).unwrap_or(i64::MAX);
    Some(LedgerLine { what: Overhead::TokenCalibration, tokens, certainty: Certainty::Estimate })
}

fn sum(rows: &[PlannedItem], overhead: &[LedgerLine]) -> i128 {
    let items = rows.iter().map(|row| i128::from(row.token_estimate.tokens));
    items.chain(overhead.iter().map(|line| i128::from(line.tokens))).sum()
}

fn total(rows: &[PlannedItem], overhead: &[LedgerLine]) -> TokenCount {
    let certainties = rows.iter().map(|row| row.token_estimate.certainty);
    let certainty = certainties.chain(overhead.iter().map(|line| line.certainty));
    TokenCount {
        tokens: u64::try_from(sum(rows, overhead).max(0)).unwrap_or(u64::MAX),
        certainty: certainty.max().unwrap_or(Certainty::Exact),
    }
}
