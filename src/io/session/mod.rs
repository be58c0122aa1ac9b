//! Session files: what `plan-inspect` reads. One JSON object, a bare array of chat messages, JSON lines of either, or a log
//! on disk.

use crate::{
    conversation::{Compaction, Conversation},
    error::Error,
    io::journal::Journal,
    item::{ItemId, RagItem},
    message::{Tool, WireFormat},
    plan::anchor::Anchor,
    planner::request::PlanRequest,
    provider::model::RequestLimits,
    text::{
        plain,
        size::{self, Tally},
    },
};
use serde_json::value::RawValue;
use std::io::{ErrorKind, Read};

mod bounded;
mod place;
mod surrogates;
mod wire;
mod anthropic;
mod compacted;
mod gemini;
mod responses;
mod logged;
mod tools;
mod read;

/// One session: a conversation, and what its next prompt brings with it.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Model, TokenCounter, io::Session};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let session = Session::from_json(r#"{"messages": [{"role": "user", "content": "How long do refunds take?"}]}"#)?;
/// let plan = manager.build_plan(&session.request())?;
/// assert_eq!(plan.included.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Session {
    /// Its id in the file.
    pub id: Option<String>,
    /// The model it names.
    pub model: Option<String>,
    /// The wire format of a logged request body, where its shape tells: none for a session of our own and for `OpenAI` Chat.
    pub wire_format: Option<WireFormat>,
    /// The limits it brings.
    pub limits: RequestLimits,
    /// The conversation.
    pub log: Conversation,
    /// The tools declared.
    pub tools: Vec<Tool>,
    /// The retrieved documents.
    pub rag: Vec<RagItem>,
    /// The focus hint.
    pub focus: Option<String>,
    /// Volatile state: id and text.
    pub state: Vec<(ItemId, String)>,
    /// What the last prompt left behind (rule S5).
    pub previous: Option<Anchor>,
    /// Keys of the session that are not used.
    unread: Vec<String>,
    /// Compactions that could not be used.
    ignored: Vec<String>,
}

