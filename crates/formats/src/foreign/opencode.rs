//! Sessions of opencode: `opencode export`, or the list of messages that its server returns.

use super::{
    Reader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments},
};
use crate::{format::FileFormat, session::unread::Unread};
use context_window::{Part, Role, WireFormat, message::Reasoning};
use serde_json::json;
use std::collections::BTreeSet;

pub(super) const READER: Reader = Reader::new(FileFormat::Opencode, fits, read);

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
    if let Some(revert) = &revert {
        take_back(&mut messages, revert)?;
    }
    reading.note_count(
        total - messages.len(),
        "message was taken back by the user: it is left out",
        "messages were taken back by the user: they are left out",
    );
    let total = messages.len();
    without_compacted(&mut messages);
    reading.note_count(
        total - messages.len(),
        "message that opencode compacted is left out: its summary stands for it",
        "messages that opencode compacted are left out: their summary stands for them",
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

/// A message and its parts.
struct Message<'a> {
    node: Node<'a>,
    id: Option<String>,
    is_user: bool,
    info: Fields<'a>,
    parts: Vec<Node<'a>>,
}

impl<'a> Message<'a> {
    fn read(node: &Node<'a>, reading: &mut Reading) -> Result<Self, Fault> {
        let fields = node.object()?;
        let info = fields.need("info")?.object()?;
        let parts = fields.need("parts")?.list()?;
        fields.finish(reading)?;
        let role = info.need("role")?;
        let is_user = match &*role.text()? {
            "user" => true,
            "assistant" => false,
            _ => return Err(role.fault("is no role of opencode; expected user or assistant")),
        };
        Ok(Self { node: node.clone(), id: info.name("id")?, is_user, info, parts })
    }

    /// Returns the part of a type, if the message has one.
    fn part(&self, kind: &str) -> Option<Fields<'a>> {
        let is_one = |part: &Fields<'a>| part.text("type").ok().flatten().as_deref() == Some(kind);
        self.parts.iter().filter_map(|part| part.object().ok()).find(is_one)
    }

    /// Returns the id of the request for a summary that the message answers.
    fn summarises(&self) -> Option<String> {
        let is_summary = !self.is_user
            && self.info.is_true("summary")
            && self.info.has("finish")
            && !self.info.has("error");
        self.info.name("parentID").ok()?.filter(|_| is_summary)
    }
}

/// Takes back the messages from the one on that the user went back to.
fn take_back(messages: &mut Vec<Message<'_>>, revert: &Fields<'_>) -> Result<(), Fault> {
    let (to, part) = (revert.need("messageID")?.name()?, revert.name("partID")?);
    let Some(at) = messages.iter().position(|message| message.id.as_ref() == Some(&to)) else {
        return Ok(());
    };
    let is_it = |node: &Node<'_>| node.object().ok()?.name("id").ok()?.filter(|id| Some(id) == part.as_ref());
    let inside = messages[at].parts.iter().position(|node| is_it(node).is_some());
    match inside.filter(|inside| *inside > 0) {
        Some(inside) => {
            messages[at].parts.truncate(inside);
            messages.truncate(at + 1);
        }
        None => messages.truncate(at),
    }
    Ok(())
}

/// Leaves the messages out that the newest summary stands for, but those that it keeps.
fn without_compacted(messages: &mut Vec<Message<'_>>) {
    let summarised: BTreeSet<String> = messages.iter().filter_map(Message::summarises).collect();
    let is_request = |message: &Message<'_>| {
        let is_done = message.id.as_ref().is_some_and(|id| summarised.contains(id));
        message.is_user && is_done && message.part("compaction").is_some()
    };
    let Some(at) = messages.iter().rposition(is_request) else { return };
    let tail = messages[at].part("compaction").and_then(|part| part.name("tail_start_id").ok().flatten());
    let tail = tail.and_then(|id| messages[..at].iter().position(|message| message.id.as_ref() == Some(&id)));
    // The summary stands before the messages that it keeps.
    let kept: Vec<Message<'_>> = messages.drain(tail.unwrap_or(at)..at).collect();
    messages.drain(..tail.unwrap_or(at));
    let behind = messages.len().min(2);
    messages.splice(behind..behind, kept);
}

