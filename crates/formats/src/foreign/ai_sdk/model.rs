//! Messages for models: `ModelMessage` of version 5 and later, `CoreMessage` of version 4.

use super::{
    super::{
        node::{Fault, Fields, Node, Reading},
        talk::{Answer, Call, Entry, Piece, arguments},
    },
    file,
    turn::{Left, Turn, signature, thought},
    ui::{DENIED, metadata},
};
use context_window::{Part, Role};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of provider options in a message or a part.
const OPTIONS: [&str; 3] = ["providerOptions", "providerMetadata", "experimental_providerMetadata"];

/// Requests for the user's approval. A denied call without a result gets one.
pub(super) struct Requests {
    answered: BTreeSet<String>,
    /// The ids of the calls, by the id of their approval.
    calls: BTreeMap<String, String>,
}

impl Requests {
    pub(super) fn new(answered: BTreeSet<String>) -> Self {
        Self { answered, calls: BTreeMap::new() }
    }
}

/// Returns the ids of the calls with results. Returns none if no message contains an approval.
pub(super) fn answered(messages: &[Node<'_>]) -> BTreeSet<String> {
    // The results matter only for denied calls, so most files skip the second parse.
    let asks = messages.iter().any(|message| message.json().contains("tool-approval-response"));
    let values =
        messages.iter().filter(|_| asks).filter_map(|message| serde_json::from_str(message.json()).ok());
    let mut ids = BTreeSet::new();
    for message in values {
        let message: Value = message;
        let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
        let results = parts.filter(|part| super::text(part, "type") == "tool-result");
        ids.extend(results.map(|part| super::text(part, "toolCallId").to_owned()));
    }
    ids
}

/// Reads a message. Returns no entry for a message with approvals only.
pub(super) fn message(
    node: &Node<'_>,
    requests: &mut Requests,
    left: &mut Left,
    reading: &mut Reading,
) -> Result<Vec<Entry>, Fault> {
    let fields = node.object()?;
    let kind = fields.need("role")?;
    let role = match &*kind.text()? {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err(kind.unknown("is not a role of the AI SDK")),
    };
    let id = fields.name("id")?;
    fields.ignore(&OPTIONS);
    fields.ignore(&["createdAt", "metadata", "annotations", "chatId"]);
    let content = fields.need("content")?;
    let mut turn = Turn::new(true);
    if content.is_text() && role != Role::Tool {
        turn.say(Piece::text(content.text()?));
    } else {
        reading.each(content.list()?, |node, reading| {
            let fields = node.object()?;
            part(&fields, role, requests, left, &mut turn, reading)?;
            fields.finish(reading)
        })?;
    }
    fields.finish(reading)?;
    let pieces = turn.into_pieces();
    // A message with approvals only has no pieces and is omitted.
    let is_empty = pieces.is_empty() && matches!(role, Role::Tool | Role::Assistant);
    let entry = (!is_empty).then(|| Entry::new(role, pieces).with_id(id));
    Ok(entry.into_iter().collect())
}

fn part(
    fields: &Fields<'_>,
    role: Role,
    requests: &mut Requests,
    left: &mut Left,
    turn: &mut Turn,
    reading: &mut Reading,
) -> Result<(), Fault> {
    let kind = fields.need("type")?;
    let name = kind.text()?;
    let of_tool = ["tool-result", "tool-error", "tool-approval-response"];
    if role == Role::Tool && !of_tool.contains(&&*name) {
        return Err(kind.unknown("is not a part of a message of the role tool"));
    }
    let beside = metadata(fields, &OPTIONS);
    fields.ignore(&OPTIONS);
    match name.as_str() {
        "text" => {
            let text = fields.need("text")?.text()?;
            if !text.is_empty() {
                turn.say(Piece::text(text));
            }
        }
        "reasoning" => {
            let sealed = fields.text("signature")?;
            let sealed = sealed.map(|signature| serde_json::json!({ "part": { "signature": signature } }));
            let text = fields.need("text")?.text()?;
            if let Some(piece) = thought(text, sealed.or(beside).as_ref()) {
                turn.say(piece);
            }
        }
        "redacted-reasoning" => {
            let data = fields.need("data")?.text()?;
            let sealed = serde_json::json!({ "part": { "redactedData": data } });
            if let Some(piece) = thought(String::new(), Some(&sealed)) {
                turn.say(piece);
            }
        }
        "image" => turn.say(Piece::Part(file::part(fields, &["image"], true)?)),
        "file" | "reasoning-file" => {
            turn.say(Piece::Part(file::part(fields, &["data", "url", "file"], false)?));
        }
        "tool-call" => {
            fields.ignore(&["dynamic", "title", "invalid", "providerExecuted"]);
            let call = Call {
                id: Some(fields.need("toolCallId")?.name()?),
                name: fields.need("toolName")?.text()?,
                arguments: arguments(fields.first(&["input", "args"])),
                signature: signature(beside.as_ref()),
            };
            turn.call(call, None, false);
        }
        "tool-result" | "tool-error" => {
            let answer = result(fields, reading)?;
            turn.answer(answer, role == Role::Assistant);
        }
        "tool-approval-request" => {
            left.approvals += 1;
            fields.ignore(&["signature", "isAutomatic", "inputSchemaInput", "reason"]);
            let call = fields.need("toolCallId")?.name()?;
            requests.calls.insert(fields.need("approvalId")?.name()?, call);
        }
        "tool-approval-response" => {
            if let Some(denied) = approval(fields, requests, left)? {
                turn.answer(denied, false);
            }
        }
        "source" => {
            fields.ignore_all();
            left.sources += 1;
        }
        _ => return Err(kind.unknown("is not a known part of a message of the AI SDK")),
    }
    Ok(())
}

/// Reads the user's response to a request. Returns the result of a denied call without one.
fn approval(fields: &Fields<'_>, requests: &Requests, left: &mut Left) -> Result<Option<Answer>, Fault> {
    left.approvals += 1;
    fields.ignore(&["providerExecuted"]);
    let is_approved = fields.is_true("approved");
    let (id, reason) = (fields.need("approvalId")?.name()?, fields.text("reason")?);
    let call = requests.calls.get(&id).filter(|call| !is_approved && !requests.answered.contains(*call));
    Ok(call.map(|call| {
        Answer::text(Some(call.clone()), None, reason.unwrap_or_else(|| DENIED.into())).failed(true)
    }))
}

/// Reads a result: `output` with its type, or in version 4 `result` without a type.
fn result(fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    fields.ignore(&["input", "args", "dynamic", "preliminary", "providerExecuted", "title"]);
    let mut answer = Answer {
        id: Some(fields.need("toolCallId")?.name()?),
        name: fields.text("toolName")?,
        parts: Vec::new(),
        is_failed: fields.is_true("isError"),
    };
    if let Some(error) = fields.get("error") {
        answer.parts.push(Part::Text(error.text_or_json()));
        return Ok(answer.failed(true));
    }
    if let Some(output) = fields.get("output") {
        return typed(&output, answer, reading);
    }
    let result = fields.get("result");
    match fields.get("experimental_content").filter(Node::is_list) {
        Some(content) => {
            // `result` repeats the content in a form for programs.
            answer.parts = reading.each(content.list()?, content_part)?;
        }
        None => answer
            .parts
            .push(Part::Text(result.map_or_else(|| "null".to_owned(), |result| result.text_or_json()))),
    }
    Ok(answer)
}

fn typed(output: &Node<'_>, mut answer: Answer, reading: &mut Reading) -> Result<Answer, Fault> {
    let fields = match output.object() {
        Ok(fields) if fields.has("type") => fields,
        _ => {
            answer.parts.push(Part::Text(output.text_or_json()));
            return Ok(answer);
        }
    };
    fields.ignore(&OPTIONS);
    let kind = fields.need("type")?;
    let value = fields.get("value");
    let text =
        |value: Option<Node<'_>>| value.map_or_else(|| "null".to_owned(), |value| value.text_or_json());
    match &*kind.text()? {
        "text" => answer.parts.push(Part::Text(fields.need("value")?.text()?)),
        // The SDK sends a JSON string with its quotes. The content here is the string itself.
        "json" => answer.parts.push(Part::Text(text(value))),
        "error-text" | "error-json" => {
            answer.parts.push(Part::Text(text(value)));
            answer.is_failed = true;
        }
        "execution-denied" => {
            let reason = fields.text("reason")?.unwrap_or_else(|| DENIED.into());
            answer.parts.push(Part::Text(reason));
            answer.is_failed = true;
        }
        "content" => answer.parts = reading.each(fields.need("value")?.list()?, content_part)?,
        _ => return Err(kind.unknown("is not a known type of a result")),
    }
    fields.finish(reading)?;
    Ok(answer)
}

/// Reads a part of a result that is a list.
fn content_part(node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    let kind = fields.need("type")?;
    let name = kind.text()?;
    let part = match name.as_str() {
        "text" => Part::Text(fields.need("text")?.text()?),
        "image" | "image-data" | "image-url" | "image-file-id" | "image-file-reference" => {
            file::part(&fields, &["data", "url"], true)?
        }
        "media" | "file" | "file-data" | "file-url" | "file-id" | "file-reference" => {
            file::part(&fields, &["data", "url"], false)?
        }
        _ => return Err(kind.unknown("is not a known part of a result")),
    };
    fields.ignore(&OPTIONS);
    fields.finish(reading)?;
    Ok(part)
}