impl Session {
    /// A conversation and nothing else.
    fn of(log: Conversation) -> Self {
        Self {
            id: None,
            model: None,
            wire_format: None,
            limits: RequestLimits::default(),
            log,
            tools: Vec::new(),
            rag: Vec::new(),
            focus: None,
            state: Vec::new(),
            previous: None,
            unread: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Reads the text of one session.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` with line, column and key for JSON that cannot be read as a session, for an empty session,
    /// and for a text that holds more than one.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        SessionFile::new("session", text.as_bytes().to_vec())?.session(None)
    }

    /// The keys of the session that are not read although another one may have been meant, each with that one. Unknown
    /// keys are no error: logs carry whatever their writers need.
    #[must_use]
    pub fn unread_keys(&self) -> Vec<(String, &'static str)> {
        let meant = |key: &String| Some((key.clone(), read::meant(key)?));
        self.unread.iter().filter_map(meant).collect()
    }

    /// What of the session is not used, and why: compactions that are incomplete or name what is not there leave the
    /// messages as they are.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The request for the session's next prompt.
    #[must_use]
    pub fn request(&self) -> PlanRequest<'_> {
        let request = PlanRequest {
            focus: self.focus.clone(),
            state: self.state.clone(),
            previous: self.previous.clone(),
            ..PlanRequest::new(&self.log)
        };
        request.with_tools(&self.tools).with_rag(self.rag.iter().cloned()).with_limits(self.limits)
    }
}

/// A file of one or many sessions, read one at a time.
///
/// ```
/// use context_window::io::SessionFile;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let lines = br#"{"id": "a", "messages": [{"role": "user", "content": "Hello"}]}
/// {"id": "b", "messages": [{"role": "user", "content": "Good morning"}]}"#;
/// let file = SessionFile::new("talks.jsonl", lines.to_vec())?;
/// assert_eq!(file.session(Some("b"))?.log.messages()[0].text(), "Good morning");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SessionFile {
    name: String,
    text: String,
    documents: Vec<Document>,
    /// The conversation of a log on disk.
    log: Option<Session>,
}

/// The position of one session in the file.
#[derive(Debug)]
struct Document {
    start: usize,
    end: usize,
    /// The line it starts on, from 1.
    line: usize,
    /// Which one on that line, from 1.
    nth: usize,
}

impl SessionFile {
    /// Takes the bytes of a file and finds the sessions in it. `name` names the file in errors.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` for bytes that are no UTF-8 or no JSON, with the place, for a file with nothing in it, and for one
    /// that holds too much: more than 10,000,000 JSON values in a session (40,000,000 in a log on disk), or 10,000,000
    /// sessions.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let mut tally = Tally::default();
        go_on(&mut tally, &bytes, name)?;
        Self::counted(name, bytes, &tally)
    }

    /// Reads a file, or anything else that holds sessions, and stops where it is too much: nothing is built of what has more
    /// values than a session may have.
    ///
    /// # Errors
    ///
    /// As [`SessionFile::new`]; also for more than 1,073,741,824 bytes, and for what cannot be read.
    pub fn from_reader(name: &str, mut from: impl Read) -> Result<Self, Error> {
        let (mut bytes, mut tally) = (Vec::new(), Tally::default());
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return Self::counted(name, bytes, &tally),
                Ok(read) => &chunk[..read],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::input(name, format!("cannot be read: {error}"))),
            };
            if (bytes.len() + read.len()) as u64 > size::BYTES {
                let most = plain::grouped(size::BYTES);
                let detail = format!("is larger than {most} bytes, unpacked; expected less: split the file");
                return Err(Error::input(name, detail));
            }
            go_on(&mut tally, read, name)?;
            bytes.extend_from_slice(read);
        }
    }

    /// The bytes of a file whose values have been counted.
    fn counted(name: &str, bytes: Vec<u8>, tally: &Tally) -> Result<Self, Error> {
        if Journal::is_log(&bytes) {
            if tally.values() > size::VALUES_OF_A_LOG {
                return Err(Error::input(name, size::too_many("this log", size::VALUES_OF_A_LOG)));
            }
            let (log, torn) = Journal::read(name, &bytes)?;
            let ignored = torn
                .map(|torn| format!("line {} is unfinished ({} bytes) and not used", torn.line, torn.bytes));
            let log = Session { ignored: ignored.into_iter().collect(), ..Session::of(log) };
            return Ok(Self {
                name: name.into(),
                text: String::new(),
                documents: Vec::new(),
                log: Some(log),
            });
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + line_breaks(&error.as_bytes()[..at]);
            Error::input(format!("{name}:{line}"), format!("byte {at} is not UTF-8; expected JSON in UTF-8"))
        })?;
        let documents = split(name, &text)?;
        if documents.is_empty() {
            return Err(Error::input(
                name,
                "is empty; expected a session (a JSON object or an array of messages)",
            ));
        }
        Ok(Self { name: name.into(), text, documents, log: None })
    }

    /// How many sessions there are; never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a file without a session is an error")]
    pub fn len(&self) -> usize {
        self.documents.len() + usize::from(self.log.is_some())
    }

    /// The session with this id, or the only one. A session without an id goes by its line number.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` when there are several and no id is given, when none has the id, and when the session cannot
    /// be read.
    pub fn session(&self, id: Option<&str>) -> Result<Session, Error> {
        match (&self.log, self.document(id)?) {
            (Some(log), _) => Ok(log.clone()),
            (None, Some(document)) => self.read(document),
            (None, None) => Err(Error::input(&self.name, "is empty; expected a session")),
        }
    }

    /// The position of a session in the file; none for a log.
    fn document(&self, id: Option<&str>) -> Result<Option<&Document>, Error> {
        if self.log.is_some() {
            return Ok(None);
        }
        let Some(wanted) = id else {
            return match &self.documents[..] {
                [only] => Ok(Some(only)),
                several => Err(Error::input(
                    &self.name,
                    format!("holds {} sessions; choose one by its id: {}", several.len(), self.some_ids()),
                )),
            };
        };
        let found = self.documents.iter().find(|document| self.id_of(document) == wanted);
        match found {
            Some(document) => Ok(Some(document)),
            None => Err(Error::input(
                &self.name,
                format!("has no session `{wanted}`; its ids are: {}", self.some_ids()),
            )),
        }
    }

    /// The text of the file with one more compaction in one session, as an entry after its messages. Everything else
    /// stays as it is, byte for byte, and a session on one line stays on one. None where its messages are no list of
    /// chat messages (a log, or a logged request of another wire format): [`Journal::create`] writes any conversation.
    ///
    /// # Errors
    ///
    /// As [`SessionFile::session`].
    pub fn with_compaction(&self, id: Option<&str>, record: &Compaction) -> Result<Option<String>, Error> {
        let Some(document) = self.document(id)? else { return Ok(None) };
        let text = &self.text[document.start..document.end];
        let range = if text.starts_with('[') {
            0..text.len()
        } else {
            let Ok(wire::Messages { messages }) = serde_json::from_str(text) else { return Ok(None) };
            let start = messages.get().as_ptr() as usize - text.as_ptr() as usize;
            start..start + messages.get().len()
        };
        let Some(inside) = text[range.clone()].strip_suffix(']') else { return Ok(None) };
        let inside = inside.trim_end();
        let comma = if inside.ends_with('[') { "" } else { "," };
        let line = if text.contains('\n') { "\n" } else { "" };
        let entry = compacted::message(record);
        let (before, after) = self.text.split_at(document.start + range.start + inside.len());
        Ok(Some(format!("{before}{comma}{line}{entry}{after}")))
    }

    /// Every session in turn.
    pub fn sessions(&self) -> impl Iterator<Item = Result<Session, Error>> {
        let log = self.log.iter().map(|log| Ok(log.clone()));
        log.chain(self.documents.iter().map(|document| self.read(document)))
    }

    fn read(&self, document: &Document) -> Result<Session, Error> {
        let (text, lone) = surrogates::mended(&self.text[document.start..document.end]);
        let mut session = read::session(&text, &self.name, document.line)?;
        if lone > 0 {
            let halves =
                if lone == 1 { "half a character".into() } else { format!("{lone} halves of characters") };
            session
                .ignored
                .push(format!("{halves} (\\ud800 to \\udfff without the other half) read as U+FFFD"));
        }
        Ok(session)
    }

    /// The ids of the sessions, in the order of the file; one without an id goes by its line number.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.documents.iter().map(|document| self.id_of(document))
    }

    fn id_of(&self, document: &Document) -> String {
        let (text, _) = surrogates::mended(&self.text[document.start..document.end]);
        read::id(&text).unwrap_or_else(|| match document.nth {
            1 => document.line.to_string(),
            nth => format!("{}.{nth}", document.line),
        })
    }

    fn some_ids(&self) -> String {
        const SHOWN: usize = 5;
        let shown: Vec<String> =
            self.documents.iter().take(SHOWN).map(|document| self.id_of(document)).collect();
        let more = self.documents.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        shown.join(", ") + &more
    }
}

