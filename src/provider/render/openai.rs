//! `OpenAI` Chat Completions, request side.

use super::{
    json::{Declared, opaque_with},
    marked_in_requests,
};
use crate::message::{Message, Part, Prompt, Role, Tool, ToolCall};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request body of `OpenAI` Chat Completions: `messages` and `tools`, without the model's parameters.
#[derive(Debug)]
pub struct ChatBody<'a> {
    pub(super) prompt: Cow<'a, Prompt>,
    pub(super) marked: bool,
}

impl ChatBody<'_> {
    /// Marks cache breakpoints at the end of the stable parts, on models that know them (GPT-5.6 and later); elsewhere it
    /// changes nothing.
    #[must_use]
    pub fn with_breakpoints(mut self) -> Self {
        self.marked = self.prompt.wants.breakpoints;
        self
    }

    pub(super) fn messages(&self) -> Vec<Wire<'_>> {
        let prompt = &*self.prompt;
        let calls = prompt.messages.iter().any(|message| !message.tool_calls().is_empty());
        let fills = prompt.wants.reasoning && (calls || !prompt.tools.is_empty());
        let marked = |at: usize| if self.marked { marked_in_requests(prompt, at) } else { Vec::new() };
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

#[derive(Debug, Serialize)]
pub(super) struct Wire<'a> {
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
    /// `fills`: the assistant's reasoning is sent even where there is none.
    fn new(message: &'a Message, marked: Vec<usize>, fills: bool) -> Self {
        let thoughts: Vec<&str> =
            message.reasoning().iter().map(|reasoning| reasoning.text.as_str()).collect();
        let fills = fills && message.role() == Role::Assistant;
        Self {
            role: message.role(),
            name: message.name(),
            content: Content { message, marked },
            reasoning_content: (fills || !thoughts.is_empty()).then(|| thoughts.join("\n\n")),
            tool_calls: message.tool_calls().iter().map(WireCall).collect(),
            tool_call_id: message.answers(),
        }
    }
}

/// Text, a list of parts, or null beside tool calls.
#[derive(Debug)]
struct Content<'a> {
    message: &'a Message,
    /// Parts after which a breakpoint is marked.
    marked: Vec<usize>,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.message.parts();
        let text = self.message.text();
        if !parts.is_empty() {
            let mut list = serializer.serialize_seq(Some(parts.len()))?;
            for (at, part) in parts.iter().enumerate() {
                list.serialize_element(&WirePart { part, marked: self.marked.contains(&at) })?;
            }
            list.end()
        } else if !self.marked.is_empty() && !text.is_empty() {
            let part = Part::Text(text.into());
            [WirePart { part: &part, marked: true }].serialize(serializer)
        } else if text.is_empty() && !self.message.tool_calls().is_empty() {
            serializer.serialize_none()
        } else {
            serializer.serialize_str(text)
        }
    }
}

struct WirePart<'a> {
    part: &'a Part,
    marked: bool,
}

/// A breakpoint as `OpenAI` writes it (SDK 3.54.0, read 2026-11-22).
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Breakpoint {
    mode: &'static str,
}

/// The field that bears it.
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
        match self.part {
            Part::Text(body) => text(serializer, body),
            Part::Image { url, detail } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &Image { url, detail: detail.as_deref() })?;
                mark(&mut map)?;
                map.end()
            }
            Part::Opaque { json, .. } => match opaque_with(json, self.marked.then_some((MARK, BREAKPOINT))) {
                Ok(raw) => raw.serialize(serializer),
                Err(json) => text(serializer, json),
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
pub(super) struct WireTool<'a>(&'a Tool);

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
