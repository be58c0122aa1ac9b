//! What was chosen → plan: prompt order, rows, ledger (rules O1-O5, B3, S6).

use crate::{
    config::{Placement, UsageOptions},
    error::Error,
    item::{ItemId, Section},
    message::{Part, Prompt, WireFormat},
    plan::{
        BudgetSource, ContextEditing, ContextPlan, ExcludedItem, LastPrompt, LedgerLine, Notice, NoticeCode,
        Overhead, PlannedItem, PromptSettings, SectionUse, TOOLS, Thoughts, TraceIds,
        reason::{ExcludedReason, HeldBy, PolicyRule},
    },
    planner::{
        budget::Budgets,
        candidates::{CandidateId, Candidates, Costs, Results},
        select::{Selection, Window},
    },
    provider::{
        meter::Meter,
        model::{Limits, LimitsSource, Model},
    },
    text::plain::{dollars, grouped, short},
    tokens::{Certainty, TokenCount},
    usage::{ReportedUsage, TokenCalibration},
};
use std::sync::Arc;

mod dropped_pins;
mod included;
mod block;
mod excluded;
mod marks;
mod overflow;
mod pressure;
mod conform;

pub(crate) use conform::{BRIDGE, CONTINUE, LEAD, conform};
pub(crate) use included::{Draft, draft, notes};

/// What is known about a plan before anything is chosen.
#[derive(Clone)]
pub(crate) struct PlanContext<'a> {
    pub(crate) model: &'a Model,
    pub(crate) config: String,
    pub(crate) limits: Limits,
    pub(crate) limits_source: LimitsSource,
    pub(crate) prompt_budget: u64,
    pub(crate) budget_source: BudgetSource,
    /// Tools and priming.
    pub(crate) overhead: Vec<LedgerLine>,
    /// How the provider's count follows from ours.
    pub(crate) calibration: Option<TokenCalibration>,
    /// The last report, where it is not believed.
    pub(crate) doubted: Option<ReportedUsage>,
    pub(crate) placement: Placement,
    pub(crate) usage: UsageOptions,
    /// What the provider is asked to edit by itself.
    pub(crate) editing: Option<ContextEditing>,
    /// Notices that hold whatever is chosen.
    pub(crate) notices: Vec<Notice>,
    /// The body of the request states the context length.
    pub(crate) states_context: bool,
}

impl PlanContext<'_> {
    /// The largest prompt budget of the model, or the one in use, where that is larger.
    pub(crate) fn largest_budget(&self) -> u64 {
        self.limits.largest_budget().max(self.prompt_budget)
    }

    /// The base of percentage options of compaction, in tokens: the smaller of the capacity and the request's own budget.
    pub(crate) fn window(&self) -> u64 {
        match self.budget_source {
            BudgetSource::Request => self.limits.capacity().min(self.prompt_budget),
            _ => self.limits.capacity(),
        }
    }

    /// What a prompt budget leaves for the items, as they are counted here; it may be negative.
    pub(crate) fn total(&self, budget: u64) -> i128 {
        let budget = self.calibration.map_or(i128::from(budget), |calibration| calibration.within(budget));
        budget - self.overhead.iter().map(|line| i128::from(line.tokens)).sum::<i128>()
    }

    /// Returns the tokens of a prompt, as the provider is expected to count them, with so many for everything
    /// but what is sent in any case.
    pub(crate) fn prompt_total(&self, tokens: i128) -> u64 {
        let counted = tokens + self.overhead.iter().map(|line| i128::from(line.tokens)).sum::<i128>();
        let total = self.calibration.map_or(counted, |calibration| calibration.of(counted));
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}

