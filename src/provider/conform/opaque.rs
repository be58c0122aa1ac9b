//! Parts of types that this library does not know: which of them go back, in the wire format they came in.

use super::TargetProfile;
use crate::{
    message::{Message, Part, Role, WireFormat},
    text::object::Object,
};
use serde_json::{Value, value::RawValue};
use std::borrow::Cow;

/// What a provider made of the messages before it.
const COMPACTION: &str = "compaction";

impl TargetProfile {
    /// Whether a part of this target's own wire format is taken in a message of this role.
    pub(super) fn takes_opaque(&self, role: Role, value: &Value, message: &Message) -> bool {
        let came = message.written_in(self.wire_format).is_some();
        let kind = value.get("type").and_then(Value::as_str);
        match (self.wire_format, role) {
            (WireFormat::Anthropic, Role::Assistant) if kind == Some(COMPACTION) => is_compaction(message),
            // The other half may stand in another message: the whole prompt is looked at later.
            (WireFormat::Anthropic, Role::Assistant) => {
                came || server_tool_id(value).is_some() && is_half(kind)
            }
            (WireFormat::Anthropic, Role::User | Role::Tool) => !is_half(kind),
            (WireFormat::Anthropic, _) => came || adds_tools(message),
            _ if came => true,
            (WireFormat::OpenAiResponses, Role::User) => kind.is_some_and(|kind| kind.starts_with("input_")),
            (WireFormat::OpenAiResponses, Role::Tool) => false,
            (WireFormat::OpenAiResponses, Role::Assistant) => {
                is_items(message) && kind.is_some_and(|kind| !kind.starts_with("input_"))
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

    /// Carried JSON without cache marks of its own: where they stand is decided for the prompt as a whole.
    pub(super) fn unmarked<'j>(&self, json: &'j str) -> Cow<'j, str> {
        // A key may be written with escapes.
        let may_be = |mark: &&str| json.contains(*mark) || json.contains("\\u");
        let Some(mark) = self.wire_format.cache_mark().filter(may_be) else { return json.into() };
        match Object::parse(json).and_then(|mut object| unmark(&mut object, mark, 0).then_some(object)) {
            Some(object) => object.to_json().into(),
            None => json.into(),
        }
    }
}

/// Takes the marks off a block and the blocks in it; what a tool was called with is no block. Returns true if
/// there were any.
fn unmark(object: &mut Object, mark: &str, depth: usize) -> bool {
    // Blocks stand in results and documents, which stand in no others.
    const DEEPEST: usize = 4;
    // A key may be written with escapes.
    let may_hold = |json: &str| json.contains(mark) || json.contains("\\u");
    let mut any = object.remove(mark);
    for key in ["content", "source"] {
        let Some(json) = object.get(key).filter(|json| depth < DEEPEST && may_hold(json)) else {
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

/// Whether a message is nothing but what the provider made of the messages before it (rule C11).
pub(super) fn is_compaction(message: &Message) -> bool {
    let is_one = |part: &Part| part.opaque().is_some_and(|part| part["type"] == COMPACTION);
    let opaque = |part: &Part| matches!(part, Part::Opaque { .. });
    message.role() == Role::Assistant
        && message.text().is_empty()
        && message.parts().iter().all(opaque)
        && message.parts().iter().any(is_one)
}

/// Returns true for a message that nobody wrote in a wire format and that holds nothing but parts of it:
/// items by themselves.
fn is_items(message: &Message) -> bool {
    message.text().is_empty() && message.parts().iter().all(|part| matches!(part, Part::Opaque { .. }))
}

/// Returns true for instructions without text that hold only items for the provider: those that add or remove
/// tools do (rule S12).
pub(super) fn adds_tools(message: &Message) -> bool {
    const TOOLS: [&str; 3] = ["tool_addition", "tool_removal", "additional_tools"];
    let is_one =
        |part: &Part| part.opaque().is_some_and(|part| TOOLS.iter().any(|kind| part["type"] == **kind));
    message.role().instructs()
        && !message.parts().is_empty()
        && is_items(message)
        && message.parts().iter().all(is_one)
}

/// Whether a block is the call or the result of one of the provider's own tools.
fn is_half(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.ends_with("tool_use") || kind.ends_with("tool_result"))
}

/// A call of one of the provider's own tools, or the result of one, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Half {
    Call(String),
    Result(String),
}

/// Returns the half of a use of the provider's own tools that a part is. Returns `None` for any other part.
pub(super) fn half(part: &Part) -> Option<Half> {
    let block = part.opaque().filter(|block| is_half(block["type"].as_str()))?;
    let id = server_tool_id(&block)?;
    Some(if block.get("tool_use_id").is_none() { Half::Call(id) } else { Half::Result(id) })
}

/// Returns the id of a call of the provider's own tools, or that a result of one names.
fn server_tool_id(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let key = match text("type") {
        Some(kind) if kind.ends_with("tool_use") => "id",
        _ => "tool_use_id",
    };
    text(key).map(str::to_owned)
}
