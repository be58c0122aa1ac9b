//! A selection laid out as a prompt, with all its tokens counted.
//!
//! - Input: none; the modules after this one write the prompt.
//! - Output: [`LaidOut`], which a round of planning checks, and its [`Draft`].
//! - Rules: none of its own.

use super::PlanContext;
use crate::{
    item::ItemId,
    message::{Mark, Prompt},
    plan::{
        ExcludedItem, LastPrompt, LedgerLine, Notice, NoticeCode, Overhead, PlannedItem, anchor::SentAgain,
    },
    planner::{
        budget::Budgets,
        candidates::{CandidateId, Candidates, Costs, Rank},
        select::Selection,
    },
    provider::meter::Meter,
    tokens::{Certainty, TokenCount},
};
use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

/// A selection as a prompt: in prompt order, in the provider's form, counted. Not a plan yet.
pub(crate) struct LaidOut<'r> {
    pub(super) context: &'r PlanContext<'r>,
    pub(super) candidates: &'r Candidates<'r>,
    pub(super) costs: &'r Costs<'r>,
    pub(super) meter: &'r Meter,
    pub(super) budgets: &'r Budgets,
    pub(super) chosen: &'r Selection,
    pub(super) draft: Draft,
    /// The tokens that are not part of a row, line by line.
    pub(super) overhead: Vec<LedgerLine>,
    /// Tokens of the whole prompt, as the provider is expected to count them.
    pub(super) total: TokenCount,
    /// Tokens of the whole prompt as counted here, without calibration.
    pub(super) counted: u64,
    pub(super) before: Option<LastPrompt>,
    /// The excluded rows, computed on first use. A round that is followed by another one rarely needs them.
    pub(super) excluded: OnceCell<Vec<ExcludedItem>>,
}

impl LaidOut<'_> {
    /// Returns the tokens of the whole prompt.
    pub(crate) fn tokens(&self) -> u64 {
        self.total.tokens
    }

    /// Returns the tokens by which the prompt exceeds its budget.
    pub(crate) fn excess(&self) -> u64 {
        self.tokens().saturating_sub(self.context.prompt_budget)
    }

    /// Returns the included rows.
    pub(crate) fn rows(&self) -> &[PlannedItem] {
        &self.draft.rows
    }

    /// Returns the tokens of the placeholder messages that the provider requires (rule H5).
    pub(crate) fn required_by_provider(&self) -> u64 {
        let required = self.draft.rows.iter().filter(|row| row.kind.is_required_by_provider());
        required.map(|row| row.token_estimate.tokens).sum()
    }

    /// Returns the retained texts that the request repeats and that have no row, and the rules whose messages
    /// have none.
    pub(crate) fn missing(&self) -> SentAgain {
        let rows = &self.draft.rows;
        let left_before = self.costs.rendering().left_before().unwrap_or_default();
        let mut missing = self.candidates.retained().missing(rows);
        // Texts that left for lack of tokens leave again, with the notice about them.
        missing.left_places.retain(|place| *place >= left_before);
        SentAgain { rules: self.candidates.missing_rules(rows), left_before, ..missing }
    }
}

/// The included half of a plan.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) rows: Vec<PlannedItem>,
    pub(super) prompt: Prompt,
    /// Overhead of the wrapper around documents, of merges and of joins.
    pub(super) overhead: Vec<LedgerLine>,
    pub(super) notices: Vec<Notice>,
    /// Items of the conversation that the notices ask the user about.
    pub(super) items_to_confirm: BTreeSet<ItemId>,
    /// Documents that the notices ask the user about.
    pub(super) documents_to_confirm: BTreeSet<ItemId>,
    /// Original document ids by row id, for rows whose id belongs to another document.
    pub(super) renamed: BTreeMap<ItemId, ItemId>,
    /// The ranks of the new documents, from 0, in prompt order.
    pub(super) document_ranks: Vec<u32>,
    /// The documents of this prompt, in prompt order.
    pub(super) documents: Vec<Rank>,
    /// Results that are sent as stubs.
    pub(super) cleared: Vec<ItemId>,
    /// Results that are sent without their middle.
    pub(super) clipped: Vec<ItemId>,
    /// The results that are offloaded.
    pub(super) offloaded: Vec<ItemId>,
    /// The large results that are whole, because no declared tool reads offloaded ones.
    pub(super) not_offloaded: Vec<ItemId>,
    /// Bytes of all rows except documents and state (see `meter::bytes`).
    pub(super) bytes: u64,
    /// Ids of placeholders that repairs added.
    pub(super) placeholder_ids: Vec<ItemId>,
    /// The index of the first row of each message.
    pub(super) first_rows: Vec<usize>,
    /// The index of the finished message of each row.
    pub(super) row_messages: Vec<usize>,
    /// The changes that the target needed, by message.
    pub(super) changed: Vec<(NoticeCode, ItemId)>,
    /// Ends of the parts that the next prompt repeats: the lasting preamble, the earlier turns, the live turn
    /// without state. Each is a place among the messages before the target's form is applied.
    pub(super) stable: Vec<Mark>,
    /// The last candidate of the conversation that was written.
    pub(super) last: Option<CandidateId>,
}

impl Draft {
    /// Creates a draft without rows, with a capacity for the rows of a selection.
    pub(super) fn new(candidates: &Candidates<'_>, chosen: &Selection) -> Self {
        // A capacity for calls with one result each; the lists grow if there are more results.
        let expected_rows = 2 * chosen.included.len();
        Self {
            rows: Vec::with_capacity(expected_rows),
            prompt: Prompt {
                messages: Vec::with_capacity(expected_rows),
                tools: candidates.retained().head_tools().to_vec(),
                ..Prompt::default()
            },
            first_rows: Vec::with_capacity(expected_rows),
            ..Self::default()
        }
    }

    /// Adds tokens to a line of the overhead.
    pub(super) fn line(&mut self, meter: &Meter, what: Overhead, tokens: i128) {
        let certainty = match meter.certainty() {
            Certainty::Exact => Certainty::Exact,
            _ => Certainty::Estimate,
        };
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        match self.overhead.iter_mut().find(|line| line.what == what) {
            Some(line) => line.tokens = line.tokens.saturating_add(tokens),
            None => self.overhead.push(LedgerLine { what, tokens, certainty }),
        }
    }
}
