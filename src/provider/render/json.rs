//! JSON that is carried as it came, and what every wire format makes of it.

use super::fill::{Fill, filled};
use crate::{
    message::{Tool, WireFormat},
    text::plain::compact_json,
};
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
    known.map_or_else(|_| raw(&Map::<String, Value>::new()), Cow::Borrowed)
}

/// The schema of a tool's parameters, which has been made for its target (rule H8).
pub(super) fn schema(tool: &Tool) -> Raw<'_> {
    object(&tool.schema)
}

/// A tool as a wire format declares it, or as its provider does where it runs it itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Declared<'a, T> {
    Function(T),
    Hosted(&'a RawValue),
    Written(Box<RawValue>),
}

/// A function as one wire format declares it.
pub(super) trait Function<'a>: From<&'a Tool> + Serialize {
    /// The wire format.
    const WIRE_FORMAT: WireFormat;

    /// Returns the keys that the fields of a tool fill.
    fn fills(tool: &Tool) -> Vec<Fill<'static>>;
}

impl<'a, T: Function<'a>> Declared<'a, T> {
    pub(super) fn new(tool: &'a Tool) -> Self {
        let hosted = tool.hosted_json().and_then(|json| serde_json::from_str(json).ok());
        if let Some(hosted) = hosted {
            return Self::Hosted(hosted);
        }
        let written = tool.written_in(T::WIRE_FORMAT);
        match written.and_then(|json| filled(json, &T::fills(tool), None)) {
            Some(raw) => Self::Written(raw),
            None => Self::Function(T::from(tool)),
        }
    }
}

/// Returns the fills of a function's name, description and schema, which stands under this key.
pub(super) fn tool_fills(tool: &Tool, schema: &'static str) -> Vec<Fill<'static>> {
    let own = compact_json(&tool.schema);
    let own = Some(own).filter(|own| own.starts_with('{')).map(|own| Fill::Value(schema, own));
    let texts = [Fill::text("name", &tool.name), Fill::text("description", &tool.description)];
    texts.into_iter().chain(own).collect()
}

/// A part of the target's own wire format, or its JSON as text where that is none.
pub(super) fn opaque(json: &str) -> Result<Raw<'_>, &str> {
    serde_json::from_str(json).map(Cow::Borrowed).map_err(|_| json)
}

/// [`opaque`], with a mark (the name of a field that the part does not have yet, and its value).
pub(super) fn opaque_with<'j>(
    json: &'j str,
    mark: Option<(&str, impl Serialize)>,
) -> Result<Raw<'j>, &'j str> {
    let known = opaque(json)?;
    let Some(((key, mark), rest)) = mark.zip(json.trim().strip_prefix('{')) else { return Ok(known) };
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let marked = format!("{{\"{key}\":{}{comma}{rest}", raw(&mark));
    Ok(RawValue::from_string(marked).map_or(known, Cow::Owned))
}

fn raw<T: Serialize>(value: &T) -> Raw<'static> {
    Cow::Owned(to_raw_value(value).unwrap_or_default())
}
