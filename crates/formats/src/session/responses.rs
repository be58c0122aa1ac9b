//! The `input` of `OpenAI` Responses, as messages: calls and reasoning belong to what the assistant says.

use super::{
    content::Content,
    wire::{Name, arguments},
};
use context_window::{Message, Part, Role, ToolCall, WireFormat, message::Reasoning, text::plain};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The types of the items that are read; others are carried as they are.
const READ: [&str; 6] = [
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
];

/// Only an item's type, to know whether it is read.
#[derive(Deserialize)]
struct Kind {
    r#type: Option<String>,
}

/// Every field of every item that is read.
#[derive(Deserialize)]
struct Item {
    r#type: Option<String>,
    role: Option<Speaker>,
    content: Option<Content>,
    id: Option<String>,
    summary: Option<Vec<Text>>,
    encrypted_content: Option<String>,
    call_id: Option<Name>,
    name: Option<String>,
    /// A custom tool takes a text, as its `input`.
    #[serde(alias = "input")]
    arguments: Option<Box<RawValue>>,
    output: Option<Content>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    System,
    Developer,
    User,
    Assistant,
}

impl Speaker {
    fn role(self) -> Role {
        match self {
            Self::System => Role::System,
            Self::Developer => Role::Developer,
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
        }
    }
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct WirePart {
    r#type: Option<String>,
    text: Option<String>,
    image_url: Option<String>,
    detail: Option<String>,
    refusal: Option<String>,
}

/// The messages of the items; an error names the item and what was expected.
pub(super) fn messages(input: &RawValue) -> Result<Vec<Message>, (Option<usize>, String)> {
    let input: Content =
        serde_json::from_str(input.get()).map_err(|error| (None, plain::without_place(&error)))?;
    let items = match input {
        Content::Null => return Ok(Vec::new()),
        Content::Text(text) => return Ok(vec![Message::user(text)]),
        Content::Parts(items) => items,
    };
    let mut log = Log::default();
    for (at, raw) in items.iter().enumerate() {
        log.raw(raw.get()).map_err(|detail| (Some(at), detail))?;
    }
    log.end();
    Ok(log.messages)
}

/// Items on their way to messages, one after another.
#[derive(Default)]
pub(super) struct Log {
    pub(super) messages: Vec<Message>,
    /// What the assistant is saying: reasoning, then content, then calls.
    open: Option<Open>,
    /// The number of the last assistant message.
    replied: Option<usize>,
}

#[derive(Default)]
struct Open {
    reasonings: Vec<Reasoning>,
    said: Option<Message>,
    calls: Vec<ToolCall>,
}

impl Log {
    /// The next item, as it came; an error says what was expected.
    pub(super) fn raw(&mut self, json: &str) -> Result<(), String> {
        let fault = |error: serde_json::Error| plain::without_place(&error);
        let kind: Kind = serde_json::from_str(json).map_err(fault)?;
        if kind.r#type.as_deref().is_some_and(|kind| !READ.contains(&kind)) {
            self.carry(json);
            return Ok(());
        }
        self.item(serde_json::from_str(json).map_err(fault)?)
    }

    /// A call of a tool that has no name of its own in the item.
    pub(super) fn call(&mut self, call: ToolCall) {
        self.open.get_or_insert_default().calls.push(call);
    }

    /// What came back for a call.
    pub(super) fn result(&mut self, id: String, text: String) {
        self.end();
        self.messages.push(Message::tool(id, text));
    }

    /// More of the last thought: what the model thought, where that is said beside its summary.
    pub(super) fn think(&mut self, text: &str) {
        let last = self.open.as_mut().and_then(|open| open.reasonings.last_mut());
        if let Some(last) = last.filter(|last| !text.is_empty() && !last.text.contains(text)) {
            let apart = if last.text.is_empty() { "" } else { "\n\n" };
            last.text = format!("{}{apart}{text}", last.text);
        }
    }

