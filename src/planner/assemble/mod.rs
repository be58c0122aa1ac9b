//! What was chosen → plan: prompt order, rows, ledger (rules O1-O5, B3, S6).

use crate::{
    config::{Placement, UsageOptions},
    error::Error,
    item::{ItemId, Section},
    message::WireFormat,
    plan::{
        BudgetSource, ContextPlan, ExcludedItem, LastPrompt, LedgerLine, Notice, PlannedItem, SectionUse,
        TOOLS,
        reason::{ExcludedReason, HeldBy},
    },
    planner::{
        budget::Budgets,
        candidates::{Pool, Results, Scale, Unit},
        select::{self, Selection, Window},
    },
    provider::{
        meter::Meter,
        model::{Limits, LimitsSource, Model},
    },
    text::plain::grouped,
    tokens::{Certainty, TokenCount},
    usage::{ReportedUsage, TokenCalibration},
};
use std::sync::Arc;

mod included;
mod excluded;
mod marks;
mod overflow;
mod pressure;
mod sent;

use included::Parts;

/// What is known about a plan before anything is chosen.
#[derive(Clone)]
pub(crate) struct Frame<'a> {
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
}

impl Frame<'_> {
    /// The largest prompt budget of the model, or the one in use, where that is larger.
    pub(crate) fn largest_budget(&self) -> u64 {
        self.limits.largest_budget().max(self.prompt_budget)
    }

    /// What a prompt budget leaves for the items, as they are counted here; it may be below nothing.
    pub(crate) fn total(&self, budget: u64) -> i128 {
        let budget = self.calibration.map_or(i128::from(budget), |calibration| calibration.within(budget));
        budget - self.overhead.iter().map(|line| i128::from(line.tokens)).sum::<i128>()
    }
}

/// Puts a plan together.
///
/// # Errors
///
/// A synthetic id that is taken (rule O5), and counters that fail.
pub(crate) fn plan(
    frame: &Frame<'_>,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    meter: &Meter,
    budgets: &Budgets,
    chosen: &Selection,
) -> Result<ContextPlan, Error> {
    let merged = select::merges_state(pool, scale, chosen);
    let mut parts = included::rows(pool, scale, meter, chosen, frame.placement, merged)?;
    sent::conform(&mut parts, pool, meter, frame)?;
    let excluded = excluded::rows(pool, meter, chosen)?;
    let mut overhead = frame.overhead.clone();
    overhead.extend(parts.overhead.iter().copied());
    let whole = whole(meter, &parts)?;
    overhead.extend(whole.map(|whole| joins(whole, &parts, &overhead)));
    let counted = sum(&parts.rows, &overhead);
    overhead.extend(calibration(frame, counted));
    overhead.retain(|line| line.tokens != 0);
    let mut total = total(&parts.rows, &overhead);
    if let Some(whole) = whole {
        total.certainty = whole.certainty;
    }
    let first_id = |unit| {
        let first = pool.members(unit).first().copied();
        first.map(|position| pool.log().message_id(position))
    };
    let window_start = chosen.start.and_then(first_id);
    // A window that holds nothing by recency is remembered all the same, or the next plan would undo it.
    let anchored = window_start.clone().or_else(|| match chosen.window {
        Window::Fresh => None,
        Window::Sticky => pool.window_start.and_then(first_id),
        Window::Cut { .. } => pool.live_id(),
    });
    let overflow = overflow::of(
        frame,
        total,
        u64::try_from(counted.max(0)).unwrap_or(u64::MAX),
        &parts.rows,
        pool,
        scale,
        meter,
    )?;
    let before = before(pool, &parts);
    let figures = pressure::Sent { rows: &parts.rows, excluded: &excluded, overhead: &overhead, total };
    let usage = pressure::of(frame, pool, meter, &figures);
    let mut notices = about_the_target(frame, meter);
    notices.extend(about_the_window(pool, chosen.window));
    notices.extend(about_the_results(pool, scale.results(), &parts));
    notices.extend(nothing_to_clear(pool, &excluded));
    notices.extend(parts.notices);
    Ok(ContextPlan {
        model: frame.model.name.clone(),
        provider: frame.model.provider.clone(),
        wire_format: frame.model.wire_format,
        tokenizer: meter.counter().name().into(),
        config: frame.config.clone(),
        limits: frame.limits,
        limits_source: frame.limits_source,
        budget_source: frame.budget_source,
        calibration: frame.calibration,
        prompt_budget: frame.prompt_budget,
        overhead,
        sections: sections(budgets, &parts.rows, &excluded),
        included: parts.rows,
        excluded,
        total,
        overflow,
        window_start,
        notices,
        usage,
        cleared_before: scale.results().boundary(pool),
        live: pool.live_id(),
        anchored,
        prompt: parts.prompt,
        asked: parts.asked,
        before,
        archives: pool.log().archive_events(),
    })
}

/// The prompt before this one, where it is remembered. Whether the two part at a message is known here only: a plan has
/// no log.
fn before(pool: &Pool<'_>, parts: &Parts) -> Option<LastPrompt> {
    let anchor = pool.last_prompt()?;
    let tools = Some(ItemId::from(TOOLS)).filter(|_| !parts.prompt.tools.is_empty());
    let mut now = tools.iter().chain(parts.rows.iter().map(|row| &row.id));
    let parted = anchor.prompt.iter().flat_map(|prompt| prompt.iter()).find(|was| now.next() != Some(&was.0));
    let parts_at_a_message = parted.is_some_and(|was| pool.log().position_of(&was.0).is_some());
    Some(LastPrompt { anchor: Arc::new(anchor.clone()), parts_at_a_message })
}

