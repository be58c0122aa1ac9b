//! The text of a model's answer, or the reason why the answer is not a summary.

use super::Failure;
use context_window::text::plain::{grouped, short};
use genai::chat::{ChatResponse, StopReason};

/// The maximum length of an answer in bytes, far longer than any summary. A longer answer is dropped.
const LONGEST: usize = 4_194_304;

/// Returns the text of an answer that came with a success status. Returns an error if the body contains an
/// error, or if the answer was withheld, is empty, is a tool call or is too long.
pub(super) fn text(answer: &ChatResponse) -> Result<String, Failure> {
    if let Some(failure) = answer.captured_raw_body.as_ref().and_then(Failure::of_body) {
        return Err(failure);
    }
    let stop = answer.stop_reason.as_ref();
    let why = stop.map_or_else(String::new, |stop| format!(", stop reason `{}`", short(stop.raw())));
    if matches!(stop, Some(StopReason::ContentFilter(_))) {
        return Err(Failure::new(format!("the provider withheld the reply{why}")));
    }
    // Anthropic ends a reply this way if the prompt leaves too little room. A smaller request can mend it.
    let window_full = stop.is_some_and(|stop| stop.raw() == "model_context_window_exceeded");
    if window_full {
        return Err(Failure::overflow(format!(
            "the context window was full before the reply was complete{why}"
        )));
    }
    let text = answer.content.joined_texts().unwrap_or_default();
    if text.len() > LONGEST {
        let [bytes, most] = [text.len(), LONGEST].map(|bytes| grouped(bytes as u64));
        return Err(Failure::new(format!("the reply has {bytes} bytes; expected at most {most}")));
    }
    if !text.trim().is_empty() {
        return Ok(text);
    }
    let found = if answer.content.contains_tool_call() { "a tool call" } else { "empty" };
    Err(Failure::new(format!("the reply is {found}{why}")))
}
