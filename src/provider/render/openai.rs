//! The request body of `OpenAI` Chat Completions.

use super::{
    fill::{Fill, filled, json},
    json::{Declared, Function, opaque_with, tool_fills},
    marked_in_requests,
};
use crate::{
    message::{CHAT_REASONING, Component, Message, Prompt, Role, Tool, ToolCall, WireFormat, Written},
    provider::conform::inline_image,
    text::object::Object,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

/// A request body of `OpenAI` Chat Completions: `messages` and `tools`, without the model's parameters.
#[derive(Debug)]
pub(super) struct ChatBody<'a> {
    pub(super) prompt: &'a Prompt,
    /// True if cache breakpoints are written.
    pub(super) is_marked: bool,
}

impl ChatBody<'_> {
    pub(super) fn messages(&self) -> Vec<Wire<'_>> {
        let prompt = self.prompt;
        let calls = prompt.messages.iter().any(|message| !message.tool_calls().is_empty());
        // Some servers refuse a tool conversation in which an assistant message lacks the key of its
        // reasoning.
        let fills = prompt.requirements.reasoning && (calls || !prompt.tools.is_empty());
        let marked = |at: usize| if self.is_marked { marked_in_requests(prompt, at) } else { Vec::new() };
        let messages = prompt.messages.iter().enumerate();
        messages.map(|(at, message)| Wire::new(message, marked(at), fills)).collect()
    }

    pub(super) fn tools(&self) -> Vec<Declared<'_, WireTool<'_>>> {
        self.prompt.tools.iter().map(Declared::new).collect()
    }
}

impl Serialize for ChatBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools = self.tools();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messages", &self.messages())?;
        if !tools.is_empty() {
            map.serialize_entry("tools", &tools)?;
        }
        map.end()
    }
}

/// A message in wire form.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Wire<'a> {
    /// A message with the keys in this renderer's order.
    StandardMessage(StandardMessage<'a>),
    /// A message with its original keys, in their order.
    Written(Box<RawValue>),
}

#[derive(Debug, Serialize)]
pub(super) struct StandardMessage<'a> {
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Wire<'a> {
    /// Converts a message. With `fills`, an assistant message without reasoning gets the key with an empty
    /// text.
    fn new(message: &'a Message, marked: Vec<usize>, fills: bool) -> Self {
        let usual = StandardMessage::new(message, marked, fills);
        let around = message.written_in(WireFormat::OpenAiChat).and_then(Written::around);
        match around.and_then(|around| usual.in_keys(around)) {
            Some(raw) => Self::Written(raw),
            None => Self::StandardMessage(usual),
        }
    }
}

impl<'a> StandardMessage<'a> {
    fn new(message: &'a Message, marked: Vec<usize>, fills: bool) -> Self {
        let components = message.components(WireFormat::OpenAiChat);
        let fills = fills && message.role() == Role::Assistant && !components.iter().any(is_chunk);
        let reasoning_text = |component: &Component<'a>| match *component {
            Component::Reasoning { reasoning, json: None } => Some(reasoning.text.as_str()),
            _ => None,
        };
        let reasoning_texts: Vec<&str> = components.iter().filter_map(reasoning_text).collect();
        let tool_calls = components.iter().filter_map(|component| match *component {
            Component::Call { call, json, .. } => Some(WireCall { call, json }),
            _ => None,
        });
        Self {
            role: message.role(),
            name: message.name(),
            reasoning_content: (fills || !reasoning_texts.is_empty()).then(|| reasoning_texts.join("\n\n")),
            tool_calls: tool_calls.collect(),
            tool_call_id: message.answers(),
            content: Content { message, components, marked },
        }
    }

    /// Returns the message with its original keys in their order, and new keys after them. A key is dropped
    /// if its content is no longer sent. Returns `None` if `around` is not a JSON object.
    fn in_keys(&self, around: &str) -> Option<Box<RawValue>> {
        let mut object = Object::parse(around)?;
        object.set("role", json(&self.role));
        let as_list = object.get("content") == Some("[]");
        // A refusal has a key of its own in place of the content.
        if let Some(refusal) = self.content.text().filter(|_| object.get("refusal") == Some("\"\"")) {
            object.set_text("refusal", refusal);
            return RawValue::from_string(object.to_json()).ok();
        }
        let has_audio = object.get("audio").is_some();
        // The audio part of a spoken reply belongs to the key `audio`, not to the content.
        let beside = |part: &Component<'_>| has_audio && is_audio(part) || is_beside_text(part);
        let listed = self.content.components.iter().filter(|part| is_listed(part));
        let listed: Vec<_> = listed.filter(|part| !beside(part)).collect();
        self.set_images(&mut object);
        // If there is no content, its original spelling stays: null, an empty text or list, or no key at all.
        if !listed.is_empty() {
            object.set("content", self.content.as_json(&listed, as_list));
        }
        match self.name {
            Some(name) => object.set_text("name", name),
            None if object.get("name") == Some("\"\"") => {
                object.remove("name");
            }
            None => {}
        }
        if !self.tool_calls.is_empty() {
            object.set("tool_calls", json(&self.tool_calls));
        }
        let is_paired = object.get("tool_call_id").is_none() && has_own_pairing(&object);
        if let Some(id) = self.tool_call_id.filter(|_| !is_paired) {
            object.set_text("tool_call_id", id);
        }
        if let Some(reasoning_texts) = &self.reasoning_content {
            // If another reasoning key has a value, its server reads that one.
            let [usual, others @ ..] = CHAT_REASONING;
            let has_reasoning_text =
                |key: &&str| object.get(key).is_some_and(|json| !["\"\"", "[]", "null"].contains(&json));
            let is_in_other_field = others.iter().any(has_reasoning_text);
            let has_own = CHAT_REASONING.iter().any(|key| object.get(key).is_some());
            if object.get(usual) == Some("\"\"") && !is_in_other_field || !has_own {
                object.set_text(usual, reasoning_texts);
            }
        }
        RawValue::from_string(object.to_json()).ok()
    }

    /// Replaces the images in a separate key by those that are still sent.
    fn set_images(&self, object: &mut Object) {
        if object.get("images") != Some("[]") {
            return;
        }
        let data = |part: &Component<'a>| match *part {
            Component::Image { url, .. } if is_beside_text(part) => Some(inline_image(url)?.1),
            _ => None,
        };
        let images: Vec<&str> = self.content.components.iter().filter_map(data).collect();
        if !images.is_empty() {
            object.set("images", json(&images));
        }
    }
}

