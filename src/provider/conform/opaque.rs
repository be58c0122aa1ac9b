//! Parts of types that this library does not know: which of them go back, in the wire format they came in.

use super::TargetProfile;
use crate::{
    message::{Message, Part, Role, WireFormat},
    provider::render::mark,
    text::size,
};
use serde_json::Value;
use std::borrow::Cow;

/// Tools that are added at the end of a prompt: one with Anthropic, several with `OpenAI`.
const ADDED_TOOL: &str = "tool_addition";
const ADDED_TOOLS: &str = "additional_tools";

/// What a provider made of the messages before it.
const COMPACTION: &str = "compaction";

impl TargetProfile {
    /// Whether a part of this target's own wire format is taken in a message of this role.
    pub(super) fn takes_opaque(&self, role: Role, value: &Value, message: &Message) -> bool {
        if self.wire_format != WireFormat::Anthropic {
            return true;
        }
        let kind = value.get("type").and_then(Value::as_str);
        match role {
            Role::Assistant if kind == Some(COMPACTION) => is_compaction(message),
            // The other half may stand in another message: the whole prompt is looked at later.
            Role::Assistant => !is_half(kind) || server_tool_id(value).is_some(),
            _ => !is_half(kind),
        }
    }

    /// Carried JSON without cache marks of its own: where they stand is decided for the prompt as a whole.
    pub(super) fn unmarked<'j>(&self, json: &'j str) -> Cow<'j, str> {
        // A key may be written with escapes.
        let may_be = |mark: &&str| json.contains(*mark) || json.contains("\\u");
        let Some(mark) = mark(self.wire_format).filter(may_be) else { return json.into() };
        let mut value: Value = size::tree(json).unwrap_or_default();
        if unmark(&mut value, mark) { value.to_string().into() } else { json.into() }
    }
}

/// Takes the marks off a block and the blocks in it; what a tool was called with is no block. Says whether there were any.
fn unmark(value: &mut Value, mark: &str) -> bool {
    match value {
        Value::Array(list) => {
            list.iter_mut().filter_map(|value| unmark(value, mark).then_some(())).count() > 0
        }
        Value::Object(object) => {
            let mut any = object.shift_remove(mark).is_some();
            for key in ["content", "source"] {
                any |= object.get_mut(key).is_some_and(|value| unmark(value, mark));
            }
            any
        }
        _ => false,
    }
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

/// Whether a message does nothing but add tools (rule S12).
pub(super) fn adds_tools(message: &Message) -> bool {
    let is_one = |part: &Part| {
        part.opaque().is_some_and(|part| part["type"] == ADDED_TOOL || part["type"] == ADDED_TOOLS)
    };
    message.role().instructs()
        && message.text().is_empty()
        && !message.parts().is_empty()
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

/// The id of a call of the provider's own tools, or that a result of one names.
fn server_tool_id(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let key = match text("type") {
        Some(kind) if kind.ends_with("tool_use") => "id",
        _ => "tool_use_id",
    };
    text(key).map(str::to_owned)
}
