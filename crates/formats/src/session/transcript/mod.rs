//! Transcripts of coding agents: JSON lines, one event each. A transcript is recognized by its content, never
//! by its file name.

use super::{
    Session, bounded, document::Document, open_calls::note_on_results, place::Place, reader::Reader,
    unread::Unread, wire,
};
use crate::{error::Error, format::FileFormat, scan};
use context_window::{Message, Part, WireFormat};

mod event;
mod thread;
mod claude_code;
mod codex;

pub(crate) use thread::Thread;

/// The agent that wrote a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    ClaudeCode,
    Codex,
}

impl Writer {
    /// Returns the format of the agent's transcripts.
    pub(crate) fn format(self) -> FileFormat {
        match self {
            Self::ClaudeCode => FileFormat::ClaudeCode,
            Self::Codex => FileFormat::Codex,
        }
    }

    /// Returns the writer of a format. Returns `None` if the format is not one of these transcripts.
    pub(crate) fn of_format(format: FileFormat) -> Option<Self> {
        [Self::ClaudeCode, Self::Codex].into_iter().find(|writer| writer.format() == format)
    }
}

/// The sessions of a transcript.
#[derive(Debug)]
pub(crate) struct Transcript {
    writer: Writer,
    pub(crate) threads: Vec<Thread>,
    /// The line and the length in bytes of an incomplete last event.
    pub(crate) unfinished: Option<(usize, usize)>,
}

impl Transcript {
    /// Recognizes a transcript in the values of a file. It has at least one event of a known agent, and no
    /// value that is read as a session by itself. Returns `None` for any other file.
    pub(crate) fn detect(text: &str, documents: &[Document]) -> Option<Self> {
        let mut writer = None;
        let mut events = Vec::with_capacity(documents.len());
        for document in documents {
            let event = event::Envelope::read(&text[document.start..document.end])?;
            let written_by = event.writer();
            // Events of two agents in one file have no common conversation.
            if written_by.is_some() && writer.is_some() && written_by != writer {
                return None;
            }
            writer = writer.or(written_by);
            events.push(event);
        }
        let writer = writer?;
        let threads = match writer {
            Writer::ClaudeCode => thread::of_claude_code(events),
            Writer::Codex => vec![thread::of_codex(&events)],
        };
        Some(Self { writer, threads, unfinished: None })
    }

    /// Returns the agent that wrote the transcript.
    pub(crate) fn writer(&self) -> Writer {
        self.writer
    }

    /// Reads one session from its events, each with its place.
    pub(crate) fn session(
        &self,
        thread: &Thread,
        events: &[(Place<'_>, &str)],
        is_lenient: bool,
    ) -> Result<Session, Error> {
        let session = match self.writer {
            Writer::ClaudeCode => claude_code::session(events, is_lenient)?,
            Writer::Codex => codex::session(events, is_lenient)?,
        };
        Ok(Session { id: thread.id.clone(), ..session })
    }
}

/// Checks that an event of an unknown type contains no content: no message, text, call or result.
fn check_unknown(place: Place<'_>, kind: &str, json: &str) -> Result<(), Error> {
    let has_role = || {
        let object = context_window::text::object::Object::parse(json);
        object.is_some_and(|object| object.get("role").is_some() || object.get("message").is_some())
    };
    let found = scan::find_part(json).map(|found| found.name).or_else(|| has_role().then_some("a message"));
    match found {
        Some(found) => {
            let kind = context_window::text::plain::short(kind);
            let detail = format!("an event of the type `{kind}` is unknown and contains {found}");
            Err(place.fault("type", &format!("{detail} (--lenient leaves it out)")))
        }
        None => Ok(()),
    }
}

/// Creates the session of the messages read. `place` is the start of the transcript, for errors.
fn whole(
    reader: Reader<'_>,
    place: Place<'_>,
    model: Option<String>,
    wire_format: WireFormat,
    unread: &Unread,
) -> Result<Session, Error> {
    reader.log.check_ids(std::iter::empty())?;
    bounded::check(reader.log.messages(), &[]).map_err(|(key, detail)| place.fault(&key, &detail))?;
    if reader.log.messages().is_empty() {
        let detail = "is a transcript without messages; expected events with messages";
        return Err(Error::input(format!("{}:{}", place.name, place.line), detail));
    }
    // No reader understood these blocks, so a note counts them by type.
    let mut carried = Unread::default();
    for part in reader.log.messages().iter().flat_map(Message::parts) {
        if let Part::Opaque { json, .. } = part {
            let kind = serde_json::from_str::<wire::PartType>(json).ok().and_then(|part| part.kind);
            carried.count(kind.as_deref().unwrap_or("no type"));
        }
    }
    let mut ignored = reader.ignored;
    ignored.extend(note_on_results(reader.log.messages()));
    ignored.extend(unread.note("event is not read", "events are not read"));
    ignored
        .extend(carried.note("block is kept as its original JSON", "blocks are kept as their original JSON"));
    Ok(Session { model, wire_format: Some(wire_format), ignored, ..Session::from_log(reader.log) })
}
