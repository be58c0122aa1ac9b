//! The composition of a prompt: its tokens by kind, and its largest items.

use super::{BudgetSource, ContextPlan, Overhead, PlannedItem};
use crate::{
    item::{ItemId, ItemKind, Section, Source},
    message::{Message, Role},
    provider::wording,
    tokens::TokenCount,
};
use std::collections::BTreeMap;

/// The kind of content that tokens of a prompt are used for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// System texts and the focus hint.
    System,
    /// Definitions of tools.
    Tools,
    /// Pinned notes.
    Pins,
    /// Summaries of archived messages.
    Summary,
    /// User messages.
    User,
    /// Assistant messages with their tool calls.
    Assistant,
    /// The reasoning of earlier replies.
    Reasoning,
    /// Results of a tool, by its name. The name is empty if no call with that id is in the prompt.
    ToolResults(String),
    /// Documents of a source. The name is empty for documents without a source, and for documents that stay
    /// from earlier questions.
    Documents(String),
    /// Volatile state.
    State,
    /// Text that providers and wire formats require, such as placeholders, headers and wrappers.
    Overhead,
}

impl Kind {
    /// Returns the kind without the name of its tool or source.
    #[must_use]
    pub fn group(&self) -> Self {
        match self {
            Self::ToolResults(_) => Self::ToolResults(String::new()),
            Self::Documents(_) => Self::Documents(String::new()),
            kind => kind.clone(),
        }
    }

    /// Returns the kind in words, such as `tool results: Read`.
    #[must_use]
    pub fn text(&self) -> String {
        let plain = match self {
            Self::System => "system",
            Self::Tools => "tool definitions",
            Self::Pins => "pinned notes",
            Self::Summary => "summaries",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolResults(name) if name.is_empty() => "tool results",
            Self::ToolResults(name) => return format!("tool results: {name}"),
            Self::Documents(source) if source.is_empty() => "documents",
            Self::Documents(source) => return format!("documents: {source}"),
            Self::State => "state",
            Self::Overhead => "overhead",
        };
        plain.into()
    }
}

/// The tokens of a prompt by kind. They sum to the plan's total.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Composition {
    /// Tokens of each kind, the largest first.
    pub kinds: Vec<(Kind, u64)>,
    /// The largest items, in descending order of their tokens.
    pub largest: Vec<LargeItem>,
    /// Tokens of the whole prompt.
    pub total: u64,
    /// Free tokens of the budget; 0 if the prompt exceeds it.
    pub free: u64,
    /// Tokens reserved for the reply; 0 if the request set the budget directly.
    pub reply: u64,
}

/// One of the largest items of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeItem {
    /// The id of the item.
    pub id: ItemId,
    /// The kind of the item.
    pub kind: Kind,
    /// The subject of a tool call, or the file name if the subject is a path. Empty for any other item.
    pub about: String,
    /// The beginning of its text, on one line.
    pub text: String,
    /// The token count of the item.
    pub tokens: TokenCount,
    /// Its share of the whole prompt, per mille.
    pub share: u16,
}

/// Number of characters of a text that are examined for its first line.
const MAX_EXAMINED_CHARS: usize = 400;

