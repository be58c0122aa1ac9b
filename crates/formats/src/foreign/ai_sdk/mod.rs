//! Messages of Vercel's AI SDK, alone or in the body of a request. Messages of its user interface have
//! `parts`, in version 4 also `toolInvocations`. Messages for models are `ModelMessage`, or `CoreMessage` in
//! version 4.

use super::{
    FormatReader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::{Entry, Step, Talk, own_compactions},
};
use crate::format::FileFormat;
use context_window::{Role, Tool};
use serde_json::Value;
use turn::Left;

mod file;
mod turn;
mod ui;
mod model;

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::AiSdk, fits, read).with_conversations(conversations);

fn fits(shape: &Shape) -> bool {
    // A list of chats is not a list of messages.
    let inside = |value: &Value| {
        Some(value)
            .filter(|_| !shape.is_lines)?
            .get("messages")?
            .as_array()
            .map(|all| all.iter().any(is_message))
    };
    // The steps of a result fit too, so that `read` can name the missing request.
    if shape.any_has(&["finishReason", "response", "content"]) && !shape.any_has(&["role"]) {
        return true;
    }
    let is_prompt = shape.container == "prompt" && shape.any_has(&["role", "content"]);
    is_prompt || shape.messages.iter().any(|message| is_message(message) || inside(message) == Some(true))
}

fn is_message(message: &Value) -> bool {
    let any = |key: &str, fits: &dyn Fn(&Value) -> bool| {
        message.get(key).and_then(Value::as_array).is_some_and(|parts| parts.iter().any(fits))
    };
    let is_role = matches!(text(message, "role"), "system" | "user" | "assistant" | "tool" | "data");
    let has_parts = any("parts", &|part| {
        let kind = text(part, "type");
        let is_text = kind == "text" && part.get("text").is_some_and(Value::is_string);
        let is_named = ["tool-", "data-", "source-"].iter().any(|begin| kind.starts_with(begin));
        let of_ui = ["reasoning", "file", "step-start", "dynamic-tool", "source", "steering-message"];
        // OpenTelemetry has parts of the same types, but with a `content`.
        is_text || is_named || of_ui.contains(&kind) && part.get("content").is_none()
    });
    let has_content = any("content", &|part| match text(part, "type") {
        "tool-call" | "tool-result" => part.get("toolCallId").is_some(),
        "tool-approval-request" | "tool-approval-response" | "redacted-reasoning" => true,
        "image" => part.get("image").is_some(),
        "file" => part.get("mediaType").or_else(|| part.get("mimeType")).is_some(),
        "reasoning" => part.get("text").is_some_and(Value::is_string) && part.get("summary").is_none(),
        _ => false,
    });
    let has_calls =
        ["toolInvocations", "experimental_attachments"].iter().any(|key| message.get(key).is_some());
    is_role && (has_parts || has_content || has_calls)
}

/// Returns the chats of a list of chats.
fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let chats = node.list().ok()?;
    let chat = |chat: Node<'a>| {
        let fields = chat.object().ok()?;
        fields.get("messages").filter(Node::is_list)?;
        Some((fields.name("id").ok()?, chat))
    };
    chats.into_iter().map(chat).collect()
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    if is_steps(node) {
        let hint = "keep the request's messages and the `response.messages` of the steps";
        return Err(node.fault(format!("are the steps of a result, without the request: {hint}")));
    }
    let messages = if node.is_list() { node.list()? } else { body(node, &mut talk, reading)? };
    let answered = model::answered(&messages);
    let mut left = Left::default();
    let mut requests = model::Requests::new(answered);
    let steps = reading.each(messages, |node, reading| {
        let mut steps = own_compactions(node, "parts");
        let is_compaction = !steps.is_empty();
        let entries: Vec<Entry> = if is_of_ui(node)? {
            ui::message(node, &mut left, reading)?.into_iter().collect()
        } else {
            model::message(node, &mut requests, &mut left, reading)?.into_iter().collect()
        };
        // A message with nothing but a compaction adds no entry.
        let entries = entries.into_iter().filter(|entry| !is_compaction || !entry.pieces.is_empty());
        steps.extend(entries.map(Step::Entry));
        Ok(steps)
    })?;
    reading.notes.extend(left.notes());
    talk.steps.extend(steps.into_iter().flatten());
    Ok(talk)
}

