//! Ids in a session file.

use serde::Deserialize;
use std::fmt;

/// An id: a string, or a number that is read as its text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id: a string or a number")]
pub(crate) enum Name {
    Text(String),
    Number(serde_json::Number),
}

impl Name {
    /// Checks whether the id names anything. Mistral's SDK writes `"null"` for a missing id.
    pub(crate) fn is_given(&self) -> bool {
        !matches!(self, Self::Text(text) if text.is_empty() || text == "null")
    }

    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The id of an item. It is never empty.
#[derive(Deserialize)]
#[serde(try_from = "Name")]
pub(crate) struct Id(Name);

impl TryFrom<Name> for Id {
    type Error = &'static str;

    fn try_from(name: Name) -> Result<Self, &'static str> {
        match name {
            // Items with an empty id would be indistinguishable, so it is refused.
            Name::Text(text) if text.is_empty() => Err("expected an id that is not empty, or no id"),
            name => Ok(Self(name)),
        }
    }
}

impl Id {
    pub(crate) fn into_text(self) -> String {
        self.0.into_text()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