impl ContextPlan {
    /// Returns the tokens of the prompt by kind, and its `most` largest items.
    ///
    /// ```
    /// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, plan::Kind};
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// let manager = ContextWindowManager::for_model("gpt-4o")?;
    /// let log =
    ///     Conversation::from([Message::user("How long do refunds take?"), Message::assistant("5 days.")]);
    /// let composition = manager.build_plan(&PlanRequest::new(&log))?.composition(1);
    /// assert_eq!(composition.kinds[0].0, Kind::User);
    /// assert_eq!(composition.largest[0].text, "How long do refunds take?");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn composition(&self, most: usize) -> Composition {
        let mut kinds: BTreeMap<Kind, i128> = BTreeMap::new();
        let mut add = |kind: Kind, tokens: i128| *kinds.entry(kind).or_default() += tokens;
        let mut rows = self.rows_by_kind();
        for RowKind { row, kind, reasoning, .. } in &rows {
            add(Kind::Reasoning, i128::from(*reasoning));
            add(kind.clone(), i128::from(row.token_estimate.tokens - reasoning));
        }
        for line in &self.overhead {
            add(line.what.kind(), i128::from(line.tokens));
        }
        // `sort_by_key` is stable, so items with equal tokens stay in prompt order.
        rows.sort_by_key(|one| std::cmp::Reverse(one.row.token_estimate.tokens));
        let largest = rows.into_iter().take(most).map(|one| LargeItem {
            id: one.row.id.clone(),
            about: one.about(),
            text: first_line(one.row),
            tokens: one.row.token_estimate,
            share: per_mille(one.row.token_estimate.tokens, self.estimated_tokens_total.tokens),
            kind: one.kind,
        });
        Composition {
            largest: largest.collect(),
            kinds: sorted(kinds),
            total: self.estimated_tokens_total.tokens,
            free: self.prompt_budget.saturating_sub(self.estimated_tokens_total.tokens),
            reply: self.reply_reserve(),
        }
    }

    /// Returns the tokens that are reserved for the reply in addition to the budget. Returns 0 if the request
    /// set the budget directly.
    #[doc(hidden)]
    #[must_use]
    pub fn reply_reserve(&self) -> u64 {
        if self.budget_source == BudgetSource::Request { 0 } else { self.limits.max_completion_tokens }
    }

    /// Returns the kind of each row of the prompt, in prompt order.
    #[doc(hidden)]
    #[must_use]
    pub fn rows_by_kind(&self) -> Vec<RowKind<'_>> {
        let mut calls: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        let mut rows = Vec::with_capacity(self.included.len());
        let mut same: BTreeMap<(Section, bool, &ItemId), usize> = BTreeMap::new();
        for row in &self.included {
            let count = same.entry((row.section, row.kind.is_document(), &row.id)).or_default();
            let nth = *count;
            *count += 1;
            // A call comes before its result in the prompt, so one pass is enough.
            for call in row.body.tool_calls() {
                calls.insert(&call.id, (&call.name, &call.arguments));
            }
            let call = row.body.answers().and_then(|id| calls.get(id)).copied();
            rows.push(RowKind {
                row,
                nth,
                kind: kind(row, call.map(|(name, _)| name)),
                reasoning: reasoning_tokens(&row.body, row.token_estimate.tokens),
                arguments: call.map_or("", |(_, arguments)| arguments),
            });
        }
        rows
    }
}

/// The key of a row, unique within a prompt: its section, true for a document, its id, and its number among
/// rows of the same id.
pub type RowKey = (Section, bool, ItemId, usize);

/// A row of a prompt with its kind.
pub struct RowKind<'a> {
    #[doc(hidden)]
    pub row: &'a PlannedItem,
    #[doc(hidden)]
    pub kind: Kind,
    /// Tokens of its reasoning, a part of its tokens.
    #[doc(hidden)]
    pub reasoning: u64,
    /// Its number, from 0, among the rows with this id in its section.
    #[doc(hidden)]
    pub nth: usize,
    /// The arguments of the call that it answers; empty for any other row.
    arguments: &'a str,
}

impl RowKind<'_> {
    /// Returns the key of the row, which no other row of the prompt has.
    #[doc(hidden)]
    #[must_use]
    pub fn key(&self) -> RowKey {
        (self.row.section, self.row.kind.is_document(), self.row.id.clone(), self.nth)
    }

    /// Returns the subject of a tool call, or an empty string for any other row.
    #[must_use]
    pub fn about(&self) -> String {
        if self.row.role == Some(Role::Tool) { about(self.arguments) } else { String::new() }
    }
}

impl Overhead {
    /// Returns the kind of these tokens.
    #[doc(hidden)]
    #[must_use]
    pub fn kind(self) -> Kind {
        if self == Self::Tools { Kind::Tools } else { Kind::Overhead }
    }
}

impl Composition {
    /// Returns the composition with all tool results as one kind, and all documents as one kind.
    #[must_use]
    pub fn by_group(&self) -> Self {
        let mut kinds: BTreeMap<Kind, i128> = BTreeMap::new();
        for (kind, tokens) in &self.kinds {
            *kinds.entry(kind.group()).or_default() += i128::from(*tokens);
        }
        Self { kinds: sorted(kinds), ..self.clone() }
    }

