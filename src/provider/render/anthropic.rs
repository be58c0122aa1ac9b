//! The request body of Anthropic Messages: instructions in a separate field, tool results first in the user's
//! message, and at most four cache breakpoints.

use super::{
    fill::{Fill, filled, json as to_json},
    json::{Declared, Function, Raw, object, opaque_with, schema, tool_fills},
};
use crate::{
    message::{Component, Message, Prompt, Reasoning, Role, Tool, WireFormat},
    provider::{conform::inline_image, model::CacheLife},
    text::object::Object,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::borrow::Cow;

/// A request body of Anthropic Messages: `system`, `messages` and `tools`, without the model's parameters.
#[derive(Debug)]
pub(super) struct AnthropicBody<'a> {
    pub(super) prompt: &'a Prompt,
    /// The lifetime of the cache breakpoints (`cache_control`), or `None` if none are written.
    pub(super) breakpoints: Option<CacheLife>,
}

impl AnthropicBody<'_> {
    /// Returns the numbers of the parts of a message that have a breakpoint.
    fn marks_of(&self, at: usize) -> Vec<usize> {
        let marks = self.prompt.marks.iter().filter(|mark| self.breakpoints.is_some() && mark.message == at);
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
            // Results and user messages share the role `user`, so adjacent ones become one wire message.
            match wire.last_mut().filter(|last| last.role == role) {
                Some(last) => last.content.extend(blocks),
                None => wire.push(Wire { role, content: blocks }),
            }
        }
        wire
    }

    /// Returns the blocks of a message, with their breakpoints.
    fn blocks<'a>(&self, at: usize, message: &'a Message) -> Vec<Block<'a>> {
        let marked = self.marks_of(at);
        let control = self.breakpoints.filter(|_| !marked.is_empty()).map(Control::new);
        let components = message.components(WireFormat::Anthropic);
        if let (Role::Tool, Some(tool_use_id)) = (message.role(), message.answers()) {
            return vec![result(message, tool_use_id, &components, control)];
        }
        // A call at the end gets the breakpoint in place of the text before it, because it comes later.
        let called = components.last().is_some_and(|last| matches!(last, Component::Call { .. }));
        let last = components.len().saturating_sub(1);
        let mark = |(nth, component): (usize, &Component<'a>)| {
            let here = match component {
                Component::Call { .. } => nth == last,
                Component::Text { at, .. } | Component::Image { at, .. } | Component::Opaque { at, .. } => {
                    marked.contains(at) && (!called || matches!(component, Component::Opaque { .. }))
                }
                Component::Around { .. } | Component::Reasoning { .. } => false,
            };
            block(component, control.filter(|_| here))
        };
        components.iter().enumerate().filter_map(mark).collect()
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

/// The field of a breakpoint.
const MARK: &str = "cache_control";

/// A message in wire form.
#[derive(Debug, Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// A cache breakpoint.
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

/// A block that this renderer writes with a fixed set of keys.
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

/// A content block.
#[derive(Debug)]
enum Block<'a> {
    Known(Known<'a>),
    Opaque(Raw<'a>),
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Raw<'a>, cache_control: Option<Control> },
    ToolResult { tool_use_id: &'a str, content: Vec<Block<'a>>, failed: bool, cache_control: Option<Control> },
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
                // A result of one text is a plain string, the shorter of the two forms that the API accepts.
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

/// Returns the block of a piece of reasoning. The API refuses it without its signature.
fn thinking(reasoning: &Reasoning) -> Block<'_> {
    let seal = reasoning.signature.as_deref().unwrap_or_default();
    if reasoning.redacted {
        Block::RedactedThinking { data: seal }
    } else {
        Block::Thinking { thinking: &reasoning.text, signature: seal }
    }
}

/// Returns the block of a component. It is the provider's JSON with its keys filled in, or else the usual
/// form.
fn block<'a>(component: &Component<'a>, control: Option<Control>) -> Option<Block<'a>> {
    let written = |json: Option<&'a str>| {
        let fills = fills(component);
        let raw = filled(json?, &fills, control.map(|control| (MARK, to_json(&control))))?;
        Some(Block::Opaque(Cow::Owned(raw)))
    };
    Some(match *component {
        Component::Around { .. } => return None,
        Component::Text { text, json, .. } => {
            written(json).unwrap_or(Block::Known(Known::Text { text, cache_control: control }))
        }
        Component::Image { url, json, .. } => written(json).unwrap_or_else(|| {
            let source = match inline_image(url) {
                Some((media_type, data)) => ImageSource::Base64 { media_type, data },
                None => ImageSource::Url { url },
            };
            Block::Known(Known::Image { source, cache_control: control })
        }),
        Component::Opaque { json, .. } => match opaque_with(json, control.map(|control| (MARK, control))) {
            Ok(raw) => Block::Opaque(raw),
            Err(json) => Block::Known(Known::Text { text: json, cache_control: control }),
        },
        Component::Call { call, json, .. } => written(json).unwrap_or_else(|| Block::ToolUse {
            id: &call.id,
            name: &call.name,
            input: object(&call.arguments),
            cache_control: control,
        }),
        Component::Reasoning { reasoning, json } => written(json).unwrap_or_else(|| thinking(reasoning)),
    })
}

