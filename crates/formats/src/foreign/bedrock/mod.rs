//! Amazon Bedrock's Converse: requests, messages alone, and lines of the model invocation log. Strands Agents
//! stores its messages in the same form.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Entry, Step, Talk},
};
use crate::format::FileFormat;
use context_window::{Role, Tool, WireFormat};
use serde_json::Value;

mod block;

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::Bedrock, fits, read).with_conversations(conversations);

/// Blocks that no other format has without a type.
const BLOCKS: [&str; 6] =
    ["toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent"];

fn fits(shape: &Shape) -> bool {
    let is_known = |keys: [&str; 2]| keys.iter().all(|key| shape.has(key));
    if [["schemaType", "modelId"], ["output", "stopReason"], ["message", "message_id"]]
        .into_iter()
        .any(is_known)
    {
        return true;
    }
    let blocks = || {
        let messages = shape.messages.iter().map(|message| message.get("message").unwrap_or(message));
        messages.filter_map(|message| message.get("content")?.as_array()).flatten()
    };
    let is_own = |block: &Value| {
        let has_media = ["image", "document", "video", "audio"].iter().any(|key| {
            block.get(*key).is_some_and(|medium| medium.get("source").is_some_and(Value::is_object))
        });
        has_media || BLOCKS.iter().any(|key| block.get(*key).is_some_and(Value::is_object))
    };
    // Blocks with a type belong to Anthropic or OpenAI.
    let is_untyped = |block: &Value| block.get("type").is_none() || is_own(block);
    let is_text = |block: &Value| block.get("text").is_some_and(Value::is_string);
    let of_chat = ["tool_calls", "tool_call_id", "parts"];
    let is_chat = shape.messages.iter().any(|message| of_chat.iter().any(|key| message.get(*key).is_some()));
    let of_body = ["toolConfig", "inferenceConfig", "guardrailConfig", "additionalModelRequestFields"];
    let is_body = shape.container == "messages" && of_body.iter().any(|key| shape.has(key));
    let fits = blocks().any(is_own)
        || is_body && blocks().any(is_text)
        || blocks().next().is_some() && blocks().all(is_text);
    fits && !is_chat && blocks().all(is_untyped) && shape.messages.iter().any(has_role)
}

fn has_role(message: &Value) -> bool {
    let message = message.get("message").unwrap_or(message);
    matches!(text(message, "role"), "user" | "assistant" | "system")
}

/// Returns a line of the log, with the id of its request.
fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let fields = node.object().ok()?;
    fields.get("schemaType")?;
    Some(vec![(fields.name("requestId").ok()?, node.clone())])
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    if node.is_list() {
        talk.steps = messages(node, reading)?;
        return Ok(talk);
    }
    let fields = node.object()?;
    if fields.has("schemaType") {
        // Checked before `output`, because a line of the log has that key too.
        return logged(&fields, reading);
    }
    if fields.has("output") {
        talk.steps.extend(answer(&fields, reading)?);
        fields.finish(reading)?;
        return Ok(talk);
    }
    if fields.has("message") {
        talk.steps = vec![Step::Entry(message(node, reading)?)];
        return Ok(talk);
    }
    body(&fields, &mut talk, reading)?;
    fields.finish(reading)?;
    Ok(talk)
}

/// Reads the body of a request.
fn body(fields: &Fields<'_>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
    if let Some(model) = fields.text("modelId")? {
        talk.model = Some(model);
    }
    if talk.model.as_deref().is_some_and(|model| model.contains(":prompt/")) {
        reading.note("the model is a prompt of Bedrock: its texts, tools and limits are not in the request");
    }
    if let Some(system) = fields.get("system") {
        let texts = if system.is_text() { vec![system] } else { system.list()? };
        let texts = reading.each(texts, block::system)?;
        talk.system.extend(texts.into_iter().flatten());
    }
    if let Some(tools) = fields.get("toolConfig") {
        let tools = tools.object()?;
        tools.ignore(&["toolChoice"]);
        let all = tools.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default();
        talk.tools = reading.each(all, tool)?.into_iter().flatten().collect();
        tools.finish(reading)?;
    }
    limits(fields, talk)?;
    fields.ignore(&[
        "schemaVersion",
        "guardrailConfig",
        "promptVariables",
        "additionalModelResponseFieldPaths",
    ]);
    fields.ignore(&[
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "outputConfig",
        "projectIdentifier",
    ]);
    talk.steps.extend(messages(&fields.need("messages")?, reading)?);
    Ok(())
}

