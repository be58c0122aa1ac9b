//! The repair of damaged logs: finds the intact part, lists the lost lines, and cuts them off after saving a
//! copy.

use crate::{
    error::{Error, Repr},
    journal::{cannot_open, lock},
    log_reader::{Damage, ReadLog, read_until_damage, read_without_first_line},
    named_file::ensure_regular,
    record_line::{first_line, whole_record},
    whole_file::{create_copy, sync_folder},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// The maximum shown text of a line, in bytes.
const SHOWN_BYTES: usize = 400;

/// The unusable part of a log, from its damage or its incomplete last record on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDamage {
    /// The number of the first unusable line, from 1.
    pub line: usize,
    /// The problem, as the rest of a sentence. `None` for an incomplete last record, in which nothing was
    /// confirmed.
    pub detail: Option<String>,
    /// This line and all lines after it. Only the first line if intact records follow it.
    pub lost: Vec<LostLine>,
    /// True if the line is the first one of a log and records follow it. The first line is the same in every
    /// log, so it is written again instead of cutting the log.
    pub is_first_line: bool,
    /// The line and problem of a second damage that remains after the first line is written again.
    pub second: Option<(usize, String)>,
}

/// A line that a cut removes from a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its length in bytes, including the line break.
    pub bytes: u64,
    /// The number of its record, if the record is intact.
    pub record: Option<u64>,
    /// The beginning of its record, or of the line if it contains no record.
    pub text: String,
}

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// The number of messages before the damage.
    pub messages: usize,
    /// The number of events before the damage.
    pub events: usize,
    /// The unusable rest of the file, if there is any.
    pub damage: Option<LogDamage>,
    /// The path of the copy of the removed part.
    pub copy: Option<PathBuf>,
}

/// Reads a log and reports its unusable part. Changes nothing.
///
/// # Errors
///
/// Returns `ErrorKind::Journal` if the file cannot be read or is not a log.
pub fn check_log(path: impl AsRef<Path>) -> Result<LogState, Error> {
    let path = path.as_ref();
    let bytes = bytes_of(open(path, false)?, path)?;
    check(path, &bytes).map(|(checked, _)| checked)
}

/// Cuts off a log before its damage or its incomplete last record, or writes its first line again. The
/// removed or replaced part is first written to a new file in the same folder.
///
/// # Errors
///
/// Returns the errors of [`check_log`]. Also fails if another process is writing the log or the copy cannot
/// be written. The log is unchanged then.
pub fn cut_log(path: impl AsRef<Path>) -> Result<LogState, Error> {
    let path = path.as_ref();
    let mut file = open(path, true)?;
    lock(&file, path)?;
    let bytes = bytes_of(file.try_clone().map_err(|fault| cannot_open(path, &fault))?, path)?;
    let (mut checked, end) = check(path, &bytes)?;
    let Some(damage) = &checked.damage else { return Ok(checked) };
    let is_first_line = damage.is_first_line;
    // The copy is synced before the log changes, so that a crash in between loses nothing.
    let lost = if is_first_line { &bytes[..first_line().len()] } else { &bytes[end..] };
    let copied = create_copy(path, &format!("from-line-{}.cut", damage.line)).and_then(|(name, mut copy)| {
        let written = copy.write_all(lost).and_then(|()| copy.sync_all()).and_then(|()| sync_folder(path));
        if written.is_err() {
            // The error is returned. The log still contains everything in the partial copy.
            drop(fs::remove_file(&name));
        }
        written.map(|()| name)
    });
    checked.copy = Some(copied.map_err(|fault| error(path, format!("its copy cannot be written: {fault}")))?);
    let cut = if is_first_line {
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(first_line().as_bytes()))
    } else {
        file.set_len(end as u64)
    };
    let cut = cut.and_then(|()| file.sync_all());
    cut.map_err(|fault| error(path, format!("cannot be changed: {fault}")))?;
    Ok(checked)
}

fn open(path: &Path, writable: bool) -> Result<File, Error> {
    ensure_regular(path).map_err(|detail| error(path, detail))?;
    OpenOptions::new().read(true).write(writable).open(path).map_err(|fault| cannot_open(path, &fault))
}

fn bytes_of(mut file: File, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|fault| error(path, format!("cannot be read: {fault}")))?;
    Ok(bytes)
}

/// Returns the state of a log, and the byte offset of the end of its last whole record.
fn check(path: &Path, bytes: &[u8]) -> Result<(LogState, usize), Error> {
    let ReadLog { log, end, next, damage, truncated_tail, .. } = read_until_damage(bytes);
    let unusable = match (damage, truncated_tail) {
        (Some(damage), _) if next == 0 => return check_first_line(path, bytes, damage.detail),
        (Some(damage), _) => Some((damage.line, Some(damage.detail))),
        (None, Some(tail)) => Some((tail.line, None)),
        (None, None) => None,
    };
    let damage = unusable.map(|(line, detail)| {
        let lost = lost_lines(line, &bytes[end..]);
        LogDamage { line, detail, lost, is_first_line: false, second: None }
    });
    let (messages, events) = log.lengths();
    Ok((LogState { messages, events, damage, copy: None }, end))
}

/// Returns the state of a file whose first line is damaged. It is a log only if intact records follow that
/// line.
fn check_first_line(path: &Path, bytes: &[u8], detail: String) -> Result<(LogState, usize), Error> {
    let Some(mended) = read_without_first_line(bytes) else {
        return Err(Error::new(Repr::Journal { place: format!("{}:1", path.display()), detail }));
    };
    let first = first_line().len();
    let lost = lost_lines(1, &bytes[..first]);
    let second = mended.damage.map(|Damage { line, detail }| (line, detail));
    let damage = LogDamage { line: 1, detail: Some(detail), lost, is_first_line: true, second };
    let (messages, events) = mended.log.lengths();
    Ok((LogState { messages, events, damage: Some(damage), copy: None }, first))
}

fn lost_lines(first: usize, bytes: &[u8]) -> Vec<LostLine> {
    let lines = (first..).zip(bytes.split_inclusive(|byte| *byte == b'\n'));
    let lost = lines.map(|(number, line)| {
        let (record, json) = whole_record(line).unzip();
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]);
        // The number and the checksum mean nothing to a person.
        let found = || shown.split_once("\"record\":").map_or(&*shown, |(_, record)| record).trim_end();
        let text = json.unwrap_or_else(found).chars().take(SHOWN_BYTES).collect();
        LostLine { line: number, bytes: line.len() as u64, record, text }
    });
    lost.collect()
}

fn error(path: &Path, detail: String) -> Error {
    Error::new(Repr::Journal { place: path.display().to_string(), detail })
}
