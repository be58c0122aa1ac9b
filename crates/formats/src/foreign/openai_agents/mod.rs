//! Items of the `OpenAI` Agents SDK: the results of `to_input_list()` and `history`, and the items of a
//! stored session (a list, or one per line). Also reads the states of runs. Items are input items of `OpenAI`
//! Responses. Items of `JavaScript` are converted to these.

use super::{
    FormatReader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::{Step, Talk},
};
use crate::{format::FileFormat, session::responses};
use context_window::{WireFormat, text::object::Object};
use serde_json::{Value, json, value::RawValue};
use std::collections::BTreeSet;

mod item;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::OpenAiAgents, fits, read);

/// Types of items that no other format has.
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
    // Roo Code also stores reasoning as such items, each with its time.
    let is_timed = |message: &Value| message.get("ts").is_some();
    is_state
        || shape.container.is_empty()
            && !shape.messages.iter().any(is_timed)
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
    let list = RawValue::from_string(list).map_err(|_| node.expected("an array of items"))?;
    let messages = responses::messages(&list).map_err(|(at, detail)| {
        // The index in the joined list leads back to the path of the item in the file.
        let path = at.and_then(|at| items.all.get(at)).map(|(path, _)| path.clone());
        Fault { path: path.unwrap_or_default(), detail }
    })?;
    let steps = messages.into_iter().map(|message| Step::Message(Box::new(message))).collect();
    Ok(Talk { wire_format: Some(WireFormat::OpenAiResponses), steps, ..Talk::default() })
}

/// The items of a file, each with its path and its JSON as an input item of Responses.
#[derive(Default)]
struct Items {
    all: Vec<(String, String)>,
    /// The ids of the calls among them.
    calls: BTreeSet<String>,
}

impl Items {
    /// Adds the input of a run and the items that it generated.
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
                return Ok(Some((node.path().to_owned(), item::item(node, reading)?)));
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
            let read = (inner.path().to_owned(), item::item(&inner, reading)?);
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
        // A call that waits for approval may be among the items too, and is then not added again.
        for (path, json) in waiting {
            let id = Object::parse(&json).and_then(|item| item.text("call_id"));
            if id.is_none_or(|id| self.calls.insert(id)) {
                self.all.push((path, json));
            }
        }
        Ok(())
    }
}

/// Keys of a run's state without conversation content, or with copies of its items.
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

/// The same keys in `JavaScript`.
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
