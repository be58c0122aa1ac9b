//! Chat messages of Haystack. The key of a part names its kind (`text`, `tool_call`, `tool_call_result`,
//! ...). The parts are in `content`, or from 2.9 to 2.11 in `_content`. Before 2.9, `content` was a string.

use super::{
    FormatReader, calls, media,
    media::Source,
    node::{Fault, Fields, Node, Reading},
    shape::Shape,
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments},
};
use crate::format::FileFormat;
use crate::scan;
use context_window::{Role, WireFormat, message::Reasoning};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Haystack, fits, read);

/// Keys that identify a part.
const PARTS: [&str; 11] = [
    "text",
    "tool_call",
    "tool_call_result",
    "reasoning",
    "image",
    "file",
    "tool_name",
    "origin",
    "reasoning_text",
    "base64_image",
    "base64_data",
];

fn fits(shape: &Shape) -> bool {
    let is_part =
        |part: &Value| part.get("type").is_none() && PARTS.iter().any(|key| part.get(*key).is_some());
    let is_message = |message: &Value| {
        let meta = message.get("meta").is_some_and(Value::is_object);
        let parts = message.get("content").and_then(Value::as_array);
        let is_old = message.get("content").is_some_and(Value::is_string) && message.get("name").is_some();
        meta && (is_old || parts.is_some_and(|parts| parts.iter().any(is_part)))
            || message.get("_role").is_some() && message.get("_content").is_some()
    };
    shape.has("serialized_data") || shape.messages.iter().any(is_message)
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut history = History::default();
    let messages = messages(node, reading)?;
    let entries = reading.each(messages, |node, reading| history.message(node, reading))?;
    // A result repeats its call. The comparison waits until all calls are known.
    for (id, call, fault) in history.origins {
        if history.calls.get(&id).is_some_and(|own| *own != call) {
            reading.leave(fault)?;
        }
    }
    let steps = entries.into_iter().map(Step::Entry).collect();
    Ok(Talk { model: history.model, steps, ..Talk::default() })
}

/// Returns the messages of a list, or of a state that contains one.
fn messages<'a>(node: &Node<'a>, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    node.check_depth()?;
    if node.is_list() {
        return node.list();
    }
    let fields = node.object()?;
    if let Some(inner) = fields.get("serialized_data") {
        fields.ignore(&["serialization_schema"]);
        fields.finish(reading)?;
        return messages(&inner, reading);
    }
    let list = fields.need("messages")?.list()?;
    for key in fields.names().filter(|key| *key != "messages") {
        let value = fields.peek(key).map(Node::json).unwrap_or_default();
        if scan::holds_messages(value) || scan::find_call(value).is_some() {
            reading.leave(
                node.fault(format!(
                    "has messages under `{key}` too; expected messages only under `messages`"
                )),
            )?;
        } else if scan::find_any(value).is_some() {
            reading.note(format!("`{key}` of the state is left out: it is not a message"));
        }
    }
    Ok(list)
}

/// The data of earlier messages that later ones need.
#[derive(Default)]
struct History {
    model: Option<String>,
    /// The calls by their ids: name and arguments.
    calls: BTreeMap<String, (String, Value)>,
    /// The calls that results repeat: the id, the call, and the error if it differs.
    origins: Vec<(String, (String, Value), Fault)>,
    /// The generated ids of calls without an id, until they are answered.
    open: Vec<String>,
}

