//! One row of a plan in words, as every report, page and widget writes it.

use super::{columns, grouped, printable};
use crate::{
    analysis::prefix::{Prefix, PrefixCause},
    item::{ItemKind, Priority, Source, Ttl},
    message::Role,
    plan::{
        ContextPlan, Decision, ExcludedItem, PlannedItem,
        reason::{ExcludedReason, HeldBy, IncludedReason, PolicyRule},
    },
    tokens::{Certainty, TokenCount},
};
use std::fmt::Write as _;

/// One row of a plan in words. Nothing in it is anything that a terminal would act on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowText {
    /// Its id, or those of the run it stands for: `m1..m4 (4)`.
    pub id: String,
    /// What it costs, with a mark where that is a bound or an estimate.
    pub tokens: String,
    /// Why it is in or out.
    pub why: String,
}

/// A row of this plan in words.
#[must_use]
pub fn row(plan: &ContextPlan, row: Decision<'_>) -> RowText {
    match row {
        Decision::Included(item) => {
            RowText { id: short(item.id.as_str()), tokens: number(item.tokens), why: why_in(plan, item) }
        }
        Decision::Excluded(item) => RowText { id: run(item), tokens: bound(item), why: why_out(item) },
    }
}

/// What is left of an item's life, in words.
#[must_use]
pub fn ttl(left: Ttl) -> String {
    match left {
        Ttl::Limited(turns) if turns.get() == 1 => "1 turn left".into(),
        Ttl::Limited(turns) => format!("{turns} turns left"),
        Ttl::NoneRemaining => "no turn left".into(),
        Ttl::Unlimited => "never dropped".into(),
    }
}

/// Why an item is in, in words.
fn why_in(plan: &ContextPlan, item: &PlannedItem) -> String {
    let mut why = match item.reason {
        IncludedReason::Required => format!("always sent: {}", what_is_required(plan, item)),
        IncludedReason::Pinned => match item.source {
            Source::Pinned => "pinned note".into(),
            _ => format!("pinned: {}", speaker(item)),
        },
        IncludedReason::Recent => format!("recent: {}", speaker(item)),
        IncludedReason::Relevant => "relevant document".into(),
        IncludedReason::Summary => "summary of what is archived".into(),
    };
    if item.priority != Priority::Normal {
        let _ = write!(why, ", priority {}", item.priority.name());
    }
    if let Some(left) = item.ttl {
        let _ = write!(why, ", {}", ttl(left));
    }
    why
}

fn what_is_required(plan: &ContextPlan, item: &PlannedItem) -> &'static str {
    match (item.source, item.role) {
        (Source::System, _) if item.kind == ItemKind::FocusHint => "focus hint",
        (Source::System, _) => "system text",
        (Source::State, _) => "state",
        (_, Some(Role::User)) if plan.live.as_ref() == Some(&item.id) => "the question",
        (Source::Synthetic, Some(Role::Tool)) => "a made-up result",
        (Source::Synthetic, _) => "the target demands it",
        (Source::Tool, _) => "a result of the running call",
        (_, Some(Role::Assistant)) if plan.live.is_some() => "the running call",
        _ => "the newest message",
    }
}

fn speaker(item: &PlannedItem) -> &'static str {
    match (item.source, item.role) {
        (Source::Tool, _) => "tool result",
        (Source::Synthetic, Some(Role::Tool)) => "made-up result",
        (Source::Synthetic, _) => "made up for the target",
        (_, Some(role)) => role.name(),
        (source, None) => source.name(),
    }
}

fn why_out(item: &ExcludedItem) -> String {
    if matches!(&item.reason, ExcludedReason::Duplicate { of } if *of == item.id) {
        return "duplicate: an earlier document has this id".into();
    }
    if matches!(item.reason, ExcludedReason::Archived { .. }) {
        return item.reason.to_string();
    }
    format!("{}: {}", item.reason.name(), printable(&item.reason.to_string()))
}

/// An excluded row's id, or those of the run it stands for.
fn run(item: &ExcludedItem) -> String {
    match &item.last_id {
        Some(last) => {
            format!("{}..{} ({})", short(item.id.as_str()), short(last.as_str()), grouped(item.count))
        }
        None => short(item.id.as_str()),
    }
}

pub(crate) fn number(tokens: TokenCount) -> String {
    let mark = match tokens.certainty {
        Certainty::Exact => "",
        Certainty::AtLeast => ">=",
        Certainty::UpperBound => "<=",
        Certainty::Estimate => "~",
    };
    format!("{mark}{}", grouped(tokens.n))
}

/// An excluded row's number: a bound even where the counter only estimates.
fn bound(item: &ExcludedItem) -> String {
    let weighed = match &item.reason {
        ExcludedReason::Budget { room, held_by: HeldBy::Size | HeldBy::Cap } => {
            item.tokens.n == room.saturating_add(1)
        }
        ExcludedReason::Policy(PolicyRule::MaxItemTokens { .. } | PolicyRule::MaxSourceTokens { .. }) => true,
        _ => false,
    };
    match item.tokens.certainty {
        Certainty::Estimate if weighed => format!(">={}", number(item.tokens)),
        Certainty::Estimate if item.tokens.n > 0 => format!("<={}", number(item.tokens)),
        _ => number(item.tokens),
    }
}

/// A text of a session, cleaned, and cut where nobody reads on: an id may be a megabyte long.
pub(crate) fn short(text: &str) -> String {
    const READ: usize = 300;
    columns::head(text, READ).map_or_else(|| printable(text), |head| printable(head) + "…")
}

/// How much of the last prompt is repeated, and where and why the two part.
pub(crate) fn repeats(prefix: &Prefix) -> String {
    let (tokens, of) = (grouped(prefix.tokens), grouped(prefix.of));
    let all = format!("{tokens} of the last prompt's {of} tokens");
    let (Some(was), Some(cause)) = (&prefix.instead_of, prefix.cause) else { return all };
    let why = match (&prefix.differs_at, cause) {
        (Some(now), PrefixCause::Inserted) => format!("{} stands before it now", short(now.as_str())),
        _ => cause.text().to_owned(),
    };
    format!("{all}, up to {}: {why}", short(was.as_str()))
}
