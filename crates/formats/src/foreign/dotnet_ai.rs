//! Messages of `Microsoft.Extensions.AI` (`contents` with `$type`), in the spelling of its own options or of
//! a plain `JsonSerializer`. Also reads messages of the Agent Framework in .NET and Python.

use super::{
    FormatReader,
    media::{self, Source},
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments},
};
use crate::format::FileFormat;
use context_window::{Part, Role, message::Reasoning};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::DotnetAi, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_message = |message: &Value| {
        let contents = message.get("contents").or_else(|| message.get("Contents")).and_then(Value::as_array);
        let has_role = message.get("role").or_else(|| message.get("Role")).is_some();
        let is_typed = |content: &Value| content.get("$type").is_some() || content.get("type").is_some();
        let of_python = text(message, "type") == "chat_message";
        has_role && contents.is_some_and(|contents| of_python || contents.iter().any(is_typed))
    };
    let has_state = shape.has("stateBag") || shape.has("storeState");
    has_state || shape.messages.iter().any(is_message)
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    let messages = if node.is_list() { node.list()? } else { around(node, &mut talk, reading)? };
    // An approval repeats its call, so the ids of all calls are collected first.
    let mut calls = Calls::find(&messages);
    let entries = reading.each(messages, |node, reading| message(node, &mut calls, reading))?;
    reading.note_count(
        calls.errors,
        "error is left out: it is not from the model",
        "errors are left out: they are not from the model",
    );
    talk.steps = entries.into_iter().flatten().map(Step::Entry).collect();
    Ok(talk)
}

/// Reads the object around the messages: a response, or the state of an agent.
fn around<'a>(node: &Node<'a>, talk: &mut Talk, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    let fields = node.object()?;
    talk.model = fields.first(&["modelId", "ModelId"]).map(|model| model.text()).transpose()?;
    fields.ignore(&[
        "conversationId",
        "ConversationId",
        "responseId",
        "ResponseId",
        "createdAt",
        "CreatedAt",
    ]);
    fields.ignore(&[
        "finishReason",
        "FinishReason",
        "usage",
        "Usage",
        "additionalProperties",
        "AdditionalProperties",
    ]);
    fields.ignore(&["continuationToken", "ContinuationToken", "type", "aiContextProviderState"]);
    if let Some(options) = fields.first(&["options", "Options"]) {
        let options = options.object()?;
        talk.model = options.first(&["modelId", "ModelId"]).map(|model| model.text()).transpose()?;
        talk.system
            .extend(options.first(&["instructions", "Instructions"]).map(|text| text.text()).transpose()?);
        talk.stated.max_completion_tokens =
            options.first(&["maxOutputTokens", "MaxOutputTokens"]).and_then(|most| most.number());
        options.finish(reading)?;
    }
    let messages =
        match (fields.first(&["messages", "Messages"]), fields.get("storeState"), fields.get("stateBag")) {
            (Some(messages), _, _) => messages,
            (None, Some(state), _) => state.object()?.need("messages")?,
            (None, None, Some(bag)) => stored(&bag, reading)?,
            (None, None, None) => return Err(node.fault("has no `messages`")),
        };
    fields.finish(reading)?;
    messages.list()
}

/// Returns the messages in an agent's state. They are in the state of one of its providers.
fn stored<'a>(node: &Node<'a>, reading: &mut Reading) -> Result<Node<'a>, Fault> {
    let mut messages = None;
    for (name, state) in node.object()?.entries() {
        let found =
            state.is_object().then(|| state.object()).transpose()?.and_then(|state| state.get("messages"));
        match found {
            Some(found) if messages.is_none() => messages = Some(found),
            Some(found) => {
                return Err(
                    found.fault("is a second array of messages; expected the messages of one provider")
                );
            }
            None if crate::scan::find_any(state.json()).is_some() => {
                let name = context_window::text::plain::short(name);
                reading.note(format!("the state of `{name}` is left out: it is not a message"));
            }
            None => {}
        }
    }
    messages.ok_or_else(|| node.fault("contains no messages; their service may keep them"))
}

/// The ids of all calls and results in a file, so that approvals do not repeat them.
#[derive(Default)]
struct Calls {
    made: BTreeSet<String>,
    answered: BTreeSet<String>,
    errors: usize,
}

