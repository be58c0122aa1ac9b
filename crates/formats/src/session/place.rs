//! The position of a session's text in its file, for errors.

use super::path;
use crate::error::Error;
use context_window::text::plain;
use serde::de::DeserializeOwned;

/// The position of a session's text in its file, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
}

impl Place<'_> {
    pub(crate) fn parse<T: DeserializeOwned>(self, text: &str) -> Result<T, Error> {
        read(text).map_err(|error| {
            // The path is computed only after an error, because it parses the text several times.
            let path = path::to_error(&error, text, &|text| read::<T>(text).map(drop));
            let line = self.line + error.line().saturating_sub(1);
            let place = format!("{}:{line}:{}", self.name, error.column());
            let key = if path == "." { String::new() } else { format!("{}: ", plain::short_path(&path)) };
            Error::input(place, format!("{key}{}", plain::without_place(&error)))
        })
    }

    /// Parses the value under a key of a text that was parsed before.
    pub(crate) fn parse_part<T: DeserializeOwned>(self, key: &str, text: &str) -> Result<T, Error> {
        read(text).map_err(|error| {
            let path = path::to_error(&error, text, &|text| read::<T>(text).map(drop));
            let key = if path == "." { key.to_owned() } else { format!("{key}.{path}") };
            self.fault(&key, &plain::without_place(&error))
        })
    }

    pub(crate) fn fault(self, key: &str, detail: &str) -> Error {
        Error::input(format!("{}:{}", self.name, self.line), format!("{}: {detail}", plain::short_path(key)))
    }
}

/// Parses a value from the beginning of a text. Text after the value is ignored.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    T::deserialize(&mut serde_json::Deserializer::from_str(text))
}
