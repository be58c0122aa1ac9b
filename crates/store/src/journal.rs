//! The log on disk. It has one JSON record per line, each with its checksum. Records are appended and synced,
//! and never rewritten.

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

/// The number of attempts to lock a log that another process has locked.
const LOCK_TRIES: u32 = 10;
/// The pause before each further attempt.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The advice in errors that leave it unknown if a record is on disk.
const NOT_KNOWN: &str = "The entries may or may not be stored: open the log again and compare it with the conversation before you save again";

/// A conversation's log in a file with a single writing process.
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
    /// The name and identity of the file, to detect that others deleted, moved or replaced it.
    named: NamedFile,
    /// The numbers of messages and events on disk.
    written: (usize, usize),
    /// The checksums of the last message and event on disk. `save` uses them to recognize the conversation.
    last: (Option<String>, Option<String>),
    /// The items of the last prompt on disk.
    items: Option<SentItems>,
    /// The number of the next record.
    next: u64,
    /// The byte offset of the end of the last whole record.
    end: u64,
    /// True if the last record has no line break. The next write then begins with one.
    missing_newline: bool,
    /// True if part of a failed write may follow the last whole record.
    has_leftover: bool,
    truncated_tail: Option<TruncatedTail>,
}

/// A record to write. Unlike [`Record`], it borrows messages from the conversation.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Written<'a> {
    ContextWindowLog(u32),
    Message(&'a Message),
    Event(StoredEvent),
    /// A sent prompt, after the number of first items that it shares with the previous one and omits here.
    Sent(usize, StoredEvent),
}

