//! Lists of sessions: the rows, and the selection of a page.

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session's id.
    pub id: String,
    /// The model of the newest answered prompt. `None` before the first one.
    pub model: Option<String>,
    /// The number of messages, including archived ones.
    pub messages: u64,
    /// The revision, which is the number of entries.
    pub revision: u64,
    /// The planned tokens of the newest prompt. `None` before the first one.
    pub tokens: Option<u64>,
    /// The time of the last write in UTC, by the clock of the database, as in `2026-11-25T13:00:00.000Z`.
    pub updated: String,
    /// True if the session is archived ([`SessionStore::archive`](super::SessionStore::archive)).
    pub archived: bool,
}

/// A selection of sessions to list, newest first.
///
/// ```
/// use context_window_store::ListOptions;
///
/// let first = ListOptions::new().with_limit(20);
/// ```
#[derive(Debug, Clone)]
pub struct ListOptions {
    pub(super) limit: u32,
    /// The `updated` and `id` of the last session on the previous page.
    pub(super) after: Option<(String, String)>,
    pub(super) archived: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { limit: 100, after: None, archived: false }
    }
}

impl ListOptions {
    /// Creates a selection of the newest 100 sessions that are not archived.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of sessions.
    #[must_use]
    pub fn with_limit(mut self, sessions: u32) -> Self {
        self.limit = sessions;
        self
    }

    /// Selects the page after the one that ends with `last`. A session that is written in the meantime moves
    /// to the first page.
    #[must_use]
    pub fn after(mut self, last: &SessionSummary) -> Self {
        self.after = Some((last.updated.clone(), last.id.clone()));
        self
    }

    /// Selects archived sessions instead of the others.
    #[must_use]
    pub fn archived(mut self) -> Self {
        self.archived = true;
        self
    }
}