/// The prompt as a whole, where it is counted as it is rendered (rule N3).
#[cfg(feature = "chat-template")]
fn whole(meter: &Meter, parts: &Parts) -> Result<Option<TokenCount>, Error> {
    meter.whole(&parts.prompt)
}

#[cfg(not(feature = "chat-template"))]
#[expect(clippy::unnecessary_wraps, reason = "with chat templates it can fail")]
fn whole(_: &Meter, _: &Parts) -> Result<Option<TokenCount>, Error> {
    Ok(None)
}

/// What the whole differs by from its pieces. The pieces are estimates then, and the whole is not.
fn joins(whole: TokenCount, parts: &Parts, overhead: &[LedgerLine]) -> LedgerLine {
    let tokens = i64::try_from(i128::from(whole.n) - sum(&parts.rows, overhead)).unwrap_or(i64::MAX);
    LedgerLine { what: "joins", tokens, certainty: Certainty::Estimate }
}

/// What the provider is expected to count beside what is counted here (rule N6).
fn calibration(frame: &Frame<'_>, counted: i128) -> Option<LedgerLine> {
    let tokens = i64::try_from(frame.calibration?.of(counted) - counted).unwrap_or(i64::MAX);
    Some(LedgerLine { what: "token_calibration", tokens, certainty: Certainty::Estimate })
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

fn sections(budgets: &Budgets, rows: &[PlannedItem], excluded: &[ExcludedItem]) -> [SectionUse; 3] {
    Section::ALL.map(|section| {
        let pot = budgets.pots[section as usize];
        let of = |row: &&PlannedItem| row.section == section;
        SectionUse {
            section,
            share: pot.share,
            cap: pot.cap,
            budget: pot.budget,
            used: rows.iter().filter(of).map(|row| row.tokens.n).sum(),
            included: rows.iter().filter(of).count() as u64,
            excluded: excluded.iter().filter(|row| row.section == section).map(|row| row.count).sum(),
        }
    })
}

/// What the reader should know about model and limits.
fn about_the_target(frame: &Frame<'_>, meter: &Meter) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut say = |rule: &'static str, text: String| notices.push(Notice { rule, ids: Vec::new(), text });
    if frame.model.unknown {
        let name = &frame.model.name;
        let near =
            frame.model.near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let counts = if frame.model.estimated { ", counts are estimates" } else { "" };
        let text = format!("model `{name}` is not in the registry: default limits apply{counts}");
        say("B2", text + &near);
    }
    if frame.model.wire_format == WireFormat::ChatTemplate && !meter.is_rendered() {
        say("N3", "counted in the wire format of OpenAI Chat: no chat template is given".into());
    }
    let window = frame.limits.context_len.min(frame.limits.max_input.unwrap_or(u64::MAX));
    if frame.prompt_budget > window {
        say("B1", format!("the budget is larger than the context window of {} tokens", grouped(window)));
    }
    if let Some(ReportedUsage { counted, reported, .. }) = frame.doubted {
        let (counted, reported) = (grouped(counted), grouped(reported));
        say(
            "N6",
            format!("the last usage report is ignored: {reported} input tokens reported, {counted} counted"),
        );
    }
    notices
}

/// A window that was cut or not continued: the prompt begins with other messages than the last one did (rule S5).
fn about_the_window(pool: &Pool<'_>, window: Window) -> Option<Notice> {
    let text = match (window, pool.lost_window) {
        (Window::Cut { budget, low }, _) => format!(
            "the sticky window no longer fits its {} tokens: it is cut once, to its low mark of {}",
            grouped(budget),
            grouped(low)
        ),
        (_, Some(why)) => format!("the sticky window is not continued: {why}"),
        _ => return None,
    };
    Some(Notice { rule: "S5", ids: Vec::new(), text })
}

/// Results that are sent shorter than they are (rule S7).
fn about_the_results(pool: &Pool<'_>, results: &Results, parts: &Parts) -> Vec<Notice> {
    let boundary = results.boundary(pool);
    let from = boundary.map(|id| format!(" before {id}")).unwrap_or_default();
    let now = if results.has_moved() { "from now on, " } else { "" };
    let cleared = (&parts.cleared, format!("{now}tool results{from} are sent as stubs; the log keeps them"));
    let clipped = (
        &parts.clipped,
        "the middle is cut out: otherwise required items would exceed the budget".to_owned(),
    );
    let notice = |(ids, text): (&Vec<ItemId>, String)| Notice { rule: "S7", ids: ids.clone(), text };
    [cleared, clipped].into_iter().filter(|(ids, _)| !ids.is_empty()).map(notice).collect()
}

/// Results are to be cleared, the window is too large, and no last prompt is remembered whose window it could be (S7).
fn nothing_to_clear(pool: &Pool<'_>, excluded: &[ExcludedItem]) -> Option<Notice> {
    let by_window =
        |row: &ExcludedItem| matches!(row.reason, ExcludedReason::Budget { held_by: HeldBy::Window, .. });
    let says_so = pool.clears_results() && pool.lost_window.is_none() && excluded.iter().any(by_window);
    let text = "no tool result is cleared: clearing needs a sticky window, and no last prompt is known";
    says_so.then(|| Notice { rule: "S7", ids: Vec::new(), text: text.into() })
}

/// The unit that stands for a required question, where the block goes right before it.
fn question(pool: &Pool<'_>) -> Option<Unit> {
    let first = pool.required_conversation.first().copied();
    first.filter(|unit| !matches!(unit, Unit::Summary(_)) && pool.live_turn().is_some())
}