impl Journal {
    /// Opens a log and returns the conversation in it. Creates the log if the file does not exist; only its
    /// owner may read a new file.
    ///
    /// The conversation has all its messages, pins, TTL, compactions, rewinds, usage levels, reports and
    /// window starts. An incomplete last record is removed ([`Journal::truncated_tail`]).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Journal` in these cases, and leaves the file unchanged:
    ///
    /// - The file cannot be read or written, or is not a regular file.
    /// - Another process is writing it.
    /// - It is not a log. Read a session file with `context_window_formats::SessionFile`, and create a log
    ///   for it with [`Journal::create`].
    /// - One of its lines is damaged.
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
        // The incomplete record is removed now, because the next record must start on a line of its own.
        if journal.truncated_tail.is_some() {
            let cut = journal.file.set_len(journal.end).and_then(|()| journal.file.sync_all());
            cut.map_err(|error| journal.fault("cannot truncate the incomplete last record", &error))?;
        }
        // A new or empty file gets its first line at once, so that it is recognized as a log.
        if journal.next == 0 {
            journal.append(&[Written::ContextWindowLog(VERSION)])?;
        }
        if is_new {
            sync_folder(path).map_err(|error| journal.fault("its folder cannot be synced", &error))?;
        }
        Ok((journal, read.log))
    }

    /// Creates a log with an existing conversation.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Journal` if the file exists or cannot be written.
    pub fn create(path: impl AsRef<Path>, log: &Conversation) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = create_private(path).map_err(|fault| cannot_open(path, &fault))?;
        let journal = Self::begin(file, path, log)?;
        sync_folder(path).map_err(|error| journal.fault("its folder cannot be synced", &error))?;
        Ok(journal)
    }

    /// Creates a log in an open, empty file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Journal::create`].
    #[doc(hidden)]
    pub fn begin(file: File, path: impl AsRef<Path>, log: &Conversation) -> Result<Self, Error> {
        let mut journal = Self::locked(file, path.as_ref())?;
        journal.append(&[Written::ContextWindowLog(VERSION)])?;
        journal.save(log)?;
        Ok(journal)
    }

    /// Appends all entries since the last call in one write, and waits until they are on disk. After this
    /// returns, the entries survive a crash.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Journal` in these cases:
    ///
    /// - The disk refuses the write, or the file was deleted, moved or replaced while it was open. Nothing is
    ///   written, unless the error reports that this is unknown. You may call this again.
    /// - The conversation does not continue the one in this file.
    pub fn save(&mut self, log: &Conversation) -> Result<(), Error> {
        let lengths = log.lengths();
        // Entries are only ever appended, so a shorter conversation or another last entry means another
        // conversation.
        let is_shorter = lengths.0 < self.written.0 || lengths.1 < self.written.1;
        if is_shorter || at_end(log, self.written) != self.last {
            let detail = "contains another conversation, or more entries of this one; expected the conversation that was loaded from it";
            return Err(self.error(detail));
        }
        let mut newest = self.items.clone();
        let entries: Vec<Written<'_>> = log
            .entries_from(self.written.0, self.written.1)
            .map(|entry| match entry {
                Entry::Message(message) => Written::Message(message),
                Entry::Event(event) => match sent_items(event) {
                    Some(items) => {
                        // Consecutive prompts usually begin alike: only the items after the shared beginning
                        // are written.
                        let same = newest.as_ref().map_or(0, |newest| newest.count_shared(&items));
                        let event = with_items(event.clone(), Some(items.without_first(same)));
                        newest = Some(items);
                        Written::Sent(same, event.into())
                    }
                    None => Written::Event(event.clone().into()),
                },
            })
            .collect();
        // Even without new entries, a deleted file must not be confirmed.
        if entries.is_empty() {
            return self.ensure_named();
        }
        self.append(&entries)?;
        (self.written, self.items, self.last) = (lengths, newest, last_of(log));
        Ok(())
    }

    /// Returns the incomplete last record that was removed when the log was opened, if there was one.
    #[must_use]
    pub fn truncated_tail(&self) -> Option<&TruncatedTail> {
        self.truncated_tail.as_ref()
    }

    /// Reads a conversation from a log's text, without locking or writing. `name` identifies the log in
    /// errors.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Journal::open`].
    pub fn read(name: &str, text: &[u8]) -> Result<(Conversation, Option<TruncatedTail>), Error> {
        let read = read(name, text)?;
        Ok((read.log, read.truncated_tail))
    }

    /// Returns true if the text is a log rather than a session file. Recognizes logs with a damaged first
    /// line.
    #[must_use]
    pub fn is_log(text: &[u8]) -> bool {
        let mut lines = text.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        // If the first line break is damaged, the first two lines are one. So an intact record on one of the
        // next two lines also identifies a log.
        let is_record = |line: &[u8]| line.starts_with(b"{\"n\":") && whole_record(line).is_some();
        first.len() < 200 && matches!(parse(first, 0), Ok(Record::ContextWindowLog(_)))
            || lines.take(2).any(is_record)
    }

    /// Locks an open file and creates an empty state for it.
    fn locked(file: File, path: &Path) -> Result<Self, Error> {
        let named = file.metadata().map(|metadata| NamedFile::new(path, &metadata));
        let named = named.map_err(|fault| cannot_open(path, &fault))?;
        // The lock comes before any read, so that no other writer can change the bytes that are read.
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

    /// Appends records in one synced write. On failure, removes the written part.
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
        // If the file lost its name during the write, the records are unreachable and must not be confirmed.
        if let Err(detail) = written.and_then(|()| self.check_name("no write was confirmed")) {
            return Err(self.take_back(&detail));
        }
        self.end += text.len() as u64;
        self.next += records.len() as u64;
        self.missing_newline = false;
        Ok(())
    }

    /// Writes at the end of the last whole record, and syncs.
    fn write_synced(&mut self, text: &[u8]) -> io::Result<()> {
        if self.has_leftover {
            // A part of a failed write must not precede the new records.
            self.file.set_len(self.end)?;
        }
        // Set until the sync succeeds: an error in between may leave a part of the text in the file.
        self.has_leftover = true;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text)?;
        self.file.sync_data()?;
        self.has_leftover = false;
        Ok(())
    }

    /// Removes the records of a failed write, so that they do not appear later. Returns the error of the
    /// write. It also reports if the removal failed.
    fn take_back(&mut self, detail: &str) -> Error {
        let taken = self.file.set_len(self.end).and_then(|()| self.file.sync_all());
        self.has_leftover = taken.is_err();
        match taken {
            Ok(()) => self.error(detail),
            Err(_) => self.error(&format!("{detail}. {NOT_KNOWN}")),
        }
    }

    /// Checks before a write that the log's name still refers to the open file.
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

/// Locks a log against other writers until the file is closed.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let error = |detail: String| Err(Error::new(Repr::Journal { place: path.display().to_string(), detail }));
    let mut locked = file.try_lock();
    // A process that is being started inherits the open files, and their locks, for a moment.
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
            "is open for writing in another process; close it there, or read the log with Journal::read"
                .into(),
        ),
        Err(TryLockError::Error(fault)) => error(format!("cannot be locked: {fault}")),
    }
}

pub(crate) fn cannot_open(path: &Path, fault: &io::Error) -> Error {
    let detail = format!("cannot be opened: {fault}");
    Error::new(Repr::Journal { place: path.display().to_string(), detail })
}

/// Returns checksums of the last message and the last event of a conversation. They identify the conversation
/// on disk. The event's checksum ignores the items of its prompt.
fn last_of(log: &Conversation) -> (Option<String>, Option<String>) {
    at_end(log, log.lengths())
}

/// Returns the checksums of [`last_of`] for a conversation cut to these numbers of messages and events.
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

/// Returns the items of a sent prompt, or `None` for other events and for prompts without items.
fn sent_items(event: &Event) -> Option<SentItems> {
    match event {
        Event::Sent { anchor, .. } => anchor.sent_items(),
        _ => None,
    }
}

/// Sets the items of a sent prompt. Leaves other events unchanged.
fn with_items(mut event: Event, items: Option<SentItems>) -> Event {
    if let Event::Sent { anchor, .. } = &mut event {
        anchor.set_sent_items(items);
    }
    event
}
