//! Limits, tools and focus hint of one prompt.

use crate::{message::Tool, provider::model::RequestLimits};
use std::sync::Arc;

/// Limits, tools and focus hint of one prompt, as its request had them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PromptSettings {
    pub(crate) limits: RequestLimits,
    /// Shared with the meter: a list of tools may be long, and each plan has it.
    pub(crate) tools: Arc<[Tool]>,
    pub(crate) focus: Option<String>,
}
