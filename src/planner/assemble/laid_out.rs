//! A selection laid out as a prompt, with all its tokens counted.
//!
//! - Input: a selection, its costs and its budgets.
//! - Output: [`LaidOut`], which a round of planning checks; then the plan.
//! - Rules: O1 to O6, H4 to H9, B3, N3.

use super::{
    PlanContext, conform, excluded,
    included::{self, Draft},
    ledger,
};
use crate::{
    error::Error,
    item::{ItemId, Section},
    message::{Part, Prompt},
    plan::{
        Carryover, ContextPlan, DropReason, ExcludedItem, LastPrompt, LedgerLine, PlannedItem,
        PromptSettings, SectionUse, SentPrompt, TOOLS, TraceIds, anchor::SentAgain,
    },
    planner::{
        budget::Budgets,
        candidates::{CandidateId, Candidates, Costs},
        replan::Replan,
        select::{Selection, Window},
    },
    provider::{meter::Meter, model::MismatchSwitch},
    tokens::TokenCount,
};
use std::{cell::OnceCell, collections::BTreeMap, sync::Arc};

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
    before: Option<LastPrompt>,
    /// The excluded rows, computed on first use. A round that is followed by another one rarely needs them.
    excluded: OnceCell<Vec<ExcludedItem>>,
}

