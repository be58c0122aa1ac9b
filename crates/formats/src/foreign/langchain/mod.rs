//! Messages of `LangChain`: as constructors (`dumps`, `toJSON`), with their fields in `data`
//! (`messages_to_dict`, `toDict`), or flat (`model_dump`). Also reads the states of `LangGraph` that contain
//! them.

use super::{
    FormatReader, calls,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Entry, Piece, Step, Talk},
};
use crate::format::FileFormat;
use crate::scan;
use context_window::{Part, Role};
use serde_json::Value;

mod content;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::LangChain, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_state =
        shape.has("values") && shape.has("next") && (shape.has("config") || shape.has("checkpoint"));
    is_state || shape.has("lc") && shape.has("kwargs") || shape.messages.iter().any(is_message)
}

fn is_message(message: &Value) -> bool {
    let has = |key: &str| message.get(key).is_some();
    let is_constructor =
        has("lc") && message.get("kwargs").is_some_and(|kwargs| kwargs.get("messages").is_none());
    let kind = text(message, "type");
    let is_kind = matches!(kind, "human" | "ai" | "AIMessageChunk" | "HumanMessageChunk");
    let fields = message.get("data").unwrap_or(message);
    let is_whole = fields.get("additional_kwargs").is_some() && fields.get("response_metadata").is_some();
    is_constructor
        || !has("role") && fields.get("content").is_some() && (is_kind || is_whole && !kind.is_empty())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    let mut read = |node: &Node<'_>, reading: &mut Reading| message(node, reading, &mut talk.model);
    let all = messages(node, reading)?;
    let found = reading.each(all, &mut read)?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut removed = 0;
    for one in found {
        match one {
            Said::Entry(entry) => entries.push(entry),
            Said::Removal(id) => {
                let before = entries.len();
                // A removal affects only the messages before it, which are the ones collected so far.
                entries.retain(|entry| id != REMOVE_ALL && entry.id.as_deref() != Some(&*id));
                removed += before - entries.len();
            }
        }
    }
    match removed {
        0 => {}
        1 => reading.note("1 message removed by a RemoveMessage is left out"),
        more => reading.note(format!("{more} messages removed by a RemoveMessage are left out")),
    }
    talk.steps = entries.into_iter().map(Step::Entry).collect();
    Ok(talk)
}

/// The id of a `RemoveMessage` for all messages before it.
const REMOVE_ALL: &str = "__remove_all__";

/// Returns the messages of a list, of a state, or of a value that contains one of them.
fn messages<'a>(node: &Node<'a>, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    node.check_depth()?;
    if node.is_list() {
        return node.list();
    }
    let fields = node.object()?;
    if fields.has("lc") && fields.has("kwargs") {
        let kwargs = fields.need("kwargs")?;
        return if kwargs.object()?.has("messages") {
            messages(&kwargs, reading)
        } else {
            Ok(vec![node.clone()])
        };
    }
    if let Some(values) = fields.get("values") {
        fields.ignore(&["next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts"]);
        fields.ignore(&["checkpoint", "parent_checkpoint", "checkpoint_id", "parent_checkpoint_id"]);
        fields.finish(reading)?;
        return messages(&values, reading);
    }
    let list = fields.need("messages")?.list()?;
    for key in fields.names().filter(|key| *key != "messages") {
        let value = fields.peek(key).map(Node::json).unwrap_or_default();
        if scan::holds_messages(value) || value.contains("\"kwargs\"") || scan::find_call(value).is_some() {
            reading.leave(
                node.fault(format!(
                    "has messages under `{key}` too; expected messages only under `messages`"
                )),
            )?;
        } else if scan::find_any(value).is_some() {
            reading.note(format!("`{key}` of the state is left out: it is not a message"));
        }
    }
    Ok(list)
}

/// A message of the file: one with content, or one that removes another.
enum Said {
    Entry(Entry),
    /// The removal of the message with this id.
    Removal(String),
}