/// The ledger of a draft that is in the provider's form, with what is out and why: the plan.
///
/// # Errors
///
/// Counters that fail.
pub(crate) fn plan(
    context: &PlanContext<'_>,
    candidates: &Candidates<'_>,
    costs: &Costs<'_>,
    meter: &Meter,
    budgets: &Budgets,
    chosen: &Selection,
    draft: Draft,
) -> Result<ContextPlan, Error> {
    let excluded = excluded::rows(candidates, meter, chosen)?;
    let mut overhead = context.overhead.clone();
    overhead.extend(draft.overhead.iter().copied());
    let whole = whole(meter, &draft)?;
    overhead.extend(whole.map(|whole| joins(whole, &draft, &overhead)));
    let counted = sum(&draft.rows, &overhead);
    overhead.extend(calibration(context, counted));
    overhead.retain(|line| line.tokens != 0);
    let mut total = total(&draft.rows, &overhead);
    if let Some(whole) = whole {
        total.certainty = whole.certainty;
    }
    let first_id = |candidate| {
        let first = candidates.members(candidate).first().copied();
        first.map(|position| candidates.log().message_id(position))
    };
    let window_start = chosen.window.start.and_then(first_id);
    // A window that holds nothing by recency is remembered all the same, or the next plan would undo it.
    let anchored = window_start.clone().or_else(|| match chosen.window.found {
        Window::Fresh => None,
        Window::Sticky => candidates.index().window_start.and_then(first_id),
        Window::Cut { .. } => candidates.live_id(),
    });
    let overflow = overflow::of(
        context,
        total,
        u64::try_from(counted.max(0)).unwrap_or(u64::MAX),
        &draft.rows,
        candidates,
        costs,
        meter,
    )?;
    let before = before(candidates, &draft);
    let missing = candidates.missing(&draft.rows);
    let figures = pressure::Sent {
        rows: &draft.rows,
        bytes: draft.bytes,
        excluded: &excluded,
        overhead: &overhead,
        total,
    };
    let usage = pressure::of(context, candidates, meter, &figures);
    let mut notices = about_the_target(context, meter);
    if overflow.is_none() {
        notices.extend(dropped_pins::notices(candidates, costs, meter, budgets, chosen)?);
    }
    notices.extend(about_the_window(candidates, chosen.window.found));
    notices.extend(about_what_stood(candidates, costs.results()));
    notices.extend(about_waiting_notes(candidates));
    notices.extend(about_foreign_summaries(candidates));
    notices.extend(about_the_results(candidates, costs.results(), &draft));
    notices.extend(nothing_to_clear(candidates, &excluded));
    notices.extend(about_foreign_messages(&excluded));
    notices.extend(draft.notices);
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
        total,
        overflow,
        window_start,
        notices,
        usage,
        cleared_before: costs.results().boundary(candidates),
        released_through: costs.results().released_through(candidates),
        sender: candidates.request().sender.clone(),
        documents_stay: candidates.standing().stays,
        documents_come_last: candidates.index().documents_come_last,
        new_state: candidates.new_state().clone(),
        renamed: draft.renamed,
        headers: headers(context, &draft.prompt),
        missing,
        live: candidates.live_id(),
        anchored,
        thoughts: Thoughts::default(),
        context_editing: context.editing.clone(),
        upkeep: candidates.standing().upkeep,
        prompt: draft.prompt,
        row_messages: draft.row_messages,
        asked: draft.asked,
        asked_documents: draft.asked_documents,
        usage_options: context.usage,
        before,
        archives: candidates.log().archive_events(),
        settings: PromptSettings::default(),
        trace: TraceIds::default(),
    })
}

/// The headers that parts of a prompt need: what a provider made of earlier messages, and tools at the end.
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

/// The prompt before this one, where it is remembered. Whether the two part at a message is known here only: a plan has
/// no log.
fn before(candidates: &Candidates<'_>, draft: &Draft) -> Option<LastPrompt> {
    let anchor = candidates.last_prompt()?;
    let tools = Some(ItemId::from(TOOLS)).filter(|_| !draft.prompt.tools.is_empty());
    let mut now = tools.iter().chain(draft.rows.iter().map(|row| &row.id));
    let parted = anchor.prompt.iter().flat_map(|prompt| prompt.iter()).find(|was| now.next() != Some(&was.0));
    let parts_at_a_message = parted.is_some_and(|was| candidates.log().position_of(&was.0).is_some());
    // Rows are remembered beside the conversation's own anchor only.
    let own = candidates.request().previous.is_none();
    let rows = candidates.log().sent_rows().filter(|_| own).cloned();
    Some(LastPrompt { anchor: Arc::new(anchor.clone()), parts_at_a_message, rows })
}

/// The prompt as a whole, where it is counted as it is rendered (rule N3).
#[cfg(feature = "chat-template")]
fn whole(meter: &Meter, draft: &Draft) -> Result<Option<TokenCount>, Error> {
    meter.whole(&draft.prompt)
}

#[cfg(not(feature = "chat-template"))]
#[expect(clippy::unnecessary_wraps, reason = "with chat templates it can fail")]
fn whole(_: &Meter, _: &Draft) -> Result<Option<TokenCount>, Error> {
    Ok(None)
}

