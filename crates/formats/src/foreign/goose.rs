//! Sessions of goose: an export, a list of messages, or JSON lines after a header.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments, data_url},
};
use crate::{format::FileFormat, session::unread::Unread};
use context_window::{Part, Role, WireFormat, message::Reasoning};
use std::collections::BTreeSet;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Goose, fits, read);

/// Types of content that no other tool has.
const OWN: [&str; 10] = [
    "toolRequest",
    "toolResponse",
    "toolConfirmationRequest",
    "frontendToolRequest",
    "actionRequired",
    "redactedThinking",
    "systemNotification",
    "contextLengthExceeded",
    "summarizationRequested",
    "conversationCompacted",
];

fn fits(shape: &Shape) -> bool {
    let is_marked = |message: &serde_json::Value| {
        message.get("metadata").is_some_and(|about| about.get("agentVisible").is_some())
    };
    let is_header = |line: &serde_json::Value| {
        let is_session = line.get("role").is_some() || line.get("conversation").is_some();
        line.get("working_dir").is_some() && line.get("message_count").is_some() && !is_session
    };
    shape.any_part("content", |part| OWN.contains(&text(part, "type")))
        || shape.messages.iter().any(is_marked)
        || shape.messages.first().is_some_and(is_header)
        || shape.container == "conversation" && shape.has("working_dir")
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut goose = Goose::default();
    let messages = if node.is_list() {
        let mut lines = node.list()?;
        // In JSON lines, the first line is a header with the keys of the session.
        if let Some(first) = lines.first().map(Node::object).transpose()?
            && !first.has("role")
            && !first.has("content")
        {
            goose.session(&first, reading)?;
            lines.remove(0);
        }
        lines
    } else {
        let fields = node.object()?;
        let messages = fields.first(&["conversation", "messages"]).map(|all| all.list()).transpose()?;
        goose.session(&fields, reading)?;
        messages.unwrap_or_default()
    };
    let entries = reading.each(messages, |node, reading| goose.message(node, reading))?;
    goose.talk.steps = entries.into_iter().flatten().map(Step::Entry).collect();
    goose.notes(reading);
    Ok(goose.talk)
}

#[derive(Default)]
struct Goose {
    talk: Talk,
    hidden: usize,
    hidden_parts: usize,
    /// The ids of calls that goose itself could not parse.
    broken: BTreeSet<String>,
    /// Counts of content that is shown on the screen only.
    aside: Unread,
}

