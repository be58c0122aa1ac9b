//! Conversion of the `contents` of Gemini to messages. Calls without ids get ids, and results answer them in
//! order.

use super::{
    keys::Keys,
    wire::{self, Declaration, Name},
};
use context_window::{
    Message, Part, Role, Tool, ToolCall, WireFormat,
    message::{PieceKind, RESULT_PLACE, Reasoning},
    render::{FUNCTIONS, is_inline_image, keep_as_written, kind_of, result_json},
    text::plain::compact_json,
    text::{object::Object, plain, size},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::{BTreeMap, VecDeque};

#[derive(Deserialize)]
#[serde(expecting = "a content: an object with parts")]
pub(super) struct Content {
    role: Option<String>,
    #[serde(default)]
    parts: Option<Vec<Box<RawValue>>>,
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

impl WirePart {
    /// Returns the URL of an image that every wire format accepts. Returns `None` for another part.
    fn image(self) -> Option<String> {
        let inline = self.inline_data.as_ref().and_then(Inline::image);
        inline.or_else(|| self.file_data?.image())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inline {
    #[serde(alias = "mime_type")]
    mime_type: Option<String>,
    data: Option<String>,
}

impl Inline {
    /// Returns the data URL of an image that every wire format accepts. Returns `None` for other data.
    fn image(&self) -> Option<String> {
        let url = format!("data:{};base64,{}", self.mime_type.as_deref()?, self.data.as_deref()?);
        is_inline_image(&url).then_some(url)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(alias = "mime_type")]
    mime_type: Option<String>,
    #[serde(alias = "file_uri")]
    file_uri: Option<String>,
}

impl File {
    /// Returns the URL of a file that is recognized as an image on the web. Returns `None` for another file.
    fn image(self) -> Option<String> {
        let uri = self.file_uri?;
        let web = ["https://", "http://"].iter().any(|scheme| uri.starts_with(scheme));
        (web && self.mime_type.as_deref().is_none_or(|kind| kind == kind_of(&uri))).then_some(uri)
    }
}

#[derive(Deserialize)]
struct Call {
    id: Option<Name>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Response {
    id: Option<Name>,
    name: Option<String>,
    #[serde(rename = "response")]
    value: Option<Box<RawValue>>,
    parts: Option<Vec<Box<RawValue>>>,
}

/// Converts a function declaration to a tool.
pub(super) fn tool(declared: Declaration) -> Tool {
    let schema = declared.parameters_json_schema.or(declared.parameters);
    let schema = schema.map(|schema| in_lower_case(&compact_json(schema.get()))).unwrap_or_default();
    Tool::new(declared.name, declared.description.unwrap_or_default(), schema)
}

/// Returns the provider's tool in an object that also declares functions. It becomes a hosted tool with an
/// empty list of functions, because both are sent as one object. Returns `None` for functions alone.
pub(super) fn beside_functions(json: &str) -> Option<Tool> {
    let mut object = Object::parse(&compact_json(json))?;
    let key = FUNCTIONS.into_iter().find(|key| object.get(key).is_some())?;
    let other = object.iter().find(|(other, value)| *other != key && *value != "null");
    let name = other.map(|(name, _)| name.to_owned())?;
    object.set(key, "[]".into());
    Some(Tool::hosted(name, WireFormat::Gemini, object.to_json()))
}

/// Returns a schema with the lowercase type names of JSON Schema. Gemini's own `parameters` use capitals.
fn in_lower_case(schema: &str) -> String {
    const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    // The JSON is compact, so a type occurs in exactly this spelling.
    TYPES.iter().fold(schema.to_owned(), |schema, kind| {
        schema.replace(&format!("\"type\":\"{kind}\""), &format!("\"type\":\"{}\"", kind.to_lowercase()))
    })
}

/// Returns the options of a request of Google's Python SDK. Returns empty options for any other session.
pub(super) fn config(session: &wire::Session) -> wire::GoogleConfig {
    let is_own = session.contents.is_some() && session.messages.is_none();
    let config = session.config.as_deref().filter(|_| is_own);
    config.and_then(|config| serde_json::from_str(config.get()).ok()).unwrap_or_default()
}

/// Returns the texts of a system instruction: a string, a content, a part, or a list of strings and parts.
pub(super) fn texts(raw: &RawValue) -> Vec<String> {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return vec![text];
    }
    if let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()) {
        let text = |raw: &RawValue| serde_json::from_str(raw.get()).ok().or_else(|| text_of(raw));
        return list.iter().filter_map(|raw| text(raw)).collect();
    }
    let content = serde_json::from_str::<Content>(raw.get()).ok();
    match content.and_then(|content| content.parts) {
        Some(parts) => parts.iter().filter_map(|raw| text_of(raw)).collect(),
        None => text_of(raw).into_iter().collect(),
    }
}

fn text_of(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<WirePart>(raw.get()).ok()?.text
}

/// Converts the contents to messages. An error names the index of the content and the expected value.
pub(crate) fn messages(contents: &RawValue) -> Result<Vec<Message>, (Option<usize>, String)> {
    let contents: Vec<Box<RawValue>> =
        serde_json::from_str(contents.get()).map_err(|error| (None, plain::without_place(&error)))?;
    let mut messages = Vec::new();
    let mut open = OpenCalls::default();
    let mut before = None;
    for (at, raw) in contents.iter().enumerate() {
        let content: Content =
            serde_json::from_str(raw.get()).map_err(|error| (Some(at), plain::without_place(&error)))?;
        let role = match content.role.as_deref() {
            Some("model") => Role::Assistant,
            Some("user" | "function") | None => Role::User,
            Some("system") => Role::System,
            Some(other) => {
                return Err((
                    Some(at),
                    format!("role `{}` is unknown; expected user or model", plain::short(other)),
                ));
            }
        };
        let mut said = Said::new(role);
        for raw in content.parts.iter().flatten() {
            said.part(raw.get(), at, &mut open).map_err(|detail| (Some(at), detail))?;
        }
        said.around = around(raw.get(), before == Some(role));
        messages.extend(said.messages());
        before = Some(role);
    }
    Ok(messages)
}

/// Returns a content's object with its parts emptied. Returns `None` for an object in the usual form after a
/// content of the other role. Neighbors of one role need the object, since they would otherwise be joined.
fn around(json: &str, follows_its_like: bool) -> Option<String> {
    let mut object = Object::parse(json)?;
    if object.get("parts").is_some_and(|parts| parts.starts_with('[')) {
        object.set("parts", "[]".into());
    }
    let is_usual = object.iter().map(|(key, _)| key).eq(["role", "parts"])
        && object.text("role").is_some_and(|role| role != "function")
        && object.get("parts") == Some("[]");
    (follows_its_like || !is_usual).then(|| object.to_json())
}

/// Calls without a result, the oldest first in each list. A call is in both lists, and a call answered
/// through one is skipped in the other.
#[derive(Default)]
struct OpenCalls {
    by_name: BTreeMap<String, VecDeque<usize>>,
    by_id: BTreeMap<String, VecDeque<usize>>,
    /// The function names of all calls.
    names: Vec<String>,
    /// The ids of all calls. An id is removed when its call is answered.
    calls: Vec<Option<String>>,
}

impl OpenCalls {
    fn push(&mut self, name: &str, id: &str) {
        let nth = self.calls.len();
        self.names.push(name.to_owned());
        self.by_name.entry(name.to_owned()).or_default().push_back(nth);
        self.by_id.entry(id.to_owned()).or_default().push_back(nth);
        self.calls.push(Some(id.to_owned()));
    }

    /// Returns the id and the index of the call that a result answers. It is the oldest open call with the
    /// same id, or with the same name if the result has no id.
    fn answered(&mut self, name: &str, id: Option<&str>) -> Option<(String, usize)> {
        let open = match id {
            Some(id) => self.by_id.get_mut(id),
            None => self.by_name.get_mut(name),
        }?;
        loop {
            // An id is taken once, so each call is visited at most twice in total.
            let nth = open.pop_front()?;
            if let Some(id) = self.calls[nth].take() {
                return Some((id, nth));
            }
        }
    }
}

/// The content of one message, with its results separated.
struct Said {
    role: Role,
    /// The content's object with its parts emptied, unless it has the usual form.
    around: Option<String>,
    parts: Vec<Part>,
    reasonings: Vec<Reasoning>,
    calls: Vec<ToolCall>,
    results: Vec<Answer>,
    /// All parts in their order, with a marker at the place of each result.
    pieces: Vec<(PieceKind, String)>,
}

/// A result as a message, and its part with the values emptied that the message repeats.
struct Answer {
    message: Message,
    json: Option<String>,
    pieces: Vec<(PieceKind, Option<String>)>,
    /// The index of its call, if the call is known.
    nth: Option<usize>,
    is_usual: bool,
}

impl Said {
    fn new(role: Role) -> Self {
        Self {
            role,
            around: None,
            parts: Vec::new(),
            reasonings: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            pieces: Vec::new(),
        }
    }

    fn part(&mut self, json: &str, at: usize, open: &mut OpenCalls) -> Result<(), String> {
        let mut part: WirePart = serde_json::from_str(json).map_err(|error| plain::without_place(&error))?;
        let is_call = part.function_call.is_some() || part.function_response.is_some();
        // A part has one kind of content. Only a blank text next to a call may be dropped.
        if part.text.take_if(|_| is_call).is_some_and(|text| !text.trim().is_empty()) {
            return Err(
                "contains a text in addition to a tool call or tool result; expected a part for each".into(),
            );
        }
        let kind = match part {
            WirePart { text, thought, thought_signature, .. }
                if has_text_alone(json)
                    && self.role == Role::Assistant
                    && (thought == Some(true)
                        || thought_signature.is_some()
                            && text.as_deref().is_none_or(|text| text.trim().is_empty())) =>
            {
                let text = text.unwrap_or_default();
                let mut reasoning = Reasoning::text(text);
                reasoning.wire_format = Some(WireFormat::Gemini);
                // A signature without text means nothing to other providers. Only such reasoning is marked as
                // signed.
                reasoning.signature = thought_signature.filter(|_| reasoning.text.trim().is_empty());
                self.reasonings.push(reasoning);
                PieceKind::Reasoning
            }
            WirePart { text: Some(text), .. } => {
                self.parts.push(Part::Text(text));
                PieceKind::Part
            }
            WirePart { function_call: Some(Call { id, name, args }), thought_signature, .. } => {
                let made_up = || format!("call_{at}_{}", self.calls.len());
                // Protocol buffers write a missing id as an empty string.
                let id = id.map(Name::into_text).filter(|id| !id.is_empty()).unwrap_or_else(made_up);
                let name = name.unwrap_or_default();
                open.push(&name, &id);
                let arguments = args.map_or_else(|| "{}".into(), |args| compact_json(args.get()));
                let mut call = ToolCall::new(id, name, arguments);
                call.signature = thought_signature;
                self.calls.push(call);
                PieceKind::Call
            }
            WirePart { function_response: Some(response), .. } => {
                self.results.push(answer(response, json, open));
                self.pieces.push((PieceKind::Around, RESULT_PLACE.into()));
                return Ok(());
            }
            part => {
                let url = part.image();
                // Other providers do not accept images in an assistant message.
                self.parts.push(match url.filter(|_| self.role == Role::User) {
                    Some(url) => Part::Image { url, detail: None },
                    None => opaque(json),
                });
                PieceKind::Part
            }
        };
        self.pieces.push((kind, json.to_owned()));
        Ok(())
    }

    /// Returns the results, each as a message, and then a message of the other parts, if there are any.
    fn messages(self) -> Vec<Message> {
        let Self { role, mut around, mut parts, mut reasonings, calls, results, mut pieces } = self;
        // A message with reasoning alone would be empty without it, so its reasoning becomes parts.
        if parts.is_empty() && calls.is_empty() && !reasonings.is_empty() {
            reasonings.clear();
            for (kind, json) in pieces.iter_mut().filter(|(kind, _)| *kind == PieceKind::Reasoning) {
                *kind = PieceKind::Part;
                parts.push(opaque(json));
            }
        }
        let is_place = |piece: &(PieceKind, String)| piece.0 == PieceKind::Around;
        let rest = pieces.iter().any(|piece| !is_place(piece)) || results.is_empty();
        // By default, results are sent after everything else. Their places are kept only if one came earlier.
        let is_last = pieces.iter().is_sorted_by_key(&is_place);
        if is_last {
            pieces.retain(|piece| !is_place(piece));
        }
        let in_order = results.iter().all(|result| result.nth.is_some())
            && results.iter().is_sorted_by_key(|result| result.nth);
        let mut messages = Vec::new();
        for result in results {
            let json = result.json.filter(|_| !result.is_usual || !in_order);
            let mut all = vec![(PieceKind::Around, json)];
            all.push((PieceKind::Around, around.take()));
            all.extend(result.pieces);
            let all: Vec<_> = all.iter().map(|(kind, json)| (*kind, json.as_deref())).collect();
            messages.push(keep_as_written(result.message, WireFormat::Gemini, &all));
        }
        if rest {
            let message = Message::new(role, "").with_parts(parts);
            let message = reasonings.into_iter().fold(message, Message::with_reasoning);
            let message = if calls.is_empty() { message } else { message.with_tool_calls(calls) };
            let own = pieces.iter().map(|(kind, json)| (*kind, Some(json.as_str())));
            let all: Vec<_> = std::iter::once((PieceKind::Around, around.as_deref())).chain(own).collect();
            messages.push(match role {
                Role::System => message,
                _ => keep_as_written(message, WireFormat::Gemini, &all),
            });
        }
        messages
    }
}

fn opaque(json: &str) -> Part {
    Part::Opaque { wire_format: WireFormat::Gemini, json: json.into() }
}

/// Converts a result to a message of its own, with its media as parts.
fn answer(response: Response, json: &str, open: &mut OpenCalls) -> Answer {
    let Response { id, name, value, parts } = response;
    let id = id.map(Name::into_text).filter(|id| !id.is_empty());
    let name = name.unwrap_or_default();
    let called = open.answered(&name, id.as_deref());
    let nth = called.as_ref().map(|(_, nth)| *nth);
    let id = id.or(called.map(|(id, _)| id)).unwrap_or_else(|| format!("call_of_{name}"));
    let text = output(value.as_deref());
    let mut message = Message::tool(id.clone(), text);
    // The JSON that this library would send, with which the original is compared.
    let usual = result_json(&message);
    let (mut media, mut pieces) = (Vec::new(), Vec::new());
    if parts.is_some() && !message.text().is_empty() {
        pieces.push((PieceKind::Part, None));
    }
    for raw in parts.iter().flatten() {
        let part: Option<WirePart> = serde_json::from_str(raw.get()).ok();
        media.push(match part.and_then(WirePart::image) {
            Some(url) => Part::Image { url, detail: None },
            None => opaque(raw.get()),
        });
        pieces.push((PieceKind::Part, Some(raw.get().to_owned())));
    }
    if !media.is_empty() {
        message = message.with_parts(media);
    }
    let called = nth.map(|nth| open.names[nth].as_str()).filter(|called| *called == name);
    let (json, is_usual) = emptied(json, &id, called, &usual).unzip();
    Answer { message, json, pieces, nth, is_usual: is_usual.unwrap_or(true) }
}

/// Returns the part of a result with the values emptied that the message and its call repeat, and true if it
/// has the usual form.
fn emptied(json: &str, id: &str, called: Option<&str>, usual: &str) -> Option<(String, bool)> {
    let mut object = Object::parse(&compact_json(json))?;
    let mut is_usual = object.iter().map(|(key, _)| key).eq(["functionResponse"]);
    for key in ["functionResponse", "function_response"] {
        let Some(mut inner) = object.get(key).and_then(Object::parse) else { continue };
        let same_response = inner.get("response") == Some(usual);
        is_usual &= inner.iter().map(|(key, _)| key).eq(["name", "response"]);
        is_usual &= same_response && called.is_some();
        if same_response {
            inner.set_text("response", "");
        }
        if called.is_some() {
            inner.set_text("name", "");
        }
        if inner.text("id").as_deref() == Some(id) {
            inner.set_text("id", "");
        }
        if inner.get("parts").is_some_and(|parts| parts.starts_with('[')) {
            inner.set("parts", "[]".into());
        }
        object.set(key, inner.to_json());
    }
    Some((object.to_json(), is_usual))
}

/// Returns true for a part with a text and no other data.
fn has_text_alone(json: &str) -> bool {
    const BESIDE: [&str; 6] =
        ["text", "thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata"];
    let keys: Keys = serde_json::from_str(json).unwrap_or_default();
    !keys.0.is_empty() && keys.0.iter().all(|key| BESIDE.contains(&key.as_str()))
}

/// Returns the value that a function returned: its `output` if that is a string and the only key, otherwise
/// the JSON.
fn output(response: Option<&RawValue>) -> String {
    let Some(raw) = response else { return String::new() };
    let value: Value = size::tree(raw.get()).unwrap_or_default();
    let only = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("output"));
    only.and_then(Value::as_str).map_or_else(|| compact_json(raw.get()), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gemini's own `parameters` have types in capitals. Other values that look like types stay unchanged.
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
