//! What was chosen → plan: prompt order, rows, ledger (rules O1-O5, B3, S6).

use crate::{
    budget::{
        Budgets,
        remedies::{self, Room},
    },
    candidates::{Pool, Scale, Unit},
    config::Placement,
    error::Error,
    item::{Section, Source},
    meter::Meter,
    plan::{BudgetSource, ContextPlan, ExcludedItem, LedgerLine, Notice, Overflow, PlannedItem, SectionUse},
    select::{self, Selection},
    tokens::{Certainty, TokenCount},
};
use std::collections::BTreeSet;

mod excluded;
mod included;

/// What is known about a plan before anything is chosen.
pub(crate) struct Frame<'a> {
    pub(crate) model: &'a crate::model::Model,
    pub(crate) config: String,
    pub(crate) limits: crate::model::Limits,
    pub(crate) limits_source: crate::model::LimitsSource,
    pub(crate) prompt_budget: u64,
    pub(crate) budget_source: BudgetSource,
    /// Tools and priming.
    pub(crate) overhead: Vec<LedgerLine>,
    pub(crate) placement: Placement,
}

/// Puts a plan together.
///
/// # Errors
///
/// A synthetic id that is taken (rule O5), and counters that fail.
pub(crate) fn plan(
    frame: Frame<'_>,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    meter: &Meter,
    budgets: &Budgets,
    chosen: &Selection,
) -> Result<ContextPlan, Error> {
    let merged = select::merges_state(pool, scale, chosen);
    let parts = included::rows(pool, meter, chosen, frame.placement, merged)?;
    let excluded = excluded::rows(pool, meter, chosen);
    let mut overhead = frame.overhead.clone();
    overhead.extend(parts.overhead);
    overhead.retain(|line| line.tokens != 0);
    let total = total(&parts.rows, &overhead);
    let window_start = chosen.start.and_then(|unit| {
        let first = pool.members(unit).first().copied();
        first.map(|position| pool.log().message_id(position))
    });
    let overflow = overflow(&frame, total, pool, scale, meter, chosen, &parts.rows)?;
    let mut notices = about_the_target(&frame);
    notices.extend(parts.notices);
    Ok(ContextPlan {
        model: frame.model.name.clone(),
        provider: frame.model.provider.clone(),
        tokenizer: meter.counter().name().into(),
        config: frame.config,
        limits: frame.limits,
        limits_source: frame.limits_source,
        budget_source: frame.budget_source,
        prompt_budget: frame.prompt_budget,
        overhead,
        sections: sections(budgets, &parts.rows, &excluded),
        included: parts.rows,
        excluded,
        total,
        overflow,
        window_start,
        notices,
        prompt: parts.prompt,
        asked: parts.asked,
    })
}

fn total(rows: &[PlannedItem], overhead: &[LedgerLine]) -> TokenCount {
    let items = rows.iter().map(|row| i128::from(row.tokens.n));
    let lines = overhead.iter().map(|line| i128::from(line.tokens));
    let sum: i128 = items.chain(lines).sum();
    let certainties = rows.iter().map(|row| row.tokens.certainty);
    let certainty = certainties.chain(overhead.iter().map(|line| line.certainty));
    TokenCount {
        n: u64::try_from(sum.max(0)).unwrap_or(u64::MAX),
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
fn about_the_target(frame: &Frame<'_>) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut say = |rule: &'static str, text: String| notices.push(Notice { rule, ids: Vec::new(), text });
    if frame.model.unknown {
        let name = &frame.model.name;
        say(
            "B2",
            format!(
                "model `{name}` is not in the registry: its limits are the defaults, its counts estimates"
            ),
        );
    }
    let window = frame.limits.context_len.min(frame.limits.max_input.unwrap_or(u64::MAX));
    if frame.prompt_budget > window {
        say("B1", format!("the budget asked for is larger than the window of {window} tokens"));
    }
    notices
}

/// By how much the prompt is over the budget, and what could give way (rule S6).
fn overflow(
    frame: &Frame<'_>,
    total: TokenCount,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    meter: &Meter,
    chosen: &Selection,
    rows: &[PlannedItem],
) -> Result<Option<Overflow>, Error> {
    let tokens = total.n.saturating_sub(frame.prompt_budget);
    if tokens == 0 {
        return Ok(None);
    }
    let mut pins = Vec::new();
    // A user message that an undroppable exchange brings stays, whatever becomes of its own pin.
    let brought: BTreeSet<Unit> = pool.pins.iter().filter_map(|pin| pin.brings).collect();
    for pin in pool.pins.iter().filter(|pin| chosen.has(pin.unit) && !brought.contains(&pin.unit)) {
        if let Some(id) = pool.held_by_one_pin(pin.unit) {
            pins.push((id, scale.whole(pin.unit)?));
        }
    }
    let mut longest: Vec<&PlannedItem> = rows.iter().filter(|row| row.tokens.n > tokens).collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.tokens.n));
    let mut shortened = None;
    for row in longest {
        if own_tokens(row, pool, meter)? > tokens {
            shortened = Some(row.id.clone());
            break;
        }
    }
    let room = Room { total: total.n, excess: tokens, limits: frame.limits, source: frame.budget_source };
    let minimum = rows.iter().map(|row| row.id.clone()).collect();
    Ok(Some(Overflow { tokens, minimum, remedies: remedies::find(&room, pins, shortened) }))
}

/// Tokens of the text that the caller gave for an item: what could be shorter. Our own words around it, calls and
/// made-up results are not among it.
fn own_tokens(row: &PlannedItem, pool: &Pool<'_>, meter: &Meter) -> Result<u64, Error> {
    let request = pool.request();
    let state = request.state.iter().find(|(id, _)| *id == row.id);
    let own = match (row.source, state) {
        (Source::Synthetic, _) => "",
        (Source::State, Some((_, text))) => text,
        (Source::System, _) if pool.focus().is_some_and(|(id, _)| id == row.id) => {
            request.focus.as_deref().unwrap_or_default()
        }
        _ => row.body.text(),
    };
    Ok(meter.counter().count(own)?.n)
}

/// The unit that stands for a required question, where the block goes right before it.
fn question(pool: &Pool<'_>) -> Option<Unit> {
    pool.required_conversation.first().copied()
}
