//! Parts of unknown types: the conditions under which they are sent back in their own wire format.

use super::TargetProfile;
use crate::{
    message::{Message, Part, Role, WireFormat},
    text::object::Object,
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, cell::OnceCell};

/// The type of a block in which a provider replaced the earlier messages by a summary.
const COMPACTION: &str = "compaction";

impl TargetProfile {
    /// Returns true if the target accepts an opaque part of its own wire format in its message.
    pub(super) fn accepts_opaque(&self, value: &Value, content: &PartContext<'_>) -> bool {
        let (message, role) = (content.message, content.message.role());
        let came = message.written_in(self.wire_format).is_some();
        let kind = value.get("type").and_then(Value::as_str);
        match (self.wire_format, role) {
            (WireFormat::Anthropic, Role::Assistant) if kind == Some(COMPACTION) => is_compaction(message),
            // The result may be in another message, so the pairs are checked later for the whole prompt.
            (WireFormat::Anthropic, Role::Assistant) => {
                came || server_tool_id(value).is_some() && is_server_tool_part(kind)
            }
            (WireFormat::Anthropic, Role::User | Role::Tool) => !is_server_tool_part(kind),
            (WireFormat::Anthropic, _) => came || adds_tools(message),
            _ if came => true,
            (WireFormat::OpenAiResponses, Role::User) => kind.is_some_and(|kind| kind.starts_with("input_")),
            (WireFormat::OpenAiResponses, Role::Tool) => false,
            (WireFormat::OpenAiResponses, Role::Assistant) => {
                content.are_items(self) && kind.is_some_and(|kind| !kind.starts_with("input_"))
            }
            (WireFormat::OpenAiResponses, _) => kind == Some("additional_tools"),
            (WireFormat::OpenAiChat | WireFormat::ChatTemplate, Role::Assistant) => kind == Some("refusal"),
            (WireFormat::OpenAiChat | WireFormat::ChatTemplate, role) => {
                role == Role::User && kind != Some("refusal")
            }
            (WireFormat::Gemini, Role::User | Role::Assistant) => {
                let is_data =
                    |(key, value): (&String, &Value)| !key.starts_with("thought") && !value.is_null();
                value.as_object().is_some_and(|part| part.iter().any(is_data))
            }
            _ => false,
        }
    }

    /// Returns true if a part is a refusal of another wire format. Its text is sent in its place, so it is a
    /// message, which has no room for items next to it.
    fn sends_as_text(&self, part: &Part) -> bool {
        let Part::Opaque { wire_format, .. } = part else { return false };
        let has_refusal = |value: &Value| refusal(value).is_some();
        *wire_format != self.wire_format && part.opaque().as_ref().is_some_and(has_refusal)
    }

    /// Removes cache marks from opaque JSON. The marks of a prompt are set for the prompt as a whole.
    pub(super) fn unmarked<'j>(&self, json: &'j str) -> Cow<'j, str> {
        // A JSON key may contain escapes, so a backslash sequence counts as a possible mark.
        let may_be = |mark: &&str| json.contains(*mark) || json.contains("\\u");
        let Some(mark) = self.wire_format.cache_mark().filter(may_be) else { return json.into() };
        match Object::parse(json).and_then(|mut object| unmark(&mut object, mark, 0).then_some(object)) {
            Some(object) => object.to_json().into(),
            None => json.into(),
        }
    }
}

/// The message of a part. A fact about all of its parts is computed once, so that many parts take linear
/// time.
pub(super) struct PartContext<'m> {
    pub(super) message: &'m Message,
    are_items: OnceCell<bool>,
}

impl<'m> PartContext<'m> {
    pub(super) fn new(message: &'m Message) -> Self {
        Self { message, are_items: OnceCell::new() }
    }

    /// Returns true if all parts are items of a provider, and none of them is sent as text.
    fn are_items(&self, target: &TargetProfile) -> bool {
        let compute =
            || is_items(self.message) && !self.message.parts().iter().any(|part| target.sends_as_text(part));
        *self.are_items.get_or_init(compute)
    }
}