/// Returns true for reasoning inside the content (Mistral).
fn is_chunk(component: &Component<'_>) -> bool {
    matches!(component, Component::Reasoning { json: Some(_), .. })
}

/// Returns true for a component of a content list.
fn is_listed(component: &Component<'_>) -> bool {
    component.is_content() || is_chunk(component)
}

/// Returns true for an image in a separate key (Ollama).
fn is_beside_text(component: &Component<'_>) -> bool {
    matches!(component, Component::Image { json: Some(json), .. } if *json == IMAGE_BESIDE_TEXT)
}

/// The JSON that marks an image in a separate key.
#[doc(hidden)]
pub const IMAGE_BESIDE_TEXT: &str = r#"{"images":""}"#;

/// Returns true for the part that refers to the assistant's audio by its id (`OpenAI`).
fn is_audio(part: &Component<'_>) -> bool {
    matches!(part, Component::Opaque { json, .. } if json.starts_with("{\"type\":\"audio\""))
}

/// Returns true for a result that its server matches to the call by the name of the function.
fn has_own_pairing(object: &Object) -> bool {
    object.get("tool_name").is_some() || object.text("role").as_deref() == Some("function")
}

/// The content of a message: a text, a list of parts, or null next to tool calls.
#[derive(Debug)]
struct Content<'a> {
    message: &'a Message,
    components: Vec<Component<'a>>,
    /// The numbers of the parts that have a breakpoint.
    marked: Vec<usize>,
}

impl Content<'_> {
    /// Returns the text, or `None` if the content has other parts.
    fn text(&self) -> Option<&str> {
        Some(self.message.text()).filter(|text| !text.is_empty() && self.message.parts().is_empty())
    }

    /// Returns parts as JSON: as a string if they came as one, otherwise as a list.
    fn as_json(&self, parts: &[&Component<'_>], as_list: bool) -> String {
        match parts {
            [Component::Text { at, text, json: None, .. }] if !as_list && !self.marked.contains(at) => {
                json(text)
            }
            parts => json(&self.list(parts)),
        }
    }

    /// Returns parts as a list, with their breakpoints.
    fn list<'c>(&self, parts: &[&'c Component<'c>]) -> Vec<WirePart<'c>> {
        let is_marked = |part: &Component<'_>| match part {
            Component::Text { at, .. } | Component::Image { at, .. } | Component::Opaque { at, .. } => {
                self.marked.contains(at)
            }
            Component::Around { .. } | Component::Call { .. } | Component::Reasoning { .. } => false,
        };
        parts.iter().map(|part| WirePart { part, marked: is_marked(part) }).collect()
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.message.text();
        let is_list = !self.message.parts().is_empty() || self.components.iter().any(is_chunk);
        if is_list || !self.marked.is_empty() && !text.is_empty() {
            let parts: Vec<_> = self.components.iter().filter(|part| is_listed(part)).collect();
            self.list(&parts).serialize(serializer)
        } else if text.is_empty() && !self.message.tool_calls().is_empty() {
            // The API uses null for the content of a message with only calls.
            serializer.serialize_none()
        } else {
            serializer.serialize_str(text)
        }
    }
}