/// Checks whether a value is the list of steps that `generateText` returns.
fn is_steps(node: &Node<'_>) -> bool {
    let first = node.list().ok().and_then(|all| all.first()?.object().ok());
    first.is_some_and(|step| step.has("finishReason") && step.has("response") && !step.has("role"))
}

/// Checks whether a message is one of the user interface.
fn is_of_ui(node: &Node<'_>) -> Result<bool, Fault> {
    const KEYS: [&str; 5] =
        ["parts", "toolInvocations", "experimental_attachments", "attachments", "reasoning"];
    let fields = node.object()?;
    let is_data = fields.text("role")?.is_some_and(|role| role == "data");
    Ok(is_data || KEYS.iter().any(|key| fields.has(key)))
}

/// Reads the fields around the messages, and returns the messages.
fn body<'a>(node: &Node<'a>, talk: &mut Talk, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    let fields = node.object()?;
    talk.id = fields.name("id")?;
    talk.model = fields.get("model").filter(Node::is_text).map(|model| model.text()).transpose()?;
    for key in ["system", "instructions"] {
        if let Some(texts) = fields.get(key) {
            system(&texts, talk, reading)?;
        }
    }
    if let Some(tools) = fields.get("tools") {
        talk.tools = read_tools(&tools, reading)?;
    }
    let most = fields.first(&["maxOutputTokens", "maxTokens"]);
    talk.stated.max_completion_tokens = most.and_then(|most| most.number()).filter(|most| *most > 0);
    fields.ignore(&[
        "trigger",
        "messageId",
        "chatId",
        "title",
        "metadata",
        "data",
        "headers",
        "user",
        "userId",
    ]);
    fields.ignore(&["toolChoice", "providerOptions", "createdAt", "updatedAt", "visibility"]);
    let messages = match (fields.get("messages"), fields.get("prompt"), fields.get("message")) {
        (Some(messages), _, _) => messages.list()?,
        (None, Some(prompt), _) if prompt.is_text() => {
            let said = vec![super::talk::Piece::text(prompt.text()?)];
            talk.steps.push(Step::Entry(Entry::new(Role::User, said)));
            Vec::new()
        }
        (None, Some(prompt), _) => prompt.list()?,
        (None, None, Some(message)) => vec![message],
        (None, None, None) => return Err(node.fault("has no `messages`")),
    };
    fields.finish(reading)?;
    Ok(messages)
}

/// Reads the system text of a request: a string, a message, or a list of them.
fn system(node: &Node<'_>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
    if node.is_text() {
        talk.system.push(node.text()?);
    } else if node.is_list() {
        for node in node.list()? {
            system(&node, talk, reading)?;
        }
    } else {
        let fields = node.object()?;
        fields.ignore(&["role", "providerOptions"]);
        talk.system.push(fields.need("content")?.text()?);
        fields.finish(reading)?;
    }
    Ok(())
}

/// Reads tool definitions: a list, or an object with the names as its keys.
fn read_tools(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Tool>, Fault> {
    let tool = |node: &Node<'_>, name: Option<&str>| -> Result<Tool, Fault> {
        let fields = node.object()?;
        let own = fields.text("name")?;
        let name = own.as_deref().or(name).ok_or_else(|| node.fault("has no `name`"))?.to_owned();
        let schema = fields.first(&["inputSchema", "parameters", "input_schema"]);
        // The SDK's helper `jsonSchema` wraps the schema in an object.
        let inner = schema.as_ref().filter(|schema| schema.is_object()).map(Node::object);
        let inner = inner.transpose()?.and_then(|inner| inner.get("jsonSchema")).or(schema);
        let schema = inner.map(|schema| schema.compact()).unwrap_or_default();
        Ok(Tool::new(name, fields.text("description")?.unwrap_or_default(), schema))
    };
    if node.is_list() {
        return reading.each(node.list()?, |node, _| tool(node, None));
    }
    let tools = node.object()?;
    tools.entries().map(|(name, node)| tool(&node, Some(name))).collect()
}