/// Returns the text of a refusal. Returns `None` for any other part, and for an empty text.
pub(super) fn refusal(part: &Value) -> Option<&str> {
    part.get("refusal").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// Removes the cache marks of a block and of the blocks inside it. The arguments of a tool call are not
/// blocks. Returns true if there were any marks.
fn unmark(object: &mut Object, mark: &str, depth: usize) -> bool {
    // Results and documents contain blocks, but these contain no further results or documents.
    const MAX_DEPTH: usize = 4;
    // A JSON key may contain escapes.
    let may_hold = |json: &str| json.contains(mark) || json.contains("\\u");
    let mut any = object.remove(mark);
    for key in ["content", "source"] {
        let Some(json) = object.get(key).filter(|json| depth < MAX_DEPTH && may_hold(json)) else {
            continue;
        };
        let changed = if json.starts_with('[') {
            let mut list: Vec<Box<RawValue>> = serde_json::from_str(json).unwrap_or_default();
            let mut changed = false;
            for value in &mut list {
                if let Some(mut inner) = Object::parse(value.get())
                    && unmark(&mut inner, mark, depth + 1)
                    && let Ok(raw) = RawValue::from_string(inner.to_json())
                {
                    *value = raw;
                    changed = true;
                }
            }
            changed.then(|| serde_json::to_string(&list).unwrap_or_default())
        } else {
            Object::parse(json)
                .and_then(|mut inner| unmark(&mut inner, mark, depth + 1).then(|| inner.to_json()))
        };
        if let Some(json) = changed {
            object.set(key, json);
            any = true;
        }
    }
    any
}

/// Returns true if a message consists only of a provider's summary of the messages before it (compaction by a
/// provider, rule C11).
pub(super) fn is_compaction(message: &Message) -> bool {
    let is_one = |part: &Part| part.opaque().is_some_and(|part| part["type"] == COMPACTION);
    let opaque = |part: &Part| matches!(part, Part::Opaque { .. });
    message.role() == Role::Assistant
        && message.text().is_empty()
        && message.parts().iter().all(opaque)
        && message.parts().iter().any(is_one)
}

/// Returns true for a message that has no text and only opaque parts, such as bare items of a provider.
fn is_items(message: &Message) -> bool {
    message.text().is_empty() && message.parts().iter().all(|part| matches!(part, Part::Opaque { .. }))
}

/// Returns true for instructions that consist only of items that add or remove tools (late additions, rule
/// S12).
pub(super) fn adds_tools(message: &Message) -> bool {
    const TOOLS: [&str; 3] = ["tool_addition", "tool_removal", "additional_tools"];
    let is_one =
        |part: &Part| part.opaque().is_some_and(|part| TOOLS.iter().any(|kind| part["type"] == **kind));
    message.role().instructs()
        && !message.parts().is_empty()
        && is_items(message)
        && message.parts().iter().all(is_one)
}

/// Returns true if a block is a call or a result of a provider-run tool.
fn is_server_tool_part(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.ends_with("tool_use") || kind.ends_with("tool_result"))
}

/// A call or a result of a provider-run tool, with the id of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerToolPart {
    Call(String),
    Result(String),
}

/// Returns the call or result that a part contains, or `None` for any other part.
pub(super) fn server_tool_part(part: &Part) -> Option<ServerToolPart> {
    let block = part.opaque().filter(|block| is_server_tool_part(block["type"].as_str()))?;
    let id = server_tool_id(&block)?;
    Some(if block.get("tool_use_id").is_none() {
        ServerToolPart::Call(id)
    } else {
        ServerToolPart::Result(id)
    })
}

/// Returns the id of a call of a provider-run tool, or the call id in the result of one.
fn server_tool_id(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let key = match text("type") {
        Some(kind) if kind.ends_with("tool_use") => "id",
        _ => "tool_use_id",
    };
    text(key).map(str::to_owned)
}
