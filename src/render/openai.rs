//! `OpenAI` Chat Completions, request side.

use crate::message::{Message, Part, Prompt, Role, Tool, ToolCall};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::value::RawValue;

/// A request body of `OpenAI` Chat Completions, without the model's parameters. It serialises; that is all.
#[derive(Debug, Serialize)]
pub struct ChatBody<'a> {
    messages: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
}

impl<'a> ChatBody<'a> {
    pub(super) fn new(prompt: &'a Prompt) -> Self {
        Self {
            messages: prompt.messages.iter().map(Wire::new).collect(),
            tools: prompt.tools.iter().map(WireTool).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Wire<'a> {
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Wire<'a> {
    fn new(message: &'a Message) -> Self {
        Self {
            role: message.role(),
            name: message.speaker(),
            content: Content(message),
            reasoning_content: message.reasoning_text(),
            tool_calls: message.tool_calls().iter().map(WireCall).collect(),
            tool_call_id: message.answers(),
        }
    }
}

/// Text, a list of parts, or null beside tool calls.
#[derive(Debug)]
struct Content<'a>(&'a Message);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.content_parts();
        if !parts.is_empty() {
            let mut list = serializer.serialize_seq(Some(parts.len()))?;
            for part in parts {
                list.serialize_element(&WirePart(part))?;
            }
            list.end()
        } else if self.0.text().is_empty() && !self.0.tool_calls().is_empty() {
            serializer.serialize_none()
        } else {
            serializer.serialize_str(self.0.text())
        }
    }
}

struct WirePart<'a>(&'a Part);

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |serializer: S, text: &str| {
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("type", "text")?;
            map.serialize_entry("text", text)?;
            map.end()
        };
        match self.0 {
            Part::Text(body) => text(serializer, body),
            Part::Image { url, detail } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &Image { url, detail: detail.as_deref() })?;
                map.end()
            }
            // A part that is not JSON after all can only be sent as text.
            Part::Opaque { json } => match serde_json::from_str::<&RawValue>(json) {
                Ok(raw) => raw.serialize(serializer),
                Err(_) => text(serializer, json),
            },
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
struct WireCall<'a>(&'a ToolCall);

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function { name: &self.0.name, arguments: &self.0.arguments })?;
        map.end()
    }
}

#[derive(Debug)]
struct WireTool<'a>(&'a Tool);

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
            parameters: serde_json::from_str(&self.0.schema).ok(),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &function)?;
        map.end()
    }
}
