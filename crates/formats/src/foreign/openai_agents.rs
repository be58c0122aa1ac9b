//! Items of the `OpenAI` Agents SDK: what `to_input_list()` and `history` return and a session stores, in a list or one a line; and
//! the states of runs, which hold them. They are input items of `OpenAI` Responses; those of `JavaScript` become such.

use super::{
    Reader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::{Step, Talk},
};
use crate::{format::FileFormat, session::responses};
use context_window::{WireFormat, text::object::Object};
use serde_json::{Value, json, value::RawValue};
use std::collections::BTreeSet;

pub(super) const READER: Reader = Reader::new(FileFormat::OpenAiAgents, fits, read);

/// Types of items that no message of another format has.
const ITEMS: [&str; 7] = [
    "function_call",
    "function_call_output",
    "function_call_result",
    "hosted_tool_call",
    "custom_tool_call",
    "item_reference",
    "compaction",
];

fn fits(shape: &Shape) -> bool {
    let is_state = shape.has("$schemaVersion") && (shape.has("original_input") || shape.has("originalInput"));
    let inner = |message: &Value| message.get("raw_item").or_else(|| message.get("rawItem")).is_some();
    let is_item = |message: &Value| {
        let kind = text(message, "type");
        ITEMS.contains(&kind)
            || kind == "reasoning" && (message.get("summary").is_some() || message.get("content").is_some())
            || kind.ends_with("_call") && message.get("role").is_none()
            || inner(message)
    };
    let is_message = |message: &Value| {
        text(message, "type") == "message"
            || message.get("content").and_then(|content| content.as_array()).is_some_and(|parts| {
                parts.iter().any(|part| matches!(text(part, "type"), "input_text" | "output_text"))
            })
    };
    is_state
        || shape.container.is_empty()
            && shape.messages.iter().any(|message| is_item(message) || is_message(message))
            && shape
                .messages
                .iter()
                .all(|message| message.get("role").is_some() || message.get("type").is_some())
            && !shape
                .messages
                .iter()
                .any(|message| ["message", "data", "ts"].into_iter().any(|key| message.get(key).is_some()))
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut items = Items::default();
    if node.is_list() {
        items.add(node.list()?, reading)?;
    } else {
        items.add_state(node, reading)?;
    }
    let list = format!("[{}]", items.all.iter().map(|(_, json)| json.as_str()).collect::<Vec<_>>().join(","));
    let list = RawValue::from_string(list).map_err(|_| node.expected("a list of items"))?;
    let messages = responses::messages(&list).map_err(|(at, detail)| {
        let path = at.and_then(|at| items.all.get(at)).map(|(path, _)| path.clone());
        Fault { path: path.unwrap_or_default(), detail }
    })?;
    let steps = messages.into_iter().map(|message| Step::Message(Box::new(message))).collect();
    Ok(Talk { wire_format: Some(WireFormat::OpenAiResponses), steps, ..Talk::default() })
}

/// The items of a file, each with its path and as an input item of Responses.
#[derive(Default)]
struct Items {
    all: Vec<(String, String)>,
    /// The calls among them.
    calls: BTreeSet<String>,
}

impl Items {
    /// Adds what went into a run and what came of it.
    fn add_state(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        let is_python = fields.has("original_input");
        let input = fields.first(&["original_input", "originalInput"]);
        let input = input.ok_or_else(|| node.fault("has no `original_input`"))?;
        let made = fields.need(if is_python { "generated_items" } else { "generatedItems" })?;
        let pending = fields.first(&["pending_input", "pendingInput"]);
        for list in [Some(input), Some(made), pending].into_iter().flatten() {
            if list.is_text() {
                let item = json!({ "role": "user", "content": list.text()? });
                self.all.push((list.path().to_owned(), item.to_string()));
            } else {
                self.add(list.list()?, reading)?;
            }
        }
        fields.ignore(&BESIDE);
        fields.ignore(&BESIDE_IN_JS);
        fields.finish(reading)
    }

