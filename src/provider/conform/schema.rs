//! The schemas of tool parameters in the form that providers accept: a JSON Schema of an object (tool
//! parameters, rule H8).

use super::TargetProfile;
use crate::{message::WireFormat, text::size};
use indexmap::IndexMap;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, collections::BTreeSet};

/// Type names of other languages with their JSON Schema types. Tools of the BFCL benchmark use those of
/// Python.
const TYPES: [(&str, &str); 14] = [
    ("dict", "object"),
    ("map", "object"),
    ("hashmap", "object"),
    ("float", "number"),
    ("double", "number"),
    ("int", "integer"),
    ("long", "integer"),
    ("str", "string"),
    ("char", "string"),
    ("bool", "boolean"),
    ("list", "array"),
    ("tuple", "array"),
    ("none", "null"),
    ("nonetype", "null"),
];

/// The type names of JSON Schema.
const OWN: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// The replacement for an unknown type. It is not a JSON Schema type: the schema then names no type.
const ANY: &str = "any";
const OBJECT: &str = "object";

/// The keys whose value is a schema, a list of schemas, or an object of schemas by name.
const ONE: [&str; 9] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
];
const LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// A JSON object that keeps the order of its keys.
type Object = IndexMap<String, Box<RawValue>>;

/// A declared schema with the changes that were made to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declared<'s> {
    pub(crate) text: Cow<'s, str>,
    /// The first type name that is not a JSON Schema type, and its replacement.
    pub(crate) renamed: Option<(String, String)>,
    /// True if the schema is not that of an object, so that it is wrapped in one as the property `value`.
    pub(crate) wrapped: bool,
    /// The reason why the tool is declared without parameters, if it is.
    pub(crate) dropped: Option<DroppedSchema>,
}

/// The reasons why a schema is not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DroppedSchema {
    /// The schema is not a JSON object.
    NotASchema,
    /// The schema is nested more deeply than the limit.
    TooDeep,
    /// The schema has more values than the limit.
    TooLarge,
}

/// Returns the reason why a schema cannot be declared, or `None` if it can.
fn drop_reason(text: &str) -> Option<DroppedSchema> {
    // The size check comes first: it is one linear scan without allocation.
    if size::check(text, size::VALUES_OF_A_TREE).is_err() {
        return Some(DroppedSchema::TooLarge);
    }
    // Raw values are validated without recursion, so no depth overflows the stack. Invalid JSON is recognized
    // at any depth.
    if serde_json::from_str::<Object>(text).is_err() {
        return Some(DroppedSchema::NotASchema);
    }
    if size::levels(text) > size::LEVELS {
        return Some(DroppedSchema::TooDeep);
    }
    size::tree::<Value>(text).is_none().then_some(DroppedSchema::NotASchema)
}

impl TargetProfile {
    /// Returns the schema of a tool as it is declared to this target.
    pub(crate) fn schema<'s>(&self, schema: &'s str) -> Declared<'s> {
        let as_it_is = Declared { text: Cow::Borrowed(schema), renamed: None, wrapped: false, dropped: None };
        // A chat template belongs to its model, and may expect other type names.
        if matches!(self.wire_format, WireFormat::ChatTemplate | WireFormat::Plain) {
            return as_it_is;
        }
        let text = schema.trim();
        if text.is_empty() {
            // Chat Completions declares a tool without parameters by the absence of the field.
            let text = if self.wire_format == WireFormat::OpenAiChat { "" } else { NO_PARAMETERS };
            return Declared { text: text.into(), ..as_it_is };
        }
        let dropped = drop_reason(text);
        let object: Object =
            serde_json::from_str(text).ok().filter(|_| dropped.is_none()).unwrap_or_default();
        if object.is_empty() {
            return Declared { text: NO_PARAMETERS.into(), dropped, ..as_it_is };
        }
        let mut renamed = None;
        let object = spelt(&object, &mut renamed);
        let text = object.as_deref().map_or(Cow::Borrowed(text), |raw| Cow::Owned(raw.get().to_owned()));
        match kind_of(&text) {
            Kind::Object => Declared { text, renamed, ..as_it_is },
            // Only the type was present, and it means any type.
            Kind::None if text.trim_start_matches('{').trim_start().starts_with('}') => {
                Declared { text: NO_PARAMETERS.into(), renamed, ..as_it_is }
            }
            Kind::None if is_of_objects(&text) => {
                let rest = text.strip_prefix('{').unwrap_or(&text);
                Declared { text: format!("{{{OF_AN_OBJECT},{rest}").into(), renamed, ..as_it_is }
            }
            Kind::None | Kind::Other => {
                // A call always has an object of arguments, so any other schema becomes its property `value`.
                let text =
                    format!(r#"{{{OF_AN_OBJECT},"properties":{{"value":{text}}},"required":["value"]}}"#);
                Declared { text: text.into(), renamed, wrapped: true, ..as_it_is }
            }
        }
    }
}

