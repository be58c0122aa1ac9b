use crate::item::ItemId;
use crate::text::plain::{bounded, short, short_path};
use std::fmt;

mod snippet;

pub(crate) use snippet::Snippet;

/// The error type of this crate.
///
/// [`Error::kind`] returns the kind of error. The message names the place (file, line, key or id), the value
/// found, the expected value and a remedy.
///
/// ```
/// use context_window::{Config, ErrorKind};
///
/// let error = Config::from_toml("[rag]\nfill = \"all\"", "config.toml").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Config);
/// println!("{error}"); // file, line and column, the key, what was found and what was expected
/// ```
#[derive(Debug)]
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The limits leave no tokens for a prompt (rule B1) or for a summary request (rule C8).
    Budget,
    /// A configuration value is unknown, of the wrong type or out of range (rules B4, S9).
    Config,
    /// A token counter failed or is not available.
    Count,
    /// A session, message or retrieved document is not usable as it is.
    Input,
    /// A chat template cannot be parsed, or rejects the messages.
    Template,
    /// No item has the given id.
    NotFound,
    /// The response to a summary request contains no summary: it is empty, or a tool call. Nothing was
    /// archived (rule C5).
    NoSummary,
    /// The conversation was compacted or rewound after the summary request was made. Nothing was archived;
    /// make a new request (rule C5).
    Stale,
    /// The context would not be smaller with this summary. Nothing was archived; request a shorter summary
    /// (rule C5).
    NotSmaller,
    /// No message can be archived.
    NothingToCompact,
    /// A reply is being received, or the log is being played back. Nothing was archived; try again
    /// afterwards.
    Busy,
    /// The text of an archived message is required but was not loaded from its store. Load it first.
    NotLoaded,
}

impl ErrorKind {
    /// Returns true if the error is a compaction that was not made. Nothing was archived then (rule C5).
    #[must_use]
    pub fn is_compaction(self) -> bool {
        matches!(self, Self::NoSummary | Self::Stale | Self::NotSmaller | Self::NothingToCompact | Self::Busy)
    }
}

#[derive(Debug, thiserror::Error)]
/// The content of an [`Error`], one variant for each message text.
pub(crate) enum Repr {
    #[error(
        "no tokens left for a prompt: {formula} leaves {left} tokens; raise context_len, lower max_completion or safety_buffer, or set a budget"
    )]
    NoBudget { formula: String, left: i128 },
    #[error("no tokens left for a prompt: the budget is 0; expected 1 token or more")]
    ZeroBudget,
    #[error("{}: {}; expected {}", short_path(.key), bounded(.found), bounded(.expected))]
    Config { key: String, found: String, expected: String },
    #[error("{place}: {}\n{snippet}", bounded(.detail))]
    ConfigValue { place: String, detail: String, snippet: Snippet },
    #[error("{origin}: {}", bounded(.detail))]
    ConfigFile { origin: String, detail: String },
    #[error(transparent)]
    Counter(context_window_tokens::Error),
    #[error("id `{}` is used twice: by {first} and by {second}; expected a unique id for each item (rule O5)", short(.id.as_str()))]
    DuplicateId { id: ItemId, first: String, second: String },
    #[error("id `{}` is not in the conversation: {hint}", short(.id.as_str()))]
    UnknownId { id: ItemId, hint: &'static str },
    #[error("no item has the id `{}`; expected the id of a message, note, document or system text{hint}", short(.id))]
    ItemNotFound { id: String, hint: String },
    #[error("score of RAG item `{}` is {score}; expected a finite number (rule S8)", short(.id.as_str()))]
    Score { id: ItemId, score: f64 },
    #[error("RAG items require each other: {}; expected one that requires none of the others (rule S18)", cycle(.ids))]
    RequirementCycle { ids: Vec<ItemId> },
    #[error("RAG item `{}` has {count} variants; expected at most {most} (rule S17)", short(.id.as_str()))]
    TooManyVariants { id: ItemId, count: usize, most: usize },
    #[error("RAG item `{}` has two variants named `{}`; expected different names (rule S17)", short(.id.as_str()), short(.name))]
    RepeatedVariant { id: ItemId, name: String },
    #[error("RAG item `{}` has a group and requires others; expected one of the two (rule S19)", short(.id.as_str()))]
    DependentInGroup { id: ItemId },
    #[error(
        "the provider refuses citations together with structured output (rule S20); set rag.format = \"text\", or ask for plain text"
    )]
    CitedStructuredOutput,
    #[error(
        "call `{call}` of message `{}` has no result, and `conversation.repair` is \"reject\" (rule H2); push the result, or set repair to \"synthesize\" or \"drop\"",
        short(.message.as_str())
    )]
    MissingResult { message: ItemId, call: String },
    #[cfg(feature = "chat-template")]
    #[error("chat template {origin}: {}", bounded(.detail))]
    Template { origin: String, detail: String },
    #[error("{}: {}", short_path(.place), bounded(.detail))]
    Input { place: String, detail: String },
    #[error("expected a summary, found {found}; nothing was archived")]
    NoSummary { found: &'static str },
    #[error(
        "the conversation was compacted or rewound since this request was made; nothing was archived; make a new request"
    )]
    StaleSummary,
    #[error(
        "with this summary the context would have {after} tokens, {before} without it; nothing was archived; expected a shorter summary"
    )]
    NotSmaller { before: u64, after: u64 },
    #[error(
        "a reply is being received, or the log is being played back; nothing was archived; try again afterwards"
    )]
    Busy,
    #[error(
        "an earlier summary and the newest messages do not fit a request of {window} tokens to `{}`, and a new summary without the earlier one would lose its content; nothing was archived; make the request for a model with a longer context (for_summariser) or compact without a model (fall_back)",
        short(.model)
    )]
    NoRequest { model: String, window: u64 },
    #[error("there are no messages to archive")]
    NothingToCompact,
    #[error("model.default.tokenizer: {0}")]
    DefaultTokenizer(context_window_tokens::Error),
    #[error("the text of an archived message is needed but not loaded; load it with SessionStore::load_rest")]
    NotLoaded,
}

