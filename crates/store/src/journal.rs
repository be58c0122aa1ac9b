//! The log on disk: JSON lines, one record a line, each with its checksum; appended, synced, and never
//! rewritten.

use crate::{
    error::{Error, Repr},
    log_reader::{TruncatedTail, read},
    named_file::{NamedFile, create_private, open_or_create},
    record_line::{line_of, parse, whole_record},
    whole_file::sync_folder,
};
use context_window::{
    Conversation, Message,
    conversation::{Entry, Event},
    events::{
        checksum::checksum,
        record::{Record, StoredEvent, VERSION},
    },
    plan::SentItems,
};
use serde::Serialize;
use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// How often a log that is locked is asked for again, and the pause before that.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The advice of an error after which a record may be on disk or not.
const NOT_KNOWN: &str = "It is not known whether the entries were stored: open the log again and compare it with the conversation before it is saved again";

/// A conversation's log in a file that this process alone writes.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use context_window::Message;
/// use context_window_store::Journal;
/// let (mut journal, mut log) = Journal::open("talk.log")?;
/// log.push(Message::user("How long do refunds take?"));
/// journal.save(&log)?; // on disk when this returns
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// The file by its name: others may delete it, or put another one in its place.
    named: NamedFile,
    /// Messages and events that are on disk.
    written: (usize, usize),
    /// Checksums of the last message and event on disk: whether `save` gets the same conversation.
    last: (Option<String>, Option<String>),
    /// The items of the last prompt that is on disk.
    items: Option<SentItems>,
    /// The number of the next record.
    next: u64,
    /// The offset in bytes at which the last whole record ends.
    end: u64,
    /// True if the last record ends without a line break: the next write begins with one.
    missing_newline: bool,
    /// True if a part of a failed write may be after the last whole record.
    has_leftover: bool,
    truncated_tail: Option<TruncatedTail>,
}

/// A record to write: like [`Record`], but a message is borrowed from the conversation.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Written<'a> {
    ContextWindowLog(u32),
    Message(&'a Message),
    Event(StoredEvent),
    Sent(usize, StoredEvent),
}

