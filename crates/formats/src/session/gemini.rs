//! The `contents` of Gemini, as messages. Calls without ids get them, and results are theirs in order.

use super::{
    keys::Keys,
    wire::{Declaration, Name},
};
use context_window::{
    Message, Part, Role, Tool, ToolCall, WireFormat,
    message::Reasoning,
    render::kind_of,
    text::plain::compact_json,
    text::{plain, size},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::{BTreeMap, VecDeque};

#[derive(Deserialize)]
#[serde(expecting = "a content: an object with parts")]
pub(super) struct Content {
    role: Option<String>,
    #[serde(default)]
    parts: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<String>,
    #[serde(alias = "inline_data")]
    inline_data: Option<Inline>,
    #[serde(alias = "file_data")]
    file_data: Option<File>,
    #[serde(alias = "function_call")]
    function_call: Option<Call>,
    #[serde(alias = "function_response")]
    function_response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inline {
    #[serde(alias = "mime_type")]
    mime_type: String,
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(alias = "mime_type")]
    mime_type: Option<String>,
    #[serde(alias = "file_uri")]
    file_uri: String,
}

impl File {
    /// Whether this is an image that its address tells as one.
    fn is_image(&self) -> bool {
        let web = ["https://", "http://"].iter().any(|scheme| self.file_uri.starts_with(scheme));
        web && self.mime_type.as_deref().is_none_or(|kind| kind == kind_of(&self.file_uri))
    }
}

#[derive(Deserialize)]
struct Call {
    id: Option<Name>,
    #[serde(default)]
    name: String,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Response {
    id: Option<Name>,
    #[serde(default)]
    name: String,
    #[serde(rename = "response")]
    value: Option<Box<RawValue>>,
}

/// The tool that a function declaration describes.
pub(super) fn tool(declared: Declaration) -> Tool {
    let schema = declared.parameters_json_schema.or(declared.parameters);
    let schema = schema.map(|schema| in_lower_case(&compact_json(schema.get()))).unwrap_or_default();
    Tool::new(declared.name, declared.description.unwrap_or_default(), schema)
}

/// A schema with the types of JSON Schema: Gemini's own `parameters` write them in capitals.
fn in_lower_case(schema: &str) -> String {
    const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    TYPES.iter().fold(schema.to_owned(), |schema, kind| {
        schema.replace(&format!("\"type\":\"{kind}\""), &format!("\"type\":\"{}\"", kind.to_lowercase()))
    })
}

/// The texts of a system instruction.
pub(super) fn texts(raw: &RawValue) -> Vec<String> {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return vec![text];
    }
    let Ok(content) = serde_json::from_str::<Content>(raw.get()) else { return Vec::new() };
    let part = |raw: &RawValue| serde_json::from_str::<WirePart>(raw.get()).ok()?.text;
    content.parts.iter().filter_map(|raw| part(raw)).collect()
}

/// The messages of the contents; an error names the content and what was expected.
pub(super) fn messages(contents: &RawValue) -> Result<Vec<Message>, (Option<usize>, String)> {
    let contents: Vec<Content> =
        serde_json::from_str(contents.get()).map_err(|error| (None, plain::without_place(&error)))?;
    let mut messages = Vec::new();
    let mut open = OpenCalls::default();
    for (at, content) in contents.into_iter().enumerate() {
        let role = match content.role.as_deref() {
            Some("model") => Role::Assistant,
            Some("user" | "function") | None => Role::User,
            Some("system") => Role::System,
            Some(other) => {
                return Err((Some(at), format!("role `{}`; expected user or model", plain::short(other))));
            }
        };
        let mut said = Said::default();
        for raw in &content.parts {
            said.part(raw.get(), at, &mut open).map_err(|detail| (Some(at), detail))?;
        }
        messages.extend(said.messages(role));
    }
    Ok(messages)
}

/// Calls without a result yet, each list the oldest first. A call is in two lists, and what was answered by the one is
/// passed over in the other.
#[derive(Default)]
struct OpenCalls {
    by_name: BTreeMap<String, VecDeque<usize>>,
    by_id: BTreeMap<String, VecDeque<usize>>,
    /// Of every call its id, until it is answered.
    calls: Vec<Option<String>>,
}

impl OpenCalls {
    fn push(&mut self, name: &str, id: &str) {
        let nth = self.calls.len();
        self.by_name.entry(name.to_owned()).or_default().push_back(nth);
        self.by_id.entry(id.to_owned()).or_default().push_back(nth);
        self.calls.push(Some(id.to_owned()));
    }

    /// The id of the call that a result answers: the oldest one of its id, or of its name where it has no id.
    fn answered(&mut self, name: &str, id: Option<&str>) -> Option<String> {
        let open = match id {
            Some(id) => self.by_id.get_mut(id),
            None => self.by_name.get_mut(name),
        }?;
        loop {
            let nth = open.pop_front()?;
            if let Some(id) = self.calls[nth].take() {
                return Some(id);
            }
        }
    }
}

#[derive(Default)]
struct Said {
    parts: Vec<Part>,
    reasonings: Vec<Reasoning>,
    calls: Vec<ToolCall>,
    results: Vec<Message>,
}

impl Said {
    fn part(&mut self, json: &str, at: usize, open: &mut OpenCalls) -> Result<(), String> {
        let part: WirePart = serde_json::from_str(json).map_err(|error| plain::without_place(&error))?;
        match part {
            WirePart { text: Some(text), thought: Some(true), .. } => {
                let mut reasoning = Reasoning::text(text);
                reasoning.wire_format = Some(WireFormat::Gemini);
                self.reasonings.push(reasoning);
            }
            WirePart { text: Some(text), .. } => self.parts.push(Part::Text(text)),
            WirePart { inline_data: Some(Inline { mime_type, data }), .. }
                if mime_type.starts_with("image/") =>
            {
                let url = format!("data:{mime_type};base64,{data}");
                self.parts.push(Part::Image { url, detail: None });
            }
            WirePart { file_data: Some(file), .. } if file.is_image() => {
                self.parts.push(Part::Image { url: file.file_uri, detail: None });
            }
            WirePart { function_call: Some(Call { id, name, args }), thought_signature, .. } => {
                let made_up = || format!("call_{at}_{}", self.calls.len());
                let id = id.map_or_else(made_up, Name::into_text);
                open.push(&name, &id);
                let arguments = args.map_or_else(|| "{}".into(), |args| compact_json(args.get()));
                let mut call = ToolCall::new(id, name, arguments);
                call.signature = thought_signature;
                self.calls.push(call);
            }
            WirePart { function_response: Some(Response { id, name, value }), .. } => {
                let id = id.map(Name::into_text);
                let answered = open.answered(&name, id.as_deref());
                let id = id.or(answered).unwrap_or_else(|| format!("call_of_{name}"));
                self.results.push(Message::tool(id, output(value.as_deref())));
            }
            // A signature alone says nothing that can be sent back.
            WirePart { .. } if !json.contains(':') || signs_only(json) => {}
            WirePart { .. } => {
                self.parts.push(Part::Opaque { wire_format: WireFormat::Gemini, json: json.into() });
            }
        }
        Ok(())
    }

    /// The results, each one by itself, and then the rest, if there is any.
    fn messages(self, role: Role) -> Vec<Message> {
        let Self { parts, reasonings, calls, results } = self;
        let mut messages = results;
        let rest = !(parts.is_empty() && calls.is_empty() && reasonings.is_empty());
        if rest || messages.is_empty() {
            let message = reasonings
                .into_iter()
                .fold(Message::new(role, "").with_parts(parts), Message::with_reasoning);
            messages.push(if calls.is_empty() { message } else { message.with_tool_calls(calls) });
        }
        messages
    }
}

/// Whether a part holds a signature and no data.
fn signs_only(json: &str) -> bool {
    let keys: Keys = serde_json::from_str(json).unwrap_or_default();
    keys.0.iter().all(|key| ["thought", "thoughtSignature", "thought_signature"].contains(&key.as_str()))
}

/// What a function gave back: its `output` where that is a text and all there is, else the JSON.
fn output(response: Option<&RawValue>) -> String {
    let Some(raw) = response else { return String::new() };
    let value: Value = size::tree(raw.get()).unwrap_or_default();
    let only = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("output"));
    only.and_then(Value::as_str).map_or_else(|| compact_json(raw.get()), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types in capitals, as Gemini's own `parameters` have them; what only looks like one is left alone.
    #[test]
    fn schemas_have_the_types_of_json_schema() {
        let schema = r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","description":"STRING"}}}"#;
        let lower = r#"{"type":"object","properties":{"type":{"type":"string","description":"STRING"}}}"#;
        assert_eq!(in_lower_case(schema), lower);
        let text = r#"{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}"#;
        let body = format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"?"}}]}}],"tools":[{text}]}}"#);
        let session = crate::Session::from_json(&body).unwrap();
        assert_eq!(session.tools[0].schema, r#"{"type":"object"}"#);
    }
}
