//! Conversion of another tool's conversation to a [`Session`].

use super::{
    conversation::{Call, Entry, ForeignConversation, Piece, Step, ToolResult},
    node::Reading,
};
use crate::{
    error::Error,
    session::{
        Session, bounded,
        open_calls::{self, OpenCalls},
        place::Place,
        reader::Reader,
        unread_keys::UnreadKeys,
        wire,
    },
};
use context_window::{ItemId, Message, Part, Role, ToolCall, message::Reasoning};
use std::collections::BTreeSet;

/// Creates the session of a conversation.
///
/// # Errors
///
/// Returns an error with the place for a conversation without content, and for wire messages that cannot be
/// read.
pub(super) fn session(
    conversation: ForeignConversation,
    place: Place<'_>,
    reading: Reading,
) -> Result<Session, Error> {
    let mut reader = Reader::new(place);
    reader.unknown = conversation.wire_format.unwrap_or(reader.unknown);
    reader.is_lenient = reading.is_lenient;
    reader.add_preamble(None, conversation.system, Vec::new())?;
    let mut assembly =
        Assembly { reader, ids: BTreeSet::new(), open: OpenCalls::default(), unread: UnreadKeys::default() };
    let mut steps = conversation.steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        // A compaction refers to the message after it, whose own id may not be its position.
        let own = match steps.peek() {
            Some(Step::Entry(entry)) => entry.id.clone(),
            _ => None,
        };
        assembly.step(step, own)?;
    }
    let Assembly { mut reader, open, unread, .. } = assembly;
    reader.ignored.extend(unread.notes());
    reader.log.check_ids(std::iter::empty())?;
    bounded::check(reader.log.messages(), &conversation.tools)
        .map_err(|(key, detail)| place.fault(&key, &detail))?;
    let mut ignored = reading.into_notes();
    ignored.append(&mut reader.ignored);
    ignored.extend(open.note());
    ignored.extend(open_calls::note_on_results(reader.log.messages()));
    if reader.log.messages().iter().all(Message::is_empty) && reader.log.system().is_empty() {
        let left = ignored.first().map(|note| format!(" ({note})")).unwrap_or_default();
        let detail = format!("contains no message with content{left}; expected at least one");
        return Err(Error::input(format!("{}:{}", place.name, place.line), detail));
    }
    let mut session = Session::from(reader.log);
    session.id = conversation.id;
    session.model = conversation.model;
    session.wire_format = conversation.wire_format;
    session.limits.stated = conversation.stated;
    session.tools = conversation.tools;
    session.rag = conversation.rag.into();
    Ok(session.with_ignored(ignored))
}

struct Assembly<'a> {
    reader: Reader<'a>,
    /// All ids used so far, including those of the file.
    ids: BTreeSet<String>,
    open: OpenCalls,
    /// The unknown keys of wire messages.
    unread: UnreadKeys,
}

