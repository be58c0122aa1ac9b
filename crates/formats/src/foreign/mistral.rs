//! Conversations of Mistral's agents: entries of a history, and requests that start or continue one. Bodies
//! of its Chat are read as sessions.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments, usual_piece},
};
use crate::format::FileFormat;
use context_window::{Role, Tool, text::plain};
use serde_json::Value;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Mistral, fits, read).or_session();

const ENTRIES: [&str; 6] = [
    "message.input",
    "message.output",
    "function.call",
    "function.result",
    "tool.execution",
    "agent.handoff",
];

fn fits(shape: &Shape) -> bool {
    let is_entry = |entry: &Value| ENTRIES.contains(&text(entry, "type")) || text(entry, "object") == "entry";
    // Other tools have `inputs` too, so a second key is required.
    let of_agents = ["agent_id", "completion_args", "instructions", "handoff_execution"];
    let is_request = shape.has("inputs") && of_agents.iter().any(|key| shape.has(key));
    is_request || shape.messages.iter().any(is_entry)
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    let mut hosted = 0;
    let mut entries = |list: Vec<Node<'_>>, talk: &mut Talk, reading: &mut Reading| -> Result<(), Fault> {
        let read = reading.each(list, |node, reading| entry(node, &mut hosted, reading))?;
        talk.steps.extend(read.into_iter().flatten().map(Step::Entry));
        Ok(())
    };
    if node.is_list() {
        entries(node.list()?, &mut talk, reading)?;
    } else {
        let fields = node.object()?;
        around(&fields, &mut talk, reading)?;
        match fields.first(&["entries", "inputs", "outputs", "messages"]) {
            Some(text) if text.is_text() => {
                let said = vec![Piece::text(text.text()?)];
                talk.steps.push(Step::Entry(Entry::new(Role::User, said)));
            }
            Some(list) => entries(list.list()?, &mut talk, reading)?,
            None => return Err(node.fault("has no entries; expected `entries` or `inputs`")),
        }
        fields.finish(reading)?;
    }
    reading.note_count(
        hosted,
        "run of a built-in tool of Mistral is left out: a client does not send it",
        "runs of built-in tools of Mistral are left out: a client does not send them",
    );
    Ok(talk)
}

fn around(fields: &Fields<'_>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
    talk.id = fields.name("conversation_id")?;
    talk.model = fields.text("model")?;
    talk.system.extend(fields.text("instructions")?.filter(|text| !text.is_empty()));
    fields.ignore(&[
        "object",
        "store",
        "stream",
        "handoff_execution",
        "agent_version",
        "usage",
        "name",
        "description",
    ]);
    fields.ignore(&["metadata", "guardrails"]);
    if let Some(agent) = fields.name("agent_id")? {
        let agent = plain::short(&agent);
        reading.note(format!("the instructions and tools of the agent `{agent}` are not in the request"));
    }
    // With a conversation id, `inputs` holds only the new entries.
    if talk.id.is_some() && fields.has("inputs") {
        reading.note("earlier entries are not in the request: Mistral keeps them (`conversation_id`)");
    }
    let arguments = fields.get("completion_args").map(|arguments| arguments.object()).transpose()?;
    talk.stated.max_completion_tokens = arguments.and_then(|arguments| arguments.get("max_tokens")?.number());
    let tools = fields.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default();
    let tools = reading.each(tools, |node, _| {
        let tool = node.object()?;
        let Some(function) = tool.get("function") else { return Ok(None) };
        let function = function.object()?;
        let schema = function.get("parameters").map(|schema| schema.compact()).unwrap_or_default();
        let description = function.text("description")?.unwrap_or_default();
        Ok(Some(Tool::new(function.need("name")?.text()?, description, schema)))
    })?;
    talk.tools = tools.into_iter().flatten().collect();
    Ok(())
}

/// Reads an entry. Returns `None` for the work of Mistral's own tools.
fn entry(node: &Node<'_>, hosted: &mut usize, reading: &mut Reading) -> Result<Option<Entry>, Fault> {
    let fields = node.object()?;
    fields.ignore(&[
        "object",
        "created_at",
        "completed_at",
        "agent_id",
        "model",
        "prefix",
        "confirmation_status",
    ]);
    let id = fields.name("id")?;
    let kind = fields.get("type");
    let name = kind.as_ref().map(Node::text).transpose()?;
    // The inputs of a request may omit their type.
    let (role, pieces) = match name.as_deref().unwrap_or("message.input") {
        "message.input" | "message.output" => {
            let role = fields.need("role")?;
            let role = match &*role.text()? {
                "user" => Role::User,
                "assistant" => Role::Assistant,
                _ => return Err(role.unknown("is not a role of an entry; expected user or assistant")),
            };
            (role, content(&fields.need("content")?, reading)?)
        }
        "function.call" => {
            let call = Call {
                id: Some(fields.need("tool_call_id")?.name()?),
                name: fields.need("name")?.text()?,
                arguments: arguments(fields.get("arguments")),
                signature: None,
            };
            (Role::Assistant, vec![Piece::Call(call)])
        }
        "function.result" => {
            let id = fields.need("tool_call_id")?.name()?;
            let text = fields.need("result")?.text_or_json();
            (Role::Tool, vec![Piece::Answer(Answer::text(Some(id), None, text))])
        }
        "tool.execution" | "agent.handoff" => {
            *hosted += 1;
            fields.ignore_all();
            return Ok(None);
        }
        _ => return Err(kind.unwrap_or_else(|| node.clone()).unknown("is not a known entry of Mistral")),
    };
    fields.finish(reading)?;
    Ok(Some(Entry::new(role, pieces).with_id(id)))
}

fn content(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    if node.is_text() {
        return Ok(vec![Piece::text(node.text()?)]);
    }
    let pieces = reading.each(node.list()?, |node, reading| {
        let kind: Value = serde_json::from_str(node.json()).unwrap_or_default();
        if matches!(text(&kind, "type"), "tool_reference" | "reference") {
            return Ok(None);
        }
        match usual_piece(node, reading)? {
            Some(piece) => Ok(Some(piece)),
            None => Err(node.fault("is not a known chunk of an entry")),
        }
    })?;
    Ok(pieces.into_iter().flatten().collect())
}