/// So many bytes are read at once.
const CHUNK: usize = 64 << 10;

/// Counts the values of what was read, as far as a session may have them.
fn go_on(tally: &mut Tally, bytes: &[u8], name: &str) -> Result<(), Error> {
    tally.go_on(bytes, size::VALUES).map_err(|excess| {
        Error::input(format!("{name}:{}", excess.line), size::too_many("the session", size::VALUES))
    })
}

/// Finds the JSON values of a text, which stand one after another.
fn split(name: &str, text: &str) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    // A byte order mark is no JSON, and some editors write one.
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let marks = text.len() - json.len();
    let mut stream = serde_json::Deserializer::from_str(json).into_iter::<&RawValue>();
    let (mut counted, mut line) = (0, 1);
    while let Some(value) = stream.next() {
        let value = value.map_err(|error| {
            Error::input(
                format!("{name}:{}:{}", error.line(), error.column()),
                format!("not JSON: {}", plain::without_place(&error)),
            )
        })?;
        let end = marks + stream.byte_offset();
        let start = end - value.get().len();
        line += line_breaks(&text.as_bytes()[counted..start]);
        counted = start;
        let before = documents.last().filter(|before: &&Document| before.line == line);
        let nth = before.map_or(1, |before| before.nth + 1);
        documents.push(Document { start, end, line, nth });
    }
    Ok(documents)
}

fn line_breaks(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}
