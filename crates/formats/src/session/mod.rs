//! Session files: what `plan-inspect` reads. One JSON object, a bare array of chat messages, JSON lines of either, a
//! transcript of a coding agent, or a log on disk.

use crate::error::Error;
use context_window::{
    Conversation, ItemId, PlanRequest, RagItem, RequestLimits, Tool, WireFormat,
    conversation::Compaction,
    plan::{Anchor, RemoteContext},
    text::size::Tally,
    text::{plain, size},
};
use context_window_store::Journal;
use document::{Document, line_breaks, split};
use place::Place;
use std::io::{ErrorKind, Read};

mod bounded;
mod path;
mod place;
mod surrogates;
mod timestamp;
mod unread;
mod keys;
mod content;
mod wire;
mod stated;
mod document;
mod misspelt;
mod anthropic;
mod dialects;
mod chat;
mod compacted;
mod gemini;
mod responses;
mod sharegpt;
mod logged;
mod tools;
mod reader;
mod read;
mod pushed;
mod redacted;
mod written;
mod transcript;

use transcript::{Thread, Transcript};

pub use pushed::{push_json, tools_from_json};
pub use written::{SessionTexts, session_json};

/// One session: a conversation, and what its next prompt brings with it.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Model, TokenCounter};
/// use context_window_formats::Session;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// Context that a logged body names and does not hold: its provider adds it (rule B8).
    pub remote: Vec<RemoteContext>,
    /// What the last prompt left behind (rule S5).
    pub previous: Option<Anchor>,
    /// Options that the application had set, as the text of a file of options; with [`session_json`].
    pub options: Option<String>,
    /// The tokenizer that the application counted with, by its name; likewise.
    pub tokenizer: Option<String>,
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
            remote: Vec::new(),
            previous: None,
            options: None,
            tokenizer: None,
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

    /// What of the session is not used, and why, as sentences: compactions that are incomplete or name what is not there (the
    /// messages stay as they are), keys of messages that are probably misspelt, events of a transcript that are no part of
    /// the conversation.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The request for the session's next prompt.
    #[must_use]
    pub fn request(&self) -> PlanRequest<'_> {
        let mut request = PlanRequest::new(&self.log);
        request.focus.clone_from(&self.focus);
        request.state.clone_from(&self.state);
        request.previous.clone_from(&self.previous);
        let request = request.with_remote_context(self.remote.iter().cloned());
        request.with_tools(&self.tools).with_rag(self.rag.iter().cloned()).with_limits(self.limits)
    }
}

/// A conversation and nothing else: no model, tools or documents.
impl From<Conversation> for Session {
    fn from(log: Conversation) -> Self {
        Self::of(log)
    }
}

