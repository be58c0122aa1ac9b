//! Errors of registry files, with their position.

use crate::{
    error::{Error, Repr, Snippet},
    text::plain,
};
use std::ops::Range;

/// Returns an error about a position in the text of a registry file.
pub(super) fn at(text: &str, origin: &str, detail: String, span: Range<usize>) -> Error {
    let snippet = Snippet::from_span(text, span);
    let place = format!("{origin}:{}:{}", snippet.line, snippet.column);
    Error::new(Repr::ConfigValue { place, detail, snippet })
}

/// Returns the error of a text that is not a registry file.
pub(super) fn unreadable(text: &str, origin: &str, error: &toml::de::Error) -> Error {
    at(text, origin, plain::words(error.message()), error.span().unwrap_or_default())
}
