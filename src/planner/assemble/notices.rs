//! The notices of a plan, in order.
//!
//! - Input: a laid-out prompt.
//! - Output: notices about the target, pins, the window, retained texts, summaries and tool results.
//! - Rules: B2, S2, S5, S7, S10, C11, H6, R2.

use super::{LaidOut, PlanContext, dropped_pins, laid_out::Draft};
use crate::{
    error::Error,
    item::ItemId,
    message::WireFormat,
    plan::{
        ExcludedItem, Notice, NoticeCode,
        reason::{ExcludedReason, LimitedBy, PolicyRule},
    },
    planner::{candidates::Candidates, rendering::ToolResultRendering, select::Window},
    provider::{meter::Meter, model::LimitsSource},
    text::plain::{dollars, grouped, short},
};

impl LaidOut<'_> {
    /// Returns the notices of the plan, except those of the draft. If `overflows` is true, the overflow
    /// reports pins instead.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails on a pin.
    pub(super) fn notices(&self, overflows: bool) -> Result<Vec<Notice>, Error> {
        let Self { context, candidates, costs, meter, budgets, chosen, .. } = *self;
        let (rendering, excluded) = (costs.rendering(), self.excluded()?);
        let mut notices = about_the_target(context, meter);
        if !overflows {
            notices.extend(dropped_pins::notices(candidates, costs, meter, budgets, chosen)?);
        }
        notices.extend(about_the_window(candidates, chosen.window));
        notices.extend(about_released_texts(candidates, rendering));
        notices.extend(about_citations(&self.draft));
        notices.extend(about_waiting_notes(candidates));
        notices.extend(about_unconfirmed_rules(excluded));
        notices.extend(about_foreign_summaries(candidates));
        notices.extend(about_the_results(candidates, rendering, &self.draft));
        notices.extend(nothing_to_clear(candidates, excluded));
        notices.extend(about_foreign_messages(excluded));
        Ok(notices)
    }
}

/// Returns the notices about the model and its limits.
fn about_the_target(context: &PlanContext<'_>, meter: &Meter) -> Vec<Notice> {
    let mut notices = context.notices.clone();
    let mut say = |code: NoticeCode, text: String| notices.push(Notice { code, ids: Vec::new(), text });
    if context.model.unknown {
        let name = short(&context.model.name);
        let near =
            context.model.near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        // Limits from the request or its body are not defaults.
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
            "the context length is unknown: usage levels and compaction are off; the prompt is planned within {budget} tokens"
        );
        say(NoticeCode::UnknownLimit, text);
    }
    let window = context.limits.model_context_len.min(context.limits.max_input.unwrap_or(u64::MAX));
    if context.prompt_budget > window && !is_unknown {
        say(
            NoticeCode::BudgetAboveWindow,
            format!("the budget is larger than the context window of {} tokens", grouped(window)),
        );
    }
    if let Some(report) = context.implausible {
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

/// Returns the notice of a window that was cut or not continued (rule S5).
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

/// Returns the notice of retained documents and state that leave together (rule S10).
fn about_released_texts(candidates: &Candidates<'_>, rendering: &ToolResultRendering) -> Option<Notice> {
    let ids: Vec<ItemId> =
        candidates.retained().released_by(rendering).filter(|_| rendering.releases).collect();
    let why = match candidates.retained().retention_cost().filter(|cost| cost.leave) {
        Some(cost) => format!(
            "re-reading them has cost {}, as much as re-sending the prompt without them ({})",
            dollars(cost.spent),
            dollars(cost.leaving)
        ),
        None => "the prompt would not fit its budget with them".into(),
    };
    let text = format!("documents and state of earlier prompts are no longer sent: {why}");
    (!ids.is_empty()).then_some(Notice { code: NoticeCode::DocumentsReleased, ids, text })
}

/// Returns the notice of documents that the model cannot cite (rule S20).
fn about_citations(draft: &Draft) -> Option<Notice> {
    let text = "the model cannot cite the documents: a block of the conversation has no citations, and the provider takes them on all blocks or on none";
    let applies = draft.rows.iter().any(|row| row.format().citations() == Some(false));
    applies.then(|| Notice { code: NoticeCode::CitationsOff, ids: Vec::new(), text: text.into() })
}

/// Returns the notice of notes that were pinned while the model works on a question (rule S10).
fn about_waiting_notes(candidates: &Candidates<'_>) -> Option<Notice> {
    let ids: Vec<ItemId> = candidates.waiting_notes().collect();
    let text = "pinned during a running turn: sent from the next question on, to keep the cached prefix";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::PinWaits, ids, text: text.into() })
}

