//! Files of one or many sessions.

use crate::{
    error::Error,
    foreign::{self, shape::Shape},
    format::{FileFormat, ReadOptions},
    session::{
        Session, compacted, count_values,
        document::{Document, line_breaks, split, split_one},
        place::Place,
        read, surrogates,
        transcript::{Thread, Transcript, Writer},
        wire,
    },
};
use context_window::{
    conversation::Compaction,
    text::{plain, size, size::Tally},
};
use context_window_store::Journal;
use std::io::{ErrorKind, Read};

impl Session {
    /// Reads a session from its JSON text.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` with line, column and key for JSON that is not a session. Also returns it
    /// for an empty session, and for a text that holds several sessions.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        SessionFile::new("session", text.as_bytes().to_vec())?.session(None)
    }

    /// Reads a session from its JSON text in the format `format`, without detection.
    ///
    /// # Errors
    ///
    /// See [`Session::from_json`].
    pub fn read_as(text: &str, format: FileFormat) -> Result<Self, Error> {
        let options = ReadOptions::new().read_as(format);
        SessionFile::with_options("session", text.as_bytes().to_vec(), options)?.session(None)
    }
}

/// A file of one or many sessions, each read on demand.
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
    /// The JSON values at the top level of the text, in file order.
    documents: Vec<Document>,
    holds: Holds,
    options: ReadOptions,
}

/// The kind of content in a file.
#[derive(Debug)]
enum Holds {
    /// The conversation of a log on disk.
    Log(Box<Session>),
    /// The events of a transcript. A session spans several events.
    Events(Transcript),
    /// The messages of one session, one document per message.
    Messages,
    /// Sessions, one per document. `are_foreign` is true if the first session comes from another tool.
    Sessions { are_foreign: bool },
}