    fn add(&mut self, items: Vec<Node<'_>>, reading: &mut Reading) -> Result<(), Fault> {
        let mut waiting = Vec::new();
        let read = reading.each(items, |node, reading| {
            let fields = node.object()?;
            let Some(inner) = fields.first(&["raw_item", "rawItem"]) else {
                return Ok(Some((node.path().to_owned(), item(node, reading)?)));
            };
            let kind = fields.need("type")?.text()?;
            let own = [
                "agent",
                "agentName",
                "output",
                "tool_name",
                "toolName",
                "description",
                "title",
                "tool_origin",
                "toolOrigin",
                "source_agent",
                "target_agent",
                "sourceAgent",
                "targetAgent",
                "executionStatus",
                "custom_data",
                "customData",
            ];
            fields.ignore(&own);
            fields.finish(reading)?;
            let read = (inner.path().to_owned(), item(&inner, reading)?);
            if kind != "tool_approval_item" {
                return Ok(Some(read));
            }
            waiting.push(read);
            Ok(None)
        })?;
        for (path, json) in read.into_iter().flatten() {
            self.calls.extend(Object::parse(&json).and_then(|item| item.text("call_id")));
            self.all.push((path, json));
        }
        // A call that waits for an approval stands among the items too.
        for (path, json) in waiting {
            let id = Object::parse(&json).and_then(|item| item.text("call_id"));
            if id.is_none_or(|id| self.calls.insert(id)) {
                self.all.push((path, json));
            }
        }
        Ok(())
    }
}

/// Checks an item, and makes it one of Responses if it is one of `JavaScript`.
fn item(node: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    let fields = node.object()?;
    fields.ignore(&[
        "providerData",
        "provider_data",
        "status",
        "id",
        "type",
        "phase",
        "namespace",
        "created_by",
    ]);
    let kind = fields.peek("type").map(Node::text).transpose()?.unwrap_or_else(|| "message".into());
    let mut own = node.as_object().ok_or_else(|| node.expected("an item"))?;
    own.remove("providerData");
    let beside = fields.get("providerData").and_then(|data| data.as_object());
    match &*kind {
        "message" => {
            fields.ignore(&["role"]);
            if let Some(content) = fields.get("content").filter(Node::is_list) {
                let parts = reading.each(content.list()?, part)?;
                own.set("content", format!("[{}]", parts.join(",")));
            }
        }
        "reasoning" => {
            for key in ["summary", "content", "rawContent"] {
                let parts = fields.get(key).map(|parts| parts.list()).transpose()?.unwrap_or_default();
                for part in parts {
                    let part = part.object()?;
                    part.need("text")?.text()?;
                    part.ignore(&["type", "providerData"]);
                    part.finish(reading)?;
                }
            }
            fields.ignore(&["encrypted_content"]);
            if !fields.has("summary") {
                thought_of_js(&mut own, beside.as_ref());
            }
        }
        "function_call" | "custom_tool_call" => {
            fields.need("name")?;
            fields.ignore(&["call_id", "callId", "arguments", "input", "caller"]);
        }
        "function_call_output" | "custom_tool_call_output" => {
            fields.ignore(&["call_id", "output", "name", "caller"]);
        }
        "function_call_result" => {
            fields.ignore(&["callId", "name", "namespace"]);
            let output = fields.need("output")?;
            own.set_text("type", "function_call_output");
            own.remove("name");
            own.set("output", output_of_js(&output, reading)?);
        }
        "hosted_tool_call" => {
            let beside = beside.filter(|data| data.text("type").is_some());
            let mut item = beside.ok_or_else(|| {
                node.fault("is a hosted tool's call without the `providerData` of its type")
            })?;
            for key in ["id", "status"] {
                if let Some(value) = fields.peek(key).filter(|_| item.get(key).is_none()) {
                    item.set(key, value.json().to_owned());
                }
            }
            return Ok(item.to_json());
        }
        _ => fields.ignore_all(),
    }
    fields.finish(reading)?;
    if let Some(id) = own.text("callId") {
        own.remove("callId");
        own.set_text("call_id", &id);
    }
    Ok(own.to_json())
}

/// Checks a part of a message, and names its image or file as Responses does.
fn part(node: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    let fields = node.object()?;
    let mut own = node.as_object().unwrap_or_default();
    own.remove("providerData");
    let known = [
        "type",
        "text",
        "refusal",
        "image_url",
        "file_id",
        "file_data",
        "file_url",
        "filename",
        "detail",
        "annotations",
        "logprobs",
        "input_audio",
        "providerData",
    ];
    fields.ignore(&known);
    let kind = own.text("type").unwrap_or_default();
    if matches!(&*kind, "input_text" | "output_text" | "text") {
        fields.need("text")?.text()?;
    }
    for (key, other, url) in [("image", "file_id", "image_url"), ("file", "file_id", "file_url")] {
        let Some(value) = fields.get(key) else { continue };
        own.remove(key);
        if value.is_text() {
            let text = value.text()?;
            let is_data = key == "file" && text.starts_with("data:");
            own.set_text(if is_data { "file_data" } else { url }, &text);
        } else {
            let inner = value.object()?;
            let id = inner.first(&["id", "fileId"]);
            let address = inner.get("url");
            inner.finish(reading)?;
            match (id, address) {
                (Some(id), _) => own.set_text(other, &id.text()?),
                (None, Some(address)) => own.set_text(url, &address.text()?),
                (None, None) => return Err(value.fault("has neither `id` nor `url`")),
            }
        }
    }
    fields.finish(reading)?;
    Ok(own.to_json())
}