impl Goose {
    /// Reads the keys around the messages.
    fn session(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<(), Fault> {
        fields.ignore(&["name", "description", "working_dir", "extension_data", "user_recipe_values"]);
        self.talk.id = fields.name("id")?;
        if let Some(config) = fields.get("model_config") {
            let config = config.object()?;
            self.talk.model = config.text("model_name")?;
            self.talk.stated.model_context_len = config.get("context_limit").and_then(|limit| limit.number());
            self.talk.stated.max_completion_tokens = config.get("max_tokens").and_then(|most| most.number());
            config.ignore_all();
        }
        // The instructions of a recipe are part of the system text.
        if let Some(recipe) = fields.get("recipe") {
            let recipe = recipe.object()?;
            self.talk.system.extend(recipe.text("instructions")?);
            recipe.ignore_all();
        }
        fields.finish(reading)
    }

    /// Reads a message. Returns `None` for a message that is not sent to the model.
    fn message(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Entry>, Fault> {
        let fields = node.object()?;
        if let Some(about) = fields.get("metadata") {
            let about = about.object()?;
            let visible = about.get("agentVisible");
            about.ignore(&["userVisible"]);
            about.finish(reading)?;
            if visible.is_some_and(|visible| visible.json() == "false") {
                self.hidden += 1;
                return Ok(None);
            }
        }
        fields.ignore(&["created"]);
        let role = fields.need("role")?;
        let role = match &*role.text()? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(role.unknown("is not a role of goose; expected user or assistant")),
        };
        let id = fields.name("id")?;
        let content = fields.need("content")?.list()?;
        let pieces = reading.each(content, |node, reading| self.piece(node, reading))?;
        let pieces: Vec<Piece> = pieces.into_iter().flatten().collect();
        fields.finish(reading)?;
        let entry = Entry::new(role, pieces).with_id(id);
        Ok(Some(entry).filter(|entry| !entry.pieces.is_empty()))
    }

    fn piece(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
        let fields = node.object()?;
        let kind = fields.need("type")?;
        let piece = match &*kind.text()? {
            // `mcp` checks all keys itself.
            "text" | "image" => return Ok(self.mcp(node, reading)?.map(Piece::Part)),
            "thinking" => {
                let thought = fields.need("thinking")?.text()?;
                let signature = fields.text("signature")?.filter(|signature| !signature.is_empty());
                Some(Piece::Thought(match signature {
                    Some(signature) => Reasoning::signed(WireFormat::Anthropic, thought, signature),
                    None => Reasoning::text(thought),
                }))
            }
            "redactedThinking" => {
                let data = fields.need("data")?.text()?;
                Some(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, "", data).into_redacted()))
            }
            "reasoning" => Piece::thought(fields.need("text")?.text()?),
            "toolRequest" | "frontendToolRequest" => self.call(&fields, reading)?.map(Piece::Call),
            "toolResponse" => self.answer(&fields, reading)?.map(Piece::Answer),
            aside @ ("toolConfirmationRequest"
            | "actionRequired"
            | "systemNotification"
            | "jsonRenderSpec"
            | "contextLengthExceeded"
            | "summarizationRequested"
            | "conversationCompacted") => {
                self.aside.count(aside);
                return Ok(None);
            }
            _ => return Err(kind.unknown("is not known content of goose")),
        };
        fields.finish(reading)?;
        Ok(piece)
    }

    fn call(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<Option<Call>, Fault> {
        fields.ignore(&["_meta", "toolMeta"]);
        let id = fields.name("id")?;
        let about = fields.get("metadata").and_then(|about| about.as_object());
        let signature = fields.text("thoughtSignature")?;
        let signature = signature.or_else(|| about?.text("thoughtSignature"));
        let outcome = fields.need("toolCall")?.object()?;
        match &*outcome.need("status")?.text()? {
            "success" => {
                let value = outcome.need("value")?.object()?;
                value.ignore(&["_meta", "meta", "task"]);
                let name = value.need("name")?.text()?;
                let call = Call { id, name, arguments: arguments(value.get("arguments")), signature };
                value.finish(reading)?;
                outcome.finish(reading)?;
                Ok(Some(call))
            }
            "error" => {
                outcome.ignore(&["error"]);
                outcome.finish(reading)?;
                self.broken.extend(id);
                Ok(None)
            }
            _ => Err(outcome.need("status")?.unknown("is not a status of goose; expected success or error")),
        }
    }

    fn answer(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<Option<Answer>, Fault> {
        fields.ignore(&["metadata"]);
        let id = fields.name("id")?;
        let outcome = fields.need("toolResult")?.object()?;
        let answer = match &*outcome.need("status")?.text()? {
            "success" => {
                let value = outcome.need("value")?;
                let mut answer = Answer { id, ..Answer::default() };
                let mut structured = None;
                let content = if value.is_list() {
                    value.list()?
                } else {
                    let value = value.object()?;
                    value.ignore(&["_meta", "meta"]);
                    structured = value.get("structuredContent");
                    answer.is_failed = value.is_true("isError");
                    let content = value.get("content").map(|content| content.list()).transpose()?;
                    value.finish(reading)?;
                    content.unwrap_or_default()
                };
                let is_empty = content.is_empty();
                let parts = reading.each(content, |node, reading| self.mcp(node, reading))?;
                answer.parts = parts.into_iter().flatten().collect();
                // Servers repeat this value in their texts, so it is used only without texts.
                let structured = structured.filter(|_| is_empty);
                answer.parts.extend(structured.map(|structured| Part::Text(structured.compact())));
                answer
            }
            "error" => Answer::text(id, None, outcome.need("error")?.text()?).failed(true),
            _ => {
                return Err(outcome
                    .need("status")?
                    .unknown("is not a status of goose; expected success or error"));
            }
        };
        outcome.finish(reading)?;
        // The call was omitted, so its result would have no call.
        let is_broken = answer.id.as_ref().is_some_and(|id| self.broken.contains(id));
        Ok(Some(answer).filter(|_| !is_broken))
    }

    /// Reads MCP content. Returns `None` for content that is not for the model.
    fn mcp(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Part>, Fault> {
        let fields = node.object()?;
        fields.ignore(&["_meta", "meta"]);
        if let Some(about) = fields.get("annotations")
            && let Some(audience) = about.object()?.get("audience")
            && !audience.list()?.iter().any(|who| who.json() == "\"assistant\"")
        {
            self.hidden_parts += 1;
            return Ok(None);
        }
        let kind = fields.need("type")?;
        let part = match &*kind.text()? {
            "text" => Part::Text(fields.need("text")?.text()?),
            "image" => {
                let url = data_url(&fields.need("mimeType")?.text()?, &fields.need("data")?.text()?);
                Part::Image { url, detail: None }
            }
            "resource" => {
                let resource = fields.need("resource")?.object()?;
                resource.ignore(&["uri", "mimeType", "_meta", "meta"]);
                let text = Part::Text(resource.need("text")?.text()?);
                resource.finish(reading)?;
                text
            }
            "resource_link" => {
                fields.ignore(&["title", "description", "mimeType", "size", "icons"]);
                let name = fields.text("name")?.unwrap_or_default();
                Part::Text(format!("{name} {}", fields.need("uri")?.text()?).trim().to_owned())
            }
            _ => {
                return Err(kind.unknown("is not known content; expected a text, an image or a resource"));
            }
        };
        fields.finish(reading)?;
        Ok(Some(part))
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.hidden,
            "message is hidden from the model (agentVisible: false): it is left out",
            "messages are hidden from the model (agentVisible: false): they are left out",
        );
        reading.note_count(
            self.hidden_parts,
            "part is only for the user: it is left out",
            "parts are only for the user: they are left out",
        );
        reading.note_count(
            self.broken.len(),
            "call could not be read by goose: it and its result are left out",
            "calls could not be read by goose: they and their results are left out",
        );
        let aside = self.aside.note(
            "content is not sent to the model and is left out",
            "contents are not sent to the model and are left out",
        );
        reading.notes.extend(aside);
    }
}
