//! Anthropic Messages, request side: instructions apart, results first in the user's turn, at most four cache marks.

use super::json::{Declared, Raw, object, opaque_with, schema};
use crate::{
    message::{Message, Part, Prompt, Reasoning, Role, Tool},
    provider::{conform::inline_image, model::CacheLife},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::borrow::Cow;

/// A request body of Anthropic Messages: `system`, `messages` and `tools`, without the model's parameters.
#[derive(Debug)]
pub struct AnthropicBody<'a> {
    pub(super) prompt: Cow<'a, Prompt>,
    pub(super) marked: Option<CacheLife>,
}

impl AnthropicBody<'_> {
    /// Marks cache breakpoints (`cache_control`) at the end of the stable parts: at most four, none below the model's
    /// least length where that is known, none on reasoning.
    #[must_use]
    pub fn with_breakpoints(mut self, life: CacheLife) -> Self {
        self.marked = Some(life);
        self
    }

    fn marks_of(&self, at: usize) -> Vec<usize> {
        let marks = self.prompt.marks.iter().filter(|mark| self.marked.is_some() && mark.message == at);
        marks.map(|mark| mark.part).collect()
    }

    fn system(&self) -> Vec<Block<'_>> {
        let head = self.prompt.messages.iter().take_while(|message| message.role().instructs()).enumerate();
        head.flat_map(|(at, message)| self.blocks(at, message)).collect()
    }

    fn messages(&self) -> Vec<Wire<'_>> {
        let head = self.prompt.messages.iter().take_while(|message| message.role().instructs()).count();
        let mut wire: Vec<Wire<'_>> = Vec::new();
        for (at, message) in self.prompt.messages.iter().enumerate().skip(head) {
            let role = match message.role() {
                Role::Assistant => "assistant",
                Role::System | Role::Developer => "system",
                Role::User | Role::Tool => "user",
            };
            let blocks = self.blocks(at, message);
            match wire.last_mut().filter(|last| last.role == role) {
                Some(last) => last.content.extend(blocks),
                None => wire.push(Wire { role, content: blocks }),
            }
        }
        wire
    }

    /// A message's blocks, those after which something is marked with their marks.
    fn blocks<'a>(&self, at: usize, message: &'a Message) -> Vec<Block<'a>> {
        let marked = self.marks_of(at);
        let control = self.marked.filter(|_| !marked.is_empty()).map(Control::new);
        let mut blocks: Vec<Block<'a>> = message.reasoning().iter().map(thinking).collect();
        if let (Role::Tool, Some(tool_use_id)) = (message.role(), message.answers()) {
            let content = parts(message, &[], None);
            blocks.push(Block::ToolResult {
                tool_use_id,
                content,
                failed: message.is_failed(),
                cache_control: control,
            });
            return blocks;
        }
        blocks.extend(parts(message, &marked, control));
        blocks.extend(message.tool_calls().iter().map(|call| Block::ToolUse {
            id: &call.id,
            name: &call.name,
            input: object(&call.arguments),
            cache_control: None,
        }));
        if let Some(Block::ToolUse { cache_control, .. }) = blocks.last_mut() {
            *cache_control = control;
            blocks.iter_mut().for_each(Block::unmark_text);
        }
        blocks
    }
}

impl Serialize for AnthropicBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = self.system();
        let tools: Vec<Declared<'_, WireTool<'_>>> = self.prompt.tools.iter().map(Declared::new).collect();
        let mut map = serializer.serialize_map(None)?;
        if !system.is_empty() {
            map.serialize_entry("system", &system)?;
        }
        map.serialize_entry("messages", &self.messages())?;
        if !tools.is_empty() {
            map.serialize_entry("tools", &tools)?;
        }
        map.end()
    }
}

/// The field that bears a breakpoint.
const MARK: &str = "cache_control";

#[derive(Debug, Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Control {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl Control {
    fn new(life: CacheLife) -> Self {
        Self { r#type: "ephemeral", ttl: (life == CacheLife::OneHour).then_some("1h") }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Known<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Control>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Control>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

#[derive(Debug)]
enum Block<'a> {
    Known(Known<'a>),
    Opaque(Raw<'a>),
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Raw<'a>, cache_control: Option<Control> },
    ToolResult { tool_use_id: &'a str, content: Vec<Block<'a>>, failed: bool, cache_control: Option<Control> },
}

impl Block<'_> {
    /// A call after it bears the mark.
    fn unmark_text(&mut self) {
        if let Self::Known(Known::Text { cache_control, .. } | Known::Image { cache_control, .. }) = self {
            *cache_control = None;
        }
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Known(known) => return known.serialize(serializer),
            Self::Opaque(raw) => return raw.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        let control = match self {
            Self::Thinking { thinking, signature } => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", thinking)?;
                map.serialize_entry("signature", signature)?;
                None
            }
            Self::RedactedThinking { data } => {
                map.serialize_entry("type", "redacted_thinking")?;
                map.serialize_entry("data", data)?;
                None
            }
            Self::ToolUse { id, name, input, cache_control } => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
                *cache_control
            }
            Self::ToolResult { tool_use_id, content, failed, cache_control } => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", tool_use_id)?;
                match content.as_slice() {
                    [Block::Known(Known::Text { text, .. })] => map.serialize_entry("content", text)?,
                    blocks => map.serialize_entry("content", blocks)?,
                }
                if *failed {
                    map.serialize_entry("is_error", &true)?;
                }
                *cache_control
            }
            Self::Known(_) | Self::Opaque(_) => None,
        };
        if let Some(control) = control {
            map.serialize_entry(MARK, &control)?;
        }
        map.end()
    }
}

fn thinking(reasoning: &Reasoning) -> Block<'_> {
    let seal = reasoning.seal.as_deref().unwrap_or_default();
    if reasoning.redacted {
        Block::RedactedThinking { data: seal }
    } else {
        Block::Thinking { thinking: &reasoning.text, signature: seal }
    }
}

/// Text and images, with a cache mark on the marked positions.
fn parts<'a>(message: &'a Message, marked: &[usize], control: Option<Control>) -> Vec<Block<'a>> {
    let mark = |at: usize| control.filter(|_| marked.contains(&at));
    let text = |text: &'a str, at: usize| Block::Known(Known::Text { text, cache_control: mark(at) });
    let own = Some(message.text()).filter(|text| !text.is_empty()).map(|own| text(own, 0));
    let block = |(at, part): (usize, &'a Part)| match part {
        Part::Text(body) => text(body, at),
        Part::Image { url, .. } => {
            let source = match inline_image(url) {
                Some((media_type, data)) => ImageSource::Base64 { media_type, data },
                None => ImageSource::Url { url },
            };
            Block::Known(Known::Image { source, cache_control: mark(at) })
        }
        Part::Opaque { json, .. } => match opaque_with(json, mark(at).map(|control| (MARK, control))) {
            Ok(raw) => Block::Opaque(raw),
            Err(json) => text(json, at),
        },
    };
    own.into_iter().chain(message.parts().iter().enumerate().map(block)).collect()
}

#[derive(Debug, Serialize)]
pub(super) struct WireTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Raw<'a>,
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { name: &tool.name, description: &tool.description, input_schema: schema(tool) }
    }
}
