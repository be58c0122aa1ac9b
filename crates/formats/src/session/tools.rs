//! Conversion of the tool definitions of any provider.

use super::{gemini, keys::Keys, wire};
use context_window::{
    Tool, WireFormat, render::keep_tool_as_written, text::plain, text::plain::compact_json,
};
use serde_json::value::RawValue;

/// Converts tool definitions. An error names the index of the first invalid one, with the reason.
pub(crate) fn tools(
    tools: &[Box<RawValue>],
    functions: Vec<wire::Function>,
    unknown: WireFormat,
) -> Result<Vec<Tool>, (usize, String)> {
    let schema = |raw: Option<Box<RawValue>>| raw.map(|raw| raw.get().to_owned()).unwrap_or_default();
    let full = |function: wire::Function| {
        Tool::new(function.name, function.description.unwrap_or_default(), schema(function.parameters))
    };
    let mut all = Vec::new();
    for (at, raw) in tools.iter().enumerate() {
        let mut tool: wire::Tool =
            serde_json::from_str(raw.get()).map_err(|error| (at, plain::without_place(&error)))?;
        if let Some(declarations) = tool.declarations.take() {
            // Each declaration keeps its JSON, so that Gemini receives it unchanged.
            for raw in declarations {
                let declared: wire::Declaration =
                    serde_json::from_str(raw.get()).map_err(|error| (at, plain::without_place(&error)))?;
                all.push(keep_tool_as_written(gemini::tool(declared), WireFormat::Gemini, raw.get()));
            }
            all.extend(gemini::tool_without_functions(raw.get()));
        } else if let Some(function) = tool.function.take() {
            all.push(keep_tool_as_written(full(function), WireFormat::OpenAiChat, raw.get()));
        } else if let Some((name, wire_format)) = hosted(&tool, raw, unknown) {
            all.push(Tool::hosted(name, wire_format, compact_json(raw.get())));
        } else {
            let expected = "expected a function with a name, or a tool with a type";
            let name = tool.name.ok_or_else(|| (at, expected.to_owned()))?;
            let wire_format = match (tool.kind.as_deref(), &tool.input_schema) {
                (_, Some(_)) => Some(WireFormat::Anthropic),
                (Some("function"), None) => Some(WireFormat::OpenAiResponses),
                _ => None,
            };
            let (description, parameters) = (tool.description, tool.parameters.or(tool.input_schema));
            let function = full(wire::Function { name, description, parameters });
            all.push(match wire_format {
                Some(wire_format) => keep_tool_as_written(function, wire_format, raw.get()),
                None => function,
            });
        }
    }
    all.extend(functions.into_iter().map(full));
    Ok(all)
}

/// Returns the name and the wire format of a tool that its provider runs itself or accepts in a form of its
/// own. Returns `None` for a function.
fn hosted(tool: &wire::Tool, raw: &RawValue, unknown: WireFormat) -> Option<(String, WireFormat)> {
    let wire_format = match tool.kind.as_deref() {
        // Gemini names a provider's tool by its key.
        None if tool.name.is_none() => {
            let keys: Keys = serde_json::from_str(raw.get()).ok()?;
            return Some((keys.0.into_iter().next()?, WireFormat::Gemini));
        }
        None | Some("function") => return None,
        Some("custom") if tool.input_schema.is_some() => return None,
        Some("custom") if tool.name.is_none() => WireFormat::OpenAiChat,
        // Types of Anthropic's tools end with the date of their version.
        Some(kind) if has_version(kind) || kind == "mcp_toolset" => WireFormat::Anthropic,
        Some(kind) if kind.starts_with("tool_search_tool_") => WireFormat::Anthropic,
        Some(_) if unknown == WireFormat::Anthropic => unknown,
        Some(_) => WireFormat::OpenAiResponses,
    };
    let name = tool.name.clone().or_else(|| tool.kind.clone());
    Some((name.unwrap_or_default(), wire_format))
}

/// Checks whether a type ends with a date, as `web_search_20250305` does.
fn has_version(kind: &str) -> bool {
    kind.rsplit('_').next().is_some_and(|end| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit()))
}
