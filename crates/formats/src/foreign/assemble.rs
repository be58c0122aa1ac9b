//! A conversation of another tool → a [`Session`].

use super::{
    node::Reading,
    talk::{Answer, Call, Entry, Piece, Step, Talk},
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

/// Makes the session of a conversation.
///
/// # Errors
///
/// Returns an error with the place for a conversation without a message, and for messages of the wire that
/// cannot be read.
pub(super) fn session(talk: Talk, place: Place<'_>, reading: Reading) -> Result<Session, Error> {
    let mut reader = Reader::new(place);
    reader.unknown = talk.wire_format.unwrap_or(reader.unknown);
    reader.is_lenient = reading.is_lenient;
    reader.head(None, talk.system, Vec::new())?;
    let mut assembly =
        Assembly { reader, ids: BTreeSet::new(), open: OpenCalls::default(), unread: UnreadKeys::default() };
    let mut steps = talk.steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let own = match steps.peek() {
            Some(Step::Entry(entry)) => entry.id.clone(),
            _ => None,
        };
        assembly.step(step, own)?;
    }
    let Assembly { mut reader, open, unread, .. } = assembly;
    reader.ignored.extend(unread.notes());
    reader.log.check_ids(std::iter::empty())?;
    bounded::check(reader.log.messages(), &talk.tools).map_err(|(key, detail)| place.fault(&key, &detail))?;
    let mut ignored = reading.into_notes();
    ignored.append(&mut reader.ignored);
    ignored.extend(open.note());
    ignored.extend(open_calls::note_on_results(reader.log.messages()));
    if reader.log.messages().iter().all(Message::is_empty) && reader.log.system().is_empty() {
        let left = ignored.first().map(|note| format!(" ({note})")).unwrap_or_default();
        let detail = format!("holds no message that says anything{left}; expected at least one");
        return Err(Error::input(format!("{}:{}", place.name, place.line), detail));
    }
    let mut session = Session::from(reader.log);
    session.id = talk.id;
    session.model = talk.model;
    session.wire_format = talk.wire_format;
    session.limits.stated = talk.stated;
    session.tools = talk.tools;
    session.rag = talk.rag;
    Ok(session.with_ignored(ignored))
}

struct Assembly<'a> {
    reader: Reader<'a>,
    /// Ids of messages, those of the files among them.
    ids: BTreeSet<String>,
    open: OpenCalls,
    /// Keys of messages of the wire that nobody reads.
    unread: UnreadKeys,
}

impl Assembly<'_> {
    /// Adds what happened; `next` is the own id of the message that follows.
    fn step(&mut self, step: Step, next: Option<String>) -> Result<(), Error> {
        match step {
            Step::Entry(entry) => {
                self.entry(entry);
                Ok(())
            }
            Step::Wire { path, json } => {
                let place = self.reader.place;
                let message: wire::Message = place.parse_part(&path, &json)?;
                for lost in self.unread.look_at(self.reader.read, &message, &self.reader.log_keys) {
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

    /// Adds a message of the file as messages of the log. Results are messages of their own: those in the
    /// assistant's message follow their calls, those in another message come before its text.
    fn entry(&mut self, entry: Entry) {
        let position = self.reader.read;
        self.reader.read += 1;
        let own = entry.id.filter(|id| self.ids.insert(id.clone()));
        let mut names = Names { position, own, calls: 0, messages: 0 };
        let is_assistant = entry.role == Role::Assistant;
        let mut said = Said::new(entry.role, entry.name);
        // The last message has the id; of the assistant's, the first: its calls precede the results.
        let mut held: Option<Message> = None;
        for piece in entry.pieces {
            match piece {
                Piece::Part(part) => said.parts.push(part),
                Piece::Thought(reasoning) => said.reasoning.push(reasoning),
                Piece::Call(call) => said.calls.push(names.call(call)),
                Piece::Answer(answer) => {
                    if is_assistant && !said.is_empty() {
                        let is_first = names.messages == 0;
                        self.put(&mut names, said.take(), is_first);
                    }
                    let result = self.result(answer);
                    if is_assistant {
                        let is_first = names.messages == 0;
                        self.put(&mut names, result, is_first);
                    } else if let Some(before) = held.replace(result) {
                        self.put(&mut names, before, false);
                    }
                }
            }
        }
        let is_more = !said.is_empty() || held.is_none() && names.messages == 0;
        if is_more && let Some(before) = held.replace(said.take()) {
            self.put(&mut names, before, false);
        }
        if let Some(last) = held {
            let is_own = !is_assistant || names.messages == 0;
            self.put(&mut names, last, is_own);
        }
    }

    /// Adds one message to the log, with its id where the position does not give it.
    fn put(&mut self, names: &mut Names, message: Message, is_own: bool) {
        let is_shifted = self.reader.log.messages().len() != names.position;
        let message = match names.next(is_own, is_shifted) {
            Some(id) => message.with_id(ItemId::from(id)),
            None => message,
        };
        self.reader.log.push(message);
    }

    /// Makes the message of a result: it answers the call of its id, or else of its name, or else the next
    /// one.
    fn result(&mut self, answer: Answer) -> Message {
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

/// The names that the messages and calls of one message of the file get.
struct Names {
    position: usize,
    own: Option<String>,
    calls: usize,
    messages: usize,
}

impl Names {
    /// Returns the id of the next message. Returns `None` if its position gives it.
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
struct Said {
    role: Role,
    name: Option<String>,
    parts: Vec<Part>,
    reasoning: Vec<Reasoning>,
    calls: Vec<ToolCall>,
}

impl Said {
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

/// A message whose one text is its text, and not a part.
fn with_parts(role: Role, mut parts: Vec<Part>) -> Message {
    match parts.as_mut_slice() {
        [Part::Text(text)] => Message::new(role, std::mem::take(text)),
        [] => Message::new(role, ""),
        _ => Message::new(role, "").with_parts(parts),
    }
}