impl Calls {
    fn find(messages: &[Node<'_>]) -> Self {
        let mut calls = Self::default();
        let asks = |message: &&Node<'_>| {
            let lower = message.json().to_lowercase();
            lower.contains("approval")
        };
        // Most files have no approvals and skip the second parse.
        if !messages.iter().any(|message| asks(&message)) {
            return calls;
        }
        for message in messages {
            let value: Value = serde_json::from_str(message.json()).unwrap_or_default();
            let contents = value.get("contents").or_else(|| value.get("Contents")).and_then(Value::as_array);
            for content in contents.into_iter().flatten() {
                let of = |keys: [&str; 3]| {
                    keys.iter().find_map(|key| content.get(*key)?.as_str()).map(str::to_owned)
                };
                let (kind, id) = (of(["$type", "type", "Type"]), of(["callId", "CallId", "call_id"]));
                match (kind.as_deref(), id) {
                    (Some("functionCall" | "function_call" | "mcpServerToolCall"), Some(id)) => {
                        calls.made.insert(id)
                    }
                    (Some("functionResult" | "function_result" | "mcpServerToolResult"), Some(id)) => {
                        calls.answered.insert(id)
                    }
                    _ => false,
                };
            }
        }
        calls
    }
}

fn message(node: &Node<'_>, calls: &mut Calls, reading: &mut Reading) -> Result<Option<Entry>, Fault> {
    let fields = node.object()?;
    let role = role(&fields)?;
    fields.ignore(&["type", "createdAt", "CreatedAt", "additionalProperties", "AdditionalProperties"]);
    fields.ignore(&["additional_properties", "rawRepresentation", "raw_representation"]);
    let id = fields.first(&["messageId", "MessageId", "message_id"]).map(|id| id.name()).transpose()?;
    let name =
        fields.first(&["authorName", "AuthorName", "author_name"]).map(|name| name.text()).transpose()?;
    let contents =
        fields.first(&["contents", "Contents"]).map(|all| all.list()).transpose()?.unwrap_or_default();
    let pieces = reading.each(contents, |node, reading| content(node, calls, reading))?;
    fields.finish(reading)?;
    let pieces: Vec<Piece> = pieces.into_iter().flatten().collect();
    // A message with approvals or errors only has no content.
    let is_entry = !pieces.is_empty() || !matches!(role, Role::Tool | Role::Assistant);
    Ok(is_entry.then(|| Entry::new(role, pieces).with_id(id).with_name(name)))
}

fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let found = fields.first(&["role", "Role"]).ok_or_else(|| fields.node().fault("has no `role`"))?;
    let name = if found.is_object() { found.object()?.need("value")?.text()? } else { found.text()? };
    Ok(match name.to_lowercase().as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err(found.unknown("is not a role of Microsoft.Extensions.AI")),
    })
}

fn content(node: &Node<'_>, calls: &mut Calls, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    let fields = node.object()?;
    let kind = fields.first(&["$type", "type"]).ok_or_else(|| node.fault("has no `$type`"))?;
    fields.ignore(&["annotations", "Annotations", "additionalProperties", "AdditionalProperties"]);
    fields.ignore(&["additional_properties", "raw_representation"]);
    let name = kind.text()?.replace('_', "");
    let piece = match name.to_lowercase().as_str() {
        "reasoning" | "textreasoning" => {
            fields.ignore(&["id"]);
            let sealed = fields.first(&["protectedData", "ProtectedData", "protected_data"]).is_some();
            let piece = thought(&fields)?;
            if sealed && piece.is_none() {
                reading
                    .note(format!("{}: signed reasoning is left out: its provider is unknown", node.path()));
            }
            piece
        }
        "usage" => {
            fields.ignore_all();
            None
        }
        "error" => error(&fields, calls)?,
        kind if kind.contains("approval") => approval(&fields, kind.ends_with("request"), calls, reading)?,
        kind if kind.ends_with("call") => {
            let call = call(&fields, kind)?;
            Some(Piece::Call(call))
        }
        kind if kind.ends_with("result") => Some(Piece::Answer(result(&fields, reading)?)),
        _ => Some(Piece::Part(part(&fields, &name)?)),
    };
    fields.finish(reading)?;
    Ok(piece)
}