/// A file of one or many sessions, read one at a time.
///
/// ```
/// use context_window_formats::SessionFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// The sessions of a transcript: each takes several of the documents.
    transcript: Option<Transcript>,
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
            let ignored = torn.map(|torn| unfinished(torn.line, torn.bytes));
            let log = Session { ignored: ignored.into_iter().collect(), ..Session::of(log) };
            return Ok(Self {
                name: name.into(),
                text: String::new(),
                documents: Vec::new(),
                log: Some(log),
                transcript: None,
            });
        }
        if bytes.starts_with(&GZIP) {
            let detail =
                "is packed with gzip; expected JSON: unpack it first (plan-inspect unpacks by itself)";
            return Err(Error::input(name, detail));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + line_breaks(&error.as_bytes()[..at]);
            Error::input(format!("{name}:{line}"), format!("byte {at} is not UTF-8; expected JSON in UTF-8"))
        })?;
        let (documents, end) = split(name, &text)?;
        let mut transcript = Transcript::of(&text, &documents);
        match (&mut transcript, end) {
            (_, None) => {}
            (Some(transcript), Some(end)) => transcript.unfinished = Some((end.line, end.bytes)),
            (None, Some(end)) => return Err(end.fault),
        }
        if documents.is_empty() {
            return Err(Error::input(
                name,
                "is empty; expected a session (a JSON object or an array of messages)",
            ));
        }
        if transcript.is_some() && tally.values() > size::VALUES_OF_A_LOG {
            return Err(Error::input(name, size::too_many("this transcript", size::VALUES_OF_A_LOG)));
        }
        Ok(Self { name: name.into(), text, documents, log: None, transcript })
    }

    /// How many sessions there are; never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a file without a session is an error")]
    pub fn len(&self) -> usize {
        self.places().count()
    }

    /// The session with this id, or the only one. A session without an id goes by its line number.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` when there are several and no id is given, when none has the id, and when the session cannot
    /// be read.
    pub fn session(&self, id: Option<&str>) -> Result<Session, Error> {
        self.read(self.place(id)?)
    }

    /// Where each session is in the file.
    fn places(&self) -> impl Iterator<Item = SessionPlace<'_>> {
        let log = self.log.iter().map(SessionPlace::Log);
        let threads = self.transcript.iter().flat_map(|transcript| {
            transcript.threads.iter().map(move |thread| SessionPlace::Thread(transcript, thread))
        });
        let documents = self.documents.iter().filter(|_| self.transcript.is_none());
        log.chain(threads).chain(documents.map(SessionPlace::Document))
    }

    /// Where a session is in the file.
    fn place(&self, id: Option<&str>) -> Result<SessionPlace<'_>, Error> {
        let fault = |detail: String| Err(Error::input(&self.name, detail));
        let mut places = self.places();
        match (id, places.next(), places.next()) {
            (_, Some(log @ SessionPlace::Log(_)), _) | (None, Some(log), None) => Ok(log),
            (None, _, _) => {
                fault(format!("holds {} sessions; choose one by its id: {}", self.len(), self.some_ids()))
            }
            (Some(wanted), _, _) => match self.places().find(|place| self.id_of(*place) == wanted) {
                Some(place) => Ok(place),
                None => {
                    let wanted = plain::short(wanted);
                    fault(format!("has no session `{wanted}`; its ids are: {}", self.some_ids()))
                }
            },
        }
    }

    /// The text of the file with one more compaction in one session, as an entry after its messages. Everything else
    /// stays as it is, byte for byte, and a session on one line stays on one. None where its messages are no list of
    /// chat messages (a log, a transcript, or a logged request of another wire format): [`Journal::create`] writes any conversation.
    ///
    /// # Errors
    ///
    /// As [`SessionFile::session`].
    pub fn with_compaction(&self, id: Option<&str>, record: &Compaction) -> Result<Option<String>, Error> {
        let SessionPlace::Document(document) = self.place(id)? else { return Ok(None) };
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
        self.places().map(|place| self.read(place))
    }

    fn read(&self, place: SessionPlace<'_>) -> Result<Session, Error> {
        let (mut session, lone) = match place {
            SessionPlace::Log(log) => (log.clone(), 0),
            SessionPlace::Document(document) => {
                let (text, lone) = surrogates::mended(self.text_of(document));
                (read::session(&text, &self.name, document.line)?, lone)
            }
            SessionPlace::Thread(transcript, thread) => self.thread(transcript, thread)?,
        };
        if lone > 0 {
            let halves =
                if lone == 1 { "half a character".into() } else { format!("{lone} halves of characters") };
            session
                .ignored
                .push(format!("{halves} (\\ud800 to \\udfff without the other half) read as U+FFFD"));
        }
        Ok(session)
    }

    /// A session of a transcript, and the halves of characters in it.
    fn thread(&self, transcript: &Transcript, thread: &Thread) -> Result<(Session, usize), Error> {
        let documents = thread.events.iter().map(|at| &self.documents[*at]);
        let texts: Vec<_> =
            documents.map(|document| (document.line, surrogates::mended(self.text_of(document)))).collect();
        let place = |line| Place { name: &self.name, line };
        let events: Vec<_> = texts.iter().map(|(line, (text, _))| (place(*line), &**text)).collect();
        let lone = texts.iter().map(|(_, (_, lone))| lone).sum();
        let mut session = transcript.session(thread, &events)?;
        let end = transcript.unfinished.map(|(line, bytes)| unfinished(line, bytes as u64));
        session.ignored.extend(end);
        Ok((session, lone))
    }

    fn text_of(&self, document: &Document) -> &str {
        &self.text[document.start..document.end]
    }

    /// The ids of the sessions, in the order of the file; one without an id goes by its line number.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.places().filter(|place| !matches!(place, SessionPlace::Log(_))).map(|place| self.id_of(place))
    }

    fn id_of(&self, place: SessionPlace<'_>) -> String {
        match place {
            SessionPlace::Log(_) => String::new(),
            SessionPlace::Document(document) => {
                let (text, _) = surrogates::mended(self.text_of(document));
                read::id(&text).unwrap_or_else(|| document.place())
            }
            SessionPlace::Thread(_, thread) => {
                let first = thread.events.first().map(|at| self.documents[*at].place());
                thread.id.clone().or(first).unwrap_or_default()
            }
        }
    }

    fn some_ids(&self) -> String {
        const SHOWN: usize = 5;
        let shown: Vec<String> = self.ids().take(SHOWN).map(|id| plain::short(&id).into_owned()).collect();
        let more = self.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        shown.join(", ") + &more
    }
}

/// Where a session is in its file.
#[derive(Clone, Copy)]
enum SessionPlace<'a> {
    Log(&'a Session),
    Document(&'a Document),
    /// Several documents.
    Thread(&'a Transcript, &'a Thread),
}

/// The end of a file that a crash left.
fn unfinished(line: usize, bytes: u64) -> String {
    format!("line {line} is unfinished ({bytes} bytes) and not used")
}

/// What a file packed with gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// So many bytes are read at once.
const CHUNK: usize = 64 << 10;

/// Counts the values of what was read, as far as a session may have them.
fn go_on(tally: &mut Tally, bytes: &[u8], name: &str) -> Result<(), Error> {
    tally.go_on(bytes, size::VALUES).map_err(|excess| {
        Error::input(format!("{name}:{}", excess.line), size::too_many("the session", size::VALUES))
    })
}
