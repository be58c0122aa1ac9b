//! Updates for clients of the Agent Client Protocol: the `update` object of a `session/update` notification,
//! as JSON.
//!
//! Source: the stable schema of the protocol, version 1.15.1 of its crate, read 2026-11-23. A client accepts
//! compaction updates only if it lists `session.compaction` in its capabilities.

use context_window::{conversation::Compaction, usage::ContextUsage};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;

/// Returns the update `usage_update`: the tokens in use and the size of the context window, in tokens. `cost`
/// is the cost of the session so far with its currency (ISO 4217), if the application knows it.
///
/// The tokens in use are those of the plan's prompt, or of the full conversation if no prompt was planned.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
/// use context_window_formats::acp;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let update = serde_json::json!(acp::usage_update(&plan.usage, None));
/// assert_eq!(update["sessionUpdate"], "usage_update");
/// assert_eq!(update["size"], 128_000);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn usage_update(usage: &ContextUsage, cost: Option<(f64, &str)>) -> impl Serialize + Display + use<> {
    // A plan without a prompt counts 0 tokens; the conversation is then the best estimate.
    let used = if usage.prompt_tokens > 0 { usage.prompt_tokens } else { usage.conversation_tokens.tokens };
    let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": usage.model_context_len});
    if let Some((amount, currency)) = cost {
        update["cost"] = json!({"amount": amount, "currency": currency});
    }
    update
}

/// Returns the update of a completed compaction: `compaction_update` with status `completed`, and the summary
/// if there is one.
#[must_use]
pub fn compaction_update(record: &Compaction) -> impl Serialize + Display + use<> {
    let mut update = status(record.number, "completed");
    if let Some(summary) = &record.summary {
        update["summary"] = json!([{"type": "text", "text": summary}]);
    }
    update
}

/// Returns the update of a compaction that begins. `number` is the number ([`Compaction::number`]) that the
/// new compaction will have.
#[must_use]
pub fn compaction_begins(number: u32) -> impl Serialize + Display {
    status(number, "in_progress")
}

/// Returns the update of a failed compaction. The conversation is unchanged.
#[must_use]
pub fn compaction_failed(number: u32, error: &context_window::Error) -> impl Serialize + Display + use<> {
    let mut update = status(number, "failed");
    update["error"] = Value::String(error.to_string());
    update
}

fn status(number: u32, status: &str) -> Value {
    json!({"sessionUpdate": "compaction_update", "compactionId": format!("compaction:{number}"), "status": status})
}