fn thought(fields: &Fields<'_>) -> Result<Option<Piece>, Fault> {
    let text = fields.first(&["text", "Text"]).map(|text| text.text()).transpose()?.unwrap_or_default();
    Ok((!text.trim().is_empty()).then(|| Piece::Thought(Reasoning::text(text))))
}

/// Reads a text or a file.
fn part(fields: &Fields<'_>, kind: &str) -> Result<Part, Fault> {
    let node = fields.node();
    match kind.to_lowercase().as_str() {
        "text" => {
            let text = fields.first(&["text", "Text"]).ok_or_else(|| node.fault("has no `text`"))?;
            Ok(Part::Text(text.text()?))
        }
        "data" | "uri" | "image" | "audio" => {
            let uri = fields.first(&["uri", "Uri"]).ok_or_else(|| node.fault("has no `uri`"))?;
            let name = fields.first(&["name", "Name"]).map(|name| name.text()).transpose()?;
            let own = fields
                .first(&["mediaType", "MediaType", "media_type"])
                .map(|kind| kind.text())
                .transpose()?;
            let (told, source) = Source::from_text(uri.text()?);
            if matches!(&source, Source::Data(_)) && told.is_none() {
                return Err(uri.fault("is not an address; expected an address or a data URL"));
            }
            media::part(&uri, &own.or(told).unwrap_or_default(), source, name)
        }
        "hostedfile" => {
            fields.ignore(&[
                "mediaType",
                "MediaType",
                "media_type",
                "name",
                "Name",
                "sizeInBytes",
                "createdAt",
            ]);
            fields.ignore(&["purpose", "scope", "SizeInBytes", "CreatedAt"]);
            let id = fields
                .first(&["fileId", "FileId", "file_id"])
                .ok_or_else(|| node.fault("has no `fileId`"))?;
            media::stored(&id, "openai", &id.text()?, false)
        }
        _ => Err(node.fault("is not known content of Microsoft.Extensions.AI")),
    }
}

/// Reads an error. A refusal is text of the model; any other error is not, and is only counted.
fn error(fields: &Fields<'_>, calls: &mut Calls) -> Result<Option<Piece>, Fault> {
    let code = fields.first(&["errorCode", "ErrorCode", "error_code"]).map(|code| code.name()).transpose()?;
    fields.ignore(&["details", "Details", "error_details"]);
    let message = fields.first(&["message", "Message"]).map(|message| message.text()).transpose()?;
    if code.as_deref() == Some("Refusal") {
        return Ok(message.map(Piece::text));
    }
    calls.errors += 1;
    Ok(None)
}

/// Reads a call. A call of a service's own tool has no name and gets one from its type.
fn call(fields: &Fields<'_>, kind: &str) -> Result<Call, Fault> {
    fields.ignore(&["serverName", "ServerName", "server_name", "informationalOnly", "InformationalOnly"]);
    fields.ignore(&["informational_only", "image_id", "status"]);
    let id = fields
        .first(&["callId", "CallId", "call_id"])
        .ok_or_else(|| fields.node().fault("has no `callId`"))?;
    let own = fields.first(&["name", "Name", "tool_name"]).map(|name| name.text()).transpose()?;
    let name = match (own, kind) {
        (Some(name), _) => name,
        (None, "websearchtoolcall" | "searchtoolcall") => "web_search".into(),
        (None, "codeinterpretertoolcall") => "code_interpreter".into(),
        (None, "imagegenerationtoolcall") => "image_generation".into(),
        (None, "shelltoolcall") => "shell".into(),
        (None, _) => return Err(fields.node().fault("has no `name`")),
    };
    let beside = fields.first(&["queries", "Queries", "inputs", "Inputs", "commands"]);
    let arguments = match (fields.first(&["arguments", "Arguments"]), beside) {
        (None, Some(inputs)) => format!("{{\"inputs\":{}}}", inputs.compact()),
        (own, _) => arguments(own),
    };
    Ok(Call { id: Some(id.name()?), name, arguments, signature: None })
}

