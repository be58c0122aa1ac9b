//! A model behind HTTP. The crate `genai` connects, streams and reads; what is sent is the plan as `context_window::render`
//! writes it, byte for byte: messages, cache marks, and thoughts with their seals.

use super::{Failure, Piece, Prompt, Reply};
use context_window::{
    ContextPlan, Usage, WireFormat,
    compaction::Summariser,
    message::Reasoning,
    render::{self, CacheLife},
    usage::{ReplyReport, StopReason},
};
use futures_util::StreamExt;
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, ReasoningEffort, StreamEnd},
    resolver::{AuthData, Endpoint},
};
use serde_json::Value;
use std::{fmt, time::Duration};

/// How long a server may be silent, before its answer and within it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Who speaks how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    /// Any server that speaks as OpenAI does.
    Compatible,
}

/// A model of a provider.
#[derive(Clone)]
pub struct Remote {
    pub provider: Provider,
    pub model: String,
    /// What stands before `chat/completions`, `messages` or `models/`.
    pub url: String,
    pub key: Option<String>,
    /// The variable that a key is taken from.
    pub key_name: &'static str,
    /// How much the model is to think, where it can: `low`, `medium`, `high`.
    pub effort: Option<String>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("model", &self.model).field("url", &self.url).finish_non_exhaustive()
    }
}

/// The messages and tools of a plan, as its provider takes them.
pub(super) fn body(plan: &ContextPlan) -> Value {
    let body = match plan.wire_format {
        WireFormat::Anthropic => {
            serde_json::to_value(render::anthropic(plan).with_breakpoints(CacheLife::FiveMinutes))
        }
        WireFormat::Gemini => serde_json::to_value(render::gemini(plan)),
        WireFormat::OpenAiResponses => serde_json::to_value(render::openai_responses(plan)),
        _ => serde_json::to_value(render::openai(plan)),
    };
    body.expect("a body is plain data")
}

impl Remote {
    /// The same model as a maker of summaries.
    pub fn summariser(&self) -> Summariser {
        let model = self.model.as_str();
        let summariser = match self.provider {
            Provider::OpenAi => Summariser::openai(model),
            Provider::Anthropic => Summariser::anthropic(model),
            Provider::Gemini => Summariser::gemini(model),
            Provider::Ollama | Provider::Compatible => Summariser::compatible(&self.url, model),
        };
        let summariser = summariser.with_url(&self.url).with_timeout(PATIENCE);
        match &self.key {
            Some(key) => summariser.with_api_key(key),
            None => summariser,
        }
    }