#[derive(Default)]
struct Opencode {
    talk: Talk,
    ignored: usize,
    failed: usize,
    cleared: usize,
    elsewhere: usize,
    /// Parts that hold nothing said.
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
        if error.is_some_and(|error| !is_half(&error, message)) {
            self.failed += 1;
            return Ok(None);
        }
        let mut pieces = Vec::new();
        let mut answers = Vec::new();
        for node in &message.parts {
            match self.part(node, message.is_user, reading) {
                Ok(Said::Nothing) => {}
                // Calls of one step stand together, their results behind them.
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
        let entry = Entry::new(&message.node, role, pieces).with_id(message.id.clone());
        Ok(Some(entry).filter(|entry| !entry.pieces.is_empty()))
    }

    /// Reads the system text of a message: the newest one holds.
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

    fn part(&mut self, node: &Node<'_>, is_user: bool, reading: &mut Reading) -> Result<Said, Fault> {
        let fields = node.object()?;
        fields.ignore(&["id", "sessionID", "messageID", "time", "synthetic"]);
        let kind = fields.need("type")?;
        let said = match &*kind.text()? {
            "text" => {
                fields.ignore(&["metadata"]);
                let text = fields.need("text")?.text()?;
                let is_ignored = is_user && fields.is_true("ignored");
                self.ignored += usize::from(is_ignored);
                if is_ignored || text.is_empty() { Said::Nothing } else { Said::Piece(Piece::text(text)) }
            }
            "reasoning" => {
                let about = fields.get("metadata");
                let thought = thought(fields.need("text")?.text()?, about)?;
                thought.map_or(Said::Nothing, |thought| Said::Piece(Piece::Thought(thought)))
            }
            "tool" => {
                let (call, answer) = self.call(&fields, reading)?;
                Said::Called(call, answer)
            }
            "file" => self.file(&fields)?.map_or(Said::Nothing, |part| Said::Piece(Piece::Part(part))),
            "compaction" => {
                fields.ignore(&["auto", "overflow", "tail_start_id"]);
                Said::Piece(Piece::text("What did we do so far?"))
            }
            "subtask" => {
                fields.ignore(&["prompt", "description", "agent", "model", "command"]);
                Said::Piece(Piece::text("The following tool was executed by the user"))
            }
            "step-start" | "step-finish" => {
                fields.ignore_all();
                Said::Step
            }
            aside @ ("retry" | "snapshot" | "patch" | "agent") => {
                fields.ignore_all();
                if aside == "retry" {
                    self.aside.count(aside);
                }
                Said::Nothing
            }
            _ => return Err(kind.fault("is no part of opencode that is known")),
        };
        fields.finish(reading)?;
        Ok(said)
    }

    /// Reads a call with its result, as opencode sends them.
    fn call(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<(Call, Answer), Fault> {
        let state = fields.need("state")?.object()?;
        state.ignore(&["title", "time", "raw"]);
        let about = fields.get("metadata").and_then(|about| about.object().ok()?.get("google")?.as_object());
        let call = Call {
            id: fields.name("callID")?,
            name: fields.need("tool")?.text()?,
            arguments: arguments(state.get("input")),
            signature: about.and_then(|about| about.text("thoughtSignature")),
        };
        let text = |text: String| Answer::text(call.id.clone(), Some(call.name.clone()), text);
        let status = state.need("status")?;
        let answer = match &*status.text()? {
            "completed" => {
                state.ignore(&["metadata"]);
                let is_cleared =
                    state.get("time").and_then(|time| time.object().ok()?.get("compacted")).is_some();
                let output = state.need("output")?.text()?;
                let files =
                    state.get("attachments").map(|files| files.list()).transpose()?.unwrap_or_default();
                if is_cleared {
                    self.cleared += 1;
                    text("[Old tool result content cleared]".into())
                } else {
                    let mut answer = text(output);
                    let files = reading.each(files, |node, _| {
                        let file = node.object()?;
                        file.ignore(&["id", "sessionID", "messageID", "type"]);
                        self.file(&file)
                    })?;
                    answer.parts.extend(files.into_iter().flatten());
                    answer
                }
            }
            "error" => {
                let about = state.get("metadata").map(|about| about.object()).transpose()?;
                let error = state.need("error")?.text()?;
                let output = about.filter(|about| about.is_true("interrupted"));
                match output.and_then(|about| about.text("output").ok()?) {
                    Some(output) => text(output),
                    None => text(error).failed(true),
                }
            }
            "pending" | "running" => {
                state.ignore(&["metadata"]);
                text("[Tool execution was interrupted]".into()).failed(true)
            }
            _ => {
                return Err(
                    status.fault("is no state of a call; expected completed, error, running or pending")
                );
            }
        };
        state.finish(reading)?;
        Ok((call, answer))
    }

    /// Reads a file. Returns `None` for one whose text stands in a part beside it, and for one that is not in the session.
    fn file(&mut self, fields: &Fields<'_>) -> Result<Option<Part>, Fault> {
        fields.ignore(&["source"]);
        let (mime, url) = (fields.need("mime")?.text()?, fields.need("url")?.text()?);
        let name = fields.text("filename")?;
        if mime == "text/plain" || mime == "application/x-directory" {
            return Ok(None);
        }
        if url.starts_with("file:") {
            self.elsewhere += 1;
            return Ok(None);
        }
        if mime.starts_with("image/") {
            return Ok(Some(Part::Image { url, detail: None }));
        }
        let json = json!({ "type": "file", "file": { "filename": name, "file_data": url } }).to_string();
        Ok(Some(Part::Opaque { wire_format: WireFormat::OpenAiChat, json }))
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
        let aside = self.aside.note("part is an error that was logged", "parts are errors that were logged");
        aside.into_iter().for_each(|note| reading.note(note));
    }
}

/// What a part says.
enum Said {
    Nothing,
    /// A step of the reply is over, or begins.
    Step,
    Piece(Piece),
    Called(Call, Answer),
}

/// Checks whether a reply that ended in an error is one that the user broke off, with something said.
fn is_half(error: &Fields<'_>, message: &Message<'_>) -> bool {
    let is_aborted = error.text("name").ok().flatten().as_deref() == Some("MessageAbortedError");
    let kind = |node: &Node<'_>| node.object().ok()?.text("type").ok()?;
    is_aborted
        && message.parts.iter().any(|node| !matches!(kind(node).as_deref(), Some("step-start" | "reasoning")))
}

/// Makes the reasoning of a text with the proof of its provider.
fn thought(text: String, about: Option<Node<'_>>) -> Result<Option<Reasoning>, Fault> {
    let about = about.map(|about| about.object()).transpose()?;
    let of = |provider: &'static str| {
        let own = about.as_ref()?.get(provider)?;
        own.as_object()
    };
    if let Some(own) = of("anthropic") {
        if let Some(data) = own.text("redactedData") {
            return Ok(Some(Reasoning::sealed(WireFormat::Anthropic, "", data).into_redacted()));
        }
        if let Some(signature) = own.text("signature") {
            return Ok(Some(Reasoning::sealed(WireFormat::Anthropic, text, signature)));
        }
    }
    if let Some(own) = of("openai")
        && let Some(seal) = own.text("reasoningEncryptedContent")
    {
        let reasoning = Reasoning::sealed(WireFormat::OpenAiResponses, text, seal);
        return Ok(Some(match own.text("itemId") {
            Some(id) => reasoning.with_id(id),
            None => reasoning,
        }));
    }
    Ok(Some(text).filter(|text| !text.trim().is_empty()).map(Reasoning::text))
}
