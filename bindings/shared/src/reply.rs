//! The report of a provider about a reply.

use context_window::{Usage, usage::ReplyReport};
use serde_json::{Value, json};

/// Reads a provider's whole response, or its usage alone.
///
/// # Errors
///
/// Returns a description if it is neither.
pub fn read_report(mut response: Value) -> Result<ReplyReport, &'static str> {
    // These keys identify a whole response of any provider; a usage alone has none of them.
    let is_answer = ["usage", "usageMetadata", "stop_reason", "choices", "candidates"]
        .iter()
        .any(|key| response.get(*key).is_some());
    if !is_answer {
        if Usage::from_json(&response).is_none() {
            return Err("response: expected a provider's answer with its usage, or the usage alone");
        }
        response = json!({ "usage": response });
    }
    Ok(ReplyReport::from_json(&response))
}