    pub(super) async fn answer(
        &self,
        prompt: &Prompt,
        say: &(dyn Fn(Piece) + Sync),
    ) -> Result<Reply, Failure> {
        let client = Client::new().map_err(|error| self.failure(&error))?;
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", self.url.trim_end_matches('/'))),
            auth: AuthData::from_single(self.key.clone().unwrap_or_else(|| "none".into())),
            model: ModelIden::new(self.adapter(prompt.wire_format), self.model.as_str()),
        };
        // The library wants a message; the body of the plan takes its place.
        let request = ChatRequest::new(vec![ChatMessage::user(prompt.question.as_str())]);
        let sent = client.exec_chat_stream(target, request, Some(&self.options(prompt))).await;
        let mut stream = sent.map_err(|error| self.failure(&error))?.stream;
        let cut = || Failure::new("the connection was cut before the reply was whole (/retry asks again)");
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            let has_begun = !text.is_empty();
            match event.map_err(|error| {
                if has_begun && status(&error).is_none() { cut() } else { self.failure(&error) }
            })? {
                ChatStreamEvent::Chunk(chunk) => {
                    text.push_str(&chunk.content);
                    say(Piece::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) => say(Piece::Thought(chunk.content)),
                ChatStreamEvent::End(end) => return Ok(self.reply(text, &end)),
                _ => {}
            }
        }
        Err(cut())
    }

    fn adapter(&self, wire_format: WireFormat) -> AdapterKind {
        match wire_format {
            WireFormat::Anthropic => AdapterKind::Anthropic,
            WireFormat::Gemini => AdapterKind::Gemini,
            WireFormat::OpenAiResponses => AdapterKind::OpenAIResp,
            _ => AdapterKind::OpenAI,
        }
    }

    fn options(&self, prompt: &Prompt) -> ChatOptions {
        let longest = u32::try_from(prompt.max_tokens).unwrap_or(u32::MAX);
        let options = ChatOptions::default()
            .with_max_tokens(longest)
            .with_extra_body(prompt.body.clone())
            .with_extra_headers(prompt.headers.clone())
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_stream_header_timeout(PATIENCE)
            .with_stream_read_timeout(PATIENCE);
        match self.effort.as_deref() {
            Some("low") => options.with_reasoning_effort(ReasoningEffort::Low),
            Some("medium") => options.with_reasoning_effort(ReasoningEffort::Medium),
            Some("high") => options.with_reasoning_effort(ReasoningEffort::High),
            // An effort that is a number keeps the library from reading one off the end of a model's name.
            _ if self.provider == Provider::Compatible => {
                options.with_reasoning_effort(ReasoningEffort::Budget(0))
            }
            _ => options,
        }
    }

    fn reply(&self, text: String, end: &StreamEnd) -> Reply {
        let count = |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let usage = end.captured_usage.as_ref().filter(|usage| usage.prompt_tokens.is_some()).map(|usage| {
            let details = usage.prompt_tokens_details.as_ref();
            let read = count(details.and_then(|details| details.cached_tokens));
            let written = count(details.and_then(|details| details.cache_creation_tokens));
            let fresh = count(usage.prompt_tokens).saturating_sub(read + written);
            Usage::anthropic(fresh, written, read, count(usage.completion_tokens))
        });
        let stop = end.captured_stop_reason.as_ref().map(|stop| StopReason::named(stop.raw()));
        let mut report = ReplyReport::from(usage);
        report.stop = stop;
        Reply { text, reasoning: self.thoughts(end), report }
    }

    /// What the model thought, with the seals by which it knows its own thoughts again.
    fn thoughts(&self, end: &StreamEnd) -> Vec<Reasoning> {
        let wire_format = match self.provider {
            Provider::Anthropic => WireFormat::Anthropic,
            Provider::Gemini => WireFormat::Gemini,
            _ => {
                let text = end.captured_reasoning_content.as_deref().filter(|text| !text.is_empty());
                return text.map(Reasoning::text).into_iter().collect();
            }
        };
        let mut thoughts: Vec<Reasoning> = Vec::new();
        for part in end.captured_content.iter().flat_map(|content| content.parts()) {
            match part {
                ContentPart::ThoughtSignature(seal) => {
                    thoughts.push(Reasoning::sealed(wire_format, "", seal))
                }
                ContentPart::ReasoningContent(text) => {
                    if let Some(last) = thoughts.last_mut() {
                        last.text.clone_from(text);
                    }
                }
                // A thought that is not shown at all.
                ContentPart::Custom(part) => {
                    if let Some(data) = part.data.get("data").and_then(Value::as_str) {
                        thoughts.push(Reasoning::sealed(wire_format, "", data).into_redacted());
                    }
                }
                _ => {}
            }
        }
        thoughts
    }

    /// An error of the library in words, with what to do; never a key.
    fn failure(&self, error: &genai::Error) -> Failure {
        let (status, said) = match status(error) {
            Some((status, body)) => (status, message(&body)),
            None => (0, cause(error)),
        };
        let said = match self.key.as_deref().filter(|key| key.len() > 3) {
            Some(key) => said.replace(key, "[key]"),
            None => said,
        };
        let (model, url, key) = (&self.model, &self.url, self.key_name);
        Failure::new(match status {
            0 => format!("no answer from {url}: {said} (/retry asks again)"),
            401 | 403 => format!("{url} does not take the key in {key}: {said}"),
            404 => format!("{url} does not know the model {model}: {said} (/model NAME takes another one)"),
            status => format!("{url} answered {status}: {said} (/retry asks again)"),
        })
    }
}

/// The status and the body of an answer that is none.
fn status(error: &genai::Error) -> Option<(u16, String)> {
    match error {
        genai::Error::HttpError { status, body, .. } => Some((status.as_u16(), body.clone())),
        genai::Error::WebStream { error, .. } => error.downcast_ref::<genai::Error>().and_then(status),
        genai::Error::ChatResponse { body, .. } => Some((200, body.to_string())),
        _ => None,
    }
}

/// What a provider says of an error: of its JSON, or its first words.
fn message(body: &str) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let at = ["/error/message", "/message", "/error", "/0/error/message"];
    let said = json.as_ref().and_then(|json| at.iter().find_map(|at| json.pointer(at)?.as_str()));
    said.unwrap_or(body).chars().take(300).collect()
}

/// The innermost cause of an error: those around it repeat the URL.
fn cause(error: &genai::Error) -> String {
    let mut next: &(dyn std::error::Error + 'static) = error;
    if let genai::Error::WebStream { error, .. } = error {
        next = &**error;
    }
    while let Some(cause) = next.source() {
        next = cause;
    }
    next.to_string().chars().take(300).collect()
}