/// Moves the texts of a thought of `JavaScript` to where Responses has them.
fn thought_of_js(own: &mut Object, beside: Option<&Object>) {
    let texts = |json: Option<&str>, kind: &str| {
        let parts: Vec<Value> = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let part = |part: Value| json!({ "type": kind, "text": part.get("text") });
        Value::from(parts.into_iter().map(part).collect::<Vec<_>>()).to_string()
    };
    let (summary, raw) =
        (texts(own.get("content"), "summary_text"), texts(own.get("rawContent"), "reasoning_text"));
    own.remove("content");
    own.set("summary", summary);
    if own.remove("rawContent") {
        own.set("content", raw);
    }
    if let Some(encrypted) = beside.and_then(|data| data.text("encrypted_content")) {
        own.set_text("encrypted_content", &encrypted);
    }
}

/// Returns the output of a tool as Responses has it: a text, or a list of parts.
fn output_of_js(output: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    if output.is_text() {
        return Ok(output.json().to_owned());
    }
    if output.is_list() {
        return Ok(format!("[{}]", reading.each(output.list()?, part)?.join(",")));
    }
    let fields = output.object()?;
    let kind = fields.need("type")?;
    let json = match &*kind.text()? {
        "text" => fields.need("text")?.json().to_owned(),
        "image" => {
            fields.ignore(&["detail"]);
            let (data, image) = (fields.first(&["data", "image_url"]), fields.first(&["image", "imageUrl"]));
            let media_type = fields.text("mediaType")?.unwrap_or_else(|| "image/png".into());
            let url = match (data, image) {
                (_, Some(image)) => image.text()?,
                (Some(data), None) => super::talk::data_url(&media_type, &data.text()?),
                (None, None) => return Err(output.fault("has no image")),
            };
            json!([{ "type": "input_image", "image_url": url }]).to_string()
        }
        _ => return Err(kind.fault("is no output of a tool that is known")),
    };
    fields.ignore(&["providerData"]);
    fields.finish(reading)?;
    Ok(json)
}

/// Keys of the state of a run that hold nothing of the conversation, or what stands among its items too.
const BESIDE: [&str; 29] = [
    "$schemaVersion",
    "current_turn",
    "current_agent",
    "model_responses",
    "context",
    "tool_use_tracker",
    "max_turns",
    "no_active_agent_run",
    "input_guardrail_results",
    "output_guardrail_results",
    "tool_input_guardrail_results",
    "tool_output_guardrail_results",
    "conversation_id",
    "previous_response_id",
    "auto_previous_response_id",
    "generated_prompt_cache_key",
    "reasoning_item_id_policy",
    "nested_history_owned_session_item_refs",
    "generated_session_item_indexes",
    "current_response_generated_item_ownership",
    "session_items",
    "current_step",
    "last_model_response",
    "last_processed_response",
    "current_turn_persisted_item_count",
    "pending_session_write",
    "terminal_unrecoverable",
    "trace",
    "sandbox",
];

/// The same in `JavaScript`.
const BESIDE_IN_JS: [&str; 28] = [
    "pendingAgentToolRuns",
    "pendingAgentToolRunAliases",
    "currentTurnSessionInputItems",
    "completedToolInvocations",
    "completedToolInvocationEvidence",
    "ambiguousToolInvocationCallIds",
    "currentTurn",
    "currentAgent",
    "modelResponses",
    "toolUseTracker",
    "maxTurns",
    "currentAgentSpan",
    "noActiveAgentRun",
    "inputGuardrailResults",
    "initialInputGuardrailsCompleted",
    "outputGuardrailResults",
    "toolInputGuardrailResults",
    "toolOutputGuardrailResults",
    "currentTurnInProgress",
    "currentStep",
    "lastModelResponse",
    "lastProcessedResponse",
    "currentTurnPersistedItemCount",
    "conversationId",
    "previousResponseId",
    "reasoningItemIdPolicy",
    "sessionItems",
    "generatedPromptCacheKey",
];