impl Journal {
    /// Opens a log, or begins one where there is no file, and gives back the conversation as it was:
    /// messages, pins, TTL, compactions, rewinds, level, reports and where the window started. An unfinished
    /// end is dropped ([`Journal::truncated_tail`]). Only its owner may read a new file.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Journal` where the file cannot be read or written, is no regular file, another process
    /// writes it, it is no log (a session file among them: read that with
    /// `context_window_formats::SessionFile` and begin a log with [`Journal::create`]), or a line of it is
    /// damaged; the file is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<(Self, Conversation), Error> {
        let path = path.as_ref();
        let (file, is_new) = open_or_create(path).map_err(|fault| cannot_open(path, &fault))?;
        let mut journal = Self::locked(file, path)?;
        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes).map_err(|error| journal.fault("cannot be read", &error))?;
        let name = path.display().to_string();
        let read = read(&name, &bytes)?;
        (journal.next, journal.end, journal.missing_newline, journal.truncated_tail) =
            (read.next, read.end as u64, read.missing_newline, read.truncated_tail);
        journal.written = read.log.lengths();
        journal.items = read.items;
        journal.last = last_of(&read.log);
        if journal.truncated_tail.is_some() {
            let cut = journal.file.set_len(journal.end).and_then(|()| journal.file.sync_all());
            cut.map_err(|error| journal.fault("cannot truncate the incomplete last record", &error))?;
        }
        if journal.next == 0 {
            journal.append(&[Written::ContextWindowLog(VERSION)])?;
        }
        if is_new {
            sync_folder(path).map_err(|error| journal.fault("its folder cannot be synced", &error))?;
        }
        Ok((journal, read.log))
    }

    /// Begins a log with a conversation that is there already.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Journal` where the file exists or cannot be written.
    pub fn create(path: impl AsRef<Path>, log: &Conversation) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = create_private(path).map_err(|fault| cannot_open(path, &fault))?;
        let journal = Self::begin(file, path, log)?;
        sync_folder(path).map_err(|error| journal.fault("its folder cannot be synced", &error))?;
        Ok(journal)
    }

    /// Begins a log in an empty file that is open.
    ///
    /// # Errors
    ///
    /// As [`Journal::create`].
    #[doc(hidden)]
    pub fn begin(file: File, path: impl AsRef<Path>, log: &Conversation) -> Result<Self, Error> {
        let mut journal = Self::locked(file, path.as_ref())?;
        journal.append(&[Written::ContextWindowLog(VERSION)])?;
        journal.save(log)?;
        Ok(journal)
    }

    /// Appends what happened since the last call, in one write, and waits until it is on disk. What this
    /// confirms is there when the log is opened again, whatever happens after.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Journal` where the disk refuses, or the file was deleted, moved or replaced by another one
    /// while it was open: nothing of it is written then, unless the error says that this is not known, and
    /// another call tries again. Also where the conversation is not the one that this file holds.
    pub fn save(&mut self, log: &Conversation) -> Result<(), Error> {
        let lengths = log.lengths();
        let is_shorter = lengths.0 < self.written.0 || lengths.1 < self.written.1;
        if is_shorter || at_end(log, self.written) != self.last {
            let detail = "holds another conversation, or more of this one; expected the conversation that was opened from it";
            return Err(self.error(detail));
        }
        let mut newest = self.items.clone();
        let entries: Vec<Written<'_>> = log
            .entries_from(self.written.0, self.written.1)
            .map(|entry| match entry {
                Entry::Message(message) => Written::Message(message),
                Entry::Event(event) => match sent_items(event) {
                    Some(items) => {
                        let same = newest.as_ref().map_or(0, |newest| newest.count_shared(&items));
                        let event = with_items(event.clone(), Some(items.without_first(same)));
                        newest = Some(items);
                        Written::Sent(same, event.into())
                    }
                    None => Written::Event(event.clone().into()),
                },
            })
            .collect();
        if entries.is_empty() {
            return self.ensure_named();
        }
        self.append(&entries)?;
        (self.written, self.items, self.last) = (lengths, newest, last_of(log));
        Ok(())
    }

    /// Returns the unfinished end that was dropped when the log was opened, if there was one.
    #[must_use]
    pub fn truncated_tail(&self) -> Option<&TruncatedTail> {
        self.truncated_tail.as_ref()
    }

    /// Reads a conversation from a log's text, without a lock or a write. `name` names it in
    /// errors.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`].
    pub fn read(name: &str, text: &[u8]) -> Result<(Conversation, Option<TruncatedTail>), Error> {
        let read = read(name, text)?;
        Ok((read.log, read.truncated_tail))
    }

    /// Returns true if a text is a log rather than a session file, also if its first line is damaged.
    #[must_use]
    pub fn is_log(text: &[u8]) -> bool {
        let mut lines = text.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        // The damage may be in the line break: then the first two lines are one.
        let is_record = |line: &[u8]| line.starts_with(b"{\"n\":") && whole_record(line).is_some();
        first.len() < 200 && matches!(parse(first, 0), Ok(Record::ContextWindowLog(_)))
            || lines.take(2).any(is_record)
    }

    fn locked(file: File, path: &Path) -> Result<Self, Error> {
        let named = file.metadata().map(|metadata| NamedFile::new(path, &metadata));
        let named = named.map_err(|fault| cannot_open(path, &fault))?;
        lock(&file, path)?;
        Ok(Self {
            file,
            path: path.into(),
            named,
            written: (0, 0),
            last: (None, None),
            items: None,
            next: 0,
            end: 0,
            missing_newline: false,
            has_leftover: false,
            truncated_tail: None,
        })
    }

    fn append(&mut self, records: &[Written<'_>]) -> Result<(), Error> {
        let mut text = String::new();
        if self.missing_newline {
            text.push('\n');
        }
        for (record, sequence) in records.iter().zip(self.next..) {
            let record = serde_json::to_string(record).map_err(|error| self.error(&error.to_string()))?;
            text.push_str(&line_of(sequence, &record));
            text.push('\n');
        }
        self.ensure_named()?;
        let written =
            self.write_synced(text.as_bytes()).map_err(|error| format!("cannot be written: {error}"));
        // A file that lost its name meanwhile is confirmed by nobody.
        if let Err(detail) = written.and_then(|()| self.check_name("nothing was confirmed")) {
            return Err(self.take_back(&detail));
        }
        self.end += text.len() as u64;
        self.next += records.len() as u64;
        self.missing_newline = false;
        Ok(())
    }

    fn write_synced(&mut self, text: &[u8]) -> io::Result<()> {
        if self.has_leftover {
            // It must not follow the records that are written now.
            self.file.set_len(self.end)?;
        }
        self.has_leftover = true;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text)?;
        self.file.sync_data()?;
        self.has_leftover = false;
        Ok(())
    }

    /// Removes the records of a write that failed, so that they are not there later. Returns its error, which
    /// says if that failed too.
    fn take_back(&mut self, detail: &str) -> Error {
        let taken = self.file.set_len(self.end).and_then(|()| self.file.sync_all());
        self.has_leftover = taken.is_err();
        match taken {
            Ok(()) => self.error(detail),
            Err(_) => self.error(&format!("{detail}. {NOT_KNOWN}")),
        }
    }

    /// Checks before a write that the name of this log still names the file that is open.
    fn ensure_named(&self) -> Result<(), Error> {
        self.check_name("nothing was written").map_err(|detail| self.error(&detail))
    }

    fn check_name(&self, so_far: &str) -> Result<(), String> {
        let advice = "write the conversation to a new log with Journal::create";
        self.named.check().map_err(|fault| format!("{fault}; {so_far}: {advice}"))
    }

    fn fault(&self, what: &str, error: &io::Error) -> Error {
        self.error(&format!("{what}: {error}"))
    }

    fn error(&self, detail: &str) -> Error {
        Error::new(Repr::Journal { place: self.path.display().to_string(), detail: detail.into() })
    }
}

