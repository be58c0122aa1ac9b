//! The error of this crate.

use context_window::text::plain::{bounded, short_path};
use std::path::Path;

/// An error of an index file. Its message names the file, the problem and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", short_path(.place), bounded(.detail))]
pub struct Error {
    place: String,
    detail: String,
}

impl Error {
    pub(crate) fn file(path: &Path, problem: &str, error: &std::io::Error) -> Self {
        let detail = format!("{problem}: {error}; check the folder and its permissions");
        Self { place: path.display().to_string(), detail }
    }
}
