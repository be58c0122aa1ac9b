//! Results on standard output.

use anyhow::{Context, Result};
use std::io::{self, Write};

/// Writes a whole result at once and flushes it, so that a full disk is an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("standard output cannot be written")
}
