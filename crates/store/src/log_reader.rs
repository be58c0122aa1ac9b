//! The reader of logs. It builds the conversation up to the end of the log or its first damage.

use crate::{
    error::{Error, Repr},
    record_line::{first_line, is_unfinished, parse, whole_record},
};
use context_window::{
    Conversation,
    conversation::Event,
    events::record::{Record, VERSION},
    plan::SentItems,
};

/// An incomplete last record, left by a crash and removed when the log was opened. Nothing in it had been
/// confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TruncatedTail {
    /// The number of its line, from 1.
    pub line: usize,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The content of a log.
pub(crate) struct ReadLog {
    pub(crate) log: Conversation,
    /// The number of the next record.
    pub(crate) next: u64,
    /// The byte offset of the end of the last whole record.
    pub(crate) end: usize,
    /// True if the last record has no line break.
    pub(crate) missing_newline: bool,
    pub(crate) truncated_tail: Option<TruncatedTail>,
    /// The items of the last prompt.
    pub(crate) items: Option<SentItems>,
    /// The first unusable line. Nothing after it was read.
    pub(crate) damage: Option<Damage>,
}

/// An unusable line of a log.
#[derive(Debug)]
pub(crate) struct Damage {
    /// The number of the line, from 1.
    pub(crate) line: usize,
    /// The problem, as the rest of a sentence.
    pub(crate) detail: String,
}

/// The advice for a damaged line that makes the rest of the log unusable.
const CUT: &str = "; restore it from a copy, or cut it off before this line with `plan-inspect repair FILE --cut`, which keeps a copy of the removed lines";

/// The advice for a damaged first line that is followed by intact records.
const WRITE_AGAIN: &str = "; restore it from a copy, or restore this line, which is the same in every log, with `plan-inspect repair FILE --cut`";

/// Reads a whole log, without an incomplete last record. `name` identifies the log in errors.
///
/// # Errors
///
/// Returns `ErrorKind::Journal` for the first unusable line.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<ReadLog, Error> {
    let mut read = read_until_damage(bytes);
    let Some(Damage { line, detail }) = read.damage.take() else { return Ok(read) };
    // The advice depends on the position: only the first line of a log can be restored from nothing.
    let advice = match line {
        1 if read_without_first_line(bytes).is_some() => WRITE_AGAIN,
        1 => "",
        _ => CUT,
    };
    Err(Error::new(Repr::Journal { place: format!("{name}:{line}"), detail: format!("{detail}{advice}") }))
}

/// Reads a log with a damaged first line as if that line were intact, because it is the same in every log.
/// Returns `None` if the first line is a whole record, or if no usable record follows it.
pub(crate) fn read_without_first_line(bytes: &[u8]) -> Option<ReadLog> {
    let first = first_line();
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    // A whole record as the first line belongs to a log of a later version, so it is not damaged.
    if whole_record(line).is_some() {
        return None;
    }
    let read = read_until_damage(&[first.as_bytes(), bytes.get(first.len()..)?].concat());
    (read.next > 1).then_some(read)
}

/// Reads a log up to its first unusable line.
pub(crate) fn read_until_damage(bytes: &[u8]) -> ReadLog {
    let mut read = ReadLog {
        log: Conversation::new(),
        next: 0,
        end: 0,
        missing_newline: false,
        truncated_tail: None,
        items: None,
        damage: None,
    };
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let record = line.strip_suffix(b"\n").unwrap_or(line);
        // `split_inclusive` keeps the line break, so a shorter record means that the line has one.
        let is_ended = record.len() < line.len();
        let taken = match parse(record, read.next) {
            Ok(record) => read.insert(record),
            // A crash can leave only an end without a line break. A line with one was written completely, so
            // it is damaged.
            Err(_) if !is_ended && can_begin(record, read.next) => {
                let rest = (bytes.len() - read.end) as u64;
                read.truncated_tail = Some(TruncatedTail { line: at + 1, bytes: rest });
                return read;
            }
            Err(detail) => Err(explain(&detail, at, &bytes[read.end + line.len()..])),
        };
        if let Err(detail) = taken {
            read.damage = Some(Damage { line: at + 1, detail });
            return read;
        }
        (read.end, read.next) = (read.end + line.len(), read.next + 1);
        read.missing_newline = !is_ended;
    }
    read
}

/// Returns true if the text can be the beginning of record `next`. The first record is the same in every log.
fn can_begin(text: &[u8], next: u64) -> bool {
    if next == 0 { first_line().as_bytes().starts_with(text) } else { is_unfinished(text, next) }
}

/// Extends the description of an unusable line by information from the following lines.
fn explain(detail: &str, at: usize, rest: &[u8]) -> String {
    // An intact record further on shows that the file is a log with damage in its middle.
    let later = rest.split(|byte| *byte == b'\n').find_map(whole_record);
    if at == 0 && later.is_none() {
        return format!("is not a log: {detail}; expected the first line of a log");
    }
    let later = later.map(|(later, _)| format!(", and record {later} follows it")).unwrap_or_default();
    format!("{detail}{later}: the file was changed or damaged, or written by a later version")
}

impl ReadLog {
    /// Appends the next record to the conversation.
    fn insert(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::ContextWindowLog(VERSION) if self.next == 0 => {}
            Record::ContextWindowLog(version) if self.next == 0 => {
                return Err(format!("is a log with version {version}; expected version {VERSION}"));
            }
            _ if self.next == 0 => return Err("is not a log; expected the first line of a log".into()),
            Record::ContextWindowLog(_) => {
                return Err("is the first line of another log; expected a message or an event".into());
            }
            Record::Message(message) => drop(self.log.push(message)),
            Record::Event(event) => self
                .log
                .apply(*event)
                .map_err(|error| format!("{error}; the file was changed, or written by a later version"))?,
            Record::Sent(same, event) => {
                // A prompt is stored as the number of items shared with the previous prompt, and the
                // remaining items.
                let last = self.items.clone().unwrap_or_default();
                let mut event = Event::from(*event);
                if SentItems::default().after_first(same, &last).is_none() {
                    return Err(
                        "repeats more items than the last prompt has; expected at most that many".into()
                    );
                }
                if let Event::Sent { anchor, .. } = &mut event {
                    let items = anchor.sent_items().and_then(|rest| rest.after_first(same, &last));
                    self.items.clone_from(&items);
                    anchor.set_sent_items(items);
                }
                self.log.record(event);
            }
        }
        Ok(())
    }
}