fn result(fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    let id = fields
        .first(&["callId", "CallId", "call_id"])
        .ok_or_else(|| fields.node().fault("has no `callId`"))?;
    fields.ignore(&["image_id", "max_output_length"]);
    let exception = fields.get("exception").map(|exception| exception.text_or_json());
    let items = fields.get("items").filter(Node::is_list);
    let whole = fields.first(&["result", "Result", "outputs", "Outputs", "output", "Output"]);
    let mut parts = match (items.as_ref(), &whole) {
        (Some(items), _) => outputs(items, reading)?,
        (None, Some(whole)) if is_contents(whole) => outputs(whole, reading)?,
        (None, Some(whole)) => vec![Part::Text(whole.text_or_json())],
        (None, None) => vec![Part::Text(String::new())],
    };
    // `result` repeats the text of `items`. A different text would be lost.
    if let (Some(items), Some(whole)) = (items, whole.filter(Node::is_text)) {
        let said: String =
            parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "" }).collect();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        if !bare(&said).contains(&bare(&whole.text()?)) {
            return Err(items.fault("do not contain the text of `result`"));
        }
    }
    // The model sees the exception, so it is added unless the text contains it.
    if let Some(exception) = &exception
        && !parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains(exception.as_str())))
    {
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        parts.push(Part::Text(exception.clone()));
    }
    Ok(Answer { id: Some(id.name()?), name: None, parts, is_failed: exception.is_some() })
}

/// Checks whether a result is a list of contents.
fn is_contents(node: &Node<'_>) -> bool {
    let Ok(all) = node.list() else { return false };
    let has_type = |node: &Node<'_>| node.object().is_ok_and(|fields| fields.has("$type"));
    !all.is_empty() && all.iter().all(has_type)
}

/// Reads the contents of a result. Pages found by a search stay JSON.
fn outputs(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Part>, Fault> {
    reading.each(node.list()?, |node, reading| {
        let fields = node.object()?;
        let kind = fields.first(&["$type", "type"]).ok_or_else(|| node.fault("has no `$type`"))?.text()?;
        fields.ignore(&["annotations", "Annotations", "additionalProperties", "AdditionalProperties"]);
        fields.ignore(&["additional_properties"]);
        let kind = kind.replace('_', "").to_lowercase();
        let is_file = matches!(kind.as_str(), "data" | "image" | "audio" | "hostedfile");
        let part = match kind.as_str() {
            "text" => part(&fields, &kind)?,
            _ if is_file => part(&fields, &kind)?,
            "uri" => part(&fields, &kind)
                .ok()
                .filter(|part| matches!(part, Part::Image { .. }))
                .unwrap_or_else(|| {
                    fields.ignore_all();
                    Part::Text(node.compact())
                }),
            _ => {
                fields.ignore_all();
                Part::Text(node.compact())
            }
        };
        fields.finish(reading)?;
        Ok(part)
    })
}

/// Reads a request for the user's approval, which contains the call, or the user's response to it.
fn approval(
    fields: &Fields<'_>,
    is_request: bool,
    calls: &mut Calls,
    reading: &mut Reading,
) -> Result<Option<Piece>, Fault> {
    fields.ignore(&["requestId", "RequestId", "id", "Id", "requiresConfirmation", "user_input_request"]);
    let is_approved = fields.first(&["approved", "Approved"]).is_some_and(|approved| approved.is_true());
    let reason = fields.first(&["reason", "Reason"]).map(|reason| reason.text()).transpose()?;
    let inside = fields.first(&["toolCall", "ToolCall", "functionCall", "FunctionCall", "function_call"]);
    let inside = inside.ok_or_else(|| fields.node().fault("has no `toolCall`"))?;
    let inner = inside.object()?;
    let kind = inner.first(&["$type", "type"]).map(|kind| kind.text()).transpose()?.unwrap_or_default();
    inner.ignore(&["annotations", "Annotations", "additionalProperties", "AdditionalProperties"]);
    inner.ignore(&["additional_properties"]);
    let call = call(&inner, &kind.replace('_', "").to_lowercase())?;
    inner.finish(reading)?;
    let id = call.id.clone().unwrap_or_default();
    // The call itself may be in the file too; then it is not added again.
    if is_request {
        return Ok(calls.made.insert(id).then_some(Piece::Call(call)));
    }
    let is_denied = !is_approved && calls.answered.insert(id);
    // `Microsoft.Extensions.AI` sends this text for a denied call.
    let text =
        ["Tool call invocation rejected.".to_owned()].into_iter().chain(reason).collect::<Vec<_>>().join(" ");
    Ok(is_denied.then(|| Piece::Answer(Answer::text(call.id, Some(call.name), text).failed(true))))
}
