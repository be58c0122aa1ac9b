//! Exports of `ChatGPT`: conversations as trees of messages, of which the current branch is read. Calls have
//! no ids, so a tool message answers the call before it.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::Shape,
    talk::{Answer, Call, Entry, Piece, Step, Talk},
};
use crate::{format::FileFormat, session::unread::Unread};
use context_window::{Part, Role};
use serde_json::json;

mod branch;
mod content;

use branch::branch;
use content::{Said, text};

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::ChatGpt, fits, read).with_conversations(conversations);

fn fits(shape: &Shape) -> bool {
    // A line of a file is a whole conversation.
    let is_chat = |chat: &serde_json::Value| {
        chat.get("mapping").is_some_and(serde_json::Value::is_object) && chat.get("role").is_none()
    };
    !shape.is_lines && (shape.has("mapping") || shape.messages.iter().any(is_chat))
}

fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let named = |node: Node<'a>| {
        let object = node.as_object();
        let id = object.and_then(|object| object.text("conversation_id").or_else(|| object.text("id")));
        (id, node)
    };
    Some(node.list().ok()?.into_iter().map(named).collect())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let node = &node.only("conversations")?;
    let fields = node.object()?;
    fields.ignore(&["title", "gizmo_id", "safe_urls", "moderation_results", "plugin_ids"]);
    let mut chat = Chat::default();
    let id = fields.name("id")?;
    chat.talk.id = fields.name("conversation_id")?.or(id);
    chat.talk.model = fields.text("default_model_slug")?.filter(|name| name != "auto");
    let branch = branch(&fields, reading)?;
    fields.finish(reading)?;
    for node in branch {
        match chat.message(&node, reading) {
            Ok(()) => {}
            Err(fault) => reading.leave(fault)?,
        }
    }
    chat.thought();
    chat.talk.steps = chat.entries.drain(..).map(Step::Entry).collect();
    chat.notes(reading);
    Ok(chat.talk)
}

#[derive(Default)]
struct Chat {
    talk: Talk,
    entries: Vec<Entry>,
    /// Reasoning that belongs to the next assistant text.
    thoughts: Vec<Piece>,
    /// The newest call: its id, its tool, and the index of its result's entry, if present.
    call: Option<(String, String, Option<usize>)>,
    calls: usize,
    hidden: usize,
    weightless: usize,
    files: usize,
    /// Counts of content that is shown on the screen only, or is not in the export.
    aside: Unread,
}

