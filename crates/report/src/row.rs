//! The text of one row of a plan, shared by all reports, pages and widgets.

use super::{columns, grouped, percent::percent, printable};
use context_window::{
    ContextPlan, ExcludedItem, ExcludedReason, IncludedReason, ItemId, ItemKind, ListRank, PlannedItem,
    Priority, Role, Section, Source, StandingRule, TokenCount, Ttl,
    analysis::Prefix,
    plan::{Decision, LimitedBy, PolicyRule, PrefixCause},
    tokens::Certainty,
};
use std::{collections::BTreeSet, fmt::Write as _};

/// The text of one row of a plan. It contains no character that a terminal would interpret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowText {
    /// The id of the item, or the first and last id and the count of a run: `m1..m4 (4)`.
    pub id: String,
    /// The tokens of the item, with a mark for a bound or an estimate.
    pub tokens: String,
    /// The reason for its inclusion or exclusion.
    pub why: String,
}

/// Builds the text of one row of this plan. For a document, this takes linear time in the rows of the plan,
/// because its id is compared with all others.
#[must_use]
pub fn row(plan: &ContextPlan, row: Decision<'_>) -> RowText {
    let is_shared = row.is_document() && others(plan).any(|id| id == row.id());
    RowText { id: id(row, is_shared), tokens: tokens(row), why: why(plan, row) }
}

/// Describes the reason for a row of this plan.
#[must_use]
#[doc(hidden)]
pub fn why(plan: &ContextPlan, row: Decision<'_>) -> String {
    match row {
        Decision::Included(item) => {
            let continued = item.continues().map(|id| format!(", continues {}", short(id.as_str())));
            let label = item.label().map(|label| format!(", label [{label}]"));
            included_reason(plan, item)
                + &in_lists(item.ranks())
                + &label.unwrap_or_default()
                + &form(item)
                + &continued.unwrap_or_default()
        }
        Decision::Excluded(item) => excluded_reason(item) + &in_lists(item.ranks()),
    }
}

/// Describes the form of a document that is not sent whole: `, as summary (longer: too large; 39 tokens
/// left)`. Returns an empty text for all other rows.
fn form(item: &PlannedItem) -> String {
    let (Some(name), Some(reason)) = (item.form(), item.form_reason()) else { return String::new() };
    let why = match reason {
        ExcludedReason::Budget { limited_by: LimitedBy::StickyDocuments, .. } => "sent so before".to_owned(),
        other => format!("longer: {}", printable(&other.to_string())),
    };
    format!(", as {} ({why})", printable(name))
}

/// Describes the ranks of a document in several lists: ` (words 2, meaning 5)`. Returns an empty text without
/// lists.
fn in_lists(ranks: &[ListRank]) -> String {
    if ranks.is_empty() {
        return String::new();
    }
    let rank = |rank: &ListRank| format!("{} {}", beginning(&rank.list), grouped(rank.rank));
    format!(" ({})", ranks.iter().map(rank).collect::<Vec<_>>().join(", "))
}

/// A builder for the texts of many rows. It gives the same result as [`row`], but looks up shared ids only
/// once.
pub(crate) struct Rows<'a> {
    plan: &'a ContextPlan,
    /// The ids that a document shares with another item (separate namespaces, rule O5).
    shared: BTreeSet<&'a ItemId>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(plan: &'a ContextPlan) -> Self {
        let included = plan.included.iter().filter(|row| row.kind.is_document()).map(|row| &row.id);
        let excluded = plan.excluded.iter().filter(|row| row.kind.is_document()).map(|row| &row.id);
        let documents: BTreeSet<&ItemId> = included.chain(excluded).collect();
        // Without documents no id can be shared, so the scan of all other rows is skipped.
        let shared = if documents.is_empty() {
            documents
        } else {
            others(plan).filter(|id| documents.contains(id)).collect()
        };
        Self { plan, shared }
    }

    pub(crate) fn row(&self, row: Decision<'_>) -> RowText {
        let is_shared = row.is_document() && self.shared.contains(row.id());
        RowText { id: id(row, is_shared), tokens: tokens(row), why: why(self.plan, row) }
    }
}

