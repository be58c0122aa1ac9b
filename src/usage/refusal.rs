//! Provider errors for prompts that are too long, and stop reasons of replies.

use super::ContextEvent;
use serde::{Deserialize, Serialize};

/// The reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its reply.
    Done,
    /// The model requests tool results.
    ToolCalls,
    /// The reply reached its maximum length (rule U4).
    MaxTokens,
    /// The context window was full.
    ContextFull,
    /// The provider withheld the reply.
    Refused,
    /// Any other reason.
    Other,
}

impl StopReason {
    /// Returns the event for a user interface if the reply reached its maximum length or filled the context
    /// window (rule U4). Returns `None` for all other reasons.
    #[must_use]
    pub fn event(self) -> Option<ContextEvent> {
        match self {
            Self::MaxTokens => Some(ContextEvent::MaxTokens),
            Self::ContextFull => Some(ContextEvent::WindowFull),
            _ => None,
        }
    }

    /// Returns the name in JSON and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToolCalls => "tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }

    /// Parses a provider's stop reason: `finish_reason`, `stop_reason`, `finishReason` or
    /// `incomplete_details.reason`. An unknown word gives [`StopReason::Other`].
    #[must_use]
    pub fn named(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "stop" | "end_turn" | "stop_sequence" | "completed" | "eos" => Self::Done,
            "tool_calls" | "tool_use" | "function_call" => Self::ToolCalls,
            "length" | "max_tokens" | "max_output_tokens" => Self::MaxTokens,
            "model_context_window_exceeded" => Self::ContextFull,
            "content_filter" | "refusal" | "safety" | "recitation" | "prohibited_content" => Self::Refused,
            _ => Self::Other,
        }
    }
}

/// Lower-case phrases in provider errors for a prompt that does not fit the context window.
const WORDINGS: [&str; 17] = [
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceed context limit",
    "prompt is too long",
    "input is too long for requested model",
    "input length and `max_tokens` exceed",
    "exceeds the maximum number of tokens allowed",
    "input token count",
    "context window exceeded",
    "exceeds the available context size",
    "larger than the context size",
    "reduce the length of the messages",
    "request_too_large",
    "prompt exceeds max length",
    "exceed_context_size_error",
    "model_context_window_exceeded",
];

/// Phrases of other errors with similar words, such as a limit of tokens per minute.
const NOT: [&str; 7] =
    ["rate limit", "rate_limit", "per minute", "per day", "quota", "throttl", "please wait"];

/// Returns true if a provider's error, as text or JSON, reports a prompt that does not fit the context
/// window. Retry with a smaller plan, by [`crate::RequestLimits::prompt_budget`] with less than the sent
/// tokens, or after a compaction.
///
/// Recognises the errors of `OpenAI`, Azure, Anthropic, Bedrock, Gemini, Mistral, Groq, `OpenRouter`, vLLM
/// and llama.cpp, listed in `docs/reference/compaction.md`.
#[must_use]
pub fn is_context_overflow(error: &str) -> bool {
    let error = error.to_lowercase();
    // Rate limit errors mention tokens too, but a smaller prompt does not help against them.
    WORDINGS.iter().any(|wording| error.contains(wording)) && !NOT.iter().any(|other| error.contains(other))
}

/// Phrases in provider errors for reasoning that was not sent back unchanged: Anthropic (bound to another
/// conversation, changed or cut) and Gemini. An error for missing reasoning is not included, because a prompt
/// without reasoning does not fix it.
const REASONING: [&str; 4] = [
    "`signature` in `thinking` block",
    "blocks in the latest assistant message cannot be modified",
    "invalid thought signature",
    "corrupted thought signature",
];

/// Returns true if a provider's error, as text or JSON, rejects the reasoning of an earlier reply. The same
/// prompt is rejected again, so send a plan without reasoning, with `conversation.reasoning = "drop"`. No
/// reasoning is lost, because [`crate::Conversation`] keeps it.
///
/// Recognises the errors of Anthropic and Gemini as of 2026.
#[must_use]
pub fn is_reasoning_refusal(error: &str) -> bool {
    let error = error.to_lowercase();
    REASONING.iter().any(|wording| error.contains(wording))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_recognised_by_wording_and_rate_limits_are_not() {
        for error in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            r#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window"}}"#,
            "prompt is too long: 208310 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "Input is too long for requested model.",
            "the request exceeds the available context size (4096 tokens), try increasing it",
        ] {
            assert!(is_context_overflow(error), "{error}");
        }
        for error in [
            "Rate limit reached: too many tokens per minute",
            "ThrottlingException: Too many tokens, please wait before trying again.",
            "Your credit balance is too low",
            "Internal server error",
            "",
        ] {
            assert!(!is_context_overflow(error), "{error}");
        }
        assert_eq!(StopReason::named("length"), StopReason::MaxTokens);
        assert_eq!(StopReason::named("MAX_TOKENS"), StopReason::MaxTokens);
        assert_eq!(StopReason::named("end_turn"), StopReason::Done);
        assert_eq!(StopReason::named("max_output_tokens").event(), Some(ContextEvent::MaxTokens));
        assert_eq!(StopReason::named("stop").event(), None);
    }
    #[test]
    fn reasoning_refusals_are_recognised_by_wording() {
        for error in [
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
            "messages.3.content.0: Invalid `signature` in `thinking` block",
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            "Corrupted thought signature.",
        ] {
            assert!(is_reasoning_refusal(error), "{error}");
            assert!(!is_context_overflow(error), "{error}");
        }
        for error in [
            "Function call is missing a thought_signature in functionCall parts.",
            "prompt is too long: 208310 tokens > 200000 maximum",
            "invalid x-api-key",
            "",
        ] {
            assert!(!is_reasoning_refusal(error), "{error}");
        }
    }
}
