//! Cline: `api_conversation_history.json`, and newer sessions with the prompt around the messages.

use super::{
    FormatReader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::Talk,
    task::Task,
};
use crate::format::FileFormat;
use context_window::WireFormat;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Cline, fits, read);

/// The key of the range of messages that are no longer sent, in Cline's list of tasks.
const RANGE: &str = "conversationHistoryDeletedRange";

fn fits(shape: &Shape) -> bool {
    let is_own = |message: &serde_json::Value| {
        let is_reply = message.get("modelInfo").is_some() || message.get("metrics").is_some();
        is_reply && message.get("role").is_some() && message.get("content").is_some()
    };
    let is_piece = |part: &serde_json::Value| {
        part.get("call_id").is_some() && matches!(text(part, "type"), "tool_use" | "tool_result")
    };
    let around = ["sessionId", "updated_at", "agent", "version", "source_message_count"];
    let is_session = shape.container == "messages" && around.iter().filter(|key| shape.has(key)).count() > 2;
    let has_history = shape.has("apiConversationHistory") || shape.has("api_conversation_history");
    let is_cut = shape.has(RANGE) && (shape.container == "messages" || has_history);
    let is_list = shape.container.is_empty()
        && (shape.messages.iter().any(is_own) || shape.any_part("content", is_piece));
    is_session && shape.any_has(&["role", "content"])
        || is_cut
        || is_list
        || shape.has("historyItem") && has_history
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk { wire_format: Some(WireFormat::Anthropic), ..Talk::default() };
    let mut range = None;
    let all = if node.is_list() {
        node.list()?
    } else {
        let fields = node.object()?;
        fields.ignore(&["version", "updated_at", "agent", "source_last_message_key", "conversation_id"]);
        talk.id = fields.name("sessionId")?;
        talk.system.extend(fields.text("system_prompt")?);
        range = fields.get(RANGE);
        if let Some(item) = fields.get("historyItem") {
            let item = item.object()?;
            range = range.or_else(|| item.get(RANGE));
            item.ignore_all();
        }
        let keys = ["messages", "apiConversationHistory", "api_conversation_history"];
        let all = fields.first(&keys).map(|all| all.list()).transpose()?.unwrap_or_default();
        fields.finish(reading)?;
        all
    };
    let total = all.len();
    let kept = match &range {
        Some(range) => without(all, range)?,
        None => all,
    };
    reading.note_count(
        total - kept.len(),
        "message removed by Cline for lack of space is left out",
        "messages removed by Cline for lack of space are left out",
    );
    // A bare list has no range, so messages that Cline removed cannot be recognized.
    if node.is_list() {
        let hint = "the list of a task identifies the messages that Cline no longer sends";
        reading.note(format!("{hint} ({RANGE}); this file does not, and all of its messages are read"));
    }
    talk.model = kept.iter().rev().find_map(model);
    let mut messages = Task::new(&kept, kept.len() == total);
    let steps = reading.each(kept, |node, reading| messages.message(node, reading))?;
    messages.notes(reading);
    talk.steps = steps.into_iter().flatten().collect();
    Ok(talk)
}

/// Returns the messages without a range, which holds the indexes of its first and last message.
fn without<'a>(all: Vec<Node<'a>>, range: &Node<'a>) -> Result<Vec<Node<'a>>, Fault> {
    let ends: Vec<usize> = serde_json::from_str(range.json()).map_err(|_| range.expected("two numbers"))?;
    let [first, last] = ends[..] else { return Err(range.expected("two numbers")) };
    let is_in = |at: &usize| (first..=last).contains(at);
    Ok(all.into_iter().enumerate().filter(|(at, _)| !is_in(at)).map(|(_, node)| node).collect())
}

/// Returns the model of a reply.
fn model(node: &Node<'_>) -> Option<String> {
    let about = node.object().ok()?.get("modelInfo")?.as_object()?;
    let name = about.text("modelId").or_else(|| about.text("id"))?;
    // Gateways put the provider before the name.
    Some(name.rsplit('/').next().unwrap_or(&name).to_owned())
}
