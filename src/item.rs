use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use std::{fmt, num::NonZeroU32, sync::Arc};

/// The id of an item. Items are identified by id, never by text (rule O5). Ids are ordered by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(SmolStr);

impl ItemId {
    /// Returns the id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates the default id of a message: `m` and its position in the log.
    #[doc(hidden)]
    #[must_use]
    pub fn for_message(position: u32) -> Self {
        // Planning creates an id for each row, so this avoids the overhead of `format!`. It always fits
        // inline.
        let mut digits = [0; 11];
        let (mut at, mut rest) = (digits.len(), position);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        digits[at - 1] = b'm';
        Self(SmolStr::new_inline(str::from_utf8(&digits[at - 1..]).unwrap_or_default()))
    }
}

impl From<&str> for ItemId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for ItemId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl From<&ItemId> for ItemId {
    fn from(id: &ItemId) -> Self {
        id.clone()
    }
}

impl AsRef<str> for ItemId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for ItemId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for ItemId {
    type Err = std::convert::Infallible;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        Ok(id.into())
    }
}

impl PartialEq<str> for ItemId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ItemId {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

// A new section needs changes in:
//
// - `by_name!` in name.rs
// - config: `Sections` and its form, validate.rs
// - planner/observer.rs: `BudgetVariable`, its `ALL` and `budget`
// - planner/budget: demand.rs, water_filling.rs (three sections today), `Budgets::value`
// - planner/select: the order in `choose_with`, room.rs
// - planner/candidates: `CandidateId`, `CandidateIndex::minimum`, costs.rs
// - planner/assemble: included.rs, excluded.rs, pressure.rs; planner/telemetry.rs
// - plan/json.rs; crates/report: row.rs, html; `sign` in tui/view/head.rs of the tool
// - crates/plan-inspect/schema: plan.json, config.json; tests/it/oracle
//
// `section as usize` is the index in `Section::ALL`. Arrays with one entry per section rely on this.

/// The three sections of a prompt budget. Every item is paid for by the budget of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// System texts, leading system messages, focus hint, volatile state and all pinned items.
    SystemPinned,
    /// Turns of the conversation, including the live question.
    Conversation,
    /// Retrieved documents.
    Rag,
}

impl Section {
    /// All sections, in tie-breaking order (rule B5).
    pub const ALL: [Self; 3] = [Self::SystemPinned, Self::Conversation, Self::Rag];

    /// Returns the name of the section in JSON, configuration and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemPinned => "system_pinned",
            Self::Conversation => "conversation",
            Self::Rag => "rag",
        }
    }
}

/// The source of an item, independent of the section that pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A system text, a system or developer message, or the focus hint.
    System,
    /// A pinned note.
    Pinned,
    /// A lasting rule of the user.
    Rule,
    /// A message of the user or the assistant.
    Conversation,
    /// The result of a tool call.
    Tool,
    /// The summary of a compaction.
    Summary,
    /// A retrieved document.
    Rag,
    /// Volatile state of this request, such as clock or open files.
    State,
    /// A synthetic message or tool result that a repair added (rules H2, H5).
    Synthetic,
}

impl Source {
    /// Returns the name of the source in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Pinned => "pinned",
            Self::Rule => "rule",
            Self::Conversation => "conversation",
            Self::Tool => "tool",
            Self::Summary => "summary",
            Self::Rag => "rag",
            Self::State => "state",
            Self::Synthetic => "synthetic",
        }
    }
}

/// The kind of item in a row of a plan. Use it to recognise an item instead of the id, because a message may
/// have the id `focus`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A system text, or a system message at the start of the log.
    SystemText,
    /// The focus hint of the request.
    FocusHint,
    /// A state entry of the request.
    State,
    /// A pinned note.
    Note,
    /// A rule of the user whose message is not in the prompt (rule R1).
    Rule,
    /// A message of the conversation.
    Message,
    /// The summary of a compaction.
    Summary {
        /// The number of the compaction.
        compaction: u32,
    },
    /// A synthetic result for a call without one (rule H2).
    PlaceholderResult {
        /// The message with the call.
        of: ItemId,
    },
    /// A synthetic user message that the provider requires at the start (rule H5).
    Lead,
    /// A synthetic assistant message that the provider requires between tool results and a user message (rule
    /// H5).
    Bridge,
    /// A synthetic user message that the provider requires at the end (rule H5).
    Continue,
    /// A retrieved document.
    Document,
}

impl ItemKind {
    /// Returns true for a document. Ids of documents are a separate namespace (rule O5).
    #[doc(hidden)]
    #[must_use]
    pub fn is_document(&self) -> bool {
        *self == Self::Document
    }

