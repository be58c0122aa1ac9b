//! The report on a committed reply.

use super::{AppliedEdit, ContextEvent, StopReason, TransformedInput, Usage};
use crate::item::ItemId;
use serde::Serialize;
use serde_json::Value;

/// A provider's report on a reply: its usage and its stop reason. `None`, a [`Usage`], a [`StopReason`] or a
/// pair of both convert to it.
///
/// ```
/// use context_window::{Usage, usage::{ReplyReport, StopReason}};
///
/// let usage = Usage::openai(1_000, 800, 50);
/// let report = ReplyReport::new().with_usage(usage).with_stop(StopReason::named("length"));
/// assert_eq!(report, (usage, StopReason::MaxTokens).into());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyReport {
    /// The reported usage.
    pub usage: Option<Usage>,
    /// The stop reason.
    pub stop: Option<StopReason>,
    /// Tokens of the reply's own reasoning.
    pub thinking_tokens: Option<u64>,
    /// Reasoning of the prompt that the provider dropped, or accepted this time.
    pub(crate) transformed: Vec<TransformedInput>,
    /// The edits of the provider's own context management.
    pub(crate) edits: Vec<AppliedEdit>,
}

impl ReplyReport {
    /// Creates a report without any figures.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a provider's response (`OpenAI` Chat and Responses, Anthropic, Gemini): usage, stop reason, and
    /// the provider's changes to the prompt. [`crate::Conversation::push_reply`] returns these changes as
    /// events. Missing parts stay unset. Accepts any value that serialises as the response's JSON, such as a
    /// `serde_json::Value` or a type of the provider's client.
    ///
    /// ```
    /// use context_window::usage::ReplyReport;
    ///
    /// let report = ReplyReport::from_json(&serde_json::json!({
    ///     "stop_reason": "end_turn",
    ///     "usage": {"input_tokens": 900, "output_tokens": 20},
    ///     "input_transformations": [{
    ///         "type": "thinking_dropped",
    ///         "path": "messages.1.content.0",
    ///         "reason": "prefix_binding_mismatch",
    ///     }],
    /// }));
    /// assert_eq!(report.usage.unwrap().context_size(), 920);
    /// ```
    #[must_use]
    pub fn from_json(response: &impl Serialize) -> Self {
        let response = &serde_json::to_value(response).unwrap_or_default();
        // Gemini names the field `usageMetadata`.
        let usage = response.get("usage").or_else(|| response.get("usageMetadata"));
        let words = [
            "/stop_reason",
            "/choices/0/finish_reason",
            "/incomplete_details/reason",
            "/candidates/0/finishReason",
        ];
        let stop = words.iter().find_map(|word| response.pointer(word)?.as_str());
        let list = |at: &str| response.pointer(at).and_then(Value::as_array).into_iter().flatten();
        let details = ["/output_tokens_details", "/completion_tokens_details"];
        let thinking_tokens = details.iter().find_map(|at| {
            let details = usage?.pointer(at)?;
            let figure = ["thinking_tokens", "reasoning_tokens"].iter().find_map(|key| details.get(*key));
            figure?.as_u64()
        });
        Self {
            thinking_tokens,
            usage: usage.and_then(Usage::from_value),
            stop: stop.map(StopReason::named),
            transformed: list("/input_transformations").filter_map(TransformedInput::from_json).collect(),
            edits: list("/context_management/applied_edits").filter_map(AppliedEdit::from_json).collect(),
        }
    }

    /// Sets the usage.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Sets the stop reason. [`StopReason::named`] parses a provider's word.
    #[must_use]
    pub fn with_stop(self, stop: StopReason) -> Self {
        Self { stop: Some(stop), ..self }
    }
}

impl From<Option<Usage>> for ReplyReport {
    fn from(usage: Option<Usage>) -> Self {
        Self { usage, ..Self::default() }
    }
}

impl From<Usage> for ReplyReport {
    fn from(usage: Usage) -> Self {
        Self::new().with_usage(usage)
    }
}

impl From<StopReason> for ReplyReport {
    fn from(stop: StopReason) -> Self {
        Self::new().with_stop(stop)
    }
}

impl From<(Usage, StopReason)> for ReplyReport {
    fn from((usage, stop): (Usage, StopReason)) -> Self {
        Self::new().with_usage(usage).with_stop(stop)
    }
}

/// The result of committing a reply to the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// The id of the reply.
    pub id: ItemId,
    /// Events for a user interface (rule C10). They report the usage of the context window, a change of the
    /// level, and a reply that reached its maximum length or filled the window.
    pub events: Vec<ContextEvent>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn removed_reasoning_is_read_by_its_item() {
        let removed =
            json!({"id": "rs_1", "type": "reasoning", "action": "removed", "reason": "prefix_mismatch"});
        let report = ReplyReport::from_json(&json!({ "input_transformations": [removed] }));
        assert_eq!((report.transformed[0].place.as_str(), report.transformed[0].dropped), ("rs_1", true));
    }
}
