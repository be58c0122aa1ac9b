//! A model behind HTTP. The crate `genai` connects, streams and reads. The body is the plan as
//! `context_window::render` writes it, byte for byte: messages, cache marks, and reasoning with its
//! signatures.

use super::{Piece, Prompt, Reply};
use context_window::message::Reasoning;
use context_window::usage::{ReplyReport, StopReason};
use context_window::{Message, Usage, WireFormat};
use context_window_genai::Summariser;
use context_window_report as report;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::*;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Error, ModelIden, ServiceTarget};
use serde_json::Value;
use std::{fmt, time::Duration};

/// Maximum time without data from the server, before and during its answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum length of a reply, in bytes of text and reasoning. It is several times the size of any model's
/// reply, so that an endless stream cannot fill the memory.
pub const LONGEST: usize = 4_194_304;

/// The error text of a stream that ended too early.
const CUT: &str = "the connection was closed before the reply was complete";

/// A model of a provider.
#[derive(Clone)]
pub struct Remote {
    pub model: String,
    pub wire_format: WireFormat,
    /// The part of the URL before `chat/completions`, `messages` or `models/`.
    pub url: String,
    pub key: Option<String>,
    /// The environment variable that holds the key.
    pub key_name: &'static str,
    /// The reasoning effort, if the model supports it: `low`, `medium`, `high`.
    pub effort: Option<String>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.model, self.url)
    }
}

impl Remote {
    /// Returns the same model as a summariser.
    pub fn summariser(&self) -> Summariser {
        let summariser = match self.wire_format {
            WireFormat::Anthropic => Summariser::anthropic(&self.model).with_url(&self.url),
            WireFormat::Gemini => Summariser::gemini(&self.model).with_url(&self.url),
            _ => Summariser::compatible(&self.url, &self.model),
        };
        let summariser = summariser.with_timeout(PATIENCE);
        self.key.iter().fold(summariser, |summariser, key| summariser.with_api_key(key))
    }

    pub(super) async fn answer(
        &self,
        prompt: &Prompt,
        say: &(dyn Fn(Piece) + Sync),
    ) -> Result<Reply, String> {
        let adapter = match self.wire_format {
            WireFormat::Anthropic => AdapterKind::Anthropic,
            WireFormat::Gemini => AdapterKind::Gemini,
            WireFormat::OpenAiResponses => AdapterKind::OpenAIResp,
            _ => AdapterKind::OpenAI,
        };
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", self.url)),
            auth: AuthData::from_single(self.key.clone().unwrap_or_else(|| "none".into())),
            model: ModelIden::new(adapter, self.model.as_str()),
        };
        // `genai` requires a message; the body of the plan replaces it.
        let request = ChatRequest::from_user(prompt.question.as_str());
        // A redirect would send the key and the prompt to another server.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let client = Client::builder().with_reqwest(http.map_err(|error| error.to_string())?).build();
        let client = client.map_err(|error| self.failure(&error, ""))?;
        let sent = client.exec_chat_stream(target, request, Some(&self.options(prompt))).await;
        let mut stream = sent.map_err(|error| self.failure(&error, ""))?.stream;
        let (mut text, mut received) = (String::new(), 0);
        while let Some(event) = stream.next().await {
            let event = event.map_err(|error| self.failure(&error, &text))?;
            received += size(&event);
            if received > LONGEST {
                let [received, most] = [received, LONGEST].map(|bytes| report::grouped(bytes as u64));
                let url = &self.url;
                return Err(format!(
                    "the reply from {url} has {received} bytes and continues; expected at most {most}, so it was aborted"
                ));
            }
            match event {
                ChatStreamEvent::Chunk(chunk) => {
                    text.push_str(&chunk.content);
                    say(Piece::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) => say(Piece::Thought(chunk.content)),
                ChatStreamEvent::End(end) => return Ok(self.reply(text, &end)),
                _ => {}
            }
        }
        Err(CUT.into())
    }