fn message(node: &Node<'_>, reading: &mut Reading, model: &mut Option<String>) -> Result<Said, Fault> {
    let outside = node.object()?;
    let (kind, fields) = if outside.has("lc") {
        let class = outside.get("id").map(|id| id.list()).transpose()?.unwrap_or_default();
        let class = class.last().map(Node::text).transpose()?.unwrap_or_default();
        outside.ignore(&["lc", "name", "graph"]);
        if outside.text("type")?.as_deref() != Some("constructor") {
            return Err(node.fault("is not a constructor: the file's writer could not serialise the message"));
        }
        (class, outside.need("kwargs")?.object()?)
    } else if outside.has("data") {
        (outside.need("type")?.text()?, outside.need("data")?.object()?)
    } else {
        (outside.need("type")?.text()?, node.object()?)
    };
    fields.ignore(&[
        "type",
        "example",
        "chunk_position",
        "tool_call_chunks",
        "usage_metadata",
        "lc_namespace",
    ]);
    fields.ignore(&["lc_serializable", "_printMessages"]);
    let id = fields.name("id")?;
    let beside = match fields.get("additional_kwargs") {
        Some(beside) => beside.object()?,
        None => Node::root("{}").object()?,
    };
    let metadata = fields.get("response_metadata").map(|node| node.object()).transpose()?;
    let of = |keys: &[&'static str]| metadata.as_ref().and_then(|data| data.first(keys)?.text().ok());
    *model = of(&["model_name", "model", "model_id"]).filter(|name| !name.is_empty()).or(model.take());
    let provider = of(&["model_provider"]).unwrap_or_default();
    let mut pieces = content::pieces(&fields, &provider, reading)?;
    check_again(&fields)?;
    let name = fields.text("name")?;
    // Streamed messages have the same fields as complete ones.
    let plain = kind.strip_suffix("Chunk").unwrap_or(&kind);
    let role = match plain.strip_suffix("Message").unwrap_or(plain) {
        "system" | "System" | "developer" => Role::System,
        "human" | "Human" | "user" => Role::User,
        "ai" | "AI" | "assistant" => Role::Assistant,
        "tool" | "Tool" | "function" | "Function" => Role::Tool,
        "chat" | "Chat" => role(&fields)?,
        "remove" | "Remove" => return Ok(Said::Removal(id.ok_or_else(|| node.fault("has no `id`"))?)),
        _ => return Err(node.fault(format!("has the type `{kind}`, which is not a message of LangChain"))),
    };
    match role {
        Role::Assistant => content::add_beside(&mut pieces, &fields, &beside, reading)?,
        Role::Tool => pieces = vec![Piece::Answer(answer(&fields, name.clone(), pieces, reading)?)],
        _ => {}
    }
    beside.ignore(&["__openai_role__", "lc_source"]);
    beside.finish(reading)?;
    fields.finish(reading)?;
    // The fields may be those of an inner object; then the outer object is checked too.
    if !fields.node().path().eq(node.path()) {
        outside.finish(reading)?;
    }
    Ok(Said::Entry(Entry::new(role, pieces).with_id(id).with_name(name.filter(|_| role != Role::Tool))))
}

/// Checks that the copy of a message in its `lc_kwargs` (JavaScript) is equal to it.
fn check_again(fields: &Fields<'_>) -> Result<(), Fault> {
    let Some(again) = fields.get("lc_kwargs") else { return Ok(()) };
    let inner = again.object()?;
    for key in ["content", "tool_calls"] {
        // An empty list and a missing key mean the same.
        let same = |node: Option<Node<'_>>| node.map(|node| node.compact()).filter(|json| json != "[]");
        if inner.has(key) && same(inner.get(key)) != same(fields.get(key)) {
            return Err(again.fault(format!("has a different `{key}` than the message that contains it")));
        }
    }
    Ok(())
}

/// Reads the role of a `ChatMessage`, which may be any string.
fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let role = fields.need("role")?;
    Ok(match &*role.text()? {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "model" => Role::Assistant,
        _ => return Err(role.unknown("is not a known role; expected user, assistant or system")),
    })
}

fn answer(
    fields: &Fields<'_>,
    name: Option<String>,
    pieces: Vec<Piece>,
    reading: &mut Reading,
) -> Result<Answer, Fault> {
    let status = fields.get("status");
    let is_failed = match status.as_ref().map(Node::text).transpose()?.as_deref() {
        None | Some("success") => false,
        Some("error") => true,
        Some(_) => return Err(fields.node().fault("has an unknown `status`; expected success or error")),
    };
    if fields.get("artifact").is_some_and(|artifact| scan::find_any(artifact.json()).is_some()) {
        reading.note_once("artifacts of tool results, which are not sent to a model, are left out");
    }
    let parts: Vec<Part> = super::parts_of(fields.node(), pieces)?;
    Ok(Answer { id: fields.name("tool_call_id")?, name, parts, is_failed })
}
