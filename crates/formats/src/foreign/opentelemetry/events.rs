//! Events of the conventions before 1.37, one per message: `gen_ai.user.message`, `gen_ai.choice`, and
//! others.

use super::{Answer, Entry, Fault, Node, Piece, Reading, Span, messages, value};
use crate::{
    foreign::{calls, node::Fields, talk::usual_piece},
    scan,
};
use context_window::{Part, Role};

/// An event with its body, which contains its fields.
pub(super) struct Event {
    /// The id of its span. Empty if there is none.
    pub(super) span: String,
    name: String,
    body: String,
    path: String,
}

impl Event {
    /// Reads a log record, or an object that is an event itself. Returns `None` for any other value.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Self>, Fault> {
        let attributes = fields.get("attributes");
        let plain = attributes.as_ref().map(value::plain).transpose()?.unwrap_or_else(|| "{}".into());
        let inner = Node::at(&plain, fields.node().path()).object()?;
        let own = fields.first(&["eventName", "event_name", "event.name"]);
        let Some(name) = own.or_else(|| inner.get("event.name")) else { return Ok(None) };
        let name = name.text()?;
        let id =
            fields.first(&["spanId", "span_id", "traceId", "trace_id"]).map(|id| id.name()).transpose()?;
        let is_record = fields.has("body") || fields.has("attributes");
        let body = match fields.get("body") {
            Some(body)
                if body.object().is_ok_and(|body| body.has("kvlistValue") || body.has("stringValue")) =>
            {
                value::any_value(&body)?.to_string()
            }
            Some(body) => body.json().to_owned(),
            // In some records, the attributes are the fields of the event.
            None if is_record => plain.clone(),
            None => fields.node().json().to_owned(),
        };
        if is_record {
            fields.ignore(&["resource", "scope", "instrumentationScope", "trace_id", "traceId"]);
            fields.finish(&mut Reading::default())?;
        }
        // The request of this event is in its attributes, not in its body.
        let is_of_details = name == DETAILS;
        Ok(Some(Self {
            span: id.unwrap_or_default(),
            body: if is_of_details { plain.clone() } else { body },
            name,
            path: fields.node().path().to_owned(),
        }))
    }

    /// Reads an event of a span. Its fields are its attributes, or JSON in a string among them.
    pub(super) fn of_span(node: &Node<'_>) -> Result<Self, Fault> {
        let fields = node.object()?;
        let name = fields.need("name")?.text()?;
        let plain = fields.get("attributes").map(|own| value::plain(&own)).transpose()?;
        let plain = plain.unwrap_or_else(|| "{}".into());
        let inner = Node::at(&plain, node.path()).object()?;
        let content = inner.text("gen_ai.event.content")?;
        Ok(Self { span: String::new(), name, body: content.unwrap_or(plain), path: node.path().to_owned() })
    }
}

/// The name of the event with a whole request as attributes.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

/// A function that reads attributes, which may contain events again.
pub(super) type Attributes = fn(&Node<'_>, &mut Reading) -> Result<Span, Fault>;

/// Reads the events of one span.
pub(super) fn span(events: Vec<Event>, attributes: Attributes, reading: &mut Reading) -> Result<Span, Fault> {
    let mut all = Span::default();
    for event in events {
        let node = Node::at(&event.body, &event.path);
        if event.name == DETAILS {
            let own = attributes(&node, reading)?;
            all = Span { entries: [all.entries, own.entries].into_iter().flatten().collect(), ..own };
            continue;
        }
        let entries = entries(&event.name, &node, reading);
        match entries {
            Ok(entries) => all.entries.extend(entries),
            Err(fault) => reading.leave(fault)?,
        }
        if all.path.is_empty() {
            all.path = event.path;
        }
    }
    Ok(all)
}

fn entries(name: &str, node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Entry>, Fault> {
    let role = match name {
        "gen_ai.system.message" | "gen_ai.system.instruction" => Role::System,
        "gen_ai.user.message" => Role::User,
        "gen_ai.assistant.message" => Role::Assistant,
        "gen_ai.tool.message" => Role::Tool,
        "gen_ai.choice" => {
            let fields = node.object()?;
            let Some(inner) = fields.get("message") else {
                return Ok(vec![message(&fields, Role::Assistant, reading)?]);
            };
            if fields.get("index").is_some_and(|index| index.json() != "0") {
                reading.note_once("other choices of a reply are left out");
                return Ok(Vec::new());
            }
            if inner.is_text() {
                let text = inner.text()?;
                // Some writers put the object into a string.
                return if text.starts_with('{') {
                    Ok(vec![message(&Node::at(&text, inner.path()).object()?, Role::Assistant, reading)?])
                } else {
                    Ok(vec![Entry::new(Role::Assistant, vec![Piece::text(text)])])
                };
            }
            return Ok(vec![message(&inner.object()?, Role::Assistant, reading)?]);
        }
        "gen_ai.content.prompt" | "gen_ai.content.completion" => {
            let fields = node.object()?;
            let list =
                value::get(&fields, "gen_ai.prompt").or_else(|| value::get(&fields, "gen_ai.completion"));
            let list = list.ok_or_else(|| node.fault("has no content"))?;
            return reading
                .each(list.node().list()?, |node, reading| message(&node.object()?, Role::User, reading));
        }
        _ if scan::find_part(node.json()).is_some() => {
            return Err(node.fault(format!("is an unknown event `{name}` that contains text")));
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![message(&node.object()?, role, reading)?])
}

/// Reads a message in the form of `OpenAI` Chat, with a few additional keys of events.
pub(super) fn message(fields: &Fields<'_>, role: Role, reading: &mut Reading) -> Result<Entry, Fault> {
    fields.ignore(&["event.name", "gen_ai.system", "gen_ai.message.index", "index", "finish_reason", "name"]);
    fields.ignore(&["gen_ai.provider.name", "event_name", "refusal", "annotations", "audio"]);
    let role = fields.get("role").map_or(Ok(role), |role| messages::role(&role))?;
    let content = fields.first(&["content", "text", "gen_ai.event.content"]);
    let mut pieces = match content {
        Some(content) if content.is_list() => parts(&content, reading)?,
        Some(content) if content.is_text() => {
            let text = content.text()?;
            let inner = Node::at(&text, content.path());
            let is_parts = inner.is_list() && inner.list().is_ok_and(|all| all.iter().all(is_part));
            match is_parts {
                true => parts(&inner, reading)?,
                false if text.is_empty() => Vec::new(),
                false => vec![Piece::text(text)],
            }
        }
        Some(content) => vec![Piece::text(content.compact())],
        None => Vec::new(),
    };
    calls::add(&mut pieces, calls::list(fields.get("tool_calls"))?)?;
    let id = fields.first(&["tool_call_id", "id"]).map(|id| id.name()).transpose()?;
    if role == Role::Tool {
        let parts: Vec<Part> = crate::foreign::parts_of(fields.node(), pieces)?;
        pieces = vec![Piece::Answer(Answer { id, parts, ..Answer::default() })];
    }
    fields.finish(reading)?;
    if pieces.is_empty() {
        return Err(fields.node().fault("has no content: its writer did not capture it"));
    }
    Ok(Entry::new(role, pieces))
}

fn is_part(node: &Node<'_>) -> bool {
    node.object().is_ok_and(|fields| fields.has("type"))
}

fn parts(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    reading.each(node.list()?, |node, reading| {
        usual_piece(node, reading)?.ok_or_else(|| node.fault("is not a known part"))
    })
}