const OF_AN_OBJECT: &str = r#""type":"object""#;
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The kind of value that a schema describes.
enum Kind {
    Object,
    Other,
    /// The schema names no type.
    None,
}

fn kind_of(schema: &str) -> Kind {
    let object: Object = serde_json::from_str(schema).unwrap_or_default();
    let Some(kind) = object.get("type") else { return Kind::None };
    if names(kind).iter().any(|name| name == OBJECT) { Kind::Object } else { Kind::Other }
}

/// Returns true if a schema without a type may describe an object: it has keys of objects, or all its choices
/// describe objects.
fn is_of_objects(schema: &str) -> bool {
    const OF_OBJECTS: [&str; 6] =
        ["properties", "patternProperties", "additionalProperties", "required", "$ref", "allOf"];
    const OF_OTHERS: [&str; 12] = [
        "enum",
        "const",
        "items",
        "prefixItems",
        "contains",
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "multipleOf",
    ];
    let object: Object = serde_json::from_str(schema).unwrap_or_default();
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    if has(&OF_OBJECTS) {
        return true;
    }
    // Recursion is bounded: `drop_reason` has refused schemas with more than 127 levels.
    let choices = ["anyOf", "oneOf"].iter().filter_map(|key| object.get(*key));
    let of_objects = |raw: &RawValue| {
        let choices: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        choices.into_iter().all(|choice| match kind_of(choice.get()) {
            Kind::Object => true,
            Kind::None => is_of_objects(choice.get()),
            Kind::Other => false,
        })
    };
    !has(&OF_OTHERS) && choices.into_iter().all(|raw| of_objects(raw))
}

/// Returns the type names of a schema, from a string or an array. The list is empty if the value is neither.
fn names(kind: &RawValue) -> Vec<String> {
    let one = serde_json::from_str::<String>(kind.get()).ok().map(|name| vec![name]);
    one.or_else(|| serde_json::from_str(kind.get()).ok()).unwrap_or_default()
}

/// Returns the schema with the type names of JSON Schema, or `None` if it has no others. All other JSON stays
/// as it was written.
fn spelt(schema: &Object, renamed: &mut Option<(String, String)>) -> Option<Box<RawValue>> {
    let mut own = schema.clone();
    let mut changed = false;
    for (key, raw) in schema {
        let key = key.as_str();
        let new = if key == "type" {
            match spelt_type(raw, schema.contains_key("properties"), renamed) {
                Type::AsItIs => None,
                Type::Any => {
                    own.shift_remove(key);
                    changed = true;
                    None
                }
                Type::Other(raw) => Some(raw),
            }
        } else if NAMED.contains(&key) {
            let named: Object = serde_json::from_str(raw.get()).unwrap_or_default();
            each(&named, renamed)
        } else {
            // `items` is one schema or, in older drafts, a list, so it is tried as both.
            let one = ONE.contains(&key).then(|| below(raw, renamed)).flatten();
            one.or_else(|| LISTS.contains(&key).then(|| list(raw, renamed)).flatten())
        };
        if let Some(new) = new {
            own.insert(key.to_owned(), new);
            changed = true;
        }
    }
    changed.then(|| to_raw_value(&own).ok()).flatten()
}

