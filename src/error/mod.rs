use crate::item::ItemId;
use std::fmt;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod conflict;
mod snippet;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use conflict::Conflict;
pub(crate) use snippet::Snippet;

/// Everything that can go wrong, in one opaque type.
///
/// [`Error::kind`] says which sort of trouble it is; the message names the place (file, line, key or id), what was
/// found, what was expected and what to do.
///
/// ```
/// use context_window::{ErrorKind, Model, io::Session};
///
/// let error = Session::from_json("{\"messages\": [{\"role\": \"robot\"}]}").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Input);
/// println!("{error}"); // line and column, the key, what was found and what was expected
/// ```
#[derive(Debug)]
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The limits leave no tokens for a prompt (rule B1).
    Budget,
    /// A configuration value is unknown, of the wrong type or out of range (rules B4, S9).
    Config,
    /// A token counter failed or is not available.
    Count,
    /// A session, message or retrieved document cannot be used as it is.
    Input,
    /// A chat template cannot be read, or refuses the messages; or the template of a page fails.
    Template,
    /// No item has the id that was given.
    NotFound,
    /// The answer to a request for a summary holds none: it is empty, or a tool call. Nothing was archived (rule C5).
    NoSummary,
    /// The conversation was compacted or rewound since a request for a summary was made. Nothing was archived: make a new
    /// request (rule C5).
    Stale,
    /// With this summary the context would not be smaller. Nothing was archived: ask for a shorter one (rule C5).
    NotSmaller,
    /// There is nothing that could be archived.
    NothingToCompact,
    /// A reply is being received, or the log is played back. Nothing was archived: try again after it.
    Busy,
    /// The caller cancelled a compaction. Nothing was archived.
    Cancelled,
    /// The model that was asked for a summary failed: an HTTP error, a time-out, a missing key. Nothing was archived.
    Summariser,
    /// A log on disk cannot be read or written.
    Journal,
    /// A store of sessions cannot be opened, read or written, or what it holds is damaged.
    Store,
    /// Another writer appended to the session, or deleted it: [`Error::conflict`] says who is ahead. Nothing was written.
    Conflict,
    /// The text of an archived message was left in its store, and is needed here. Load it first.
    NotLoaded,
}

impl ErrorKind {
    /// Whether a compaction was not made. Nothing was archived then (rule C5).
    #[must_use]
    pub fn is_of_compaction(self) -> bool {
        matches!(
            self,
            Self::NoSummary
                | Self::Stale
                | Self::NotSmaller
                | Self::NothingToCompact
                | Self::Busy
                | Self::Cancelled
                | Self::Summariser
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error(
        "no tokens left for a prompt: {formula} leaves {left} tokens; raise context_len, lower max_completion or safety_buffer, or set a budget"
    )]
    NoBudget { formula: String, left: i128 },
    #[error("no tokens left for a prompt: the budget is 0; expected 1 token or more")]
    NothingAsked,
    #[error("{key}: {found}; expected {expected}")]
    Config { key: String, found: String, expected: String },
    #[error("{place}: {detail}\n{snippet}")]
    ConfigValue { place: String, detail: String, snippet: Snippet },
    #[error("{origin}: {detail}")]
    ConfigFile { origin: String, detail: String },
    #[error("tokenizer `{name}` is not known here; expected one of: {known}{or_file}")]
    Tokenizer { name: String, known: String, or_file: &'static str },
    #[cfg(feature = "hf")]
    #[error("{origin}: {detail}")]
    TokenizerFile { origin: String, detail: String },
    #[error("counter `{counter}` failed")]
    Count {
        counter: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("id `{id}` is used twice: by {first} and by {second}; ids name one item each (rule O5)")]
    DuplicateId { id: ItemId, first: String, second: String },
    #[error("id `{id}` is not in the conversation: {hint}")]
    UnknownId { id: ItemId, hint: &'static str },
    #[error("no item has the id `{id}`; expected the id of a message, note, document or system text{hint}")]
    Nowhere { id: String, hint: String },
    #[error("score of RAG item `{id}` is {score}; expected a finite number (rule S8)")]
    Score { id: ItemId, score: f64 },
    #[error(
        "call `{call}` of message `{message}` has no result, and `conversation.repair` is \"reject\" (rule H2); push the result, or set repair to \"synthesize\" or \"drop\""
    )]
    MissingResult { message: ItemId, call: String },
    #[cfg(feature = "chat-template")]
    #[error("chat template {origin}: {detail}")]
    Template { origin: String, detail: String },
    #[cfg(feature = "html")]
    #[error("the page's own template fails, a fault of context-window: {detail}")]
    Page { detail: String },
    #[error("{place}: {detail}")]
    Input { place: String, detail: String },
    #[error("the answer holds {found}, no summary; nothing was archived")]
    NoSummary { found: &'static str },
    #[error(
        "the conversation was compacted or rewound since this request was made; nothing was archived, make a new one"
    )]
    StaleSummary,
    #[error(
        "with this summary the context would take {after} tokens, {before} without; nothing was archived, make it shorter"
    )]
    NotSmaller { before: u64, after: u64 },
    #[error("a reply is being received, or the log played back; nothing was archived, try again after it")]
    NotNow,
    #[error("there is nothing that could be archived")]
    NothingToCompact,
    #[error("model.default.tokenizer: {0}")]
    DefaultTokenizer(Error),
    #[cfg(feature = "genai")]
    #[error("`{model}` made no summary: {what}; nothing was archived")]
    Summariser { model: String, what: String },
    #[cfg(feature = "genai")]
    #[error("the compaction was cancelled; nothing was archived")]
    Cancelled,
    #[error("{place}: {detail}")]
    Journal { place: String, detail: String },
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[error("{place}: {detail}")]
    Store { place: String, detail: String },
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[error("{0}")]
    Conflict(Conflict),
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[error(
        "{place}: has no session `{id}`; the list of sessions says which there are (`SessionStore::list`, `--list`)"
    )]
    NoSession { place: String, id: String },
    #[error(
        "the text of an archived message is needed, and was left in the store; load it with SessionStore::load_rest"
    )]
    NotLoaded,
}

