//! Ids that distinguish prompts and plans in events of `tracing`.

/// The ids of one plan for `tracing`. They are not part of the plan, so any two are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraceIds {
    /// The application's id of the conversation.
    pub(crate) conversation: Option<String>,
    /// The application's id of the prompt.
    pub(crate) prompt: Option<String>,
    /// The number of the plan among the plans of one prompt, from 1. Each plan after a refusal counts one
    /// more. It is 0 for plans without a recorded event.
    pub(crate) attempt: u32,
    /// Tokens of the refused prompt before this one.
    pub(crate) refused_tokens: Option<u64>,
}

impl PartialEq for TraceIds {
    fn eq(&self, _: &Self) -> bool {
        // Two plans of the same request are equal, although their ids differ.
        true
    }
}