/// Returns the block of a tool result. A single text is a string; other content is a list, unless the
/// provider wrote it in another form.
fn result<'a>(
    message: &'a Message,
    tool_use_id: &'a str,
    components: &[Component<'a>],
    control: Option<Control>,
) -> Block<'a> {
    let content: Vec<Block<'a>> = components.iter().filter_map(|component| block(component, None)).collect();
    let usual = |content| Block::ToolResult {
        tool_use_id,
        content,
        failed: message.is_failed(),
        cache_control: control,
    };
    let Some(Component::Around { json }) = components.first() else { return usual(content) };
    let mark = control.map(|control| (MARK, to_json(&control)));
    let Some(mut around) = Object::parse(json) else { return usual(content) };
    // `keep_as_written` emptied the content; its form, a string or a list, stays as it came.
    match around.get("content") {
        Some("\"\"") => around.set("content", one_text(&content)),
        Some("[]") => around.set("content", to_json(&content)),
        _ => {}
    }
    match filled(&around.to_json(), &[Fill::text("tool_use_id", tool_use_id)], mark) {
        Some(raw) => Block::Opaque(Cow::Owned(raw)),
        None => usual(content),
    }
}

/// Returns the content of a result that came as a string: a string if it is one text, otherwise a list.
fn one_text(content: &[Block<'_>]) -> String {
    match content {
        [] => "\"\"".into(),
        [Block::Known(Known::Text { text, .. })] => to_json(text),
        blocks => to_json(blocks),
    }
}

/// Returns the keys of a block whose values come from neutral fields.
fn fills<'a>(component: &Component<'a>) -> Vec<Fill<'a>> {
    match component {
        Component::Text { text, .. } => vec![Fill::text("text", text)],
        Component::Call { call, .. } => vec![
            Fill::text("id", &call.id),
            Fill::text("name", &call.name),
            Fill::Value("input", object(&call.arguments).get().into()),
        ],
        Component::Reasoning { reasoning, .. } => {
            let seal = reasoning.signature.as_deref().unwrap_or_default();
            vec![
                Fill::text("thinking", &reasoning.text),
                Fill::text("signature", seal),
                Fill::text("data", seal),
            ]
        }
        Component::Around { .. } | Component::Image { .. } | Component::Opaque { .. } => Vec::new(),
    }
}

/// Returns the filled keys of a component, and the JSON of the block that this renderer writes for it.
pub(super) fn usual<'a>(component: &Component<'a>) -> (Vec<Fill<'a>>, String) {
    (fills(component), block(component, None).map(|block| to_json(&block)).unwrap_or_default())
}

#[derive(Debug, Serialize)]
pub(super) struct WireTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Raw<'a>,
}

impl<'a> Function<'a> for WireTool<'a> {
    const WIRE_FORMAT: WireFormat = WireFormat::Anthropic;

    fn fills(tool: &Tool) -> Vec<Fill<'static>> {
        tool_fills(tool, "input_schema")
    }
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { name: &tool.name, description: &tool.description, input_schema: schema(tool) }
    }
}
