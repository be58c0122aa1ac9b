//! What was chosen → plan: prompt order, rows, ledger (rules O1-O5, B3, S6).

use crate::{
    budget::{
        Budgets,
        remedies::{self, Load},
    },
    candidates::{Pool, Scale, Unit},
    config::Placement,
    error::Error,
    item::Section,
    meter::Meter,
    plan::{BudgetSource, ContextPlan, ExcludedItem, LedgerLine, Notice, Overflow, PlannedItem, SectionUse},
    select::{self, Selection},
    tokens::{Certainty, TokenCount},
};

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
    let mut overhead = frame.overhead;
    overhead.extend(parts.overhead);
    overhead.retain(|line| line.tokens != 0);
    let total = total(&parts.rows, &overhead);
    let window_start = chosen.start.and_then(|unit| {
        let first = pool.members(unit).first().copied();
        first.map(|position| pool.log().message_id(position))
    });
    let overflow = overflow(frame.prompt_budget, total, pool, scale, chosen, &parts.rows)?.map(
        |(tokens, minimum, loads)| Overflow {
            tokens,
            minimum,
            remedies: remedies::find(total.n, tokens, frame.limits, frame.budget_source, &loads),
        },
    );
    let mut notices = unknown_model(frame.model);
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

fn unknown_model(model: &crate::model::Model) -> Vec<Notice> {
    let text = format!(
        "model `{}` is not in the registry: its limits are the defaults, its counts estimates",
        model.name
    );
    let notice = Notice { rule: "B2", ids: Vec::new(), text };
    model.unknown.then_some(notice).into_iter().collect()
}

type Excess = (u64, Vec<crate::item::ItemId>, Vec<Load>);

/// By how much the prompt is over the budget, and what could give way.
fn overflow(
    prompt_budget: u64,
    total: TokenCount,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    chosen: &Selection,
    rows: &[PlannedItem],
) -> Result<Option<Excess>, Error> {
    let excess = total.n.saturating_sub(prompt_budget);
    if excess == 0 {
        return Ok(None);
    }
    let mut loads = Vec::new();
    for pin in pool.pins.iter().filter(|pin| chosen.has(pin.unit)) {
        loads.push(Load {
            id: included::id_of(pool, pin.unit),
            tokens: scale.whole(pin.unit)?,
            pin: true,
            text: 0,
        });
    }
    loads.extend(rows.iter().map(|row| Load {
        id: row.id.clone(),
        tokens: row.tokens.n,
        pin: false,
        // A message's frame is never more than 16 tokens in any framing here: what is above that is text.
        text: row.tokens.n.saturating_sub(16),
    }));
    let minimum = rows.iter().map(|row| row.id.clone()).collect();
    Ok(Some((excess, minimum, loads)))
}

/// The unit that stands for a required question, where the block goes right before it.
fn question(pool: &Pool<'_>) -> Option<Unit> {
    pool.required_conversation.first().copied()
}
