//! Lists of sessions: what a row of one says, and which page is asked for.

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// The model of its newest prompt that was answered; none before the first.
    pub model: Option<String>,
    /// How many messages it has, archived ones included.
    pub messages: u64,
    /// How many entries: its revision.
    pub revision: u64,
    /// What its newest prompt took, in tokens as planned; none before the first.
    pub tokens: Option<u64>,
    /// When it was last written, by the clock of the database: UTC, as in `2026-11-25T13:00:00.000Z`.
    pub updated: String,
    /// Whether it was put away ([`SessionStore::archive`](super::SessionStore::archive)).
    pub archived: bool,
}

/// Which sessions to list, newest first.
///
/// ```
/// use context_window_store::ListOptions;
///
/// let first = ListOptions::new().with_limit(20);
/// ```
#[derive(Debug, Clone)]
pub struct ListOptions {
    pub(super) limit: u32,
    /// `updated` and `id` of the last session of the page before.
    pub(super) after: Option<(String, String)>,
    pub(super) archived: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { limit: 100, after: None, archived: false }
    }
}

impl ListOptions {
    /// The newest 100 sessions that are not put away.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At most so many.
    #[must_use]
    pub fn with_limit(mut self, sessions: u32) -> Self {
        self.limit = sessions;
        self
    }

    /// The page after the one that ends with this session. A session that is written between two pages moves to the front.
    #[must_use]
    pub fn after(mut self, last: &SessionSummary) -> Self {
        self.after = Some((last.updated.clone(), last.id.clone()));
        self
    }

    /// Those that are put away, in place of the others.
    #[must_use]
    pub fn archived(mut self) -> Self {
        self.archived = true;
        self
    }
}