fn limits(fields: &Fields<'_>, talk: &mut Talk) -> Result<(), Fault> {
    let config = fields.get("inferenceConfig").map(|config| config.object()).transpose()?;
    let most = config.as_ref().and_then(|config| config.first(&["maxTokens", "max_new_tokens"]));
    talk.stated.max_completion_tokens = most.and_then(|most| most.number()).filter(|most| *most > 0);
    let more = fields.get("additionalModelRequestFields").filter(Node::is_object);
    let thinking = more.map(|more| more.object()).transpose()?.and_then(|more| more.get("thinking"));
    let budget = thinking.filter(Node::is_object).map(|thinking| thinking.object()).transpose()?;
    let budget = budget.and_then(|thinking| thinking.get("budget_tokens")?.number());
    // The reasoning budget is part of the reply limit, so it is used only without that.
    talk.stated.reasoning = if talk.stated.max_completion_tokens.is_none() { budget } else { None };
    Ok(())
}

fn tool(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Tool>, Fault> {
    let fields = node.object()?;
    if fields.has("cachePoint") {
        return Ok(None);
    }
    if let Some(system) = fields.get("systemTool") {
        let name = system.object()?.need("name")?.text()?;
        let name = context_window::text::plain::short(&name);
        reading.note(format!("the tool `{name}` is left out: Bedrock has its definition"));
        return Ok(None);
    }
    let tool = fields.need("toolSpec")?.object()?;
    tool.ignore(&["strict"]);
    let schema = tool.need("inputSchema")?.object()?.need("json")?;
    // Some programs write the schema as a string.
    let schema = if schema.is_text() { schema.text()? } else { schema.compact() };
    let description = tool.text("description")?.unwrap_or_default();
    let made = Tool::new(tool.need("name")?.text()?, description, schema);
    tool.finish(reading)?;
    fields.finish(reading)?;
    Ok(Some(made))
}

fn messages(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Step>, Fault> {
    Ok(reading.each(node.list()?, message)?.into_iter().map(Step::Entry).collect())
}

/// Reads a message, alone or in the object that Strands Agents stores around it.
fn message(node: &Node<'_>, reading: &mut Reading) -> Result<Entry, Fault> {
    let fields = node.object()?;
    if let Some(inside) = fields.get("message") {
        // The redacted message replaces the original.
        let redacted = fields.get("redact_message");
        fields.ignore(&["message_id", "created_at", "updated_at"]);
        fields.finish(reading)?;
        if redacted.is_some() {
            reading.note(format!("{}: the redacted message replaces the original", node.path()));
        }
        return message(&redacted.unwrap_or(inside), reading);
    }
    let kind = fields.need("role")?;
    let role = match &*kind.text()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(kind.unknown("is not a role of Converse")),
    };
    let content = fields.need("content")?;
    let blocks = if content.is_text() { vec![content] } else { content.list()? };
    let pieces = reading.each(blocks, |node, reading| block::piece(node, role, reading))?;
    fields.ignore(&["metadata"]);
    fields.finish(reading)?;
    Ok(Entry::new(role, pieces.into_iter().flatten().collect()))
}

/// Reads the message of a response.
fn answer(fields: &Fields<'_>, reading: &mut Reading) -> Result<Option<Step>, Fault> {
    fields.ignore(&["stopReason", "usage", "metrics", "trace", "ResponseMetadata", "performanceConfig"]);
    fields.ignore(&["serviceTier", "additionalModelResponseFields"]);
    let Some(output) = fields.get("output") else { return Ok(None) };
    let output = output.object()?;
    let entry = message(&output.need("message")?, reading)?;
    output.finish(reading)?;
    Ok(Some(Step::Entry(entry)))
}

/// Reads a line of the model invocation log: a request with its response.
fn logged(fields: &Fields<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk { id: fields.name("requestId")?, model: fields.text("modelId")?, ..Talk::default() };
    fields.ignore(&[
        "schemaType",
        "schemaVersion",
        "timestamp",
        "accountId",
        "identity",
        "region",
        "operation",
    ]);
    fields.ignore(&["inferenceRegion", "requestMetadata", "errorCode", "status"]);
    let input = fields.need("input")?.object()?;
    input.ignore(&[
        "inputContentType",
        "inputTokenCount",
        "cacheReadInputTokenCount",
        "cacheWriteInputTokenCount",
    ]);
    let Some(request) = input.get("inputBodyJson") else {
        let elsewhere =
            input.text("inputBodyS3Path")?.map(|path| format!(": it is at {path}")).unwrap_or_default();
        return Err(input.node().fault(format!("does not contain the body of the request{elsewhere}")));
    };
    input.finish(reading)?;
    let text = as_json(&request)?;
    let request = match &text {
        Some(text) => Node::root(text),
        None => request,
    };
    let request = request.object()?;
    // `InvokeModel` requests of Claude have the body of Anthropic's own API.
    let is_converse = !request.has("anthropic_version");
    if is_converse {
        body(&request, &mut talk, reading)?;
        request.finish(reading)?;
    } else {
        anthropic(&request, &mut talk)?;
    }
    if let Some(output) = fields.get("output") {
        let output = output.object()?;
        output.ignore(&["outputContentType", "outputTokenCount"]);
        if output.has("outputBodyS3Path") && !output.has("outputBodyJson") {
            output.ignore(&["outputBodyS3Path"]);
            reading.note("the reply is left out: it is not in the log");
        }
        if let Some(response) = output.get("outputBodyJson") {
            reply(&response, is_converse, &mut talk, reading)?;
        }
        output.finish(reading)?;
    }
    fields.finish(reading)?;
    Ok(talk)
}

/// Returns the JSON inside a string, because some pipelines write bodies in that form. Returns `None` for any
/// other value.
fn as_json(node: &Node<'_>) -> Result<Option<String>, Fault> {
    if node.is_text() { node.text().map(Some) } else { Ok(None) }
}

/// Reads a body of Anthropic's own API, which was sent to a model without Converse.
fn anthropic(fields: &Fields<'_>, talk: &mut Talk) -> Result<(), Fault> {
    talk.wire_format = Some(WireFormat::Anthropic);
    if let Some(system) = fields.get("system") {
        let texts = if system.is_text() { vec![system] } else { system.list()? };
        for node in texts {
            let text = if node.is_text() { node.text()? } else { node.object()?.need("text")?.text()? };
            talk.system.push(text);
        }
    }
    let tools = fields.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default();
    for node in tools {
        let tool = node.object()?;
        let (name, description) = (tool.need("name")?.text()?, tool.text("description")?.unwrap_or_default());
        talk.tools.push(match tool.get("input_schema") {
            Some(schema) => Tool::new(name, description, schema.compact()),
            None => Tool::hosted(name, WireFormat::Anthropic, node.compact()),
        });
    }
    talk.stated.max_completion_tokens = fields.get("max_tokens").and_then(|most| most.number());
    for node in fields.need("messages")?.list()? {
        talk.steps.push(Step::Wire { path: node.path().to_owned(), json: node.json().to_owned() });
    }
    Ok(())
}

fn reply(node: &Node<'_>, is_converse: bool, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
    let text = as_json(node)?;
    let node = match &text {
        Some(text) => Node::root(text),
        None => node.clone(),
    };
    if node.is_list() {
        reading.note("the reply is left out: it is logged as parts of a stream");
        return Ok(());
    }
    let fields = node.object()?;
    if is_converse {
        talk.steps.extend(answer(&fields, reading)?);
        return fields.finish(reading);
    }
    if let Some(content) = fields.get("content") {
        let json = format!("{{\"role\":\"assistant\",\"content\":{}}}", content.json());
        talk.steps.push(Step::Wire { path: node.path().to_owned(), json });
    }
    Ok(())
}