impl Error {
    /// What is wrong with the tokenizer that the options name.
    pub(crate) fn of_default_tokenizer(self) -> Self {
        Self::new(Repr::DefaultTokenizer(self))
    }

    /// Which sort of trouble this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match *self.0 {
            Repr::NoBudget { .. } | Repr::NothingAsked => ErrorKind::Budget,
            Repr::Config { .. }
            | Repr::ConfigValue { .. }
            | Repr::ConfigFile { .. }
            | Repr::DefaultTokenizer(_) => ErrorKind::Config,
            Repr::Tokenizer { .. } | Repr::Count { .. } => ErrorKind::Count,
            #[cfg(feature = "hf")]
            Repr::TokenizerFile { .. } => ErrorKind::Count,
            #[cfg(feature = "chat-template")]
            Repr::Template { .. } => ErrorKind::Template,
            #[cfg(feature = "html")]
            Repr::Page { .. } => ErrorKind::Template,
            Repr::NoSummary { .. } => ErrorKind::NoSummary,
            Repr::NotNow => ErrorKind::Busy,
            Repr::StaleSummary => ErrorKind::Stale,
            Repr::NotSmaller { .. } => ErrorKind::NotSmaller,
            Repr::NothingToCompact => ErrorKind::NothingToCompact,
            #[cfg(feature = "genai")]
            Repr::Summariser { .. } => ErrorKind::Summariser,
            #[cfg(feature = "genai")]
            Repr::Cancelled => ErrorKind::Cancelled,
            Repr::UnknownId { .. } | Repr::Nowhere { .. } => ErrorKind::NotFound,
            Repr::Journal { .. } => ErrorKind::Journal,
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            Repr::Store { .. } => ErrorKind::Store,
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            Repr::Conflict(_) => ErrorKind::Conflict,
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            Repr::NoSession { .. } => ErrorKind::NotFound,
            Repr::NotLoaded => ErrorKind::NotLoaded,
            Repr::DuplicateId { .. }
            | Repr::Score { .. }
            | Repr::MissingResult { .. }
            | Repr::Input { .. } => ErrorKind::Input,
        }
    }

    /// Of [`ErrorKind::Conflict`], who is ahead.
    #[must_use]
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub fn conflict(&self) -> Option<&Conflict> {
        match &*self.0 {
            Repr::Conflict(conflict) => Some(conflict),
            _ => None,
        }
    }

    /// Whether a compaction failed because there was none to be made any more: that says nothing of summaries.
    pub(crate) fn came_too_late(&self) -> bool {
        matches!(*self.0, Repr::StaleSummary | Repr::NothingToCompact | Repr::NotNow)
    }

    /// Whether a compaction would make nothing smaller.
    pub(crate) fn is_not_smaller(&self) -> bool {
        matches!(*self.0, Repr::NotSmaller { .. })
    }

    pub(crate) fn new(repr: Repr) -> Self {
        Self(Box::new(repr))
    }

    /// The template of a page fails.
    #[cfg(feature = "html")]
    pub(crate) fn page(error: &minijinja::Error) -> Self {
        Self::new(Repr::Page { detail: error.to_string() })
    }

    /// An id that is nowhere, and one that may have been meant.
    pub(crate) fn nowhere(id: &str, near: Option<ItemId>) -> Self {
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Self::new(Repr::Nowhere { id: id.into(), hint })
    }

    pub(crate) fn config(
        key: impl Into<String>,
        found: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::new(Repr::Config { key: key.into(), found: found.to_string(), expected: expected.into() })
    }

    pub(crate) fn input(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Repr::Input { place: place.into(), detail: detail.into() })
    }

    /// An id used twice, with the place of the session that does so; any other error as it is.
    pub(crate) fn of_session_at(self, place: impl Into<String>) -> Self {
        match *self.0 {
            Repr::DuplicateId { .. } => Self::input(place, self.to_string()),
            _ => self,
        }
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
