//! A count of the JSON values of a text while it is read.

use crate::error::Error;
use context_window::text::{size, size::Tally};

/// Counts the values in the next bytes of a text. Returns an error if the text exceeds the limit of a
/// session.
pub(crate) fn count_values(tally: &mut Tally, bytes: &[u8], name: &str) -> Result<(), Error> {
    tally.count_bytes(bytes, size::VALUES).map_err(|excess| {
        Error::input(format!("{name}:{}", excess.line), size::too_many("the session", size::VALUES))
    })
}