/// Returns the notice of rules of the user that the user has to confirm (rule R2).
fn about_unconfirmed_rules(excluded: &[ExcludedItem]) -> Option<Notice> {
    let asks = |row: &&ExcludedItem| matches!(row.reason, ExcludedReason::Policy(PolicyRule::Unconfirmed));
    let ids: Vec<ItemId> = excluded.iter().filter(asks).map(|row| row.id.clone()).collect();
    let text = "found in a message that left the prompt: sent once the user confirms it as a standing rule";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::RuleQuestion, ids, text: text.into() })
}

/// Returns the notice of compactions that another provider made (rule C11).
fn about_foreign_summaries(candidates: &Candidates<'_>) -> Option<Notice> {
    let ids: Vec<ItemId> = candidates.foreign_summaries().cloned().collect();
    let text = "only the provider of this compaction can read it: a text is sent instead";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::ForeignCompaction, ids, text: text.into() })
}

/// Returns the notices of results that are cleared, clipped or offloaded (rule S7).
fn about_the_results(
    candidates: &Candidates<'_>,
    rendering: &ToolResultRendering,
    draft: &Draft,
) -> Vec<Notice> {
    let boundary = candidates.cleared_before(rendering);
    let from = boundary.map(|id| format!(" before {id}")).unwrap_or_default();
    let now = if rendering.is_moved { "from now on, " } else { "" };
    let cleared = (
        NoticeCode::ResultsCleared,
        &draft.cleared,
        format!("{now}tool results{from} are sent as stubs; the log keeps them"),
    );
    let clipped = (
        NoticeCode::ResultsClipped,
        &draft.clipped,
        "the middle is removed: otherwise required items would exceed the budget".to_owned(),
    );
    let offloaded = (
        NoticeCode::ResultsOffloaded,
        &draft.offloaded,
        if candidates.declares_recall() {
            "only beginning and end are sent; the tool recall reads the rest from the log".to_owned()
        } else {
            "only beginning and end are sent, as before; the request declares no tool recall for the rest"
                .into()
        },
    );
    let whole = (
        NoticeCode::ResultsNotOffloaded,
        &draft.not_offloaded,
        "sent whole: offloading needs the tool recall in the request, which reads the rest".to_owned(),
    );
    let notice =
        |(code, ids, text): (NoticeCode, &Vec<ItemId>, String)| Notice { code, ids: ids.clone(), text };
    [cleared, clipped, offloaded, whole]
        .into_iter()
        .filter(|(_, ids, _)| !ids.is_empty())
        .map(notice)
        .collect()
}

/// Returns a notice if results should be cleared and the window is too large, but no last prompt is known
/// (rule S7).
fn nothing_to_clear(candidates: &Candidates<'_>, excluded: &[ExcludedItem]) -> Option<Notice> {
    let by_window = |row: &ExcludedItem| {
        matches!(row.reason, ExcludedReason::Budget { limited_by: LimitedBy::Window, .. })
    };
    let says_so = candidates.index().clears_results()
        && candidates.lost_window.is_none()
        && excluded.iter().any(by_window);
    let text = "no tool result is cleared: clearing needs a sticky window, but the last prompt is unknown";
    says_so.then(|| Notice { code: NoticeCode::NothingToClear, ids: Vec::new(), text: text.into() })
}

/// Returns the notice of messages that contain only data for another provider. Returns `None` if there are
/// none.
fn about_foreign_messages(excluded: &[ExcludedItem]) -> Option<Notice> {
    let foreign =
        |row: &&ExcludedItem| matches!(row.reason, ExcludedReason::Policy(PolicyRule::ForeignMessage));
    let ids: Vec<ItemId> = excluded.iter().filter(foreign).map(|row| row.id.clone()).collect();
    let text = "messages that contain only data of another provider are left out";
    (!ids.is_empty()).then(|| Notice { code: NoticeCode::ForeignMessage, ids, text: text.into() })
}
