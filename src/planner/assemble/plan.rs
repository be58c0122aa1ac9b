//! From a selection to a laid-out prompt, and from there to the plan.
//!
//! - Input: a selection, its costs and its budgets.
//! - Output: a [`LaidOut`], with all its tokens counted; then the plan.
//! - Rules: O1 to O6, H4 to H9, B3, N3.

use super::{
    PlanContext, conform, excluded,
    laid_out::{Draft, LaidOut},
    ledger,
};
use crate::{
    error::Error,
    item::{ItemId, Section},
    message::{Part, Prompt},
    plan::{
        Carryover, ContextPlan, DropReason, ExcludedItem, LastPrompt, PlannedItem, PromptSettings,
        SectionUse, SentPrompt, TOOLS, TraceIds,
    },
    planner::{
        budget::Budgets,
        candidates::{CandidateId, Candidates, Costs},
        replan::Replan,
        select::{Selection, Window},
    },
    provider::{meter::Meter, model::MismatchSwitch},
};
use std::{cell::OnceCell, collections::BTreeMap, sync::Arc};

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
        let mut prompt = Self {
            context,
            candidates,
            costs,
            meter,
            budgets,
            chosen,
            draft: Draft::new(candidates, chosen),
            overhead: Vec::new(),
            total: meter.counted(0),
            counted: 0,
            before: None,
            excluded: OnceCell::new(),
        };
        prompt.write()?;
        conform::conform(&mut prompt.draft, candidates, meter, context)?;
        (prompt.overhead, prompt.total, prompt.counted) = ledger::count(context, meter, &prompt.draft)?;
        prompt.before = before(candidates, &prompt.draft);
        Ok(prompt)
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
        let (window_start, anchored_at) = window(candidates, chosen);
        let carryover = Carryover {
            row_messages: draft.row_messages,
            result_forms: candidates.result_forms().to_vec(),
            rules: candidates.rules_to_remember(),
            labels: candidates.labels_with(&draft.documents),
            released_through: candidates.retained().released_through(rendering),
            sender: candidates.request().sender.clone(),
            documents_stay: candidates.retained().retains_texts(),
            documents_come_last: candidates.index().documents_come_last,
            new_state: candidates.retained().new_state().clone(),
            renamed: draft.renamed,
            document_ranks: draft.document_ranks,
            live: candidates.live_id(),
            anchored_at,
            before,
            items_to_confirm: draft.items_to_confirm,
            documents_to_confirm: draft.documents_to_confirm,
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
    let start = chosen.window_start.and_then(first_id);
    let anchored_at = start.clone().or_else(|| match chosen.window {
        Window::Fresh => None,
        Window::Sticky => candidates.index().window_start.and_then(first_id),
        Window::Cut { .. } => candidates.live_id(),
    });
    (start, anchored_at)
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
    let first_difference =
        anchor.prompt.iter().flat_map(|prompt| prompt.iter()).find(|was| now.next() != Some(&was.id));
    let changed_at_message =
        first_difference.is_some_and(|was| candidates.log().position_of(&was.id).is_some());
    // The conversation remembers rows only for its own anchor, not for one that the request brings.
    let own = candidates.request().previous.is_none();
    let rows = candidates.log().sent_rows().filter(|_| own).cloned();
    Some(LastPrompt { anchor: Arc::new(anchor.clone()), changed_at_message, rows })
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