/// Returns the ids of all items that are not documents. Of a run, these are the first and the last id.
fn others(plan: &ContextPlan) -> impl Iterator<Item = &ItemId> {
    let included = plan.included.iter().filter(|row| !row.kind.is_document()).map(|row| &row.id);
    let excluded = plan.excluded.iter().filter(|row| !row.kind.is_document());
    included.chain(excluded.flat_map(|row| std::iter::once(&row.id).chain(&row.last_id)))
}

/// Returns the id of a row, or the first and last id of a run. A document that shares its id gets the `rag:`
/// namespace (rule O5, namespaces).
fn id(row: Decision<'_>, is_shared: bool) -> String {
    let namespace = if is_shared { "rag:" } else { "" };
    match row {
        Decision::Included(item) => format!("{namespace}{}", short(item.id.as_str())),
        Decision::Excluded(item) => format!("{namespace}{}", run(item)),
    }
}

fn tokens(row: Decision<'_>) -> String {
    match row {
        Decision::Included(item) => number(item.token_estimate),
        Decision::Excluded(item) => token_bound(item),
    }
}

/// Returns the name of a section for people. [`Section::name`] is its name in JSON and options.
#[must_use]
pub fn section(section: Section) -> &'static str {
    match section {
        Section::SystemPinned => "System + pins",
        Section::Conversation => "Conversation",
        Section::Rag => "Documents",
    }
}

/// Returns the name of a source for people. [`Source::name`] is its name in JSON.
#[must_use]
pub fn source(source: Source) -> &'static str {
    match source {
        Source::Rag => "document",
        Source::Synthetic => "placeholder",
        other => other.name(),
    }
}

/// Describes the remaining TTL of an item.
#[must_use]
pub fn ttl(left: Ttl) -> String {
    match left {
        Ttl::Limited(turns) if turns.get() == 1 => "1 turn left".into(),
        Ttl::Limited(turns) => format!("{turns} turns left"),
        Ttl::NoneRemaining => "expires this turn".into(),
        Ttl::Unlimited => "never expires".into(),
    }
}

/// Describes the reason for an included item.
/// Describes a recalled text by the messages that it quotes.
fn recalled(item: &PlannedItem) -> String {
    match item.quoted_messages() {
        Some([first, last]) if first == last => format!("recalled: {}", short(first.as_str())),
        Some([first, last]) => format!("recalled: {} to {}", short(first.as_str()), short(last.as_str())),
        None => "recalled".into(),
    }
}

/// Describes a rule of the user by its message.
fn standing_rule(plan: &ContextPlan, item: &PlannedItem) -> String {
    let message = plan.rules().iter().find(|rule| *rule.id() == item.id).and_then(StandingRule::message);
    match message {
        Some(message) => format!("standing rule, said in {}", short(message.as_str())),
        None => "standing rule".into(),
    }
}

fn included_reason(plan: &ContextPlan, item: &PlannedItem) -> String {
    let mut why = match item.reason {
        IncludedReason::Required => format!("required: {}", requirement(plan, item)),
        IncludedReason::Pinned => match item.source {
            Source::Pinned => "pinned note".into(),
            _ => format!("pinned: {}", speaker_name(item)),
        },
        IncludedReason::Rule => standing_rule(plan, item),
        IncludedReason::Recent => speaker_name(item).into(),
        IncludedReason::Question => "trimmed turn's question".into(),
        IncludedReason::Relevant => "document".into(),
        IncludedReason::Recalled => recalled(item),
        IncludedReason::Summary => "summary of archived messages".into(),
    };
    if item.priority != Priority::Normal {
        let _ = write!(why, ", priority {}", item.priority.name());
    }
    match item.ttl {
        // A pin without a TTL limit is required, so no budget drops it (undroppable pins, rule S2).
        Some(Ttl::Unlimited) if item.reason == IncludedReason::Pinned => why += ", never dropped",
        Some(left) => why = format!("{why}, {}", ttl(left)),
        None => {}
    }
    why
}

/// Returns the name of a required item for people.
fn requirement(plan: &ContextPlan, item: &PlannedItem) -> &'static str {
    match (item.source, item.role) {
        (Source::System, _) if item.kind == ItemKind::FocusHint => "focus hint",
        (Source::System, _) => "system text",
        (Source::State, _) => "state",
        (_, Some(Role::User)) if plan.live() == Some(&item.id) => "live question",
        (Source::Synthetic, Some(Role::Tool)) => "placeholder result",
        (Source::Synthetic, _) => "placeholder message",
        (Source::Tool, _) => "current tool result",
        (_, Some(Role::Assistant)) if plan.live().is_some() => "current tool call",
        _ => "newest message",
    }
}

