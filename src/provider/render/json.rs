//! JSON that is passed through unchanged, and the tool declarations that all wire formats share.

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

/// Returns a text as a JSON object, or an empty object if it is invalid JSON.
pub(super) fn object(text: &str) -> Raw<'_> {
    let known: Result<&RawValue, _> = serde_json::from_str(text.trim());
    known.map_or_else(|_| raw(&Map::<String, Value>::new()), Cow::Borrowed)
}

/// Returns the schema of a tool's parameters, which is already adapted to the target (tool parameters, rule
/// H8).
pub(super) fn schema(tool: &Tool) -> Raw<'_> {
    object(&tool.schema)
}

/// A tool in wire form: a function, a provider-run tool, or a function in its original form.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Declared<'a, T> {
    Function(T),
    Hosted(&'a RawValue),
    Written(Box<RawValue>),
}

/// The declaration of a function in one wire format.
pub(super) trait Function<'a>: From<&'a Tool> + Serialize {
    /// The wire format.
    const WIRE_FORMAT: WireFormat;

    /// Returns the keys of the declaration whose values come from the fields of a tool.
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

/// Returns the keys of a function's name, description and schema. `schema` is the key of the schema.
pub(super) fn tool_fills(tool: &Tool, schema: &'static str) -> Vec<Fill<'static>> {
    let own = compact_json(&tool.schema);
    let own = Some(own).filter(|own| own.starts_with('{')).map(|own| Fill::Value(schema, own));
    let texts = [Fill::text("name", &tool.name), Fill::text("description", &tool.description)];
    texts.into_iter().chain(own).collect()
}

/// Returns an opaque part as JSON. Returns the text as an error if it is invalid JSON.
pub(super) fn opaque(json: &str) -> Result<Raw<'_>, &str> {
    serde_json::from_str(json).map(Cow::Borrowed).map_err(|_| json)
}

/// Returns an opaque part like [`opaque`], with a mark: the name and value of a field that the part does not
/// have yet.
pub(super) fn opaque_with<'j>(
    json: &'j str,
    mark: Option<(&str, impl Serialize)>,
) -> Result<Raw<'j>, &'j str> {
    let known = opaque(json)?;
    // Inserted into the text: parsing would change the order of keys and the spelling of numbers.
    let Some(((key, mark), rest)) = mark.zip(json.trim().strip_prefix('{')) else { return Ok(known) };
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let marked = format!("{{\"{key}\":{}{comma}{rest}", raw(&mark));
    Ok(RawValue::from_string(marked).map_or(known, Cow::Owned))
}

fn raw<T: Serialize>(value: &T) -> Raw<'static> {
    Cow::Owned(to_raw_value(value).unwrap_or_default())
}
