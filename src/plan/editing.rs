//! The part of a request that asks its provider to edit the prompt by itself (provider-side editing, rule
//! C12).

use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// The provider's own context management, as the options request it. The plan does not make these edits
/// itself.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, config::ToolResults,
///     plan::ContextEditing,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// let mut config = Config::default();
/// config.conversation.tool_results = ToolResults::Provider;
/// let manager = ContextWindowManager::configured(Model::named("claude-opus-5-5")?, config)?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let editing: ContextEditing = plan.context_editing.expect("Anthropic clears tool results by itself");
/// assert_eq!(editing.headers[0].0, "anthropic-beta");
/// assert!(editing.context_management().to_string().contains("clear_tool_uses"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextEditing {
    /// The required headers, as name and value. Values of one name go into one header, separated by commas.
    pub headers: Vec<(String, String)>,
    pub(crate) context_management: Value,
}

impl ContextEditing {
    /// Returns the value of `context_management` in the body of the request. It serializes to JSON and
    /// displays as JSON.
    #[must_use]
    pub fn context_management(&self) -> impl Serialize + fmt::Display {
        &self.context_management
    }
}