impl History {
    fn message(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Entry, Fault> {
        let fields = node.object()?;
        let role = role(&fields)?;
        // In a tool message, the name is that of the tool and not of a participant.
        let name = fields.first(&["name", "_name"]).map(|name| name.text()).transpose()?;
        let meta = fields.first(&["meta", "_meta"]).as_ref().map(Node::object).transpose()?;
        let meta_text = |key: &'static str| meta.as_ref().and_then(|meta| meta.text(key).ok()?);
        self.model = meta_text("model").or(self.model.take());
        let content = fields.first(&["content", "_content"]).ok_or_else(|| node.fault("has no `content`"))?;
        let mut pieces = if content.is_text() {
            let text = content.text()?;
            match meta_text("finish_reason").as_deref() {
                // Before 2.9, the text of a message with calls was the JSON of the calls.
                Some("tool_calls" | "function_call") if text.starts_with('[') => {
                    let inner = Node::at(&text, content.path());
                    calls::list(Some(inner))?.into_iter().map(|(_, call)| Piece::Call(call)).collect()
                }
                _ => vec![Piece::text(text)],
            }
        } else {
            reading.each(content.list()?, |node, reading| self.part(node, reading))?
        };
        let is_answer = |piece: &Piece| matches!(piece, Piece::Answer(_));
        if role == Role::Tool && !pieces.iter().any(is_answer) {
            let parts = super::parts_of(node, pieces)?;
            let id = meta_text("tool_call_id");
            pieces = vec![Piece::Answer(Answer { id, name: name.clone(), parts, is_failed: false })];
        }
        fields.finish(reading)?;
        Ok(Entry::new(role, pieces).with_name(name.filter(|_| role != Role::Tool)))
    }

    /// Reads a part: a string, or an object under the key of its kind. A dump by Pydantic omits that key.
    fn part(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Piece, Fault> {
        let outside = node.object()?;
        let kind = ["tool_call", "tool_call_result", "reasoning", "image", "file"];
        let inner = kind.into_iter().find_map(|key| Some((key, outside.get(key)?)));
        let (kind, fields) = match inner {
            Some((kind, inner)) => (kind, inner.object()?),
            None => {
                let own = node.object()?;
                let kind = match () {
                    () if own.has("text") => "text",
                    () if own.has("tool_name") => "tool_call",
                    () if own.has("origin") => "tool_call_result",
                    () if own.has("reasoning_text") => "reasoning",
                    () if own.has("base64_image") => "image",
                    () if own.has("base64_data") => "file",
                    () => return Err(node.fault("is not a known part of Haystack")),
                };
                (kind, own)
            }
        };
        fields.ignore(&["meta", "validation"]);
        let piece = match kind {
            "text" => Piece::text(fields.need("text")?.text()?),
            "tool_call" => Piece::Call(self.call(&fields)?),
            "tool_call_result" => Piece::Answer(self.answer(&fields, reading)?),
            "reasoning" => thought(&fields)?,
            _ => file(&fields, kind)?,
        };
        fields.finish(reading)?;
        // An inner object has fields of its own, so the outer object is checked too.
        if fields.node().path() != node.path() {
            outside.finish(reading)?;
        }
        Ok(piece)
    }

    fn call(&mut self, fields: &Fields<'_>) -> Result<Call, Fault> {
        fields.ignore(&["extra"]);
        let name = fields.need("tool_name")?.text()?;
        let given = arguments(Some(fields.need("arguments")?));
        let id = match fields.name("id")? {
            Some(id) => id,
            None => {
                let id = format!("call_{}", self.calls.len());
                self.open.push(id.clone());
                id
            }
        };
        self.calls.insert(id.clone(), (name.clone(), serde_json::from_str(&given).unwrap_or_default()));
        Ok(Call { id: Some(id), name, arguments: given, signature: None })
    }

    /// Reads a result. If its call has no id, it is matched by tool and arguments.
    fn answer(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
        let origin = fields.need("origin")?.object()?;
        origin.ignore(&["extra"]);
        let name = origin.need("tool_name")?.text()?;
        let given = arguments(origin.get("arguments"));
        let call = (name.clone(), serde_json::from_str(&given).unwrap_or_default());
        let made = self.open.iter().position(|id| self.calls.get(id) == Some(&call));
        let made = made.map(|at| self.open.remove(at));
        // A result without a known call must not answer another call of the same tool.
        let id = origin.name("id")?.or(made).or_else(|| Some(format!("call_of_{name}")));
        let again = origin.node().fault("differs from the tool call with the same id");
        self.origins.extend(id.clone().map(|id| (id, call, again)));
        origin.finish(reading)?;
        let result = fields.need("result")?;
        let parts = if result.is_list() {
            let pieces = reading.each(result.list()?, |node, reading| self.part(node, reading))?;
            super::parts_of(fields.node(), pieces)?
        } else {
            vec![context_window::Part::Text(result.text_or_json())]
        };
        Ok(Answer { id, name: Some(name), parts, is_failed: fields.is_true("error") })
    }
}

fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let role = fields.first(&["role", "_role"]).ok_or_else(|| fields.node().fault("has no `role`"))?;
    Ok(match &*role.text()? {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(role.unknown("is not a role of Haystack")),
    })
}

fn thought(fields: &Fields<'_>) -> Result<Piece, Fault> {
    let text = fields.need("reasoning_text")?.text()?;
    let extra = match fields.get("extra") {
        Some(extra) => extra.object()?,
        None => Node::root("{}").object()?,
    };
    let id = extra.name("id")?;
    Ok(Piece::Thought(match (extra.text("signature")?, extra.text("encrypted_content")?) {
        (Some(signature), _) => Reasoning::signed(WireFormat::Anthropic, text, signature),
        (None, Some(encrypted)) => {
            let sealed = Reasoning::signed(WireFormat::OpenAiResponses, text, encrypted);
            id.into_iter().fold(sealed, Reasoning::with_id)
        }
        (None, None) => Reasoning::text(text),
    }))
}

fn file(fields: &Fields<'_>, kind: &str) -> Result<Piece, Fault> {
    fields.ignore(&["extra", "detail"]);
    let data =
        fields.first(&["base64_image", "base64_data"]).ok_or_else(|| fields.node().fault("has no data"))?;
    let text = data.text()?;
    if text.contains(' ') {
        return Err(data.fault("is not base64: a trace contains the size of a file, but not its data"));
    }
    let media_type = fields.text("mime_type")?;
    let media_type = media_type.unwrap_or_else(|| match kind {
        "image" => media::image_type(&text).to_owned(),
        _ => "application/pdf".to_owned(),
    });
    media::known_part(&media_type, Source::Data(text), fields.text("filename")?.as_deref())
        .map(Piece::Part)
        .ok_or_else(|| {
            fields.node().fault(format!("is a file of the type `{media_type}`, which is not read"))
        })
}