impl Chat {
    fn message(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        fields.ignore(&["create_time", "update_time", "status", "end_turn", "channel"]);
        let id = fields.name("id")?;
        let author = fields.need("author")?.object()?;
        author.ignore(&["metadata"]);
        let role = author.need("role")?;
        let name = author.text("name")?;
        author.finish(reading)?;
        let is_hidden = self.about(&fields)?;
        let is_weightless = fields.get("weight").is_some_and(|weight| matches!(weight.json(), "0" | "0.0"));
        let recipient = fields.text("recipient")?.filter(|to| to != "all");
        let content = fields.need("content")?.object()?;
        fields.finish(reading)?;
        let role = match &*role.text()? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "tool" => Role::Tool,
            _ => {
                return Err(
                    role.unknown("is not a role of ChatGPT; expected user, assistant, tool or system")
                );
            }
        };
        let said = self.content(&content, reading)?;
        content.finish(reading)?;
        let is_blank =
            said.parts.iter().all(|part| matches!(part, Part::Text(text) if text.trim().is_empty()));
        let is_answer = role == Role::Tool && self.is_called(name.as_deref());
        // A hidden result is read all the same, because its call must not lose its answer.
        if is_weightless || is_hidden && !is_answer {
            let count = if is_weightless { &mut self.weightless } else { &mut self.hidden };
            // A blank message loses nothing, so it is not counted.
            *count += usize::from(!is_blank);
            return Ok(());
        }
        match (role, recipient) {
            (Role::Assistant, Some(tool)) if !is_blank => self.called(id, tool, &said),
            (Role::Tool, _) => self.answered(id, name, said),
            (role, _) if !is_blank => {
                let mut pieces = Vec::new();
                if role == Role::Assistant {
                    pieces.append(&mut self.thoughts);
                } else {
                    self.thought();
                }
                // Any other message ends the exchange with the tool.
                self.call = None;
                pieces.extend(said.parts.into_iter().map(Piece::Part));
                self.entries.push(Entry::new(role, pieces).with_id(id));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the metadata of a message: its model and its files. Returns true if the message is hidden from
    /// the user.
    fn about(&mut self, fields: &Fields<'_>) -> Result<bool, Fault> {
        let Some(about) = fields.get("metadata") else { return Ok(false) };
        let about = about.object()?;
        self.talk.model = about.text("model_slug")?.or_else(|| self.talk.model.take());
        let files = about.get("attachments").map(|files| files.list()).transpose()?.unwrap_or_default();
        let kind = |file: &Node<'_>| file.as_object().and_then(|file| file.text("mime_type"));
        let is_image = |file: &&Node<'_>| kind(file).is_some_and(|kind| kind.starts_with("image/"));
        // An image is counted with its part.
        self.files += files.len() - files.iter().filter(is_image).count();
        Ok(about.is_true("is_visually_hidden_from_conversation"))
    }

    /// Adds a call. A text that is not a JSON object becomes the argument `code` or `text`.
    fn called(&mut self, id: Option<String>, tool: String, said: &Said) {
        let text: Vec<&str> = said.parts.iter().filter_map(text).collect();
        let text = text.join("\n");
        let is_json = Node::root(&text).as_object().is_some();
        let key = if said.is_code { "code" } else { "text" };
        let arguments = if is_json { text } else { json!({ key: text }).to_string() };
        let name = format!("call_{}", self.calls);
        self.calls += 1;
        self.call = Some((name.clone(), tool.clone(), None));
        let mut pieces = std::mem::take(&mut self.thoughts);
        pieces.push(Piece::Call(Call { id: Some(name), name: tool, arguments, signature: None }));
        self.entries.push(Entry::new(Role::Assistant, pieces).with_id(id));
    }

    /// Checks whether the newest call is one of this tool.
    fn is_called(&self, tool: Option<&str>) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let is_of = |called: &str| tool.is_none_or(|tool| short(tool) == short(called));
        self.call.as_ref().is_some_and(|(_, called, _)| is_of(called))
    }

    /// Adds a tool message: the result of the call before it, or more of that result. Without a call, it
    /// becomes a system message.
    fn answered(&mut self, id: Option<String>, tool: Option<String>, said: Said) {
        self.thought();
        if !self.is_called(tool.as_deref()) {
            let from = tool.map(|tool| Part::Text(format!("From {tool}:")));
            let pieces: Vec<Piece> = from.into_iter().chain(said.parts).map(Piece::Part).collect();
            if pieces.len() > 1 {
                self.entries.push(Entry::new(Role::System, pieces).with_id(id));
            }
            return;
        }
        let Some((call, _, place)) = &mut self.call else { return };
        if let Some(Piece::Answer(answer)) = place.and_then(|at| self.entries[at].pieces.first_mut()) {
            answer.parts.extend(said.parts);
            answer.is_failed |= said.is_failed;
            return;
        }
        *place = Some(self.entries.len());
        let answer =
            Answer { id: Some(call.clone()), name: None, parts: said.parts, is_failed: said.is_failed };
        self.entries.push(Entry::new(Role::Tool, vec![Piece::Answer(answer)]).with_id(id));
    }

    /// Adds reasoning that is not followed by an assistant text.
    fn thought(&mut self) {
        if !self.thoughts.is_empty() {
            let pieces = std::mem::take(&mut self.thoughts);
            self.entries.push(Entry::new(Role::Assistant, pieces));
        }
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.hidden,
            "message is hidden from the conversation: it is left out",
            "messages are hidden from the conversation: they are left out",
        );
        reading.note_count(
            self.weightless,
            "message has the weight 0 and is not sent: it is left out",
            "messages have the weight 0 and are not sent: they are left out",
        );
        reading.note_count(
            self.files,
            "attached file is not in the export",
            "attached files are not in the export",
        );
        let aside = self.aside.note(
            "content is left out: it is not in the export, or only for the screen",
            "contents are left out: they are not in the export, or only for the screen",
        );
        reading.notes.extend(aside);
    }
}