    fn options(&self, prompt: &Prompt) -> ChatOptions {
        let effort = self.effort.as_deref().and_then(ReasoningEffort::from_keyword);
        // A numeric effort prevents `genai` from parsing one from the end of a model's name.
        let unset = (self.wire_format == WireFormat::OpenAiChat).then_some(ReasoningEffort::Budget(0));
        let options = ChatOptions::default()
            .with_max_tokens(u32::try_from(prompt.max_tokens).unwrap_or(u32::MAX))
            .with_extra_body(prompt.body.clone())
            .with_extra_headers(prompt.headers.clone())
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_stream_header_timeout(PATIENCE)
            .with_stream_read_timeout(PATIENCE);
        effort.or(unset).into_iter().fold(options, ChatOptions::with_reasoning_effort)
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
        let mut report = ReplyReport::from(usage);
        report.stop = end.captured_stop_reason.as_ref().map(|stop| StopReason::named(stop.raw()));
        (self.thoughts(end).into_iter().fold(Message::assistant(text), Message::with_reasoning), report)
    }

    /// Returns the reasoning of a reply with its signatures, which the model needs to accept it again.
    fn thoughts(&self, end: &StreamEnd) -> Vec<Reasoning> {
        if !matches!(self.wire_format, WireFormat::Anthropic | WireFormat::Gemini) {
            return end.captured_reasoning_content.as_deref().map(Reasoning::text).into_iter().collect();
        }
        let sealed = |text: &str, seal: &str| Reasoning::signed(self.wire_format, text, seal);
        let mut thoughts: Vec<Reasoning> = Vec::new();
        for part in end.captured_content.iter().flat_map(|content| content.parts()) {
            match part {
                ContentPart::ThoughtSignature(seal) => thoughts.push(sealed("", seal)),
                ContentPart::ReasoningContent(text) => {
                    thoughts.last_mut().into_iter().for_each(|thought| thought.text.clone_from(text));
                }
                // Reasoning whose text is hidden.
                ContentPart::Custom(part) => {
                    let data = part.data.get("data").and_then(Value::as_str);
                    thoughts.extend(data.map(|data| sealed("", data).into_redacted()));
                }
                _ => {}
            }
        }
        thoughts
    }

    /// Returns an error text with advice and without a key. `text` is the received part of the reply.
    fn failure(&self, error: &Error, text: &str) -> String {
        let (status, said) =
            status(error).map_or_else(|| (0, cause(error)), |(status, body)| (status, message(&body)));
        let said =
            self.key.iter().filter(|key| key.len() > 3).fold(said, |said, key| said.replace(key, "[key]"));
        let (model, url, key) = (&self.model, &self.url, self.key_name);
        match status {
            0 if text.is_empty() => format!("no answer from {url}: {said}"),
            0 => CUT.into(),
            401 | 403 => format!("{url} does not accept the key in {key}: {said}"),
            404 => format!("{url} does not know the model {model}: {said} (/model NAME selects another one)"),
            200 => format!("{url} aborted the reply: {said}"),
            status => format!("{url} answered {status}: {said}"),
        }
    }
}

/// Returns the number of bytes in a stream event.
fn size(event: &ChatStreamEvent) -> usize {
    match event {
        ChatStreamEvent::Chunk(chunk)
        | ChatStreamEvent::ReasoningChunk(chunk)
        | ChatStreamEvent::ThoughtSignatureChunk(chunk) => chunk.content.len(),
        ChatStreamEvent::ToolCallChunk(chunk) => chunk.tool_call.fn_arguments.to_string().len(),
        _ => 0,
    }
}

/// Returns the status and body of an error response. The status is 200 if the error is in the stream.
fn status(error: &Error) -> Option<(u16, String)> {
    match error {
        Error::HttpError { status, body, .. } => Some((status.as_u16(), body.clone())),
        Error::WebStream { error, .. } => error.downcast_ref::<Error>().and_then(status),
        Error::ChatResponse { body, .. } => Some((200, body.to_string())),
        _ => None,
    }
}

/// Returns a provider's error message from its JSON, or the first words of the body.
fn message(body: &str) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let at = ["/error/message", "/message", "/error", "/0/error/message"];
    let said = json.as_ref().and_then(|json| at.iter().find_map(|at| json.pointer(at)?.as_str()));
    said.unwrap_or(body).chars().take(300).collect()
}

/// Returns the innermost cause of an error, because the outer ones repeat the URL.
fn cause(error: &Error) -> String {
    let mut next: &(dyn std::error::Error + 'static) = error;
    if let Error::WebStream { error, .. } = error {
        next = &**error;
    }
    while let Some(cause) = next.source() {
        next = cause;
    }
    next.to_string().chars().take(300).collect()
}
