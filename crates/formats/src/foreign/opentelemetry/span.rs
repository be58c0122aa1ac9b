//! Spans and events in the output of an exporter, and their attributes.

use super::{
    Answer, Fault, Node, Piece, Reading, Span, events, flat, messages,
    value::{get, plain},
};
use crate::{foreign::node::Fields, scan};
use context_window::Part;
use std::collections::BTreeMap;

/// A span, and its value if that is a value of its own.
type Found<'a> = (Option<Node<'a>>, Span);

/// Returns the spans of a file. The events of one span form a span too.
pub(super) fn all<'a>(node: &Node<'a>, reading: &mut Reading) -> Result<Vec<Found<'a>>, Fault> {
    let mut search = Search::default();
    search.value(node, reading)?;
    let Search { mut spans, events } = search;
    let mut groups: Vec<Vec<events::Event>> = Vec::new();
    let mut by_span: BTreeMap<String, usize> = BTreeMap::new();
    for event in events {
        let group = *by_span.entry(event.span.clone()).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(event);
    }
    for events in groups {
        spans.push((None, events::span(events, of_attributes, reading)?));
    }
    Ok(spans)
}

/// Keys of OTLP that contain spans or events.
const AROUND: [&str; 7] = [
    "resourceSpans",
    "resourceLogs",
    "scopeSpans",
    "scopeLogs",
    "instrumentationLibrarySpans",
    "spans",
    "logRecords",
];

#[derive(Default)]
struct Search<'a> {
    spans: Vec<Found<'a>>,
    events: Vec<events::Event>,
}

impl<'a> Search<'a> {
    fn value(&mut self, node: &Node<'a>, reading: &mut Reading) -> Result<(), Fault> {
        node.check_depth()?;
        if node.is_list() {
            let all = node.list()?;
            let is_message =
                |node: &Node<'_>| node.object().is_ok_and(|fields| fields.has("role") && fields.has("parts"));
            if all.iter().any(is_message) {
                let entries = messages::list(node, reading)?;
                self.spans.push((None, Span { entries, ..Span::default() }));
                return Ok(());
            }
            reading.each(all, |node, reading| self.value(node, reading))?;
            return Ok(());
        }
        let fields = node.object()?;
        if AROUND.iter().any(|key| fields.has(key)) {
            for list in AROUND.iter().filter_map(|key| fields.get(key)) {
                reading.each(list.list()?, |node, reading| self.value(node, reading))?;
            }
            fields.ignore(&["resource", "scope", "instrumentationLibrary", "schemaUrl"]);
            return fields.finish(reading);
        }
        if let Some(event) = events::Event::read(&fields)? {
            self.events.push(event);
            return Ok(());
        }
        if let Some(attributes) = fields.get("attributes") {
            let start = fields.first(&["startTimeUnixNano", "start_time", "startTime"]);
            let known = [
                "name",
                "kind",
                "status",
                "links",
                "resource",
                "scope",
                "context",
                "instrumentationScope",
                "parent_id",
                "traceState",
                "droppedAttributesCount",
                "droppedEventsCount",
                "droppedLinksCount",
                "flags",
            ];
            fields.ignore(&known);
            let mut span = of_attributes(&attributes, reading)?;
            span.start = start.map(|start| time(&start)).unwrap_or_default();
            let own = fields.get("events").map(|events| events.list()).transpose()?.unwrap_or_default();
            let own = reading.each(own, |node, _| events::Event::of_span(node))?;
            let mut told = events::span(own, of_attributes, reading)?;
            fields.finish(reading)?;
            // Messages may be in attributes or in events. If both have some, they are compared like two
            // spans.
            if span.entries.is_empty() {
                span.entries = std::mem::take(&mut told.entries);
            }
            node.path().clone_into(&mut span.path);
            self.spans.push((Some(node.clone()), span));
            self.spans.push((None, told));
            return Ok(());
        }
        if let Some(list) = fields.get("messages") {
            fields.finish(reading)?;
            return self.value(&list, reading);
        }
        self.spans.push((Some(node.clone()), of_attributes(node, reading)?));
        Ok(())
    }
}

