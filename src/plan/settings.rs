//! Limits, tools and focus hint of one prompt.

use crate::{message::Tool, provider::model::RequestLimits};
use std::sync::Arc;

/// Limits, tools and focus hint of one prompt, as its request had them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PromptSettings {
    pub(crate) limits: RequestLimits,
    /// The declared tools, shared with the meter. A list of tools may be long, and every plan holds it.
    pub(crate) tools: Arc<[Tool]>,
    pub(crate) focus: Option<String>,
}