/// Replaces the types of a nested schema.
fn below(raw: &RawValue, renamed: &mut Option<(String, String)>) -> Option<Box<RawValue>> {
    let object: Object = serde_json::from_str(raw.get()).ok()?;
    spelt(&object, renamed)
}

/// Replaces the types of schemas by name.
fn each(named: &Object, renamed: &mut Option<(String, String)>) -> Option<Box<RawValue>> {
    let mut own = named.clone();
    let mut changed = false;
    for (name, raw) in named {
        if let Some(new) = below(raw, renamed) {
            own.insert(name.clone(), new);
            changed = true;
        }
    }
    changed.then(|| to_raw_value(&own).ok()).flatten()
}

/// Replaces the types of a list of schemas.
fn list(raw: &RawValue, renamed: &mut Option<(String, String)>) -> Option<Box<RawValue>> {
    let mut own: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
    let mut changed = false;
    for raw in &mut own {
        if let Some(new) = below(raw, renamed) {
            *raw = new;
            changed = true;
        }
    }
    changed.then(|| to_raw_value(&own).ok()).flatten()
}

/// The result of replacing a type.
enum Type {
    AsItIs,
    /// Any type, which a schema expresses by naming none.
    Any,
    Other(Box<RawValue>),
}

/// Replaces the names of a type. `has_properties` decides the replacement of an unknown name.
fn spelt_type(raw: &RawValue, has_properties: bool, renamed: &mut Option<(String, String)>) -> Type {
    let names = names(raw);
    let mut own = names.clone();
    for name in &mut own {
        let known = known_type(name).unwrap_or(if has_properties { OBJECT } else { ANY });
        if known != name || known == ANY {
            renamed.get_or_insert_with(|| (name.clone(), known.to_owned()));
            known.clone_into(name);
        }
    }
    if own.is_empty() {
        let known = if has_properties { OBJECT } else { ANY };
        renamed.get_or_insert_with(|| (raw.get().to_owned(), known.to_owned()));
        own.push(known.to_owned());
    }
    if own.iter().any(|name| name == ANY) {
        return Type::Any;
    }
    if own == names {
        return Type::AsItIs;
    }
    // Two names may have become the same type; JSON Schema requires the names to be unique.
    let mut seen = BTreeSet::new();
    own.retain(|name| seen.insert(name.clone()));
    let raw = if own.len() > 1 { to_raw_value(&own) } else { to_raw_value(&own[0]) };
    raw.map_or(Type::AsItIs, Type::Other)
}