impl<'r> LaidOut<'r> {
    /// Lays out a selection as rows and messages in prompt order (rules O1, O2). Converts them to the form
    /// that the provider accepts (rules H4 to H9), and counts every token (rules B3, N3).
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` if the id of a placeholder is already in use (rule O5), `ErrorKind::Count` if the
    /// counter fails.
    pub(crate) fn new(
        context: &'r PlanContext<'r>,
        candidates: &'r Candidates<'r>,
        costs: &'r Costs<'r>,
        meter: &'r Meter,
        (budgets, chosen): (&'r Budgets, &'r Selection),
    ) -> Result<Self, Error> {
        count_one();
        let mut draft = included::draft(candidates, costs, meter, chosen, context.placement)?;
        conform::conform(&mut draft, candidates, meter, context)?;
        let (overhead, total, counted) = ledger::count(context, meter, &draft)?;
        let before = before(candidates, &draft);
        let excluded = OnceCell::new();
        Ok(Self {
            context,
            candidates,
            costs,
            meter,
            budgets,
            chosen,
            draft,
            overhead,
            total,
            counted,
            before,
            excluded,
        })
    }

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

    /// Returns the retained texts that the request repeats and that have no row.
    pub(crate) fn missing(&self) -> SentAgain {
        self.candidates.retained().missing(&self.draft.rows)
    }

    /// Returns the prompt in a form that can be compared with other prompts.
    ///
    /// # Errors
    ///
    /// Same as [`LaidOut::into_plan`].
    pub(crate) fn sent_prompt(&self) -> Result<SentPrompt<'_>, Error> {
        Ok(SentPrompt {
            included: &self.draft.rows,
            excluded: self.excluded()?,
            tools: &self.draft.prompt.tools,
            overhead: &self.overhead,
            renamed: &self.draft.renamed,
            before: self.before.as_ref(),
        })
    }

    /// Returns the excluded rows.
    pub(super) fn excluded(&self) -> Result<&[ExcludedItem], Error> {
        if let Some(known) = self.excluded.get() {
            return Ok(known);
        }
        // Computed before `get_or_init`, which takes no function that can fail.
        let rows = excluded::rows(self.candidates, self.meter, self.chosen)?;
        Ok(self.excluded.get_or_init(|| rows))
    }

    /// Builds the plan. `replan` contains the withheld reasoning. `left` is lost reasoning that is sent
    /// anyway, for the provider to drop.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the request asks for exact counts of excluded items and the counter fails.
    pub(crate) fn into_plan(
        self,
        replan: &Replan,
        left: BTreeMap<u32, DropReason>,
        switch: Option<MismatchSwitch>,
        settings: PromptSettings,
    ) -> Result<ContextPlan, Error> {
        // All of these read the whole layout, which is taken apart below.
        let (overflow, usage) = (self.overflow()?, self.usage()?);
        let mut notices = self.notices(overflow.is_some())?;
        let Self { context, candidates, costs, meter, budgets, chosen, .. } = self;
        let (thoughts, about_reasoning) =
            replan.report_reasoning(&self.draft.rows, candidates.log(), left, switch);
        // Initialized by now: usage and notices have read the excluded rows.
        let excluded = self.excluded.into_inner().unwrap_or_default();
        let (draft, overhead, before) = (self.draft, self.overhead, self.before);
        let rendering = costs.rendering();
        notices.extend(draft.notices);
        notices.extend(about_reasoning);
        let (window_start, anchored) = window(candidates, chosen);
        let carryover = Carryover {
            row_messages: draft.row_messages,
            released_through: candidates.retained().released_through(rendering),
            sender: candidates.request().sender.clone(),
            documents_stay: candidates.retained().is_on(),
            documents_come_last: candidates.index().documents_come_last,
            new_state: candidates.retained().new_state().clone(),
            renamed: draft.renamed,
            live: candidates.live_id(),
            anchored,
            before,
            asked: draft.asked,
            asked_documents: draft.asked_documents,
            usage_options: context.usage,
            archives: candidates.log().archive_events(),
            settings,
            trace: TraceIds::default(),
            prompt: draft.prompt,
        };
        Ok(ContextPlan {
            model: context.model.name.clone(),
            provider: context.model.provider.clone(),
            wire_format: context.model.wire_format,
            tokenizer: meter.counter().name().into(),
            config: context.config.clone(),
            limits: context.limits,
            limits_source: context.limits_source,
            budget_source: context.budget_source,
            calibration: context.calibration,
            prompt_budget: context.prompt_budget,
            overhead,
            sections: sections(budgets, &draft.rows, &excluded),
            included: draft.rows,
            excluded,
            estimated_tokens_total: self.total,
            overflow,
            window_start,
            notices,
            usage,
            cleared_before: candidates.cleared_before(rendering),
            headers: headers(context, &carryover.prompt),
            thoughts,
            context_editing: context.editing.clone(),
            upkeep: candidates.retained().retention_cost(),
            carryover,
        })
    }
}

/// Returns the first message of the window, and the message at which the next prompt's window is to start.
///
/// The second is set even for a window without recent messages. Otherwise the next plan would undo the cut.
fn window(candidates: &Candidates<'_>, chosen: &Selection) -> (Option<ItemId>, Option<ItemId>) {
    let first_id = |candidate: CandidateId| {
        let first = candidates.members(candidate).first().copied();
        first.map(|position| candidates.log().message_id(position))
    };
    let start = chosen.window.start.and_then(first_id);
    let anchored = start.clone().or_else(|| match chosen.window.found {
        Window::Fresh => None,
        Window::Sticky => candidates.index().window_start.and_then(first_id),
        Window::Cut { .. } => candidates.live_id(),
    });
    (start, anchored)
}

/// Returns the budget and use of each section.
fn sections(budgets: &Budgets, rows: &[PlannedItem], excluded: &[ExcludedItem]) -> Vec<SectionUse> {
    let use_of = |section: Section| {
        let budget = budgets.sections[section as usize];
        let of = |row: &&PlannedItem| row.section == section;
        SectionUse {
            section,
            share: budget.share,
            cap: budget.cap,
            budget: budget.budget,
            used: rows.iter().filter(of).map(|row| row.token_estimate.tokens).sum(),
            included: rows.iter().filter(of).count() as u64,
            excluded: excluded.iter().filter(|row| row.section == section).map(|row| row.count).sum(),
        }
    };
    Section::ALL.map(use_of).to_vec()
}

/// Returns the headers that the request needs because of parts of the prompt: compactions by the provider,
/// and tools at the end.
fn headers(context: &PlanContext<'_>, prompt: &Prompt) -> Vec<(String, String)> {
    let has = |kind: &str| {
        let is = |part: &Part| part.opaque().is_some_and(|part| part["type"] == kind);
        prompt.messages.iter().any(|message| message.has_opaque_parts() && message.parts().iter().any(is))
    };
    let compacted = context.model.on_demand_compaction().filter(|_| has("compaction"));
    let compacted = compacted.and_then(|rule| rule.header);
    let tools = context.model.late_tools_header().filter(|_| has("tool_addition"));
    compacted.into_iter().chain(tools).collect()
}

/// Returns the prompt before this one, if it is remembered. Also determines if the two first differ at a
/// message, because a plan has no conversation to look that up.
fn before(candidates: &Candidates<'_>, draft: &Draft) -> Option<LastPrompt> {
    let anchor = candidates.last_prompt()?;
    // Tool definitions are the first item of a remembered prompt.
    let tools = Some(ItemId::from(TOOLS)).filter(|_| !draft.prompt.tools.is_empty());
    let mut now = tools.iter().chain(draft.rows.iter().map(|row| &row.id));
    let parted =
        anchor.prompt.iter().flat_map(|prompt| prompt.iter()).find(|was| now.next() != Some(&was.id));
    let parts_at_a_message = parted.is_some_and(|was| candidates.log().position_of(&was.id).is_some());
    // The conversation remembers rows only for its own anchor, not for one that the request brings.
    let own = candidates.request().previous.is_none();
    let rows = candidates.log().sent_rows().filter(|_| own).cloned();
    Some(LastPrompt { anchor: Arc::new(anchor.clone()), parts_at_a_message, rows })
}

/// Counts the prompts that are laid out, in tests only.
fn count_one() {
    #[cfg(test)]
    LAID_OUT.with(|laid_out| laid_out.set(laid_out.get() + 1));
}

#[cfg(test)]
thread_local! {
    /// The number of prompts that were laid out.
    pub(crate) static LAID_OUT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
