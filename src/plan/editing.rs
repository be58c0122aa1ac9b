//! What a request has to say for its provider to edit the prompt by itself (rule C12).

use serde::Serialize;
use serde_json::Value;

/// The provider's own context management, as the options ask for it: what it does is not done here as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextEditing {
    /// The headers that have to be sent, name and value. Values of one name go into one header, with commas.
    pub headers: Vec<(String, String)>,
    /// What goes into the body under `context_management`.
    pub context_management: Value,
}
