//! JSON that a provider wrote, with the values of neutral fields taken out and filled in again (rule H6).

use crate::text::object::Object;
use serde::Serialize;
use serde_json::value::RawValue;

/// The JSON value that a key holds while a message has it in a field of its own.
const EMPTIED: &str = "\"\"";

/// A key of a provider's object, and the value that a neutral field gives it.
pub(super) enum Fill<'a> {
    /// A JSON value.
    Value(&'a str, String),
    /// An object with keys of its own.
    Inside(&'a str, Vec<Fill<'a>>),
}

impl<'a> Fill<'a> {
    /// Returns the fill of a key with a text.
    pub(super) fn text(key: &'a str, text: &str) -> Self {
        Self::Value(key, json(text))
    }
}

/// Returns the JSON text of a value.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Empties the keys that hold the values of neutral fields.
pub(super) fn empty(object: &mut Object, fills: &[Fill<'_>]) {
    for fill in fills {
        match fill {
            Fill::Value(key, value) => {
                // A text may be spelt with other escapes.
                let is_same_text = || {
                    let text = serde_json::from_str::<String>(value).ok();
                    text.is_some() && object.text(key) == text
                };
                if object.get(key) == Some(value) || is_same_text() {
                    object.set(key, EMPTIED.into());
                }
            }
            Fill::Inside(key, fills) => change_inside(object, key, |inner| empty(inner, fills)),
        }
    }
}

/// Fills the emptied keys.
pub(super) fn fill(object: &mut Object, fills: &[Fill<'_>]) {
    for key in fills {
        match key {
            Fill::Value(key, value) => {
                if object.get(key) == Some(EMPTIED) {
                    object.set(key, value.clone());
                }
            }
            Fill::Inside(key, fills) => change_inside(object, key, |inner| fill(inner, fills)),
        }
    }
}

fn change_inside(object: &mut Object, key: &str, change: impl Fn(&mut Object)) {
    if let Some(mut inner) = object.get(key).and_then(Object::parse) {
        change(&mut inner);
        object.set(key, inner.to_json());
    }
}

/// Returns a provider's object with its keys filled, and a cache mark at its beginning. Returns `None` if it
/// is no object.
pub(super) fn filled(json: &str, fills: &[Fill<'_>], mark: Option<(&str, String)>) -> Option<Box<RawValue>> {
    let mut object = Object::parse(json)?;
    fill(&mut object, fills);
    let mut json = object.to_json();
    if let Some((key, mark)) = mark {
        let comma = if json == "{}" { "" } else { "," };
        json = format!("{{\"{key}\":{mark}{comma}{}", &json[1..]);
    }
    RawValue::from_string(json).ok()
}
