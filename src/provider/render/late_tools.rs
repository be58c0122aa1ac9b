//! Messages that add tools at the end of a prompt (late additions, rule S12).

use super::{anthropic, fill::json, json::Declared, responses};
use crate::message::{Message, Part, Tool, WireFormat};

/// Returns a message that adds tools, which are already adapted to the target. With Anthropic each tool is a
/// part; with Responses all tools are one item.
pub(crate) fn added_tools(wire_format: WireFormat, tools: &[Tool]) -> Message {
    let parts: Vec<String> = match wire_format {
        WireFormat::Anthropic => tools.iter().map(addition).collect(),
        _ => {
            let declared: Vec<_> = tools.iter().map(Declared::<responses::WireTool<'_>>::new).collect();
            let tools = json(&declared);
            vec![format!(r#"{{"type":"additional_tools","role":"developer","tools":{tools}}}"#)]
        }
    };
    let part = |json: String| Part::Opaque { wire_format, json };
    Message::system("").with_parts(parts.into_iter().map(part))
}

/// Returns the Anthropic part that adds a tool.
fn addition(tool: &Tool) -> String {
    let definition = json(&Declared::<anthropic::WireTool<'_>>::new(tool));
    format!(r#"{{"type":"tool_addition","tool":{{"type":"tool_definition","definition":{definition}}}}}"#)
}