/// Returns a number that grows with time: nanoseconds, or the digits of a date.
fn time(node: &Node<'_>) -> u64 {
    let digits: String = node.json().chars().filter(char::is_ascii_digit).take(18).collect();
    digits.parse().unwrap_or_default()
}

/// Reads attributes. Their values are JSON, or strings that contain JSON.
pub(super) fn of_attributes(node: &Node<'_>, reading: &mut Reading) -> Result<Span, Fault> {
    let plain = plain(node)?;
    let node = Node::at(&plain, node.path());
    let fields = node.object()?;
    let mut span = Span { path: node.path().to_owned(), ..Span::default() };
    span.model = fields
        .first(&["gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name"])
        .and_then(|model| model.text().ok());
    span.most = fields.get("gen_ai.request.max_tokens").and_then(|most| most.number());
    span.id = fields.name("gen_ai.conversation.id")?;
    if let Some(system) = get(&fields, "gen_ai.system_instructions") {
        let pieces = messages::parts(&system.node(), reading)?;
        let texts = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Part(Part::Text(text)) => Some(text),
            _ => None,
        });
        span.system = texts.collect();
    }
    if let Some(tools) = get(&fields, "gen_ai.tool.definitions") {
        span.tools = messages::tools(&tools.node(), reading)?;
    }
    for key in ["gen_ai.input.messages", "pydantic_ai.all_messages"] {
        if let Some(list) = get(&fields, key) {
            span.entries.extend(messages::list(&list.node(), reading)?);
        }
    }
    if let Some(list) = get(&fields, "gen_ai.output.messages") {
        let mut choices = messages::list(&list.node(), reading)?.into_iter();
        // Only the first choice of a reply continues the conversation.
        span.entries.extend(choices.next());
        let others = choices.count();
        if others > 0 {
            reading.note(format!("{others} other choices of one reply are left out"));
        }
    }
    for key in ["all_messages_events", "events"] {
        if let Some(list) = get(&fields, key) {
            let all = reading.each(list.node().list()?, |node, _| {
                events::Event::read(&node.object()?)?.ok_or_else(|| node.fault("is not a known event"))
            })?;
            span.entries.extend(events::span(all, of_attributes, reading)?.entries);
        }
    }
    flat::read(&fields, &mut span, reading)?;
    span.ran = ran(&fields)?;
    // A span without these attributes is not about a model, so its other attributes are not checked.
    let is_of_model = fields.names().any(is_own);
    for (key, unread) in fields.unread().filter(|(key, _)| is_of_model && !is_beside(key)) {
        let Some(found) = scan::find_any(unread.json()) else { continue };
        if is_own(key) {
            reading
                .leave(node.fault(format!("has `{key}`, which is unknown and contains {}", found.name)))?;
        } else {
            reading.note_once("attributes that belong to no convention for generative AI are left out");
        }
    }
    Ok(span)
}

/// Checks whether an attribute belongs to these conventions, even if its name is misspelt.
fn is_own(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("gen_ai") || key.starts_with("llm.")
}

/// Checks whether an attribute repeats others, or is not part of a conversation.
fn is_beside(key: &str) -> bool {
    const STARTS: [&str; 6] =
        ["logfire.", "traceloop.", "input.", "output.", "gen_ai.usage.", "gen_ai.retrieval."];
    const KEYS: [&str; 7] = [
        "model_request_parameters",
        "final_result",
        "openai_agents.span_data",
        "llm.invocation_parameters",
        "gen_ai.agent.description",
        "gen_ai.agent.name",
        "gen_ai.request.stop_sequences",
    ];
    KEYS.contains(&key) || STARTS.iter().any(|start| key.starts_with(start))
}

/// Reads the result of a tool execution.
fn ran(fields: &Fields<'_>) -> Result<Option<Answer>, Fault> {
    let id = fields.name("gen_ai.tool.call.id")?;
    let name = fields.text("gen_ai.tool.name")?;
    fields.ignore(&["gen_ai.tool.call.arguments", "tool_arguments", "gen_ai.tool.description"]);
    let result = fields.first(&["gen_ai.tool.call.result", "tool_response"]);
    let is_failed = fields.has("error.type");
    Ok(result.map(|result| Answer::text(id, name, result.text_or_json()).failed(is_failed)))
}