    /// Divides `cells` cells of a grid among the kinds, the free tokens and the reply reserve, by the largest
    /// remainders. Each part that has tokens gets at least one cell, as far as the cells suffice.
    #[doc(hidden)]
    #[must_use]
    pub fn cells(&self, cells: usize) -> GridCells {
        let parts: Vec<u64> =
            self.kinds.iter().map(|(_, tokens)| *tokens).chain([self.free, self.reply]).collect();
        let mut divided = crate::text::plain::by_largest_remainder(&parts, cells);
        // A part with tokens must be visible. It gets a cell from the part with the most cells.
        for at in 0..parts.len() {
            if parts[at] > 0 && divided[at] == 0 {
                // Of parts with equally many cells, the first one gives a cell.
                let most = (0..divided.len()).max_by_key(|other| (divided[*other], usize::MAX - other));
                if let Some(most) = most.filter(|most| divided[*most] > 1) {
                    divided[most] -= 1;
                    divided[at] = 1;
                }
            }
        }
        // The parts are the kinds, then the free tokens, then the reply reserve, and are removed from the
        // end.
        let reply = divided.pop().unwrap_or_default();
        let free = divided.pop().unwrap_or_default();
        GridCells { kinds: divided, free, reply }
    }
}

/// The cells of a grid by content.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GridCells {
    /// Cells of each kind, in the order of [`Composition::kinds`].
    pub kinds: Vec<usize>,
    /// Cells of the free tokens.
    pub free: usize,
    /// Cells of the reply reserve.
    pub reply: usize,
}

/// Returns the kinds with tokens, the largest first. Savings from merging messages are negative counts, which
/// are subtracted from the largest kinds.
fn sorted(kinds: BTreeMap<Kind, i128>) -> Vec<(Kind, u64)> {
    let saved: i128 = kinds.values().filter(|tokens| **tokens < 0).sum();
    let mut sorted: Vec<(Kind, i128)> = kinds.into_iter().filter(|(_, tokens)| *tokens > 0).collect();
    // Ties are ordered by kind, so that equal prompts have equal compositions.
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut left = -saved;
    for (_, tokens) in &mut sorted {
        let filled = left.min(*tokens);
        *tokens -= filled;
        left -= filled;
    }
    let whole = |(kind, tokens): (Kind, i128)| (kind, u64::try_from(tokens).unwrap_or_default());
    sorted.into_iter().map(whole).filter(|(_, tokens)| *tokens > 0).collect()
}

/// Returns the kind of a message outside of the prompt. `tool` is the name of the tool whose call it answers.
#[must_use]
pub fn kind_of_message(message: &Message, tool: Option<&str>) -> Kind {
    match message.role() {
        Role::Tool => Kind::ToolResults(tool.unwrap_or_default().to_owned()),
        Role::Assistant => Kind::Assistant,
        Role::System | Role::Developer => Kind::System,
        Role::User => Kind::User,
    }
}

/// Returns the kind of a row, without the name of its tool.
#[must_use]
pub fn kind_of(row: &PlannedItem) -> Kind {
    kind(row, None)
}

fn kind(row: &PlannedItem, tool: Option<&str>) -> Kind {
    // The first match counts: kinds and sources are more specific than roles.
    match (&row.kind, row.source, row.role) {
        (ItemKind::Document, ..) => Kind::Documents(row.origin().unwrap_or_default().to_owned()),
        (ItemKind::Note | ItemKind::Rule, ..) => Kind::Pins,
        (ItemKind::Summary { .. }, ..) => Kind::Summary,
        // Tool definitions that are sent late are state with opaque parts (late additions, rule S12).
        (ItemKind::State, _, Some(Role::System | Role::Developer)) if row.body.has_opaque_parts() => {
            Kind::Tools
        }
        (ItemKind::State, _, Some(Role::System | Role::Developer))
        | (ItemKind::SystemText | ItemKind::FocusHint, ..) => Kind::System,
        (ItemKind::State, ..) => Kind::State,
        (_, Source::Synthetic, _) => Kind::Overhead,
        (_, _, Some(Role::Tool)) => Kind::ToolResults(tool.unwrap_or_default().to_owned()),
        (_, _, Some(Role::Assistant)) => Kind::Assistant,
        (_, _, Some(Role::System | Role::Developer)) => Kind::System,
        _ => Kind::User,
    }
}

