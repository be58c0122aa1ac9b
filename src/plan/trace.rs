//! Ids by which events of `tracing` are told apart.

/// Ids of one plan for `tracing`. They are no part of the plan: any two are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraceIds {
    /// The application's id of the conversation.
    pub(crate) conversation: Option<String>,
    /// The application's id of the prompt.
    pub(crate) prompt: Option<String>,
    /// The number of the plan among those of one prompt, from 1: each plan after a refusal is one more. 0 for
    /// plans that no event is recorded of.
    pub(crate) attempt: u32,
    /// The tokens of the prompt that was refused before this one.
    pub(crate) refused_tokens: Option<u64>,
}

impl PartialEq for TraceIds {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
