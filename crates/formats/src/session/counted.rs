//! Values of a text, counted while it comes in.

use crate::error::Error;
use context_window::text::{size, size::Tally};

/// Counts the values of what was read, as far as a session may have them.
pub(crate) fn count_values(tally: &mut Tally, bytes: &[u8], name: &str) -> Result<(), Error> {
    tally.count_bytes(bytes, size::VALUES).map_err(|excess| {
        Error::input(format!("{name}:{}", excess.line), size::too_many("the session", size::VALUES))
    })
}
