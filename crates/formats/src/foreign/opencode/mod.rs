//! Sessions of opencode: `opencode export`, or the list of messages that its server returns.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Entry, Piece, Step, Talk},
};
use crate::{format::FileFormat, session::unread::Unread};
use context_window::Role;

mod history;
mod parts;

use history::{Message, take_back, without_compacted};
use parts::Said;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Opencode, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_message = |message: &serde_json::Value| {
        let info = message.get("info");
        info.is_some_and(|info| !text(info, "role").is_empty()) && message.get("parts").is_some()
    };
    shape.messages.iter().any(is_message)
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    let mut revert = None;
    let messages = if node.is_list() {
        node.list()?
    } else {
        let fields = node.object()?;
        fields.ignore(&["todos"]);
        if let Some(info) = fields.get("info") {
            let info = info.object()?;
            talk.id = info.name("id")?;
            revert = info.get("revert").map(|revert| revert.object()).transpose()?;
            info.ignore_all();
        }
        let messages = fields.get("messages").map(|all| all.list()).transpose()?.unwrap_or_default();
        fields.finish(reading)?;
        messages
    };
    let mut messages = reading.each(messages, Message::read)?;
    let total = messages.len();
    // Reverted messages are removed first, since a reverted summary must not replace messages.
    if let Some(revert) = &revert {
        take_back(&mut messages, revert)?;
    }
    reading.note_count(
        total - messages.len(),
        "message was removed by the user: it is left out",
        "messages were removed by the user: they are left out",
    );
    let total = messages.len();
    without_compacted(&mut messages);
    reading.note_count(
        total - messages.len(),
        "message that opencode compacted is left out: its summary replaces it",
        "messages that opencode compacted are left out: their summary replaces them",
    );
    let mut opencode = Opencode { talk, ..Opencode::default() };
    let mut steps = Vec::with_capacity(messages.len());
    for message in messages {
        match opencode.message(&message, reading) {
            Ok(entry) => steps.extend(entry.map(Step::Entry)),
            Err(fault) => reading.leave(fault)?,
        }
    }
    opencode.talk.steps = steps;
    opencode.notes(reading);
    Ok(opencode.talk)
}

#[derive(Default)]
struct Opencode {
    talk: Talk,
    ignored: usize,
    failed: usize,
    cleared: usize,
    elsewhere: usize,
    /// Counts of parts without content.
    aside: Unread,
}

impl Opencode {
    fn message(&mut self, message: &Message<'_>, reading: &mut Reading) -> Result<Option<Entry>, Fault> {
        let info = &message.info;
        info.ignore(&["sessionID", "time", "agent", "format", "tools", "summary", "variant", "finish"]);
        info.ignore(&["parentID", "providerID", "mode", "path", "cost", "tokens", "structured"]);
        self.system(info)?;
        self.talk.model = match info.get("model") {
            Some(model) if model.is_object() => model.object()?.text("modelID")?,
            _ => info.text("modelID")?,
        }
        .or_else(|| self.talk.model.take());
        let error = info.get("error").map(|error| error.object()).transpose()?;
        info.finish(reading)?;
        // opencode sends a failed reply again only if the user interrupted it.
        if error.is_some_and(|error| !is_half(&error, message)) {
            self.failed += 1;
            return Ok(None);
        }
        let mut pieces = Vec::new();
        let mut answers = Vec::new();
        for node in &message.parts {
            match self.part(node, message.is_user, reading) {
                Ok(Said::Nothing) => {}
                // The calls of one step come together, followed by their results.
                Ok(Said::Step) => pieces.append(&mut answers),
                Ok(Said::Piece(piece)) => pieces.push(piece),
                Ok(Said::Called(call, answer)) => {
                    pieces.push(Piece::Call(call));
                    answers.push(Piece::Answer(answer));
                }
                Err(fault) => reading.leave(fault)?,
            }
        }
        pieces.append(&mut answers);
        let role = if message.is_user { Role::User } else { Role::Assistant };
        let entry = Entry::new(role, pieces).with_id(message.id.clone());
        Ok(Some(entry).filter(|entry| !entry.pieces.is_empty()))
    }

    /// Reads the system text of a message. The newest one replaces the earlier ones.
    fn system(&mut self, info: &Fields<'_>) -> Result<(), Fault> {
        let Some(system) = info.get("system") else { return Ok(()) };
        let texts = if system.is_list() {
            system.list()?.iter().map(Node::text).collect::<Result<Vec<String>, Fault>>()?
        } else {
            vec![system.text()?]
        };
        self.talk.system = texts;
        Ok(())
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.failed,
            "reply failed and is not sent again: it is left out",
            "replies failed and are not sent again: they are left out",
        );
        reading.note_count(
            self.ignored,
            "text is marked as ignored: it is left out",
            "texts are marked as ignored: they are left out",
        );
        reading.note_count(
            self.cleared,
            "result was cleared by opencode: its content is left out",
            "results were cleared by opencode: their contents are left out",
        );
        reading.note_count(
            self.elsewhere,
            "file is not in the session: it is left out",
            "files are not in the session: they are left out",
        );
        let aside = self
            .aside
            .note("part is a logged error and is left out", "parts are logged errors and are left out");
        reading.notes.extend(aside);
    }
}

/// Checks whether a reply with an error was interrupted by the user after some content.
fn is_half(error: &Fields<'_>, message: &Message<'_>) -> bool {
    let is_aborted = error.text("name").ok().flatten().as_deref() == Some("MessageAbortedError");
    let kind = |node: &Node<'_>| node.object().ok()?.text("type").ok()?;
    is_aborted
        && message.parts.iter().any(|node| !matches!(kind(node).as_deref(), Some("step-start" | "reasoning")))
}
