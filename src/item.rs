use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use std::{fmt, num::NonZeroU32, sync::Arc};

/// The name of one item. Identity is the id, never the text (rule O5); ids order by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(SmolStr);

impl ItemId {
    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates the id a message without one has: `m` and its position in the log.
    #[doc(hidden)]
    #[must_use]
    pub fn for_message(position: u32) -> Self {
        // Planning writes an id for each row, so this does not go through a formatter.
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

// A further section needs:
//
// - `by_name!` in text/name.rs
// - config: `Sections` and its form, validate.rs
// - planner/observer.rs: `BudgetVariable`, its `ALL` and `budget`
// - planner/budget: demand.rs, water_filling.rs (three sections today), `Budgets::value`
// - planner/select: the order in `choose_with`, room.rs
// - planner/candidates: `CandidateId`, `CandidateIndex::minimum`, costs.rs
// - planner/assemble: included.rs, excluded.rs, pressure.rs; planner/telemetry.rs
// - plan/json.rs; crates/report: row.rs, html; `sign` in tui/view/head.rs of the tool
// - crates/plan-inspect/schema: plan.json, config.json; tests/it/oracle
//
// `section as usize` is the index in the order of `Section::ALL`; lists with one entry for each section rely on it.

/// The three sections of a prompt budget. Every item is paid from the budget of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// System texts, leading system messages, focus hint, volatile state and everything pinned.
    SystemPinned,
    /// Turns of the conversation, the live question among them.
    Conversation,
    /// Retrieved documents.
    Rag,
}

impl Section {
    /// All sections, in the order in which ties are broken (rule B5).
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

/// What an item is, whoever pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A system text, a system or developer message, or the focus hint.
    System,
    /// A pinned note.
    Pinned,
    /// A message of the user or the assistant.
    Conversation,
    /// The result of a tool call.
    Tool,
    /// The summary of a compaction.
    Summary,
    /// A retrieved document.
    Rag,
    /// Volatile state of this request: clock, open files.
    State,
    /// A placeholder message or placeholder result that a repair added (rules H2, H5).
    Synthetic,
}

impl Source {
    /// Returns the name of the source in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Pinned => "pinned",
            Self::Conversation => "conversation",
            Self::Tool => "tool",
            Self::Summary => "summary",
            Self::Rag => "rag",
            Self::State => "state",
            Self::Synthetic => "synthetic",
        }
    }
}

/// The kind of item in a plan's row. Use this, not the id, to recognise an item: a message may have the id `focus`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A system text, or a system message before everything else.
    SystemText,
    /// The focus hint of the request.
    FocusHint,
    /// A piece of volatile state of the request.
    State,
    /// A pinned note.
    Note,
    /// A message of the conversation.
    Message,
    /// The summary of a compaction.
    Summary {
        /// The number of the compaction.
        compaction: u32,
    },
    /// A placeholder for a missing tool result (rule H2).
    PlaceholderResult {
        /// The message with the call.
        of: ItemId,
    },
    /// A user message that the provider requires before everything else (rule H5).
    Lead,
    /// An assistant message that the provider requires between tool results and a user message (rule H5).
    Bridge,
    /// A user message that the provider requires at the end (rule H5).
    Continue,
    /// A retrieved document.
    Document,
}

impl ItemKind {
    /// Whether it is a document: their ids are a namespace of their own (rule O5).
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
            Self::Message => "message",
            Self::Summary { .. } => "summary",
            Self::PlaceholderResult { .. } => "placeholder_result",
            Self::Lead => "lead",
            Self::Bridge => "bridge",
            Self::Continue => "continue",
            Self::Document => "document",
        }
    }

    /// Whether it is there only because the provider requires it (rule H5).
    #[must_use]
    pub fn is_required_by_provider(&self) -> bool {
        matches!(self, Self::Lead | Self::Bridge | Self::Continue)
    }
}

/// Which pin goes in first (rule S2). Items that are not pinned are `Normal`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// Dropped last.
    High,
    /// The default.
    #[default]
    Normal,
    /// Dropped first.
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

/// How many more completed turns an item lives (rules T1-T3).
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
    /// Nothing is left: the TTL policy decides what happens.
    NoneRemaining,
    /// So many completed turns are left.
    Limited(NonZeroU32),
    /// It never expires; a pin with it is never dropped (rule S2).
    Unlimited,
}

impl Ttl {
    /// `n` completed turns; 0 reads as [`Ttl::NoneRemaining`] (rule T2).
    #[must_use]
    pub fn turns(n: u32) -> Self {
        NonZeroU32::new(n).map_or(Self::NoneRemaining, Self::Limited)
    }

    /// One turn later (rule T3): one less, and never below zero.
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
            TtlForm::NoneRemaining => Self::NoneRemaining,
            TtlForm::Limited(n) => Self::turns(n),
        })
    }
}

/// A note that stays in the prompt while there is room: preferences, facts, the plan of an agent.
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
    /// Creates a note of normal priority without a TTL: it never expires, but may be dropped for budget (rule
    /// S2).
    #[must_use]
    pub fn new(id: impl Into<ItemId>, text: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), text: text.into(), priority: Priority::Normal, ttl: None }
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets how long the note lives; an explicit [`Ttl::Unlimited`] is never dropped, even over budget.
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

/// A retrieved document: in the prompt whole or not at all (rule S8).
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest, RagItem};
///
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let refunds = RagItem::new("refunds", 0.92, "Refunds take 5 days.").with_origin("faq.md");
/// let request = PlanRequest::new(&log).with_rag([refunds]);
/// // Tuples of score, id and text are documents too.
/// let request = request.with_rag([(0.4, "hours", "Open from 9 to 18.")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RagItem {
    #[doc(hidden)]
    pub id: ItemId,
    #[doc(hidden)]
    pub text: Arc<str>,
    #[doc(hidden)]
    pub score: f64,
    #[doc(hidden)]
    pub origin: Option<Arc<str>>,
    #[doc(hidden)]
    pub ttl: Option<Ttl>,
}

impl RagItem {
    /// Creates a document with its score; larger is better. NaN and infinite scores are refused by
    /// `build_plan`.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, score: f64, text: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), text: text.into(), score, origin: None, ttl: None }
    }

    /// Returns the document's id.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the document's score; larger is better.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Returns the document's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the document comes from: a file, a collection. `max_source_tokens` counts by it (rule S9).
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Sets the caller's own count of how long the document lives; the conversation never ages it.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl<I: Into<ItemId>, T: Into<Arc<str>>> From<(f64, I, T)> for RagItem {
    /// From (score, id, text), the shape that vector stores of the `rig` family return.
    fn from((score, id, text): (f64, I, T)) -> Self {
        Self::new(id, score, text)
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