    /// The number of the assistant message that is being said, or of the last one that was.
    pub(super) fn reply(&self) -> Option<usize> {
        let last = self.replied.filter(|last| *last < self.messages.len());
        self.open.as_ref().map(|_| self.messages.len()).or(last)
    }

    fn item(&mut self, item: Item) -> Result<(), String> {
        match (item.r#type.as_deref(), item.role.map(Speaker::role)) {
            (Some("message") | None, Some(Role::Assistant)) => {
                let said = message(Role::Assistant, item.content)?;
                if self.open.as_ref().is_some_and(|open| open.said.is_some() || !open.calls.is_empty()) {
                    self.end();
                }
                self.open.get_or_insert_default().said = Some(said);
            }
            (Some("message") | None, Some(role)) => {
                self.end();
                self.messages.push(message(role, item.content)?);
            }
            (Some("reasoning"), _) => {
                if self.open.as_ref().is_some_and(|open| open.said.is_some() || !open.calls.is_empty()) {
                    self.end();
                }
                let summary: Vec<String> = item.summary.into_iter().flatten().map(|part| part.text).collect();
                let text = summary.join("\n\n");
                let mut reasoning = match item.encrypted_content {
                    Some(seal) => Reasoning::sealed(WireFormat::OpenAiResponses, text, seal),
                    None => Reasoning::text(text),
                };
                reasoning.id = item.id;
                self.open.get_or_insert_default().reasonings.push(reasoning);
            }
            (Some("function_call" | "custom_tool_call"), _) => {
                let id = item
                    .call_id
                    .or(item.id.map(Name::Text))
                    .map(Name::into_text)
                    .ok_or("expected a call_id")?;
                let name = item.name.ok_or("expected a name")?;
                let call = ToolCall::new(id, name, arguments(item.arguments.as_deref()));
                self.open.get_or_insert_default().calls.push(call);
            }
            (Some("function_call_output" | "custom_tool_call_output"), _) => {
                self.end();
                let id = item.call_id.ok_or("expected a call_id")?.into_text();
                let said = message(Role::User, item.output)?;
                let result = Message::tool(id, said.text());
                let parts = said.parts();
                self.messages.push(if parts.is_empty() { result } else { result.with_parts(parts.to_vec()) });
            }
            _ => return Err("expected an item: an object with a type or a role".into()),
        }
        Ok(())
    }

    /// An item of another type, as a part of what the assistant says.
    fn carry(&mut self, json: &str) {
        self.end();
        let part = Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: json.into() };
        self.messages.push(Message::assistant("").with_parts([part]));
    }

    /// What the assistant was saying is a message.
    pub(super) fn end(&mut self) {
        let Some(Open { reasonings, said, calls }) = self.open.take() else { return };
        let said = said.unwrap_or_else(|| Message::assistant(""));
        let message = reasonings.into_iter().fold(said, Message::with_reasoning);
        self.replied = Some(self.messages.len());
        self.messages.push(if calls.is_empty() { message } else { message.with_tool_calls(calls) });
    }
}

fn message(role: Role, content: Option<Content>) -> Result<Message, String> {
    let parts = match content {
        None | Some(Content::Null) => return Ok(Message::new(role, "")),
        Some(Content::Text(text)) => return Ok(Message::new(role, text)),
        Some(Content::Parts(parts)) => parts,
    };
    let part = |raw: &RawValue| {
        let part: WirePart = serde_json::from_str(raw.get()).map_err(|error| plain::without_place(&error))?;
        let kind = part.r#type.as_deref().unwrap_or("text");
        let is_text = kind.ends_with("text") || kind == "refusal";
        Ok(match part {
            WirePart { text: Some(text), .. } | WirePart { refusal: Some(text), .. } if is_text => {
                Part::Text(text)
            }
            WirePart { image_url: Some(url), detail, .. } => {
                Part::Image { url, detail: detail.filter(|detail| detail != "auto") }
            }
            _ => Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: raw.get().into() },
        })
    };
    let parts: Result<Vec<Part>, String> = parts.iter().map(|raw| part(raw)).collect();
    Ok(Message::new(role, "").with_parts(parts?))
}
