//! Updates for clients that speak the Agent Client Protocol: the `update` of a `session/update` notification,
//! as JSON.
//!
//! Source: the stable schema of the protocol, version 1.15.1 of its crate, read 2026-11-23. A client takes
//! compactions only where it said `session.compaction` among its capabilities.

use context_window::{conversation::Compaction, usage::ContextUsage};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;

/// Returns the update `usage_update`: the tokens in context and the size of the window. `cost` is the
/// session's cost so far and its currency (ISO 4217), if the application knows it.
///
/// The tokens are those of the plan's prompt, or of the full conversation if no prompt was planned.
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
    let used = if usage.prompt_tokens > 0 { usage.prompt_tokens } else { usage.conversation_tokens.tokens };
    let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": usage.model_context_len});
    if let Some((amount, currency)) = cost {
        update["cost"] = json!({"amount": amount, "currency": currency});
    }
    update
}

/// Returns the update of a compaction that was made: `compaction_update` with status `completed`, and the
/// summary if there is one.
#[must_use]
pub fn compaction_update(record: &Compaction) -> impl Serialize + Display + use<> {
    let mut update = status(record.number, "completed");
    if let Some(summary) = &record.summary {
        update["summary"] = json!([{"type": "text", "text": summary}]);
    }
    update
}

/// Returns the update of a compaction that begins: the one of this number ([`Compaction::number`]), which the
/// next one will have.
#[must_use]
pub fn compaction_begins(number: u32) -> impl Serialize + Display {
    status(number, "in_progress")
}

/// Returns the update of a compaction that failed: the conversation is as it was.
#[must_use]
pub fn compaction_failed(number: u32, error: &context_window::Error) -> impl Serialize + Display + use<> {
    let mut update = status(number, "failed");
    update["error"] = Value::String(error.to_string());
    update
}

fn status(number: u32, status: &str) -> Value {
    json!({"sessionUpdate": "compaction_update", "compactionId": format!("compaction:{number}"), "status": status})
}