#[derive(Debug)]
struct WirePart<'a> {
    part: &'a Component<'a>,
    marked: bool,
}

/// A breakpoint in the form of `OpenAI` (SDK 3.54.0, read 2026-11-22).
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Breakpoint {
    mode: &'static str,
}

/// The field of a breakpoint.
pub(super) const MARK: &str = "prompt_cache_breakpoint";

pub(super) const BREAKPOINT: Breakpoint = Breakpoint { mode: "explicit" };

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mark = |map: &mut S::SerializeMap| {
            if self.marked { map.serialize_entry(MARK, &BREAKPOINT) } else { Ok(()) }
        };
        let text = |serializer: S, text: &str| {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("type", "text")?;
            map.serialize_entry("text", text)?;
            mark(&mut map)?;
            map.end()
        };
        let own_mark = || self.marked.then(|| (MARK, json(&BREAKPOINT)));
        if let Some(raw) = self.part.json().and_then(|own| filled(own, &fills(self.part), own_mark())) {
            return raw.serialize(serializer);
        }
        match *self.part {
            Component::Image { url, detail, .. } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &Image { url, detail })?;
                mark(&mut map)?;
                map.end()
            }
            Component::Opaque { json, .. } => {
                match opaque_with(json, self.marked.then_some((MARK, BREAKPOINT))) {
                    Ok(raw) => raw.serialize(serializer),
                    Err(json) => text(serializer, json),
                }
            }
            Component::Text { text: body, .. } => text(serializer, body),
            Component::Around { .. } | Component::Call { .. } | Component::Reasoning { .. } => {
                text(serializer, "")
            }
        }
    }
}

#[derive(Serialize)]
struct Image<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Debug)]
struct WireCall<'a> {
    call: &'a ToolCall,
    json: Option<&'a str>,
}

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let call = self.call;
        if let Some(raw) = self.json.and_then(|json| filled(json, &call_fills(call), None)) {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", &call.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function { name: &call.name, arguments: &call.arguments })?;
        map.end()
    }
}

/// Returns the keys of a call whose values come from neutral fields, for functions and custom tools.
fn call_fills(call: &ToolCall) -> Vec<Fill<'_>> {
    let arguments = |key| Fill::text(key, &call.arguments);
    let name = || Fill::text("name", &call.name);
    vec![
        Fill::text("id", &call.id),
        Fill::Inside("function", vec![name(), arguments("arguments")]),
        Fill::Inside("custom", vec![name(), arguments("input")]),
    ]
}

/// Returns the keys of a part whose values come from neutral fields.
fn fills<'a>(component: &Component<'a>) -> Vec<Fill<'a>> {
    match component {
        Component::Text { text, .. } => vec![Fill::text("text", text)],
        Component::Image { url, .. } => vec![Fill::Inside("image_url", vec![Fill::text("url", url)])],
        _ => Vec::new(),
    }
}

/// Returns the filled keys of a component, and the JSON that this renderer writes for it.
pub(super) fn usual_form<'a>(component: &Component<'a>) -> (Vec<Fill<'a>>, String) {
    match *component {
        Component::Call { call, .. } => (call_fills(call), json(&WireCall { call, json: None })),
        // Reasoning in the content is sent back only in its original form, so the empty object never equals
        // it.
        Component::Reasoning { .. } => (Vec::new(), "{}".into()),
        ref part => (fills(part), json(&WirePart { part, marked: false })),
    }
}

#[derive(Debug)]
pub(super) struct WireTool<'a>(&'a Tool);

impl<'a> Function<'a> for WireTool<'a> {
    const WIRE_FORMAT: WireFormat = WireFormat::OpenAiChat;

    fn fills(tool: &Tool) -> Vec<Fill<'static>> {
        vec![Fill::Inside("function", tool_fills(tool, "parameters"))]
    }
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self(tool)
    }
}

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            description: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters: Option<&'a RawValue>,
        }
        let function = Function {
            name: &self.0.name,
            description: &self.0.description,
            parameters: serde_json::from_str(&self.0.schema)
                .ok()
                .filter(|schema: &&RawValue| schema.get().starts_with('{')),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &function)?;
        map.end()
    }
}
