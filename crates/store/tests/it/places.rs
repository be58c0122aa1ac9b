//! Stores of each kind in this build. PostgreSQL is tested if the crate has its feature and the machine its
//! server.

use crate::support::stores::places;
pub use places::{Folder, Place, sqlite};

/// Returns a new database in PostgreSQL, or `None` if this build or this machine has none.
pub fn postgres() -> Option<Place> {
    if cfg!(feature = "postgres") { places::postgres() } else { None }
}

/// Returns a new store of each kind.
pub fn both() -> Vec<Place> {
    std::iter::once(sqlite()).chain(postgres()).collect()
}
