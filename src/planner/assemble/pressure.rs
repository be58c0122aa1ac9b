//! The tokens of the whole conversation, estimated from those that a plan has counted.
//!
//! - Input: a laid-out prompt, and the provider's last usage report.
//! - Output: [`ContextUsage`].
//! - Rules: U2.

use super::LaidOut;
use crate::{
    conversation::Note,
    error::Error,
    item::{ItemKind, Section, Source},
    plan::{ExcludedItem, Overhead, PlannedItem, anchor::Target, reason::ExcludedReason},
    planner::candidates::Candidates,
    provider::meter,
    tokens::{Certainty, TokenCount},
    usage::ContextUsage,
};
use std::{collections::BTreeSet, ops::Range};

/// Bytes per token to assume if the plan has too little text to measure.
const BYTES_PER_TOKEN: u64 = 4;

/// Minimum number of bytes that a plan needs to measure bytes per token.
const MIN_MEASURED_BYTES: u64 = 200;

impl LaidOut<'_> {
    /// Returns the usage of the context window (rule U2). Items that are excluded for lack of budget are
    /// estimated from their bytes, without counting them.
    ///
    /// # Errors
    ///
    /// Same as [`LaidOut::into_plan`].
    pub(super) fn usage(&self) -> Result<ContextUsage, Error> {
        let Self { context, candidates, .. } = *self;
        let total = self.total;
        let volatile_tokens = if candidates.retained().retains_texts() { 0 } else { volatile_tokens(self) };
        let mut notes = candidates.notes().iter().map(|(_, note)| note);
        let dropped = self.excluded()?.iter().map(|row| bytes_left_out(row, candidates, &mut notes)).sum();
        let dropped_tokens = tokens_of_bytes(self, dropped);
        let fixed_tokens = fixed_tokens(self);
        let reported = reported(self, fixed_tokens);
        let estimate = total.tokens.saturating_sub(volatile_tokens).saturating_add(dropped_tokens);
        let certainty =
            if dropped_tokens > 0 || reported.is_some() { Certainty::Estimate } else { total.certainty };
        let conversation_tokens = TokenCount { tokens: reported.unwrap_or(estimate), certainty };
        let of_levels = context.limits_source.of_levels(context.limits);
        let usage = ContextUsage::new(conversation_tokens, reported.is_some(), &of_levels, context.usage);
        let compactions = candidates.log().compactions().count() as u64;
        Ok(ContextUsage {
            prompt_tokens: total.tokens,
            budget: context.prompt_budget,
            volatile_tokens,
            dropped_tokens,
            fixed_tokens,
            compactions,
            ..usage
        })
    }
}

/// Returns the tokens of documents and state, which are for this prompt only.
fn volatile_tokens(sent: &LaidOut<'_>) -> u64 {
    let items =
        sent.rows().iter().filter(|row| is_apart(row)).map(|row| row.token_estimate.tokens).sum::<u64>();
    let block = sent.overhead.iter().filter(|line| line.what == Overhead::RagBlock);
    items.saturating_add_signed(block.map(|line| line.tokens).sum())
}

/// Returns the tokens of the conversation according to the newest plausible usage report.
///
/// Starts from the reported tokens, subtracts the documents and state of that prompt, adds the items that its
/// plan left out, and adds everything since.
fn reported(sent: &LaidOut<'_>, fixed_tokens: u64) -> Option<u64> {
    let LaidOut { context, candidates, meter, .. } = *sent;
    let log = candidates.log();
    let target = Target::from_model(context.model);
    let most = context.limits_source.most_reported(context.limits);
    let report = log.last_report(&target, meter.counter().name(), most)?;
    let after = report.replied_at.saturating_add(1)..log.turns().messages();
    let (mut tokens, mut counted) = (0u64, BTreeSet::new());
    for row in sent.rows() {
        // New documents and state are part of the conversation only if they stay in it.
        if is_apart(row) {
            let is_new = candidates.retained().retains_texts() && is_new(row, candidates);
            tokens = tokens.saturating_add(if is_new { row.token_estimate.tokens } else { 0 });
            continue;
        }
        if let Some(position) = log.position_of(&row.id).filter(|position| after.contains(position)) {
            tokens = tokens.saturating_add(row.token_estimate.tokens);
            counted.insert(position);
        }
    }
    let rest = after
        .filter(|position| !counted.contains(position) && log.archive_index().archived(*position).is_none());
    let bytes = rest.map(|position| candidates.bytes_sent(&(position..position + 1))).sum();
    let tokens = tokens.saturating_add(tokens_of_bytes(sent, bytes));
    let tokens = context.calibration.map_or(tokens, |calibration| calibration.scaled(tokens));
    let before =
        report.context_size.saturating_sub(report.volatile_tokens).saturating_add(report.dropped_tokens);
    // Adds items that are fixed since then, and subtracts those that no longer are.
    let before = before.saturating_add(fixed_tokens).saturating_sub(report.fixed_tokens);
    Some(before.saturating_add(tokens))
}