/// Returns the JSON Schema type for a name, or `None` if it is unknown. The name is read in lower case and
/// without a qualification (`int, optional`, `List[str]`, `dict (of ids)`), as Python docstrings write types.
fn known_type(name: &str) -> Option<&'static str> {
    let known = |name: &str| {
        let own = OWN.iter().chain([&ANY]).find(|own| **own == name).copied();
        own.or_else(|| Some(TYPES.iter().find(|(other, _)| *other == name)?.1))
    };
    let lower = name.trim().to_lowercase();
    if lower.ends_with("[]") {
        return Some("array");
    }
    known(&lower).or_else(|| known(lower.split_once([',', '[', '<', '('])?.0.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn declared(wire_format: WireFormat, schema: &str) -> (Value, Declared<'_>) {
        let declared = TargetProfile::unknown(wire_format).schema(schema);
        (serde_json::from_str(&declared.text).unwrap_or_default(), declared)
    }

    #[test]
    fn types_of_other_languages_become_json_schema_types_at_every_position() {
        let schema = json!({
            "type": "dict",
            "properties": {
                "type": {"type": "float", "description": "a \"type\": \"dict\""},
                "dict": {"type": "tuple", "items": {"type": "any"}, "default": {"type": "dict"}},
                "way": {"anyOf": [{"type": "STRING"}, {"type": ["int", "null"], "enum": [1.0, 1e3]}]},
            },
            "required": ["type"],
        });
        for wire_format in
            [WireFormat::OpenAiChat, WireFormat::OpenAiResponses, WireFormat::Anthropic, WireFormat::Gemini]
        {
            let text = schema.to_string();
            let (value, declared) = declared(wire_format, &text);
            let expected = json!({
                "type": "object",
                "properties": {
                    "type": {"type": "number", "description": "a \"type\": \"dict\""},
                    "dict": {"type": "array", "items": {}, "default": {"type": "dict"}},
                    "way": {"anyOf": [{"type": "string"}, {"type": ["integer", "null"], "enum": [1.0, 1e3]}]},
                },
                "required": ["type"],
            });
            assert_eq!(value, expected);
            assert_eq!(declared.renamed, Some(("dict".into(), "object".into())));
            assert!(!declared.wrapped && declared.dropped.is_none());
        }
        // A chat template may use other type names.
        assert_eq!(declared(WireFormat::ChatTemplate, &schema.to_string()).0, schema);
    }

    #[test]
    fn type_with_extra_words_is_its_first_word_and_unknown_type_is_any() {
        for (name, expected) in [
            ("\"int, optional\"", json!({"type": "integer"})),
            ("\"List[Dict[str, int]]\"", json!({"type": "array"})),
            ("\"Map<String, Int>\"", json!({"type": "object"})),
            ("\"float (in metres)\"", json!({"type": "number"})),
            ("\"string[]\"", json!({"type": "array"})),
            ("\"Optional[str]\"", json!({})),
            ("\"DataFrame\"", json!({})),
            ("\"\"", json!({})),
            ("[]", json!({})),
            ("null", json!({})),
            ("7", json!({})),
            ("[\"str, optional\", \"null\"]", json!({"type": ["string", "null"]})),
            ("[\"string\", \"DataFrame\"]", json!({})),
        ] {
            let text = format!(r#"{{"type":"object","properties":{{"a":{{"type":{name}}}}}}}"#);
            let (value, one) = declared(WireFormat::OpenAiChat, &text);
            assert_eq!(value["properties"]["a"], expected, "{name}");
            assert!(one.renamed.is_some(), "{name}");
        }
        let text = r#"{"type":"object","properties":{"a":{"type":"Row","properties":{}}}}"#;
        let (value, one) = declared(WireFormat::Anthropic, text);
        assert_eq!(value["properties"]["a"], json!({"type": "object", "properties": {}}));
        assert_eq!(one.renamed, Some(("Row".into(), "object".into())));
    }

    #[test]
    fn non_object_schema_is_wrapped_and_invalid_schema_has_no_parameters() {
        for wire_format in [WireFormat::OpenAiChat, WireFormat::Anthropic] {
            let (value, one) = declared(wire_format, r#"{"type":"str","enum":["a"]}"#);
            let inner = json!({"type": "string", "enum": ["a"]});
            assert_eq!(
                value,
                json!({"type": "object", "properties": {"value": inner}, "required": ["value"]})
            );
            assert!(one.wrapped && one.renamed.is_some());
            let (value, one) = declared(wire_format, r#"{ "properties": {"a": {}} }"#);
            assert_eq!(value, json!({"type": "object", "properties": {"a": {}}}));
            assert!(!one.wrapped && one.renamed.is_none() && one.dropped.is_none());
            let (value, one) =
                declared(wire_format, r#"{"type":"Struct","properties":{"a":{"type":"Odd"}}}"#);
            assert_eq!(value, json!({"type": "object", "properties": {"a": {}}}));
            assert!(!one.wrapped && one.renamed == Some(("Struct".into(), "object".into())));
            for text in ["[1]", "no schema", "{\"type\":", "\"object\""] {
                let (value, one) = declared(wire_format, text);
                assert_eq!(value, json!({"type": "object", "properties": {}}), "{text}");
                assert_eq!(one.dropped, Some(DroppedSchema::NotASchema), "{text}");
            }
            // However deep the schema is, the check ends.
            for one in [r#"{"items":"#, r#"{"type":"object","items":"#, r#"{"anyOf":["#] {
                let close = if one.ends_with('[') { "]}" } else { "}" };
                let levels = one.matches(['{', '[']).count();
                let nested = |times: usize| {
                    format!("{}{{\"type\":\"dict\"}}{}", one.repeat(times), close.repeat(times))
                };
                let most = 126 / levels;
                assert_eq!(declared(wire_format, &nested(most)).1.dropped, None, "{one}");
                for times in [most + 1, 120 * 2 / levels, 100_000] {
                    let text = nested(times);
                    assert_eq!(
                        declared(wire_format, &text).1.dropped,
                        Some(DroppedSchema::TooDeep),
                        "{times} {one}"
                    );
                    let text = text.replace("dict", "\\");
                    assert_eq!(
                        declared(wire_format, &text).1.dropped,
                        Some(DroppedSchema::NotASchema),
                        "{times} {one}"
                    );
                }
            }
            for (schema, inner) in [
                (r#"{"type":"any","enum":["a"]}"#, json!({"enum": ["a"]})),
                (
                    r#"{"anyOf":[{"type":"str"},{"type":"object"}]}"#,
                    json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
                ),
            ] {
                let (value, one) = declared(wire_format, schema);
                assert_eq!((&value["properties"]["value"], one.wrapped), (&inner, true), "{schema}");
            }
            for (schema, expected) in [
                (r#"{"type":["dict","string","object"]}"#, json!({"type": ["object", "string"]})),
                (r#"{"type":null,"properties":{}}"#, json!({"type": "object", "properties": {}})),
                (r#"{"type":{"type":"dict"},"properties":{}}"#, json!({"type": "object", "properties": {}})),
                (
                    r#"{"anyOf":[{"type":"dict"},{"required":["a"]}]}"#,
                    json!({"type": "object", "anyOf": [{"type": "object"}, {"required": ["a"]}]}),
                ),
            ] {
                let (value, one) = declared(wire_format, schema);
                assert_eq!((value, one.wrapped), (expected, false), "{schema}");
            }
            for text in ["", "{}"] {
                assert_eq!(declared(wire_format, text).1.dropped, None);
            }
        }
    }

    proptest! {
        /// A valid JSON Schema of an object is declared unchanged, to the byte. A declared schema is declared
        /// again unchanged.
        #[test]
        fn a_declared_schema_stays(
            kinds in prop::collection::vec(prop::sample::select(&["dict", "any", "string", "Float", "x", "object"][..]), 1..6),
            top in prop::sample::select(&["object", "dict", "string", "any", "STRING"][..]),
        ) {
            let property =
                |(at, kind): (usize, &&str)| format!(r#""p{at}": {{ "type":"{kind}", "minimum": 1.50 }}"#);
            let properties: Vec<String> = kinds.iter().enumerate().map(property).collect();
            let text = format!(r#"{{ "type": "{top}", "properties": {{ {} }} }}"#, properties.join(", "));
            let profile = TargetProfile::unknown(WireFormat::Anthropic);
            let once = profile.schema(&text);
            let twice = profile.schema(&once.text);
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert!(twice.renamed.is_none() && !twice.wrapped && twice.dropped.is_none());
            if top == "object" && kinds.iter().all(|kind| ["string", "object"].contains(kind)) {
                prop_assert_eq!(&once.text, &text);
            }
        }
    }
}