/// Locks a log against other writers, until it is closed.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let error = |detail: String| Err(Error::new(Repr::Journal { place: path.display().to_string(), detail }));
    let mut locked = file.try_lock();
    // A process that this one is just starting holds our files for a moment.
    for _ in 0..LOCK_TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => error(
            "is being written by another process; close that one, or read the log with Journal::read".into(),
        ),
        Err(TryLockError::Error(fault)) => error(format!("cannot be locked: {fault}")),
    }
}

pub(crate) fn cannot_open(path: &Path, fault: &io::Error) -> Error {
    let detail = format!("cannot be opened: {fault}");
    Error::new(Repr::Journal { place: path.display().to_string(), detail })
}

/// Checksums of the last message and the last event of a conversation, without the prompt of an event. They
/// tell whether a conversation continues what is on disk.
fn last_of(log: &Conversation) -> (Option<String>, Option<String>) {
    at_end(log, log.lengths())
}

/// What [`last_of`] gives for a conversation cut to these numbers of messages and events.
fn at_end(log: &Conversation, (messages, events): (usize, usize)) -> (Option<String>, Option<String>) {
    let text = |n: usize, json: serde_json::Result<String>| json.ok().map(|json| checksum(n as u64, &json));
    let message = messages.checked_sub(1).and_then(|at| log.messages().get(at));
    let event =
        events.checked_sub(1).and_then(|at| log.event(at)).map(|event| with_items(event.clone(), None));
    (
        message.and_then(|message| text(messages, serde_json::to_string(message))),
        event.and_then(|event| text(events, serde_json::to_string(&StoredEvent::from(event)))),
    )
}

/// Returns the items of a sent prompt, if the event is one and has them.
fn sent_items(event: &Event) -> Option<SentItems> {
    match event {
        Event::Sent { anchor, .. } => anchor.sent_items(),
        _ => None,
    }
}

/// Sets the items of a sent prompt, if the event is one.
fn with_items(mut event: Event, items: Option<SentItems>) -> Event {
    if let Event::Sent { anchor, .. } = &mut event {
        anchor.set_sent_items(items);
    }
    event
}
