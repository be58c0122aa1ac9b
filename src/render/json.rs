//! JSON that is carried as it came, and what every wire form makes of it.

use crate::message::{Part, Tool};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::borrow::Cow;

/// JSON as text.
pub(super) type Raw<'a> = Cow<'a, RawValue>;

/// A text that holds a JSON object.
pub(super) fn object(text: &str) -> Raw<'_> {
    let known: Result<&RawValue, _> = serde_json::from_str(text.trim());
    known.map_or_else(|_| raw(&Map::new()), Cow::Borrowed)
}

/// The schema of a tool's parameters, as a schema of an object.
pub(super) fn schema(tool: &Tool) -> Raw<'_> {
    const TYPE: &str = r#""type":"object""#;
    let text = tool.schema.trim();
    let known: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let with_type = match text.strip_prefix('{').filter(|_| !known.is_empty()) {
        Some(_) if known.get("type") == Some(&Value::from("object")) => text.to_owned(),
        Some(rest) if !known.contains_key("type") => format!("{{{TYPE},{rest}"),
        // A schema of something else cannot be that of parameters.
        Some(_) => format!(r#"{{{TYPE},"properties":{{"value":{text}}}}}"#),
        None => format!(r#"{{{TYPE},"properties":{{}}}}"#),
    };
    RawValue::from_string(with_type).map_or_else(|_| raw(&Map::new()), Cow::Owned)
}

/// A tool as a wire form declares it, or as its provider does where it runs it itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Declared<'a, T> {
    Function(T),
    Hosted(&'a RawValue),
}

impl<'a, T: From<&'a Tool>> Declared<'a, T> {
    pub(super) fn new(tool: &'a Tool) -> Self {
        let hosted = tool.hosted_json().and_then(|json| serde_json::from_str(json).ok());
        hosted.map_or_else(|| Self::Function(T::from(tool)), Self::Hosted)
    }
}

/// A part of the target's own form, or its JSON as text where that is none.
pub(super) fn opaque(json: &str) -> Result<&RawValue, &str> {
    serde_json::from_str(json).map_err(|_| json)
}

/// Whether a part is an image, and how it is named.
pub(super) fn image(part: &Part) -> Option<(&str, Option<&str>)> {
    match part {
        Part::Image { url, detail } => Some((url, detail.as_deref())),
        Part::Text(_) | Part::Opaque { .. } => None,
    }
}

fn raw<T: Serialize>(value: &T) -> Raw<'static> {
    Cow::Owned(to_raw_value(value).unwrap_or_default())
}
