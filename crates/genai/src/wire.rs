//! The conversion of a job to a request of the crate `genai`. `provider::conform` has already applied the
//! constraints of the provider, as for every prompt (dropped messages to unsupported fields, rules H3 to H7).
//! Here the messages only change their types.

use crate::Provider;
use context_window::{
    Message, Role, Tool, ToolCall,
    compaction::CompactionRequest,
    provider::{conform::normalized, wording},
};
use genai::chat::{
    self, ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent, ToolChoice, ToolResponse,
};
use serde_json::Value;

/// Converts the messages and tools of a job.
pub(super) fn request(job: &CompactionRequest, provider: Provider) -> ChatRequest {
    let prompt = normalized(job.as_ref(), provider.wire_format());
    let head = prompt.messages.iter().take_while(|message| message.role().instructs()).count();
    let mut sent: Vec<ChatMessage> = Vec::new();
    for (at, message) in prompt.messages.iter().enumerate() {
        match message.role() {
            Role::Tool => push_result(&mut sent, message, provider),
            Role::Assistant => sent.extend(assistant_message(message, provider)),
            // For these two providers the library moves every instruction to the front. A later one keeps its
            // place as a note of the user.
            role if role.instructs()
                && at >= head
                && matches!(provider, Provider::Anthropic | Provider::Gemini) =>
            {
                sent.push(ChatMessage::user(wording::system_note(&text_of(message))));
            }
            role if role.instructs() => sent.push(ChatMessage::system(text_of(message))),
            _ => sent.push(ChatMessage::user(named(message))),
        }
    }
    let tools = declared_tools(&prompt.tools, provider);
    let request = ChatRequest::new(sent);
    // An empty list of tools is an error at some providers.
    if tools.is_empty() { request } else { request.with_tools(tools) }
}

/// Returns the options of the request: the maximum length of the answer, and no tool calls.
pub(super) fn options(job: &CompactionRequest, provider: Provider) -> ChatOptions {
    let longest = u32::try_from(job.max_tokens()).unwrap_or(u32::MAX);
    let mut options = ChatOptions::default().with_max_tokens(longest).with_capture_raw_body(true);
    // The effort 0 stops the library from cutting the model's name; it is not sent.
    if provider.reads_efforts() {
        options = options.with_reasoning_effort(chat::ReasoningEffort::Budget(0));
    }
    // `tool_choice` without any declared tool is an error.
    if job.tools().iter().any(|tool| tool.hosted.is_none()) {
        options = options.with_tool_choice(ToolChoice::None);
    }
    options
}

/// Converts an assistant message. Returns `None` if it has neither text nor calls.
fn assistant_message(message: &Message, provider: Provider) -> Option<ChatMessage> {
    let text = text_of(message);
    let text = (!text.is_empty()).then_some(ContentPart::Text(text));
    let calls = message.tool_calls().iter().map(|call| ContentPart::ToolCall(tool_call(call, provider)));
    let parts: Vec<ContentPart> = text.into_iter().chain(calls).collect();
    (!parts.is_empty()).then(|| ChatMessage::assistant(MessageContent::from_parts(parts)))
}

/// Converts a tool call. Invalid JSON is sent as a string, so that the model still sees its arguments.
fn tool_call(call: &ToolCall, provider: Provider) -> chat::ToolCall {
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(arguments) => arguments,
        Err(_) if call.arguments.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Err(_) => Value::String(call.arguments.clone()),
    };
    chat::ToolCall {
        call_id: call.id.clone(),
        fn_name: function(&call.name, provider),
        fn_arguments: arguments,
        // At other providers a signature belongs to reasoning, which is not sent.
        thought_signatures: call
            .signature
            .clone()
            .filter(|_| provider == Provider::Gemini)
            .map(|signature| vec![signature]),
    }
}

/// Adds a tool result. Anthropic requires the results of one message's calls in one message; the others take
/// one message per result.
fn push_result(sent: &mut Vec<ChatMessage>, message: &Message, provider: Provider) {
    let text = text_of(message);
    // The library has no field for a failed call.
    let text = if message.is_failed() { format!("[the call failed] {text}") } else { text };
    let result = ToolResponse::new(message.answers().unwrap_or_default(), text);
    match sent.last_mut() {
        Some(last) if last.role == chat::ChatRole::Tool && provider == Provider::Anthropic => {
            last.content.push(result);
        }
        _ => sent.push(ChatMessage::from(result)),
    }
}

/// Converts the tools that the application runs. Tools that the provider runs are not declared.
fn declared_tools(tools: &[Tool], provider: Provider) -> Vec<chat::Tool> {
    let own = tools.iter().filter(|tool| tool.hosted.is_none());
    own.map(|tool| {
        let schema = serde_json::from_str(&tool.schema).ok().filter(Value::is_object);
        // Anthropic requires a schema.
        let schema = schema.unwrap_or_else(|| serde_json::json!({"type": "object", "properties": {}}));
        let declared = chat::Tool::new(function(&tool.name, provider)).with_schema(schema);
        if tool.description.is_empty() { declared } else { declared.with_description(&tool.description) }
    })
    .collect()
}

/// Returns the name of a function, changed if the library would take it for a tool of the provider.
fn function(name: &str, provider: Provider) -> String {
    if provider.reserved_tools().contains(&name) { format!("{name}_function") } else { name.to_owned() }
}

/// Returns the text of a user message with its author's name, because the library has no field for names.
fn named(message: &Message) -> String {
    let text = text_of(message);
    match message.name() {
        Some(name) => format!("{name}: {text}"),
        None => text,
    }
}

/// Returns all texts of a message, with a short description for each part without text.
fn text_of(message: &Message) -> String {
    let texts = [message.text()].into_iter().chain(message.as_texts());
    texts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}