/// By how much the whole prompt differs from the sum of its messages. The per-message counts are estimates; the whole
/// is counted exactly.
fn joins(whole: TokenCount, draft: &Draft, overhead: &[LedgerLine]) -> LedgerLine {
    let tokens = i64::try_from(i128::from(whole.n) - sum(&draft.rows, overhead)).unwrap_or(i64::MAX);
    LedgerLine { what: Overhead::Joins, tokens, certainty: Certainty::Estimate }
}

/// What the provider is expected to count beside what is counted here (rule N6).
fn calibration(context: &PlanContext<'_>, counted: i128) -> Option<LedgerLine> {
    let tokens = i64::try_from(context.calibration?.of(counted) - counted).unwrap_or(i64::MAX);
    Some(LedgerLine { what: Overhead::TokenCalibration, tokens, certainty: Certainty::Estimate })
}

fn sum(rows: &[PlannedItem], overhead: &[LedgerLine]) -> i128 {
    let items = rows.iter().map(|row| i128::from(row.tokens.n));
    items.chain(overhead.iter().map(|line| i128::from(line.tokens))).sum()
}

fn total(rows: &[PlannedItem], overhead: &[LedgerLine]) -> TokenCount {
    let certainties = rows.iter().map(|row| row.tokens.certainty);
    let certainty = certainties.chain(overhead.iter().map(|line| line.certainty));
    TokenCount {
        n: u64::try_from(sum(rows, overhead).max(0)).unwrap_or(u64::MAX),
        certainty: certainty.max().unwrap_or(Certainty::Exact),
    }
}

fn sections(budgets: &Budgets, rows: &[PlannedItem], excluded: &[ExcludedItem]) -> Vec<SectionUse> {
    let use_of = |section: Section| {
        let budget = budgets.sections[section as usize];
        let of = |row: &&PlannedItem| row.section == section;
        SectionUse {
            section,
            share: budget.share,
            cap: budget.cap,
            budget: budget.budget,
            used: rows.iter().filter(of).map(|row| row.tokens.n).sum(),
            included: rows.iter().filter(of).count() as u64,
            excluded: excluded.iter().filter(|row| row.section == section).map(|row| row.count).sum(),
        }
    };
    Section::ALL.map(use_of).to_vec()
}

/// What the reader should know about model and limits.
fn about_the_target(context: &PlanContext<'_>, meter: &Meter) -> Vec<Notice> {
    let mut notices = context.notices.clone();
    let mut say = |code: NoticeCode, text: String| notices.push(Notice { code, ids: Vec::new(), text });
    if context.model.unknown {
        let name = short(&context.model.name);
        let near =
            context.model.near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        // Limits that the request or its body brings are no defaults.
        let brought = context.limits_source == LimitsSource::Request || context.states_context;
        let limits = (!brought).then_some("default limits apply");
        let counts = context.model.estimated.then_some("counts are estimates");
        let says: Vec<&str> = limits.into_iter().chain(counts).collect();
        let says = if says.is_empty() { String::new() } else { format!(": {}", says.join(", ")) };
        say(NoticeCode::UnknownModel, format!("model `{name}` is not in the registry{says}{near}"));
    }
    if context.model.wire_format == WireFormat::ChatTemplate && !meter.is_rendered() {
        say(
            NoticeCode::NoChatTemplate,
            "counted in the wire format of OpenAI Chat: no chat template is given".into(),
        );
    }
    let is_unknown = context.limits_source == LimitsSource::Unknown;
    if is_unknown {
        let budget = grouped(context.prompt_budget);
        let text = format!(
            "the context length is unknown: no level, no compaction; the prompt is planned within {budget} tokens"
        );
        say(NoticeCode::UnknownLimit, text);
    }
    let window = context.limits.context_len.min(context.limits.max_input.unwrap_or(u64::MAX));
    if context.prompt_budget > window && !is_unknown {
        say(
            NoticeCode::BudgetAboveWindow,
            format!("the budget is larger than the context window of {} tokens", grouped(window)),
        );
    }
    if let Some(report) = context.doubted {
        let (counted, reported) = (grouped(report.counted), grouped(report.reported));
        let hint = if report.is_too_low() { "; the report may lack cached tokens" } else { "" };
        say(
            NoticeCode::ReportIgnored,
            format!(
                "the last usage report is ignored: {reported} input tokens reported, {counted} counted{hint}"
            ),
        );
    }
    notices
}

