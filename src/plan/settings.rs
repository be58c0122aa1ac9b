//! Limits, tools and focus hint of one prompt.

use crate::{message::Tool, provider::model::RequestLimits};

/// Limits, tools and focus hint of one prompt, as its request had them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PromptSettings {
    pub(crate) limits: RequestLimits,
    pub(crate) tools: Vec<Tool>,
    pub(crate) focus: Option<String>,
}
