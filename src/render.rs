//! Neutral messages → a provider's wire form. Repairs and wording are done before; nothing is decided here.

use crate::message::Prompt;

mod openai;
#[cfg(feature = "chat-template")]
mod template;

#[cfg(feature = "chat-template")]
pub(crate) use template::Renderer;

pub use openai::ChatBody;

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
    ChatBody::new(prompt.as_ref())
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
    template: &crate::model::ChatTemplate,
) -> Result<String, crate::error::Error> {
    template::render(prompt.as_ref(), template)
}