/// Returns the reasoning tokens of a row. This is the number that its reply reported, or its share of the
/// tokens by bytes if that is larger. It is at most all tokens of the row.
pub(crate) fn reasoning_tokens(message: &Message, tokens: u64) -> u64 {
    let reasonings = message.reasoning();
    if reasonings.is_empty() {
        return 0;
    }
    let reasoning_bytes: u64 = reasonings.iter().map(|reasoning| reasoning.text.len() as u64).sum();
    let all: u64 = message.texts().map(|text| text.len() as u64).sum();
    // The product of tokens and bytes may exceed 64 bits.
    let by_bytes = u128::from(tokens) * u128::from(reasoning_bytes) / u128::from(all.max(1));
    let reported: u64 = reasonings.iter().filter_map(|reasoning| reasoning.tokens).sum();
    u64::try_from(by_bytes).unwrap_or_default().max(reported).min(tokens)
}

/// Returns the subject of a call: its first argument that is a string. For a path it is the last component.
pub fn about(arguments: &str) -> String {
    let arguments: serde_json::Value = crate::text::size::tree(arguments).unwrap_or_default();
    let texts = arguments.as_object().into_iter().flat_map(|object| object.values());
    let text =
        texts.filter_map(|value| value.as_str()).find(|text| !text.trim().is_empty()).unwrap_or_default();
    let line = one_line(text);
    // A text with spaces is a command or a sentence, even if it contains a path.
    let is_path = !line.contains(' ') && line.contains('/');
    let name = line.trim_end_matches('/').rsplit('/').next().filter(|_| is_path);
    name.map_or(line.clone(), str::to_owned)
}

/// Returns the beginning of an item's text, on one line. For a document the delimiters are left out.
pub fn first_line(row: &PlannedItem) -> String {
    let message = &row.body;
    if row.kind.is_document() {
        // A document that continues another one has no line before its text.
        return one_line(wording::piece_text(message.text(), row.continues().is_none()));
    }
    let text = message.plain_texts().find(|text| !text.trim().is_empty());
    let call =
        message.tool_calls().first().map(|call| format!("{}({})", call.name, one_line(&call.arguments)));
    text.map(one_line).or(call).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    // Cut before the words are split, because a text may be very long.
    let text: String = text.chars().take(MAX_EXAMINED_CHARS).collect();
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn per_mille(tokens: u64, of: u64) -> u16 {
    u16::try_from(u128::from(tokens) * 1_000 / u128::from(of.max(1))).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_sum_up_and_every_kind_has_one() {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let kinds: Vec<(Kind, u64)> = (0..=next(12))
                .map(|at| (Kind::ToolResults(at.to_string()), 1 + next([3, 100, 100_000][at as usize % 3])))
                .collect();
            let total = kinds.iter().map(|(_, tokens)| tokens).sum();
            let composition =
                Composition { kinds, largest: Vec::new(), total, free: next(50_000), reply: next(20_000) };
            for cells in [50, 100, 200] {
                let grid = composition.cells(cells);
                assert_eq!(grid.kinds.iter().sum::<usize>() + grid.free + grid.reply, cells);
                assert!(grid.kinds.iter().all(|cells| *cells > 0), "{composition:?} {grid:?}");
                assert!((grid.free > 0) == (composition.free > 0));
                // A part with more tokens has no fewer cells, apart from the one cell that every part gets.
                for (a, (_, more)) in grid.kinds.iter().zip(&composition.kinds) {
                    for (b, (_, less)) in grid.kinds.iter().zip(&composition.kinds) {
                        assert!(more < less || a + 1 >= *b, "{composition:?} {grid:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_call_is_about_its_first_text() {
        assert_eq!(about(r#"{"limit": 3, "file_path": "/src/live/session_live.ex"}"#), "session_live.ex");
        assert_eq!(about(r#"{"command": "git  log\n --oneline /tmp"}"#), "git log --oneline /tmp");
        assert_eq!(about("{}"), "");
        assert_eq!(about("no json"), "");
    }
}