/// Returns the author of an item for people, such as `user message` or `tool result`.
fn speaker_name(item: &PlannedItem) -> &'static str {
    match (item.source, item.role) {
        (Source::Tool, _) => "tool result",
        (Source::Synthetic, Some(Role::Tool)) => "placeholder result",
        (Source::Synthetic, _) => "placeholder message",
        (_, Some(Role::User)) => "user message",
        (_, Some(Role::Assistant)) => "assistant message",
        (_, Some(Role::System | Role::Developer)) => "system message",
        (_, Some(role)) => role.name(),
        (other, None) => source(other),
    }
}

/// Describes the reason for an excluded item.
fn excluded_reason(item: &ExcludedItem) -> String {
    let why = printable(&item.reason.to_string());
    match &item.reason {
        ExcludedReason::Duplicate { of } if *of == item.id => {
            "duplicate: an earlier document has this id".into()
        }
        ExcludedReason::Budget { .. } => format!("dropped: {why}"),
        ExcludedReason::Policy(_) => format!("skipped: {why}"),
        _ => why,
    }
}

/// Returns the id of an excluded row, or the first and last id and the count of a run.
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
        // An estimate, or a certainty that this version does not know, proves nothing.
        _ => "~",
    };
    format!("{mark}{}", grouped(tokens.tokens))
}

/// Returns the tokens of an excluded row. If the counter only estimates, they are marked as a bound.
fn token_bound(item: &ExcludedItem) -> String {
    // In these cases counting stopped once the limit was exceeded, so the number is a lower bound.
    let weighed = match &item.reason {
        ExcludedReason::Budget {
            room,
            limited_by:
                LimitedBy::Size
                | LimitedBy::Cap
                | LimitedBy::PinsLimit
                | LimitedBy::RulesLimit
                | LimitedBy::QuestionLimit,
        } => item.token_estimate.tokens == room.saturating_add(1),
        ExcludedReason::Policy(
            PolicyRule::MaxItemTokens { .. }
            | PolicyRule::MaxSourceTokens { .. }
            | PolicyRule::MaxListTokens { .. },
        ) => true,
        _ => false,
    };
    match item.token_estimate.certainty {
        Certainty::Estimate if weighed => format!(">={}", number(item.token_estimate)),
        Certainty::Estimate if item.token_estimate.tokens > 0 => format!("<={}", number(item.token_estimate)),
        _ => number(item.token_estimate),
    }
}

/// The maximum number of characters of an id or a sentence from a session.
const READ: usize = 300;

/// Returns a printable id of a session. An id can be a megabyte long, so a long one loses its middle.
pub(crate) fn short(text: &str) -> String {
    printable(&columns::middle_cut(text, READ).unwrap_or_else(|| text.to_owned()))
}

/// Returns the printable beginning of a sentence that can quote a session.
pub(crate) fn beginning(text: &str) -> String {
    columns::head(text, READ).map_or_else(|| printable(text), |head| printable(head) + "…")
}

/// Describes the cached prefix: its share of this prompt and of the last one, and the cause of its break, if
/// any.
#[must_use]
#[doc(hidden)]
pub fn repeats(plan: &ContextPlan, prefix: &Prefix) -> String {
    let (tokens, all) = (
        // The prefix is measured on the last prompt and can exceed a shorter prompt.
        grouped(prefix.tokens.min(plan.estimated_tokens_total.tokens)),
        grouped(plan.estimated_tokens_total.tokens),
    );
    let kept = percent(prefix.tokens, prefix.of);
    let all = format!("{tokens} of this prompt's {all} tokens, {kept} of the last prompt's items");
    let (Some(was), Some(cause)) = (&prefix.instead_of, prefix.cause) else { return all };
    let why = match (&prefix.differs_at, cause) {
        (Some(now), PrefixCause::Inserted) => format!("{} inserted before it", short(now.as_str())),
        _ => cause.text().to_owned(),
    };
    format!("{all}, breaks at {}: {why}", short(was.as_str()))
}
