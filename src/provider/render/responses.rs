//! `OpenAI` Responses, request side: every message, call, result and piece of reasoning is an item of its own.

use super::{
    json::{Declared, Raw, opaque, opaque_with, schema},
    marked_in_requests,
    openai::{BREAKPOINT, Breakpoint, MARK},
};
use crate::message::{Message, Part, Prompt, Reasoning, Role, Tool};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::borrow::Cow;

/// A request body of `OpenAI` Responses: `input` and `tools`, without the model's parameters. Instructions stand in `input`,
/// in their position, as messages of the system or developer role.
#[derive(Debug)]
pub struct ResponsesBody<'a> {
    pub(super) prompt: Cow<'a, Prompt>,
    pub(super) marked: bool,
}

impl ResponsesBody<'_> {
    /// Marks cache breakpoints at the end of the stable parts, on models that know them (GPT-5.6 and later); elsewhere it
    /// changes nothing.
    #[must_use]
    pub fn with_breakpoints(mut self) -> Self {
        self.marked = self.prompt.wants.breakpoints;
        self
    }

    fn items(&self) -> Vec<Item<'_>> {
        let mut items = Vec::new();
        for (at, message) in self.prompt.messages.iter().enumerate() {
            let marked = if self.marked { marked_in_requests(&self.prompt, at) } else { Vec::new() };
            items.extend(message.reasoning().iter().map(reasoning));
            let answer = message.answers().filter(|_| message.role() == Role::Tool);
            if let Some(call_id) = answer {
                items.push(Item::FunctionCallOutput { call_id, output: content(message, &marked) });
            } else if let Some(own) = own_items(message) {
                items.extend(own.into_iter().map(Item::Own));
            } else if !message.text().is_empty() || !message.parts().is_empty() {
                items.push(Item::Message { role: message.role(), content: content(message, &marked) });
            }
            items.extend(message.tool_calls().iter().map(|call| Item::FunctionCall {
                call_id: &call.id,
                name: &call.name,
                arguments: &call.arguments,
            }));
        }
        items
    }
}

/// Items of types that this library does not know: what the assistant says holds nothing else.
fn own_items(message: &Message) -> Option<Vec<Raw<'_>>> {
    // Of other roles only what adds tools is nothing but items.
    let may_be = message.role() == Role::Assistant || message.role().instructs();
    if !may_be || message.parts().is_empty() || !message.text().is_empty() {
        return None;
    }
    let mut items = Vec::new();
    for part in message.parts() {
        let Part::Opaque { json, .. } = part else { return None };
        items.push(opaque(json).ok()?);
    }
    Some(items)
}

impl Serialize for ResponsesBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<Declared<'_, WireTool<'_>>> = self.prompt.tools.iter().map(Declared::new).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input", &self.items())?;
        if !tools.is_empty() {
            map.serialize_entry("tools", &tools)?;
        }
        map.end()
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: Role,
        content: Content<'a>,
    },
    Reasoning {
        id: &'a str,
        summary: Vec<WirePart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    /// What one of the provider's own tools did, as it came.
    #[serde(untagged)]
    Own(Raw<'a>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WirePart<'a> {
    Text {
        r#type: &'static str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    Image {
        r#type: &'static str,
        image_url: &'a str,
        detail: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    Opaque(Raw<'a>),
}

fn reasoning(reasoning: &Reasoning) -> Item<'_> {
    let summary = Some(reasoning.text.as_str()).filter(|text| !text.is_empty()).map(|text| WirePart::Text {
        r#type: "summary_text",
        text,
        prompt_cache_breakpoint: None,
    });
    Item::Reasoning {
        id: reasoning.id.as_deref().unwrap_or_default(),
        summary: summary.into_iter().collect(),
        encrypted_content: reasoning.seal.as_deref(),
    }
}

/// What the assistant said is one text; whatever else is a list where it has parts or a mark.
fn content<'a>(message: &'a Message, marked: &[usize]) -> Content<'a> {
    let (text, parts) = (message.text(), message.parts());
    let mark = |at: usize| marked.contains(&at).then_some(BREAKPOINT);
    let wire_text = |text: &'a str, at: usize| WirePart::Text {
        r#type: "input_text",
        text,
        prompt_cache_breakpoint: mark(at),
    };
    if parts.is_empty() {
        let is_marked = mark(0).is_some() && !text.is_empty();
        return if is_marked { Content::Parts(vec![wire_text(text, 0)]) } else { Content::Text(text) };
    }
    let wire = |(at, part): (usize, &'a Part)| match part {
        Part::Text(text) => wire_text(text, at),
        Part::Opaque { json, .. } => match opaque_with(json, mark(at).map(|mark| (MARK, mark))) {
            Ok(raw) => WirePart::Opaque(raw),
            Err(json) => wire_text(json, at),
        },
        Part::Image { url, detail } => {
            let known = |detail: &&str| ["low", "high", "original"].contains(detail);
            WirePart::Image {
                r#type: "input_image",
                image_url: url,
                detail: detail.as_deref().filter(known).unwrap_or("auto"),
                prompt_cache_breakpoint: mark(at),
            }
        }
    };
    Content::Parts(parts.iter().enumerate().map(wire).collect())
}

#[derive(Debug, Serialize)]
pub(super) struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Raw<'a>,
    strict: bool,
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: schema(tool),
            strict: false,
        }
    }
}
