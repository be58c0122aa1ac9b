//! Conflicts between two writers of one session.

use context_window::text::plain::short;

/// A conflict between the number of entries that a writer expected and the number in the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session `{}`: {}; nothing was written", short(.session), self.standing())]
#[non_exhaustive]
pub struct Conflict {
    /// The id of the session.
    pub session: String,
    /// The number of entries that the writer knows of.
    pub expected: u64,
    /// The number of entries in the store. It is larger if another writer is ahead, and smaller if the
    /// session was deleted.
    pub found: u64,
}

impl Conflict {
    /// Describes the conflict and the remedy.
    fn standing(&self) -> String {
        let Self { expected, found, .. } = self;
        match found {
            0 => format!(
                "the writer expected {expected} entries and the store has 0; the session was deleted, or never saved in this store"
            ),
            _ if found > expected => format!(
                "the store is {} entries ahead ({found}, expected {expected}); load the new entries and try again",
                found - expected
            ),
            _ => format!(
                "the writer is {} entries ahead ({expected}, the store has {found}); the session was deleted and created again, or this is another store",
                expected - found
            ),
        }
    }
}