/// Returns the tokens that are sent in addition to the active conversation, such as system texts, notes and
/// tools. They may change without a new message. Messages pinned at their places belong to the conversation.
fn fixed_tokens(sent: &LaidOut<'_>) -> u64 {
    let candidates = sent.candidates;
    let log = candidates.log();
    let leads =
        |position: u32| position < log.turns().leading() || log.archive_index().archived(position).is_some();
    let stands_apart = |row: &&PlannedItem| {
        row.section == Section::SystemPinned
            && row.source != Source::State
            && log.position_of(&row.id).is_none_or(leads)
    };
    let rows: u64 = sent.rows().iter().filter(stands_apart).map(|row| row.token_estimate.tokens).sum();
    let tools =
        sent.overhead.iter().filter(|line| line.what == Overhead::Tools).map(|line| line.tokens).sum();
    rows.saturating_add_signed(tools)
}

/// Checks if a document or a state entry is sent for the first time.
fn is_new(row: &PlannedItem, candidates: &Candidates<'_>) -> bool {
    row.section == Section::Rag || candidates.retained().new_state().contains_key(&row.id)
}

/// Checks if a row is a document or state, which do not count as conversation.
fn is_apart(row: &PlannedItem) -> bool {
    row.kind.is_document() || row.source == Source::State
}

/// Checks if a row is a note or a rule of the user.
fn is_note(row: &ExcludedItem) -> bool {
    matches!(row.kind, ItemKind::Note | ItemKind::Rule)
}

/// Returns the bytes of a row that is excluded for lack of budget, or 0. Rows of notes come in the order of
/// the notes, so each search continues after the last one.
fn bytes_left_out<'n>(
    row: &ExcludedItem,
    candidates: &Candidates<'_>,
    notes: &mut impl Iterator<Item = &'n Note>,
) -> u64 {
    let log = candidates.log();
    let fell = row.section == Section::SystemPinned
        && matches!(row.reason, ExcludedReason::TtlExpired { .. })
        && !is_note(row);
    if row.section == Section::Rag || !fell && !matches!(row.reason, ExcludedReason::Budget { .. }) {
        return 0;
    }
    if is_note(row) {
        return notes.find(|note| note.item.id == row.id).map_or(0, |note| meter::bytes(&note.message));
    }
    let (Some(first), last) = (log.position_of(&row.id), row.last_id.as_ref().unwrap_or(&row.id)) else {
        return 0;
    };
    let run: Range<u32> = first..log.position_of(last).unwrap_or(first) + 1;
    if fell {
        // A pin that left with its expired user message is not expired itself: it would be sent if it fitted.
        let never = &candidates.index().ineligible_pins;
        let lives = |at: &u32| candidates.candidate_of(*at).is_some_and(|pin| !never.contains_key(&pin));
        return run.filter(lives).map(|at| candidates.bytes_sent(&(at..at + 1))).sum();
    }
    candidates.bytes_sent(&run)
}

/// Converts bytes to tokens at the rate of the included rows.
fn tokens_of_bytes(sent: &LaidOut<'_>, bytes: u64) -> u64 {
    let measured = sent.draft.bytes;
    let of_rows =
        || sent.rows().iter().filter(|row| !is_apart(row)).map(|row| row.token_estimate.tokens).sum();
    let (tokens, of): (u64, u64) =
        if measured < MIN_MEASURED_BYTES { (1, BYTES_PER_TOKEN) } else { (of_rows(), measured) };
    // Rounded up: an estimate that is too low would delay compaction.
    let tokens = (u128::from(bytes) * u128::from(tokens)).div_ceil(u128::from(of));
    u64::try_from(tokens).unwrap_or(u64::MAX)
}
