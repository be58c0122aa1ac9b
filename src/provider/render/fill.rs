//! JSON of a provider without the values of neutral fields. These are the fields of a message that are the
//! same for all providers, such as text, name and arguments. Rendering fills the values in again (preserved
//! parts, rule H6).

use crate::text::object::Object;
use serde::Serialize;
use serde_json::value::RawValue;

/// The placeholder of a value that a neutral field of the message contains.
const EMPTIED: &str = "\"\"";

/// A key of a provider's object, and its value from a neutral field.
pub(super) enum Fill<'a> {
    /// A key and its JSON value.
    Value(&'a str, String),
    /// A key whose value is an object, and the fills of that object.
    Inside(&'a str, Vec<Fill<'a>>),
}

impl<'a> Fill<'a> {
    /// Returns the fill of a key with a text value.
    pub(super) fn text(key: &'a str, text: &str) -> Self {
        Self::Value(key, json(text))
    }
}

/// Serializes a value as JSON.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Replaces the values of neutral fields by placeholders, so that each is stored only once.
pub(super) fn empty(object: &mut Object, fills: &[Fill<'_>]) {
    for fill in fills {
        match fill {
            Fill::Value(key, value) => {
                // The same text may be written with other escapes.
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

/// Replaces the placeholders by the values of neutral fields.
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

/// Applies a change to the object under a key, if there is one.
fn change_inside(object: &mut Object, key: &str, change: impl Fn(&mut Object)) {
    if let Some(mut inner) = object.get(key).and_then(Object::parse) {
        change(&mut inner);
        object.set(key, inner.to_json());
    }
}

/// Returns a provider's object with its keys filled and a cache mark at its beginning. Returns `None` if the
/// JSON is not an object.
pub(super) fn filled(json: &str, fills: &[Fill<'_>], mark: Option<(&str, String)>) -> Option<Box<RawValue>> {
    let mut object = Object::parse(json)?;
    fill(&mut object, fills);
    let mut json = object.to_json();
    // The mark is inserted into the text, so that the other keys keep their order and spelling.
    if let Some((key, mark)) = mark {
        let comma = if json == "{}" { "" } else { "," };
        json = format!("{{\"{key}\":{mark}{comma}{}", &json[1..]);
    }
    RawValue::from_string(json).ok()
}
