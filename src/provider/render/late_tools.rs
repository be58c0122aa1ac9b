//! Tools that are added at the end of a prompt, as the part of a message (rule S12).

use super::{anthropic, json::Declared, responses};
use crate::message::{Message, Part, Tool, WireFormat};
use serde_json::{Value, json};

/// A message that adds tools, which have been made for the target: with Anthropic a part each, with Responses one item.
pub(crate) fn added_tools(wire_format: WireFormat, tools: &[Tool]) -> Message {
    let declared = |tool: &Tool| -> Value {
        let value = match wire_format {
            WireFormat::Anthropic => serde_json::to_value(Declared::<anthropic::WireTool<'_>>::new(tool)),
            _ => serde_json::to_value(Declared::<responses::WireTool<'_>>::new(tool)),
        };
        value.unwrap_or_default()
    };
    let parts: Vec<Value> = match wire_format {
        WireFormat::Anthropic => {
            let part = |tool| json!({"type": "tool_definition", "definition": declared(tool)});
            tools.iter().map(|tool| json!({"type": "tool_addition", "tool": part(tool)})).collect()
        }
        _ => {
            let tools: Vec<Value> = tools.iter().map(declared).collect();
            vec![json!({"type": "additional_tools", "role": "developer", "tools": tools})]
        }
    };
    let part = |value: Value| Part::Opaque { wire_format, json: value.to_string() };
    Message::system("").with_parts(parts.into_iter().map(part))
}