/// Names the first documents of a cycle, with the first one again at its end.
fn cycle(ids: &[ItemId]) -> String {
    const MOST: usize = 8;
    let mut names: Vec<String> = ids.iter().take(MOST).map(|id| short(id.as_str()).into_owned()).collect();
    if ids.len() > MOST {
        names.push(format!("{} more", ids.len() - MOST));
    }
    names.extend(ids.first().map(|id| short(id.as_str()).into_owned()));
    names.join(" -> ")
}

impl Error {
    /// Creates the error for an invalid tokenizer in the configuration.
    pub(crate) fn of_default_tokenizer(error: context_window_tokens::Error) -> Self {
        Self::new(Repr::DefaultTokenizer(error))
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match *self.0 {
            Repr::NoBudget { .. } | Repr::ZeroBudget | Repr::NoRequest { .. } => ErrorKind::Budget,
            Repr::Config { .. }
            | Repr::ConfigValue { .. }
            | Repr::ConfigFile { .. }
            | Repr::DefaultTokenizer(_) => ErrorKind::Config,
            Repr::Counter(_) => ErrorKind::Count,
            #[cfg(feature = "chat-template")]
            Repr::Template { .. } => ErrorKind::Template,
            Repr::NoSummary { .. } => ErrorKind::NoSummary,
            Repr::Busy => ErrorKind::Busy,
            Repr::StaleSummary => ErrorKind::Stale,
            Repr::NotSmaller { .. } => ErrorKind::NotSmaller,
            Repr::NothingToCompact => ErrorKind::NothingToCompact,
            Repr::UnknownId { .. } | Repr::ItemNotFound { .. } => ErrorKind::NotFound,
            Repr::NotLoaded => ErrorKind::NotLoaded,
            Repr::DuplicateId { .. }
            | Repr::Score { .. }
            | Repr::RequirementCycle { .. }
            | Repr::TooManyVariants { .. }
            | Repr::RepeatedVariant { .. }
            | Repr::DependentInGroup { .. }
            | Repr::CitedStructuredOutput
            | Repr::MissingResult { .. }
            | Repr::Input { .. } => ErrorKind::Input,
        }
    }

    /// Returns true if a compaction failed because the log changed in the meantime or is busy. All other
    /// failures count as stalled attempts, so that a loop of retries ends.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(*self.0, Repr::StaleSummary | Repr::Busy)
    }

    /// Returns true if a compaction would not make the context smaller.
    pub(crate) fn is_not_smaller(&self) -> bool {
        matches!(*self.0, Repr::NotSmaller { .. })
    }

    pub(crate) fn new(repr: Repr) -> Self {
        // Boxed, so that a `Result` stays the size of a pointer.
        Self(Box::new(repr))
    }

    /// Creates the error for an unknown id, with a suggestion if another id is similar.
    pub(crate) fn item_not_found(id: &str, near: Option<ItemId>) -> Self {
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Self::new(Repr::ItemNotFound { id: id.into(), hint })
    }

    /// Creates the error for an invalid configuration value.
    pub(crate) fn config(
        key: impl Into<String>,
        found: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::new(Repr::Config { key: key.into(), found: found.to_string(), expected: expected.into() })
    }

    /// Creates the error for unusable input at a place.
    pub(crate) fn input(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Repr::Input { place: place.into(), detail: detail.into() })
    }

    /// Returns true if an id is used twice.
    #[doc(hidden)]
    #[must_use]
    pub fn is_duplicate_id(&self) -> bool {
        matches!(*self.0, Repr::DuplicateId { .. })
    }
}

/// Converts a failed count to an error of kind `Count`, which stops the plan.
impl From<context_window_tokens::Error> for Error {
    fn from(error: context_window_tokens::Error) -> Self {
        Self::new(Repr::Counter(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