impl Assembly<'_> {
    /// Adds a step to the log. `next` is the id in the file of the message that follows, if it has one.
    fn step(&mut self, step: Step, next: Option<String>) -> Result<(), Error> {
        match step {
            Step::Entry(entry) => {
                self.entry(entry);
                Ok(())
            }
            Step::Wire { path, json } => {
                let place = self.reader.place;
                let message: wire::Message = place.parse_part(&path, &json)?;
                for lost in self.unread.check_keys(self.reader.read, &message, &self.reader.log_keys) {
                    self.reader.leave(&format!("{path}.{}", lost.key), &lost.detail)?;
                }
                self.reader.content = (format!("{path}.content"), true);
                self.reader.message(message)
            }
            Step::Message(message) => {
                self.reader.read += 1;
                self.reader.logged(*message, "openai");
                Ok(())
            }
            Step::Compaction(block) => {
                let next = self.reader.next_id(next);
                self.reader.compaction(*block, Some(&next));
                Ok(())
            }
        }
    }

    /// Adds a message of the file as messages of the log. Each tool result becomes a message of its own.
    /// Results in an assistant message follow their calls; results in another message precede its text.
    fn entry(&mut self, entry: Entry) {
        let position = self.reader.read;
        self.reader.read += 1;
        // Ids are unique in the log, so a repeated id is replaced by a default one.
        let own = entry.id.filter(|id| self.ids.insert(id.clone()));
        let mut names = IdAllocator { position, own, calls: 0, messages: 0 };
        let is_assistant = entry.role == Role::Assistant;
        let mut builder = MessageBuilder::new(entry.role, entry.name);
        // The file's id goes to the last message. In an assistant message it goes to the first one, because
        // the calls precede the results.
        let mut pending: Option<Message> = None;
        for piece in entry.pieces {
            match piece {
                Piece::Part(part) => builder.parts.push(part),
                Piece::Reasoning(reasoning) => builder.reasoning.push(reasoning),
                Piece::Call(call) => builder.calls.push(names.call(call)),
                Piece::ToolResult(answer) => {
                    if is_assistant && !builder.is_empty() {
                        let is_first = names.messages == 0;
                        self.put(&mut names, builder.take(), is_first);
                    }
                    let result = self.result(answer);
                    if is_assistant {
                        let is_first = names.messages == 0;
                        self.put(&mut names, result, is_first);
                    } else if let Some(before) = pending.replace(result) {
                        self.put(&mut names, before, false);
                    }
                }
            }
        }
        // A message of the file without any piece still becomes one message, which keeps the positions.
        let is_more = !builder.is_empty() || pending.is_none() && names.messages == 0;
        if is_more && let Some(before) = pending.replace(builder.take()) {
            self.put(&mut names, before, false);
        }
        if let Some(last) = pending {
            let is_own = !is_assistant || names.messages == 0;
            self.put(&mut names, last, is_own);
        }
    }

    /// Adds one message to the log, with an explicit id if the default id of its position would be wrong.
    fn put(&mut self, names: &mut IdAllocator, message: Message, is_own: bool) {
        let is_shifted = self.reader.log.messages().len() != names.position;
        let message = match names.next(is_own, is_shifted) {
            Some(id) => message.with_id(ItemId::from(id)),
            None => message,
        };
        self.reader.log.push(message);
    }

    /// Creates the message of a tool result. It answers the call with its id, else the call with its name,
    /// else the next open call.
    fn result(&mut self, answer: ToolResult) -> Message {
        let id = answer.id.filter(|id| !id.is_empty());
        let id = id.or_else(|| {
            self.open.catch_up(self.reader.log.messages());
            self.open.answered_by(answer.name.as_deref())
        });
        let id = id.unwrap_or_else(|| format!("call_of_{}", answer.name.unwrap_or_default()));
        let mut parts = answer.parts;
        let result = match parts.as_mut_slice() {
            [Part::Text(text)] => Message::tool(id, std::mem::take(text)),
            [] => Message::tool(id, ""),
            _ => Message::tool(id, "").with_parts(parts),
        };
        if answer.is_failed { result.into_failed() } else { result }
    }
}

/// The ids for the messages and calls that one message of the file becomes.
struct IdAllocator {
    position: usize,
    own: Option<String>,
    calls: usize,
    messages: usize,
}

impl IdAllocator {
    /// Returns the id of the next message. Returns `None` if its default id is right.
    fn next(&mut self, is_own: bool, is_shifted: bool) -> Option<String> {
        let nth = self.messages;
        self.messages += 1;
        let position = || format!("m{}", self.position);
        if is_own {
            return self.own.clone().or_else(|| is_shifted.then(position));
        }
        Some(format!("{}.{nth}", self.own.clone().unwrap_or_else(position)))
    }

    fn call(&mut self, call: Call) -> ToolCall {
        let id = call.id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}_{}", self.position, self.calls));
        self.calls += 1;
        let made = ToolCall::new(id, call.name, call.arguments);
        match call.signature {
            Some(signature) => made.with_signature(signature),
            None => made,
        }
    }
}

/// The content of one message of the log.
struct MessageBuilder {
    role: Role,
    name: Option<String>,
    parts: Vec<Part>,
    reasoning: Vec<Reasoning>,
    calls: Vec<ToolCall>,
}

impl MessageBuilder {
    fn new(role: Role, name: Option<String>) -> Self {
        Self { role, name, parts: Vec::new(), reasoning: Vec::new(), calls: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    fn take(&mut self) -> Message {
        let mut message = with_parts(self.role, std::mem::take(&mut self.parts));
        if let Some(name) = self.name.clone() {
            message = message.with_name(name);
        }
        for reasoning in std::mem::take(&mut self.reasoning) {
            message = message.with_reasoning(reasoning);
        }
        let calls = std::mem::take(&mut self.calls);
        if calls.is_empty() { message } else { message.with_tool_calls(calls) }
    }
}

/// Creates a message. A single text becomes the message's text and not a part.
fn with_parts(role: Role, mut parts: Vec<Part>) -> Message {
    match parts.as_mut_slice() {
        [Part::Text(text)] => Message::new(role, std::mem::take(text)),
        [] => Message::new(role, ""),
        _ => Message::new(role, "").with_parts(parts),
    }
}
