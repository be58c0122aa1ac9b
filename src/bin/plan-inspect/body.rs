//! What is sent: a prompt as the request body of a wire format.

use anyhow::{Result, bail};
use context_window::{
    WireFormat,
    message::Prompt,
    render::{self, CacheLife},
};
use serde_json::Value;

/// The body; cache breakpoints are marked where that is asked for and the form knows them.
pub(crate) fn body(sent: &impl AsRef<Prompt>, form: WireFormat, marked: bool) -> Result<Value> {
    let body = match (form, marked) {
        (WireFormat::OpenAiResponses, false) => serde_json::to_value(render::openai_responses(sent)),
        (WireFormat::OpenAiResponses, true) => {
            serde_json::to_value(render::openai_responses(sent).with_breakpoints())
        }
        (WireFormat::Anthropic, false) => serde_json::to_value(render::anthropic(sent)),
        (WireFormat::Anthropic, true) => {
            serde_json::to_value(render::anthropic(sent).with_breakpoints(CacheLife::default()))
        }
        (WireFormat::Gemini, _) => serde_json::to_value(render::gemini(sent)),
        // Servers that apply a model's own template take the body of OpenAI Chat.
        (WireFormat::OpenAiChat | WireFormat::ChatTemplate | WireFormat::Plain, false) => {
            serde_json::to_value(render::openai(sent))
        }
        (WireFormat::OpenAiChat | WireFormat::ChatTemplate | WireFormat::Plain, true) => {
            serde_json::to_value(render::openai(sent).with_breakpoints())
        }
        (other, _) => bail!("{}: plan-inspect has no request body for this wire format", other.name()),
    };
    Ok(body?)
}

/// The messages of a body, whatever its form calls them.
pub(crate) fn messages(body: &Value) -> &Value {
    ["messages", "input", "contents"].iter().find_map(|key| body.get(key)).unwrap_or(&Value::Null)
}