    /// Returns the name of the kind in JSON and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SystemText => "system_text",
            Self::FocusHint => "focus_hint",
            Self::State => "state",
            Self::Note => "note",
            Self::Rule => "rule",
            Self::Message => "message",
            Self::Summary { .. } => "summary",
            Self::PlaceholderResult { .. } => "placeholder_result",
            Self::Lead => "lead",
            Self::Bridge => "bridge",
            Self::Continue => "continue",
            Self::Document => "document",
        }
    }

    /// Returns true if the item exists only because the provider requires it (rule H5).
    #[must_use]
    pub fn is_required_by_provider(&self) -> bool {
        matches!(self, Self::Lead | Self::Bridge | Self::Continue)
    }
}

/// The priority of a pinned item: higher ones are included first (rule S2). Items that are not pinned are
/// `Normal`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// Included first and dropped last.
    High,
    /// The default priority.
    #[default]
    Normal,
    /// Included last and dropped first.
    Low,
}

impl Priority {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// The number of further completed turns that an item lives (rules T1-T3).
///
/// ```
/// use context_window::{Conversation, PinnedItem, Ttl};
///
/// let mut log = Conversation::new();
/// // For three turns, then it expires. `Ttl::Unlimited` would make it undroppable.
/// log.pin(PinnedItem::new("tone", "Answer formally.").with_ttl(Ttl::turns(3)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ttl {
    /// No turns are left. The TTL policy decides the outcome.
    NoneRemaining,
    /// The number of completed turns left.
    Limited(NonZeroU32),
    /// The item never expires. A pin with this TTL is never dropped (rule S2).
    Unlimited,
}

impl Ttl {
    /// Creates a TTL of `n` completed turns. 0 gives [`Ttl::NoneRemaining`] (rule T2).
    #[must_use]
    pub fn turns(n: u32) -> Self {
        NonZeroU32::new(n).map_or(Self::NoneRemaining, Self::Limited)
    }

    /// Returns the TTL after one more turn: one less, at least zero (rule T3).
    pub(crate) fn after_turn(self) -> Self {
        match self {
            Self::Limited(n) => Self::turns(n.get() - 1),
            other => other,
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneRemaining => f.write_str("none_remaining"),
            Self::Limited(n) => write!(f, "limited({n})"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// The JSON form of a [`Ttl`]: `"unlimited"`, `"none_remaining"` or `{"limited": n}`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TtlForm {
    Unlimited,
    NoneRemaining,
    Limited(u32),
}

impl Serialize for Ttl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::NoneRemaining => TtlForm::NoneRemaining,
            Self::Limited(n) => TtlForm::Limited(n.get()),
            Self::Unlimited => TtlForm::Unlimited,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str =
            r#"expected "unlimited", "none_remaining" or {"limited": 3} (completed turns)"#;
        let form = TtlForm::deserialize(deserializer).map_err(|_| serde::de::Error::custom(EXPECTED))?;
        Ok(match form {
            TtlForm::Unlimited => Self::Unlimited,
            // `{"limited": 0}` becomes `NoneRemaining`, so a limited TTL is never zero.
            TtlForm::NoneRemaining => Self::NoneRemaining,
            TtlForm::Limited(n) => Self::turns(n),
        })
    }
}

/// A note that stays in the prompt while there is room: a preference, a fact, or an agent's plan.
///
/// ```
/// use context_window::{Conversation, PinnedItem, Priority};
///
/// let mut log = Conversation::new();
/// log.pin(PinnedItem::new("tone", "Answer formally.").with_priority(Priority::High));
/// assert!(log.is_pinned("tone"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedItem {
    #[doc(hidden)]
    pub id: ItemId,
    #[doc(hidden)]
    pub text: Arc<str>,
    #[serde(default)]
    pub(crate) priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub ttl: Option<Ttl>,
}

impl PinnedItem {
    /// Creates a note of normal priority without a TTL. It never expires, but may be dropped if the budget is
    /// too small (rule S2).
    #[must_use]
    pub fn new(id: impl Into<ItemId>, text: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), text: text.into(), priority: Priority::Normal, ttl: None }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets the TTL of the note. With an explicit [`Ttl::Unlimited`], the note is never dropped, even over
    /// budget.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the priority (default: normal).
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_message_is_its_position() {
        for position in [0, 9, 10, 4_294_967, u32::MAX - 1, u32::MAX] {
            assert_eq!(ItemId::for_message(position).as_str(), format!("m{position}"));
        }
    }
}
