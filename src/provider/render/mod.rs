//! Neutral messages → a provider's wire format.
//!
//! A plan's messages are made for its own target and rendered as they are. Rendered for another one, they are first
//! brought into a form that every model behind that wire format takes (rules H3 to H7): that can add messages, and the count
//! of the plan is not the count of such a prompt.

use crate::{
    message::{Mark, Prompt, Role, WireFormat},
    provider::conform::normalized,
};
use serde::{Serialize, Serializer};

mod fill;
mod json;
mod anthropic;
mod gemini;
mod openai;
mod responses;
mod as_written;
mod late_tools;
#[cfg(feature = "chat-template")]
mod template;

#[cfg(feature = "chat-template")]
pub(crate) use template::Renderer;

pub use crate::provider::model::CacheLife;
pub use anthropic::AnthropicBody;
#[doc(hidden)]
pub use as_written::{definition_as_written, keep_as_written, keep_tool_as_written};
pub use gemini::GeminiBody;
pub(crate) use gemini::unsigned_calls;
#[doc(hidden)]
pub use gemini::{FUNCTIONS, is_inline_image, kind_of, result_json};
pub(crate) use late_tools::added_tools;
pub use openai::ChatBody;
#[doc(hidden)]
pub use openai::IMAGE_BESIDE_TEXT;
pub use responses::ResponsesBody;

/// The prompt as the body of a wire format, for whoever sends to several providers: messages and tools, without the model's parameters.
/// A plan's own is `plan.wire_format`. With `breakpoints`, cache breakpoints are marked where the wire format knows them, for five
/// minutes where it asks for how long. A server that applies a model's own template takes the body of `OpenAI` Chat.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("claude-haiku-5-5")?;
/// let log = Conversation::from([Message::system("Be brief."), Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body = render::body(&plan, plan.wire_format, false);
/// assert_eq!(body["messages"][0]["content"][0]["text"], "Hello");
/// assert_eq!(body, serde_json::to_value(render::anthropic(&plan)).unwrap());
/// # }
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// Never: a body is plain data.
pub fn body(prompt: &impl AsRef<Prompt>, wire_format: WireFormat, breakpoints: bool) -> serde_json::Value {
    rendered(prompt, wire_format, breakpoints, serde_json::value::Serializer).expect("a body is plain data")
}

/// Returns the body of a wire format as JSON text, as [`body`] does. Numbers that a provider wrote keep their spelling here:
/// `1e2` and integers of any length.
///
/// # Panics
///
/// Never: a body is plain data.
pub fn body_json(prompt: &impl AsRef<Prompt>, wire_format: WireFormat, breakpoints: bool) -> String {
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    rendered(prompt, wire_format, breakpoints, &mut serializer).expect("a body is plain data");
    String::from_utf8(json).expect("JSON is text")
}

fn rendered<S: Serializer>(
    prompt: &impl AsRef<Prompt>,
    wire_format: WireFormat,
    breakpoints: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match wire_format {
        WireFormat::OpenAiResponses if breakpoints => {
            openai_responses(prompt).with_breakpoints().serialize(serializer)
        }
        WireFormat::OpenAiResponses => openai_responses(prompt).serialize(serializer),
        WireFormat::Anthropic if breakpoints => {
            anthropic(prompt).with_breakpoints(CacheLife::default()).serialize(serializer)
        }
        WireFormat::Anthropic => anthropic(prompt).serialize(serializer),
        WireFormat::Gemini => gemini(prompt).serialize(serializer),
        WireFormat::OpenAiChat | WireFormat::ChatTemplate | WireFormat::Plain if breakpoints => {
            openai(prompt).with_breakpoints().serialize(serializer)
        }
        WireFormat::OpenAiChat | WireFormat::ChatTemplate | WireFormat::Plain => {
            openai(prompt).serialize(serializer)
        }
    }
}

/// The prompt as a body of `OpenAI` Chat Completions: `messages` and `tools`, without the model's parameters.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body = serde_json::to_string(&render::openai(&plan)).unwrap();
/// assert_eq!(body, r#"{"messages":[{"role":"user","content":"Hello"}]}"#);
/// # }
/// # Ok(())
/// # }
/// ```
pub fn openai(prompt: &impl AsRef<Prompt>) -> ChatBody<'_> {
    ChatBody { prompt: normalized(prompt.as_ref(), WireFormat::OpenAiChat), marked: false }
}

/// The prompt as a body of `OpenAI` Responses: `input` and `tools`, without the model's parameters.
pub fn openai_responses(prompt: &impl AsRef<Prompt>) -> ResponsesBody<'_> {
    ResponsesBody { prompt: normalized(prompt.as_ref(), WireFormat::OpenAiResponses), marked: false }
}

/// The prompt as a body of Anthropic Messages: `system`, `messages` and `tools`, without the model's parameters.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("claude-sonnet-4-5")?;
/// let log = Conversation::from([Message::system("Be brief."), Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body = serde_json::to_string(&render::anthropic(&plan)).unwrap();
/// assert_eq!(
///     body,
///     r#"{"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}"#
/// );
/// # }
/// # Ok(())
/// # }
/// ```
pub fn anthropic(prompt: &impl AsRef<Prompt>) -> AnthropicBody<'_> {
    AnthropicBody { prompt: normalized(prompt.as_ref(), WireFormat::Anthropic), marked: None }
}

/// The prompt as a body of Gemini: `systemInstruction`, `contents` and `tools`, without the model's parameters.
pub fn gemini(prompt: &impl AsRef<Prompt>) -> GeminiBody<'_> {
    GeminiBody { prompt: normalized(prompt.as_ref(), WireFormat::Gemini) }
}

/// The parts of a message after which a breakpoint is marked. What the assistant said takes none: the one before it bears
/// the mark then.
fn marked_in_requests(prompt: &Prompt, at: usize) -> Vec<usize> {
    let said = |at: usize| prompt.messages[at].role() == Role::Assistant;
    let eligible = |mark: &Mark| match mark.message {
        own if !said(own) => Some(*mark),
        own => {
            let message = (0..own).rev().find(|before| !said(*before))?;
            Some(Mark { message, part: prompt.messages[message].parts().len().saturating_sub(1) })
        }
    };
    let marks = prompt.marks.iter().filter_map(eligible);
    marks.filter(|mark| mark.message == at).map(|mark| mark.part).collect()
}

/// The prompt as the text that a model's own chat template makes of it, up to the beginning of the reply: what a server
/// such as vLLM or llama.cpp hands to the tokenizer.
///
/// # Errors
///
/// `ErrorKind::Template` with the template's line and own words, when it cannot be read or refuses the messages.
#[cfg(feature = "chat-template")]
pub fn chat_template(
    prompt: &impl AsRef<Prompt>,
    template: &crate::provider::model::ChatTemplate,
) -> Result<String, crate::error::Error> {
    template::render(prompt.as_ref(), template)
}