impl SessionFile {
    /// Splits the bytes of a file into sessions. `name` names the file in errors.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` with the place if the bytes are not UTF-8 or not JSON, if the file is
    /// empty, or if it is too large. The limits are 10,000,000 JSON values in a session (40,000,000 in a log
    /// on disk or a transcript) and 10,000,000 sessions.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        Self::with_options(name, bytes, ReadOptions::new())
    }

    /// Splits the bytes of a file as [`SessionFile::new`] does, in the format and the mode (strict or
    /// lenient) of `options`.
    ///
    /// # Errors
    ///
    /// See [`SessionFile::new`]. Also returns an error if the format is a transcript and the file is not one.
    pub fn with_options(name: &str, bytes: Vec<u8>, options: ReadOptions) -> Result<Self, Error> {
        let mut tally = Tally::default();
        count_values(&mut tally, &bytes, name)?;
        Self::counted(name, bytes, &tally, options)
    }

    /// Reads a file, or any other source of sessions, up to the size limits. Counts the JSON values while it
    /// reads, so nothing is built from a file that exceeds them.
    ///
    /// # Errors
    ///
    /// See [`SessionFile::new`]. Also returns an error for more than 1,073,741,824 bytes and if reading
    /// fails.
    pub fn from_reader(name: &str, from: impl Read) -> Result<Self, Error> {
        Self::from_reader_with_options(name, from, ReadOptions::new())
    }

    /// Reads a file as [`SessionFile::from_reader`] does, in the format and the mode (strict or lenient) of
    /// `options`.
    ///
    /// # Errors
    ///
    /// See [`SessionFile::from_reader`] and [`SessionFile::with_options`].
    pub fn from_reader_with_options(
        name: &str,
        mut from: impl Read,
        options: ReadOptions,
    ) -> Result<Self, Error> {
        let (mut bytes, mut tally) = (Vec::new(), Tally::default());
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return Self::counted(name, bytes, &tally, options),
                Ok(read) => &chunk[..read],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::input(name, format!("cannot be read: {error}"))),
            };
            // Checked before the bytes are kept, so memory never exceeds the limit by more than one chunk.
            if (bytes.len() + read.len()) as u64 > size::BYTES {
                let most = plain::grouped(size::BYTES);
                let detail =
                    format!("is larger than {most} bytes uncompressed; expected less: split the file");
                return Err(Error::input(name, detail));
            }
            count_values(&mut tally, read, name)?;
            bytes.extend_from_slice(read);
        }
    }

    /// Splits the bytes of a file whose values have been counted.
    fn counted(name: &str, bytes: Vec<u8>, tally: &Tally, options: ReadOptions) -> Result<Self, Error> {
        if Journal::is_log(&bytes) {
            return Self::journal(name, &bytes, tally, options);
        }
        let text = as_text(name, bytes)?;
        let (documents, end) = split(name, &text)?;
        let wanted = |writer: Writer| options.format.is_none_or(|format| format == writer.format());
        // A named format overrides detection, so a transcript of another writer does not count.
        let transcript =
            Transcript::detect(&text, &documents).filter(|transcript| wanted(transcript.writer()));
        if let Some(mut transcript) = transcript {
            // The events are counted together here, because one session may span the whole file.
            if tally.values() > size::VALUES_OF_A_LOG {
                return Err(Error::input(name, size::too_many("this transcript", size::VALUES_OF_A_LOG)));
            }
            transcript.unfinished = end.map(|end| (end.line, end.bytes));
            return Ok(Self {
                name: name.into(),
                text,
                documents,
                holds: Holds::Events(transcript),
                options,
            });
        }
        if let Some(format) = options.format.filter(|format| Writer::of_format(*format).is_some()) {
            let detail = format!("is not a transcript of {}: no line is one of its events", format.title());
            return Err(Error::input(name, detail));
        }
        // Only a transcript may end in an unfinished line, since its writer may still be running.
        if let Some(end) = end {
            return Err(end.fault);
        }
        let Some(first) = documents.first() else {
            return Err(Error::input(
                name,
                "is empty; expected a session (a JSON object or an array of messages)",
            ));
        };
        let texts = || documents.iter().map(|document| &text[document.start..document.end]);
        let holds = if foreign::are_messages(texts(), options) {
            Holds::Messages
        } else {
            let shape = Shape::read(&text[first.start..first.end], false);
            let by_name = || options.format.and_then(foreign::FormatReader::by_format).is_some();
            let are_foreign = by_name() || options.format.is_none() && foreign::is_known(&shape);
            Holds::Sessions { are_foreign }
        };
        let documents = match holds {
            Holds::Sessions { are_foreign: true } => split_foreign(&text, documents, options),
            _ => documents,
        };
        Ok(Self { name: name.into(), text, documents, holds, options })
    }

    /// Reads the bytes of a log on disk.
    fn journal(name: &str, bytes: &[u8], tally: &Tally, options: ReadOptions) -> Result<Self, Error> {
        if tally.values() > size::VALUES_OF_A_LOG {
            return Err(Error::input(name, size::too_many("this log", size::VALUES_OF_A_LOG)));
        }
        let (log, torn) = Journal::read(name, bytes)?;
        let ignored = torn.map(|torn| unfinished(torn.line, torn.bytes));
        let log = Session::from(log).with_ignored(ignored.into_iter().collect());
        let holds = Holds::Log(Box::new(log));
        Ok(Self { name: name.into(), text: String::new(), documents: Vec::new(), holds, options })
    }

    /// Returns the number of sessions, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a file without a session is an error")]
    pub fn len(&self) -> usize {
        self.places().count()
    }

    /// Returns the session with this id, or the only session. A session without an id is named by its line
    /// number.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` if there are several sessions and no id is given, if no session has the id,
    /// and if the session cannot be read.
    pub fn session(&self, id: Option<&str>) -> Result<Session, Error> {
        match self.place(id) {
            Ok(place) => self.read(place),
            // An error about the content helps more than the ids of sessions that cannot be read either.
            Err(error) => Err(self.unreadable().filter(|_| id.is_none()).unwrap_or(error)),
        }
    }

    /// Returns the error of the first session if none of the first three sessions can be read. In that case
    /// choosing an id would not help.
    fn unreadable(&self) -> Option<Error> {
        const FIRST: usize = 3;
        let mut errors = self.places().take(FIRST).map(|place| self.read(place).err());
        let first = errors.next()??;
        errors.all(|error| error.is_some()).then_some(first)
    }

    /// Iterates over the places of the sessions in the file.
    fn places(&self) -> impl Iterator<Item = SessionPlace<'_>> {
        let log = match &self.holds {
            Holds::Log(log) => Some(SessionPlace::Log(log)),
            Holds::Messages => Some(SessionPlace::Messages),
            _ => None,
        };
        let transcript = match &self.holds {
            Holds::Events(transcript) => Some(transcript),
            _ => None,
        };
        let threads = transcript.into_iter().flat_map(|transcript| {
            transcript.threads.iter().map(move |thread| SessionPlace::Thread(transcript, thread))
        });
        let are_sessions = matches!(self.holds, Holds::Sessions { .. });
        let documents = self.documents.iter().filter(move |_| are_sessions);
        log.into_iter().chain(threads).chain(documents.map(SessionPlace::Document))
    }

    /// Finds the place of a session in the file.
    fn place(&self, id: Option<&str>) -> Result<SessionPlace<'_>, Error> {
        let fault = |detail: String| Err(Error::input(&self.name, detail));
        let mut places = self.places();
        match (id, places.next(), places.next()) {
            // A log or a list of messages is always one session, so the id is not checked.
            (_, Some(one @ (SessionPlace::Log(_) | SessionPlace::Messages)), _) | (None, Some(one), None) => {
                Ok(one)
            }
            (None, _, _) => {
                fault(format!("contains {} sessions; choose one by its id: {}", self.len(), self.some_ids()))
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

    /// Returns the text of the file with one more compaction in one session, as an entry after its messages.
    /// The rest of the file stays the same, byte for byte, and a session on one line stays on one line.
    ///
    /// Returns `None` if the messages are not a list of chat messages (a log, a transcript, or a logged
    /// request of another wire format). Use [`Journal::create`] for those: it writes any conversation.
    ///
    /// # Errors
    ///
    /// See [`SessionFile::session`].
    pub fn with_compaction(&self, id: Option<&str>, record: &Compaction) -> Result<Option<String>, Error> {
        let document = match self.place(id)? {
            SessionPlace::Document(document) => document,
            SessionPlace::Messages
                if read::session(&self.joined().1, &self.name, 1, self.options).is_ok() =>
            {
                let end = self.documents.last().map_or(0, |last| last.end);
                let (before, after) = self.text.split_at(end);
                return Ok(Some(format!("{before}\n{}{after}", compacted::message(record))));
            }
            _ => return Ok(None),
        };
        let text = &self.text[document.start..document.end];
        // A session of another tool is not readable as one of this library, so the entry would not fit in it.
        if read::session(text, &self.name, document.line, self.options).is_err() {
            return Ok(None);
        }
        let range = if text.starts_with('[') {
            0..text.len()
        } else {
            let Ok(wire::Messages { messages }) = serde_json::from_str(text) else { return Ok(None) };
            // `messages` borrows from `text`, so the difference of the pointers is its byte offset.
            let start = messages.get().as_ptr() as usize - text.as_ptr() as usize;
            start..start + messages.get().len()
        };
        let Some(inside) = text[range.clone()].strip_suffix(']') else { return Ok(None) };
        let inside = inside.trim_end();
        let comma = if inside.ends_with('[') { "" } else { "," };
        // A session on one line must stay on one line: in JSON lines, a line break ends the session.
        let line = if text.contains('\n') { "\n" } else { "" };
        let entry = compacted::message(record);
        let (before, after) = self.text.split_at(document.start + range.start + inside.len());
        Ok(Some(format!("{before}{comma}{line}{entry}{after}")))
    }

    /// Iterates over all sessions in file order.
    pub fn sessions(&self) -> impl Iterator<Item = Result<Session, Error>> {
        self.places().map(|place| self.read(place))
    }

    fn read(&self, place: SessionPlace<'_>) -> Result<Session, Error> {
        let (mut session, lone) = match place {
            SessionPlace::Log(log) => (log.clone(), 0),
            SessionPlace::Document(document) => {
                let (text, lone) = surrogates::mended(self.text_of(document));
                (self.document(&text, document.line)?, lone)
            }
            SessionPlace::Messages => {
                let (begins, list) = self.joined();
                let (text, lone) = surrogates::mended(&list);
                (self.document(&text, begins)?, lone)
            }
            SessionPlace::Thread(transcript, thread) => self.thread(transcript, thread)?,
        };
        if lone > 0 {
            let halves =
                if lone == 1 { "1 unpaired surrogate".into() } else { format!("{lone} unpaired surrogates") };
            session
                .ignored
                .push(format!("{halves} (\\ud800 to \\udfff without the other half) replaced by U+FFFD"));
        }
        Ok(session)
    }

    /// Reads a session from its JSON. If it is not a session of this library, tries the formats of other
    /// tools, and looks at all its messages, not only at the first ones as before.
    fn document(&self, text: &str, line: usize) -> Result<Session, Error> {
        let place = Place { name: &self.name, line };
        if let Some(format) = self.options.format {
            return match foreign::FormatReader::by_format(format) {
                Some(reader) if reader.takes(text) => reader.session(text, place, self.options),
                _ => read::session(text, &self.name, line, self.options),
            };
        }
        let look = |whole| {
            let shape = Shape::read(text, whole);
            match foreign::refusal(&shape) {
                Some(detail) => Err(Error::input(format!("{}:{line}", self.name), detail)),
                None => Ok(foreign::FormatReader::fitting(&shape)),
            }
        };
        if matches!(self.holds, Holds::Sessions { are_foreign: true } | Holds::Messages) {
            let readers = look(false)?;
            if !readers.is_empty() {
                return foreign::session(&readers, text, place, self.options);
            }
        }
        // Strict even in a lenient reading: otherwise a file of another tool would pass here with its unknown
        // keys ignored.
        match read::session(text, &self.name, line, ReadOptions { is_lenient: false, ..self.options }) {
            Ok(session) => Ok(session),
            Err(error) => {
                let readers = look(true)?;
                if !readers.is_empty() {
                    foreign::session(&readers, text, place, self.options)
                } else if self.options.is_lenient {
                    read::session(text, &self.name, line, self.options)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Returns the values of the file as one JSON list, and the line on which it begins.
    fn joined(&self) -> (usize, String) {
        let Some(first) = self.documents.first() else { return (1, "[]".into()) };
        let mut joined = String::with_capacity(self.text.len() + self.documents.len() + 2);
        joined.push('[');
        // Copies the white space between documents too, so that line numbers in errors stay correct.
        let mut end = first.start;
        for (nth, document) in self.documents.iter().enumerate() {
            if nth > 0 {
                joined.push(',');
            }
            joined.push_str(&self.text[end..document.end]);
            end = document.end;
        }
        joined.push(']');
        (first.line, joined)
    }

    /// Reads a session of a transcript. Also returns the number of lone surrogates replaced in it.
    fn thread(&self, transcript: &Transcript, thread: &Thread) -> Result<(Session, usize), Error> {
        let documents = thread.events.iter().map(|at| &self.documents[*at]);
        let texts: Vec<_> =
            documents.map(|document| (document.line, surrogates::mended(self.text_of(document)))).collect();
        let place = |line| Place { name: &self.name, line };
        let events: Vec<_> = texts.iter().map(|(line, (text, _))| (place(*line), &**text)).collect();
        let lone = texts.iter().map(|(_, (_, lone))| lone).sum();
        let mut session = transcript.session(thread, &events, self.options.is_lenient)?;
        let end = transcript.unfinished.map(|(line, bytes)| unfinished(line, bytes as u64));
        session.ignored.extend(end);
        Ok((session, lone))
    }

    fn text_of(&self, document: &Document) -> &str {
        &self.text[document.start..document.end]
    }

    /// Iterates over the ids of the sessions in file order. A session without an id is named by its line
    /// number. A log on disk has no id.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.places().filter(|place| !matches!(place, SessionPlace::Log(_))).map(|place| self.id_of(place))
    }

    fn id_of(&self, place: SessionPlace<'_>) -> String {
        match place {
            SessionPlace::Log(_) => String::new(),
            SessionPlace::Messages => "1".into(),
            SessionPlace::Document(document) => {
                let (text, _) = surrogates::mended(self.text_of(document));
                document.id.clone().or_else(|| read::id(&text)).unwrap_or_else(|| document.place())
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

/// The place of a session in its file.
#[derive(Clone, Copy)]
enum SessionPlace<'a> {
    Log(&'a Session),
    /// All documents of the file, as the messages of one session.
    Messages,
    Document(&'a Document),
    /// Several documents: the events of one thread, which is a session of a transcript.
    Thread(&'a Transcript, &'a Thread),
}

/// Splits files of other tools that hold several sessions, so that each session is a document of its own.
fn split_foreign(text: &str, documents: Vec<Document>, options: ReadOptions) -> Vec<Document> {
    let mut all = Vec::with_capacity(documents.len());
    for document in documents {
        match foreign::conversations(&text[document.start..document.end], options) {
            Some(parts) => all.extend(split_one(text, &document, &parts)),
            None => all.push(document),
        }
    }
    all
}

/// Returns the bytes of a file as text, or an error for gzip data and for bytes that are not UTF-8.
fn as_text(name: &str, bytes: Vec<u8>) -> Result<String, Error> {
    if bytes.starts_with(&GZIP) {
        let detail =
            "is compressed with gzip; expected JSON: decompress it first (plan-inspect does so itself)";
        return Err(Error::input(name, detail));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + line_breaks(&error.as_bytes()[..at]);
        Error::input(format!("{name}:{line}"), format!("byte {at} is not UTF-8; expected JSON in UTF-8"))
    })
}

/// Returns the note about the unfinished last line that a crash left in a file.
fn unfinished(line: usize, bytes: u64) -> String {
    format!("line {line} is incomplete ({bytes} bytes) and is not used")
}

/// The first bytes of a file compressed with gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes read at once.
const CHUNK: usize = 64 << 10;
