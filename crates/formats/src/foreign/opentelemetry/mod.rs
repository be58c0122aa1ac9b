//! Spans, events and attributes of the generative AI conventions of `OpenTelemetry`, in all forms that
//! exporters write. These are a list of messages, an object of attributes, spans of a console exporter, and
//! OTLP as JSON.
//!
//! Each span of a conversation repeats the conversation so far. The longest one is read, and it must contain
//! the content of the others.

use super::{
    FormatReader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Entry, Piece, Step, Talk},
};
use crate::format::FileFormat;
use context_window::{Part, Role, Tool};
use serde_json::Value;
use std::collections::BTreeSet;

mod value;
mod messages;
mod events;
mod flat;
mod span;

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::OpenTelemetry, fits, read).with_conversations(conversations);

fn fits(shape: &Shape) -> bool {
    let is_key = |key: &str| key.starts_with("gen_ai.") || key.starts_with("llm.input_messages.");
    let has_keys =
        |value: &Value| value.as_object().is_some_and(|object| object.keys().any(|key| is_key(key)));
    let is_part = |part: &Value| match text(part, "type") {
        "text" | "reasoning" | "thinking" => part.get("content").is_some() && part.get("text").is_none(),
        "tool_call_response" | "server_tool_call" | "server_tool_call_response" => true,
        "tool_call" => part.get("name").is_some(),
        "uri" | "blob" => part.get("modality").is_some() || part.get("mime_type").is_some(),
        _ => false,
    };
    let is_message = |message: &Value| {
        let event = message.get("event.name").or_else(|| message.get("event_name")).and_then(Value::as_str);
        event.is_some_and(|event| event.starts_with("gen_ai."))
            || has_keys(message)
            || message.get("attributes").is_some_and(|attributes| {
                has_keys(attributes)
                    || text(attributes, "event.name").starts_with("gen_ai.")
                    || attributes.as_array().is_some_and(|all| all.iter().any(|one| is_key(text(one, "key"))))
            })
            || ["resourceSpans", "resourceLogs"].iter().any(|key| message.get(*key).is_some())
    };
    let is_object =
        shape.keys.iter().any(|key| is_key(key) || *key == "resourceSpans" || *key == "resourceLogs");
    let ids = ["context", "traceId", "trace_id", "spanId", "span_id"];
    let is_span = shape.has("attributes") && ids.iter().any(|key| shape.has(key));
    let are_messages = shape.messages.iter().any(|message| message.get("role").is_some());
    is_object
        || is_span
        || shape.messages.iter().any(is_message)
        || are_messages && shape.any_part("parts", is_part)
}

/// A span with messages, or the events of one.
#[derive(Default)]
struct Span {
    path: String,
    /// The start time.
    start: u64,
    /// The id of the conversation, if the span names one.
    id: Option<String>,
    model: Option<String>,
    most: Option<u64>,
    system: Vec<String>,
    tools: Vec<Tool>,
    entries: Vec<Entry>,
    /// The result of a tool execution.
    ran: Option<Answer>,
}

impl Span {
    /// Returns the texts, calls and results of the span, for comparison.
    fn said(&self) -> BTreeSet<String> {
        let of_part = |part: &Part| match part {
            Part::Text(text) => format!("text {text}"),
            Part::Image { url, .. } => format!("image {url}"),
            Part::Opaque { json, .. } => format!("part {json}"),
        };
        let of_piece = |piece: &Piece| match piece {
            Piece::Part(part) => of_part(part),
            // A model does not see its earlier reasoning again.
            Piece::Thought(_) => String::new(),
            Piece::Call(call) => {
                let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap_or_default();
                format!("call {} {arguments}", call.name)
            }
            Piece::Answer(answer) => answer.parts.iter().map(of_part).collect(),
        };
        let pieces = self.entries.iter().flat_map(|entry| &entry.pieces);
        pieces.map(of_piece).filter(|said| !said.is_empty()).collect()
    }
}

/// The spans of one conversation, with the index of the longest.
struct Told {
    longest: usize,
    /// The content of the longest span.
    said: BTreeSet<String>,
}

/// Groups spans by conversation, the longest first.
fn told(spans: &[Span]) -> Vec<Told> {
    let mut order: Vec<usize> = (0..spans.len()).filter(|at| !spans[*at].entries.is_empty()).collect();
    // A span with less content follows the ones that may contain it, so one pass finds all groups.
    order.sort_by_cached_key(|at| std::cmp::Reverse((spans[*at].said().len(), spans[*at].start)));
    let mut all: Vec<Told> = Vec::new();
    for at in order {
        let said = spans[at].said();
        if !all.iter().any(|told| said.is_subset(&told.said)) {
            all.push(Told { longest: at, said });
        }
    }
    all
}

fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let mut reading = Reading::new(true);
    let (nodes, spans): (Vec<_>, Vec<_>) = span::all(node, &mut reading).ok()?.into_iter().unzip();
    let mut told = told(&spans);
    told.sort_by_key(|told| told.longest);
    // A file can be split only if each conversation is a value of its own.
    let several = told.len() > 1 && told.iter().all(|told| nodes[told.longest].is_some());
    let one = |told: &Told| Some((spans[told.longest].id.clone(), nodes[told.longest].clone()?));
    several.then(|| told.iter().filter_map(one).collect())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut spans: Vec<Span> = span::all(node, reading)?.into_iter().map(|(_, span)| span).collect();
    let told = told(&spans);
    let longest = match told.as_slice() {
        [] => return Err(node.fault("contains no messages: its writer did not capture their content")),
        [one] => one.longest,
        [first, second, ..] => {
            let (first, second) = (&spans[first.longest].path, &spans[second.longest].path);
            let detail = format!(
                "contains {} conversations, and no conversation includes the others (see `{first}` and `{second}`); expected one",
                told.len()
            );
            return Err(node.fault(detail));
        }
    };
    let ran: Vec<Answer> = spans.iter_mut().filter_map(|span| span.ran.take()).collect();
    let mut span = spans.swap_remove(longest);
    add_results(&mut span, ran);
    let mut talk =
        Talk { id: span.id, model: span.model, system: span.system, tools: span.tools, ..Talk::default() };
    talk.stated.max_completion_tokens = span.most;
    talk.steps = span.entries.into_iter().map(Step::Entry).collect();
    Ok(talk)
}

/// Adds the results of the last calls, which no later request repeats.
fn add_results(span: &mut Span, ran: Vec<Answer>) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for piece in span.entries.iter().flat_map(|entry| &entry.pieces) {
        match piece {
            Piece::Call(call) => open.extend(call.id.clone()),
            Piece::Answer(Answer { id: Some(id), .. }) => drop(open.remove(id)),
            _ => {}
        }
    }
    for answer in ran {
        // Several spans may record one execution. The first one closes the call.
        if answer.id.as_ref().is_some_and(|id| open.remove(id)) {
            let pieces = vec![Piece::Answer(answer)];
            span.entries.push(Entry::new(Role::Tool, pieces));
        }
    }
}