/// A window that was cut or not continued: the prompt begins with other messages than the last one did (rule S5).
fn about_the_window(candidates: &Candidates<'_>, window: Window) -> Option<Notice> {
    let (code, text) = match (window, candidates.lost_window) {
        (Window::Cut { budget, low }, _) => {
            let (budget, low) = (grouped(budget), grouped(low));
            let text = format!(
                "the sticky window no longer fits its {budget} tokens: it is cut once, to its low mark of {low}"
            );
            (NoticeCode::WindowCut, text)
        }
        (_, Some(why)) => (NoticeCode::WindowLost, format!("the sticky window is not continued: {why}")),
        _ => return None,
    };
    Some(Notice { code, ids: Vec::new(), text })
}

/// Documents and state of earlier prompts that leave together (rule S10).
fn about_what_stood(candidates: &Candidates<'_>, results: &Results) -> Option<Notice> {
    let ids: Vec<ItemId> = candidates.left_by(results).filter(|_| results.releases).collect();
    let why = match candidates.standing().upkeep.filter(|upkeep| upkeep.leave) {
        Some(upkeep) => format!(
            "reading them again has cost {}, as much as sending the prompt without them ({})",
            dollars(upkeep.spent),
            dollars(upkeep.leaving)
        ),
        None => "the prompt would not fit its budget with them".into(),
    };
    let text = format!("documents and state of earlier prompts are no longer sent: {why}");
    (!ids.is_empty()).then_some(Notice { code: NoticeCode::DocumentsReleased, ids, text })
}

/// Notes that were pinned while the model is at work (rule S10).
fn about_waiting_notes(candidates: &Candidates<'_>) -> Option<Notice> {
    let ids: Vec<ItemId> = candidates.waiting_notes().collect();
    let text = "pinned while the model is at work: sent from the next question on, so that the prompt still begins as it did";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::PinWaits, ids, text: text.into() })
}

/// Compactions that another provider made (rule C11).
fn about_foreign_summaries(candidates: &Candidates<'_>) -> Option<Notice> {
    let ids: Vec<ItemId> = candidates.foreign_summaries().cloned().collect();
    let text = "another provider made this compaction, and only it reads that: a text is sent in its place";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::ForeignCompaction, ids, text: text.into() })
}

/// Results that are sent shorter than they are (rule S7).
fn about_the_results(candidates: &Candidates<'_>, results: &Results, draft: &Draft) -> Vec<Notice> {
    let boundary = results.boundary(candidates);
    let from = boundary.map(|id| format!(" before {id}")).unwrap_or_default();
    let now = if results.has_moved() { "from now on, " } else { "" };
    let cleared = (
        NoticeCode::ResultsCleared,
        &draft.cleared,
        format!("{now}tool results{from} are sent as stubs; the log keeps them"),
    );
    let clipped = (
        NoticeCode::ResultsClipped,
        &draft.clipped,
        "the middle is cut out: otherwise required items would exceed the budget".to_owned(),
    );
    let notice =
        |(code, ids, text): (NoticeCode, &Vec<ItemId>, String)| Notice { code, ids: ids.clone(), text };
    [cleared, clipped].into_iter().filter(|(_, ids, _)| !ids.is_empty()).map(notice).collect()
}

/// Results are to be cleared, the window is too large, and no last prompt is remembered whose window it could be (S7).
fn nothing_to_clear(candidates: &Candidates<'_>, excluded: &[ExcludedItem]) -> Option<Notice> {
    let by_window =
        |row: &ExcludedItem| matches!(row.reason, ExcludedReason::Budget { held_by: HeldBy::Window, .. });
    let says_so = candidates.index().clears_results()
        && candidates.lost_window.is_none()
        && excluded.iter().any(by_window);
    let text = "no tool result is cleared: clearing needs a sticky window, and no last prompt is known";
    says_so.then(|| Notice { code: NoticeCode::NothingToClear, ids: Vec::new(), text: text.into() })
}

/// Returns a notice of messages that hold nothing but what another provider wrote for itself. Returns `None` if there are none.
fn about_foreign_messages(excluded: &[ExcludedItem]) -> Option<Notice> {
    let foreign =
        |row: &&ExcludedItem| matches!(row.reason, ExcludedReason::Policy(PolicyRule::ForeignMessage));
    let ids: Vec<ItemId> = excluded.iter().filter(foreign).map(|row| row.id.clone()).collect();
    let text = "messages that hold nothing but what another provider wrote for itself are left out";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::ForeignMessage, ids, text: text.into() })
}

/// The candidate that holds the required question, where the documents go right before it.
pub(crate) fn question(candidates: &Candidates<'_>) -> Option<CandidateId> {
    let first = candidates.index().required_conversation.first().copied();
    first.filter(|candidate| {
        !matches!(candidate, CandidateId::Summary(_)) && candidates.index().live_turn().is_some()
    })
}
