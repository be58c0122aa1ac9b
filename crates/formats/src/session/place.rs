//! The position of a session's text in its file, for errors.

use crate::error::Error;
use context_window::text::plain;
use serde::de::DeserializeOwned;

/// The position of a session's text in its file, for errors.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
}

impl Place<'_> {
    pub(super) fn parse<T: DeserializeOwned>(self, text: &str) -> Result<T, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.inner();
            let line = self.line + inner.line().saturating_sub(1);
            let place = format!("{}:{line}:{}", self.name, inner.column());
            let key = if path == "." { String::new() } else { format!("{path}: ") };
            Error::input(place, format!("{key}{}", plain::without_place(inner)))
        })
    }

    /// Reads what stands under a key of a text that was read before.
    pub(super) fn parse_part<T: DeserializeOwned>(self, key: &str, text: &str) -> Result<T, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let key = if path == "." { key.to_owned() } else { format!("{key}.{path}") };
            self.fault(&key, &plain::without_place(error.inner()))
        })
    }

    pub(super) fn fault(self, key: &str, detail: &str) -> Error {
        Error::input(format!("{}:{}", self.name, self.line), format!("{key}: {detail}"))
    }
}
