//! Errors of registry files, with their place.

use crate::{
    error::{Error, Repr, Snippet},
    text::plain,
};
use std::ops::Range;

/// Returns the error of a place in the text of a registry file.
pub(super) fn at(text: &str, origin: &str, detail: String, span: Range<usize>) -> Error {
    let snippet = Snippet::of(text, span);
    let place = format!("{origin}:{}:{}", snippet.line, snippet.column);
    Error::new(Repr::ConfigValue { place, detail, snippet })
}

/// Returns the error of a text that is no registry file.
pub(super) fn unreadable(text: &str, origin: &str, error: &toml::de::Error) -> Error {
    at(text, origin, plain::words(error.message()), error.span().unwrap_or_default())
}
