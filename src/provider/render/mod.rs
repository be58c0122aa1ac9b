//! The conversion of messages to the wire format of a provider.
//!
//! A plan's messages suit its own target and are rendered unchanged. For another wire format they are first
//! adapted to a form that every model with that format accepts (rules for targets, H3 to H7). This can add
//! messages, so the token count of the plan does not apply to the adapted prompt.

use crate::{
    message::{Mark, Prompt, Role, WireFormat},
    provider::{conform::normalized, model::CacheLife},
};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, fmt};

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

use anthropic::AnthropicBody;
#[doc(hidden)]
pub use as_written::{definition_as_written, keep_as_written, keep_tool_as_written};
use gemini::GeminiBody;
pub(crate) use gemini::unsigned_calls;
#[doc(hidden)]
pub use gemini::{FUNCTIONS, is_inline_image, kind_of, result_json};
pub(crate) use late_tools::added_tools;
use openai::ChatBody;
#[doc(hidden)]
pub use openai::IMAGE_BESIDE_TEXT;
use responses::ResponsesBody;

/// A request body in a provider's wire format. It contains the messages and tools of a prompt, without the
/// model's parameters.
///
/// It serializes as a JSON object, and [`Display`](fmt::Display) writes the same JSON on one line. Numbers
/// that a provider wrote keep their spelling: `1e2` and integers of any length.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
/// use context_window::{render::{self, Body}, usage::CacheLife};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("claude-haiku-5-5")?;
/// let log = Conversation::from([Message::system("Be brief."), Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body: Body<'_> = render::body(&plan, plan.wire_format).with_breakpoints(CacheLife::FiveMinutes);
/// let value = serde_json::to_value(&body).expect("a body is plain data");
/// assert_eq!(value["messages"][0]["content"][0]["text"], "Hello");
/// assert!(body.to_string().starts_with(r#"{"system":[{"type":"text","text":"Be brief."}]"#));
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Body<'a> {
    prompt: Cow<'a, Prompt>,
    wire_format: WireFormat,
    breakpoints: Option<CacheLife>,
}

impl Body<'_> {
    /// Adds cache breakpoints at the end of the stable parts, if the wire format and the model support them.
    /// Otherwise the body stays unchanged. Anthropic accepts at most four, none on reasoning and none below
    /// the model's minimum length. Only Anthropic uses the lifetime. `OpenAI` supports breakpoints from
    /// GPT-5.6 on.
    #[must_use]
    pub fn with_breakpoints(mut self, life: CacheLife) -> Self {
        self.breakpoints = Some(life);
        self
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let prompt = &*self.prompt;
        let is_marked = self.breakpoints.is_some() && prompt.wants.breakpoints;
        match self.wire_format {
            WireFormat::OpenAiResponses => ResponsesBody { prompt, is_marked }.serialize(serializer),
            WireFormat::Anthropic => {
                AnthropicBody { prompt, breakpoints: self.breakpoints }.serialize(serializer)
            }
            WireFormat::Gemini => GeminiBody { prompt }.serialize(serializer),
            WireFormat::OpenAiChat | WireFormat::ChatTemplate | WireFormat::Plain => {
                ChatBody { prompt, is_marked }.serialize(serializer)
            }
        }
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}

/// Returns the body of a prompt in any wire format, for applications that send to several providers. The
/// format of a plan is `plan.wire_format`. A server that applies a chat template of its own receives the body
/// of `OpenAI` Chat.
pub fn body(prompt: &impl AsRef<Prompt>, wire_format: WireFormat) -> Body<'_> {
    let wire_format = match wire_format {
        WireFormat::ChatTemplate | WireFormat::Plain => WireFormat::OpenAiChat,
        known => known,
    };
    Body { prompt: normalized(prompt.as_ref(), wire_format), wire_format, breakpoints: None }
}

/// Returns the body of `OpenAI` Chat Completions: `messages` and `tools`, without the model's parameters.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body = render::openai(&plan).to_string();
/// assert_eq!(body, r#"{"messages":[{"role":"user","content":"Hello"}]}"#);
/// # }
/// # Ok(())
/// # }
/// ```
pub fn openai(prompt: &impl AsRef<Prompt>) -> Body<'_> {
    body(prompt, WireFormat::OpenAiChat)
}

/// Returns the body of `OpenAI` Responses: `input` and `tools`, without the model's parameters.
pub fn openai_responses(prompt: &impl AsRef<Prompt>) -> Body<'_> {
    body(prompt, WireFormat::OpenAiResponses)
}

/// Returns the body of Anthropic Messages: `system`, `messages` and `tools`, without the model's parameters.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("claude-sonnet-4-5")?;
/// let log = Conversation::from([Message::system("Be brief."), Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let body = render::anthropic(&plan).to_string();
/// assert_eq!(
///     body,
///     concat!(
///         r#"{"system":[{"type":"text","text":"Be brief."}],"#,
///         r#""messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}"#,
///     )
/// );
/// # }
/// # Ok(())
/// # }
/// ```
pub fn anthropic(prompt: &impl AsRef<Prompt>) -> Body<'_> {
    body(prompt, WireFormat::Anthropic)
}

/// Returns the body of Gemini: `systemInstruction`, `contents` and `tools`, without the model's parameters.
pub fn gemini(prompt: &impl AsRef<Prompt>) -> Body<'_> {
    body(prompt, WireFormat::Gemini)
}

/// Returns the indices of the parts with a breakpoint in the message at index `at`. An assistant message
/// cannot have a breakpoint. Its breakpoint moves to the last part of the nearest earlier message of another
/// role.
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

/// Returns the prompt as rendered by the model's own chat template, up to the beginning of the reply. A
/// server such as vLLM or llama.cpp passes the same text to the tokenizer.
///
/// # Errors
///
/// Returns `ErrorKind::Template` if the template is invalid or refuses the messages. The error contains the
/// line and the template's own message.
#[cfg(feature = "chat-template")]
pub fn chat_template(
    prompt: &impl AsRef<Prompt>,
    template: &crate::provider::model::ChatTemplate,
) -> Result<String, crate::error::Error> {
    template::render(prompt.as_ref(), template)
}
