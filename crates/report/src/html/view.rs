//! The values for the template of a page. All texts are complete here; the template only arranges them.

use super::{
    Html,
    bar::Bar,
    catalog::Catalog,
    item::{Item, Items},
    overview::Overview,
    shown::visible,
    states::Data,
    timeline::Timeline,
};
use crate::{
    remedy, row,
    row::{number, repeats, short},
    words,
    words::{percent, signed, tenths},
};
use context_window::{
    ContextPlan,
    plan::{Notice, Overflow},
    text::plain::{dollars, grouped},
    usage::Level,
};
use serde::Serialize;

/// The number of rows above which the browser lays out only the visible ones.
const MANY_ROWS: usize = 500;

/// The values for the template.
#[derive(Debug, Serialize)]
pub(super) struct View {
    title: String,
    model: String,
    redacted: bool,
    fill: Fill,
    overview: Overview,
    pressure: Pressure,
    prefix: Option<Reuse>,
    cost: Option<Money>,
    overflow: Option<Over>,
    notices: Vec<(&'static str, String)>,
    timeline: Option<Timeline>,
    formula: String,
    facts: Vec<(&'static str, String)>,
    sections: Vec<SectionBar>,
    ledger: Vec<Line>,
    ledger_total: String,
    items_total: String,
    included: Vec<Item>,
    excluded: Vec<Item>,
    /// The number of excluded rows that are not listed; empty if all are listed.
    not_listed: String,
    /// The number of messages inside runs that the script can list.
    inside: usize,
    /// True if the page has a budget slider.
    slider: bool,
    /// The data for the script, as JSON.
    data: String,
    /// The number of rows on the page.
    rows: String,
    /// True if a browser should not lay out all rows at once.
    many: bool,
    /// The number of excluded messages and other items.
    left_out: String,
    explained: String,
    fingerprint: String,
}

/// The tokens of the prompt compared with its budget.
#[derive(Debug, Serialize)]
struct Fill {
    total: String,
    budget: String,
    percent: String,
    says: String,
    over: bool,
}

/// The cost of the prompt's input.
#[derive(Debug, Serialize)]
struct Money {
    cost: String,
    says: String,
    uncached: String,
}

/// The tokens of the full conversation, if all of it were sent. This is not the size of the prompt (full
/// conversation, rule U2).
#[derive(Debug, Serialize)]
struct Pressure {
    tokens: String,
    limit: String,
    percent: String,
    level: &'static str,
    high: bool,
    from: &'static str,
    bar: Bar,
}

/// The cached prefix as a part of this prompt.
#[derive(Debug, Serialize)]
struct Reuse {
    percent: String,
    says: String,
    bar: Bar,
}

#[derive(Debug, Serialize)]
struct Over {
    by: String,
    largest: String,
    conflict: String,
    remedies: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SectionBar {
    name: &'static str,
    title: &'static str,
    share: String,
    cap: String,
    budget: String,
    used: String,
    included: String,
    excluded: String,
    bar: Bar,
}

#[derive(Debug, Serialize)]
struct Line {
    what: &'static str,
    tokens: String,
    certainty: &'static str,
}

impl View {
    pub(super) fn new(html: &Html<'_>) -> Self {
        let plan = html.plan;
        let mut items = Items::new(html);
        let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
        let items_total: u64 = plan.included.iter().map(|item| item.token_estimate.tokens).sum();
        let rows = plan.included.len() + plan.excluded.len();
        let left_out: u64 = plan.excluded.iter().map(|item| item.count).sum();
        let overview = Overview::new(html);
        let (included, excluded) = (items.included(), items.excluded());
        let data = Data::new(
            html,
            // The budget map and the timeline add items to the same catalog, which numbers them consistently.
            std::mem::replace(&mut items.catalog, Catalog::new(html.redact)),
            overview.cells(),
            &items.inside,
        );
        // `rows` counts all rows of the plan, `listed` only those on the page.
        let listed = included.len() + excluded.len();
        // The title has no token count, because the slider would make it wrong.
        let default_title = || format!("Prompt for {}", short(&plan.model));
        Self {
            title: visible(&html.title.clone().unwrap_or_else(default_title)),
            model: visible(&short(&plan.model)),
            redacted: html.redact,
            fill: Fill::new(plan),
            data: data.json(),
            overview,
            cost: Money::new(html),
            inside: items.inside.len(),
            slider: html.budget_map.is_some(),
            not_listed: if items.not_listed == 0 { String::new() } else { grouped(items.not_listed as u64) },
            pressure: Pressure::new(plan),
            prefix: plan.repeated().map(|prefix| Reuse {
                percent: percent(
                    prefix.tokens.min(plan.estimated_tokens_total.tokens),
                    plan.estimated_tokens_total.tokens,
                ),
                says: visible(&repeats(plan, &prefix)),
                bar: Bar::new(
                    &[("same", prefix.tokens)],
                    plan.estimated_tokens_total.tokens,
                    plan.estimated_tokens_total.tokens,
                ),
            }),
            overflow: plan.overflow.as_ref().map(|overflow| Over::new(plan, overflow)),
            notices: plan.notices.iter().map(|notice| notice_text(notice, html.redact)).collect(),
            timeline: Timeline::new(html),
            formula: words::formula(plan),
            facts: facts(plan),
            sections: section_bars(plan),
            ledger: plan
                .overhead
                .iter()
                .map(|line| Line {
                    what: words::overhead(line.what),
                    tokens: signed(line.tokens),
                    certainty: line.certainty.name(),
                })
                .collect(),
            ledger_total: signed(overhead),
            items_total: grouped(items_total),
            included,
            excluded,
            rows: grouped(listed as u64),
            many: rows > MANY_ROWS,
            left_out: grouped(left_out),
            explained: explained(html.explanations.len(), rows),
            fingerprint: plan.fingerprint(),
        }
    }
}

/// Describes the number of rows with an explanation of the budgets that change them.
fn explained(explanations: usize, rows: usize) -> String {
    match explanations {
        0 => "This page has no explanations.".into(),
        some if some < rows => {
            format!(
                "{} of these rows show the budgets at which their items are in the prompt.",
                grouped(some as u64)
            )
        }
        _ => "Each row shows the budgets at which its item is in the prompt.".into(),
    }
}

impl Fill {
    fn new(plan: &ContextPlan) -> Self {
        let (total, budget) = (plan.estimated_tokens_total.tokens, plan.prompt_budget);
        let over = plan.overflow_tokens();
        let says = if over > 0 {
            format!("over budget by {}", grouped(over))
        } else {
            format!("fits, {} free", grouped(plan.left_over()))
        };
        Self {
            total: number(plan.estimated_tokens_total),
            budget: grouped(budget),
            percent: percent(total, budget),
            says,
            over: over > 0,
        }
    }
}

impl Money {
    fn new(html: &Html<'_>) -> Option<Self> {
        let total = html.plan.estimated_tokens_total.tokens;
        let repeated = html.plan.repeated().map_or(0, |prefix| prefix.tokens);
        let cost = html.model?.input_cost(total, repeated, html.terms)?;
        let parts = [
            (cost.read, "from the cache"),
            (cost.written, "written to the cache"),
            (cost.plain, "not cached"),
        ];
        let parts = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
        let parts: Vec<String> =
            parts.map(|(tokens, what)| format!("{} tokens {what}", grouped(tokens))).collect();
        Some(Self {
            cost: dollars(cost.billionths),
            says: parts.join(", "),
            uncached: dollars(cost.uncached),
        })
    }
}

impl Pressure {
    fn new(plan: &ContextPlan) -> Self {
        let usage = &plan.usage;
        let (level, class) = match usage.level {
            Level::Normal => ("OK", "calm"),
            Level::Approaching => ("approaching the limit", "near"),
            Level::AtLimit if usage.percent > 100 => {
                ("does not fit completely: older messages are dropped", "full")
            }
            Level::AtLimit => ("at the limit", "full"),
        };
        let (tokens, limit) = (usage.conversation_tokens.tokens, usage.limit);
        let limited = limit > 0;
        Self {
            tokens: number(usage.conversation_tokens),
            limit: if limited { grouped(limit) } else { "an unknown context window".into() },
            percent: if limited { crate::usage_percent(usage) } else { "unknown".into() },
            level,
            high: usage.level != Level::Normal,
            from: if usage.reported { "from the provider's last usage report" } else { "local count" },
            bar: Bar::new(&[(class, tokens)], limit.max(tokens), limit),
        }
    }
}

impl Over {
    fn new(plan: &ContextPlan, overflow: &Overflow) -> Self {
        let remedies = overflow.remedies.iter().map(|one| visible(&remedy(one, &plan.limits)));
        Self {
            by: grouped(overflow.tokens),
            largest: visible(&words::largest(plan)),
            conflict: visible(&words::conflict(overflow)),
            remedies: remedies.collect(),
        }
    }
}

/// Returns the rule id and the sentence of a notice. A quotation between grave accents can be a speaker's
/// name, so a redacted page omits it.
fn notice_text(notice: &Notice, redact: bool) -> (&'static str, String) {
    let quoted = notice.text.find('`').zip(notice.text.rfind('`')).filter(|(from, to)| redact && from < to);
    let sentence = match quoted {
        Some((from, to)) => {
            let text = format!("{}…{}", &notice.text[..from], &notice.text[to + 1..]);
            let mut short = notice.clone();
            short.text = text;
            words::sentence(&short)
        }
        None => words::sentence(notice),
    };
    (notice.rule(), visible(&sentence))
}

/// Returns further facts about the plan: limits, history start, cleared tool results and provider.
fn facts(plan: &ContextPlan) -> Vec<(&'static str, String)> {
    let mut facts = vec![("limits", visible(&words::limits(plan)))];
    let window = plan.window_start.as_ref().map(|id| format!("from {}", visible(&short(id.as_str()))));
    facts.extend(window.map(|window| ("history", window)));
    let cleared = plan.cleared_before.as_ref().map(|id| visible(&short(id.as_str())));
    facts.extend(cleared.map(|id| ("tool results", format!("sent as stubs before {id}"))));
    facts.push(("provider", visible(&short(&plan.provider))));
    facts
}

fn section_bars(plan: &ContextPlan) -> Vec<SectionBar> {
    // All bars have one scale, so that their lengths can be compared.
    let whole = plan.sections.iter().map(|section| section.budget.max(section.used)).max();
    let whole = whole.unwrap_or_default();
    let bar_of = |section: &context_window::plan::SectionUse| SectionBar {
        name: section.section.name(),
        title: row::section(section.section),
        share: tenths(section.share),
        cap: section.cap.map_or_else(|| "none".into(), grouped),
        budget: grouped(section.budget),
        used: grouped(section.used),
        included: grouped(section.included),
        excluded: grouped(section.excluded),
        bar: Bar::new(
            &[(section.section.name(), section.used), ("free", section.budget.saturating_sub(section.used))],
            whole,
            // If a section uses more than its budget, a mark shows the budget's end.
            if section.used > section.budget { section.budget } else { 0 },
        ),
    };
    plan.sections.iter().map(bar_of).collect()
}
