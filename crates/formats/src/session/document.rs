//! The JSON values of a file, one after another.

use super::keys::Keys;
use crate::error::Error;
use context_window::text::plain;
use serde_json::value::RawValue;

/// The byte range of one value in the file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The line of its first byte, from 1.
    pub(crate) line: usize,
    /// The position among the values that start on that line, from 1.
    pub(crate) nth: usize,
    /// The id, if it is outside the value.
    pub(crate) id: Option<String>,
}

impl Document {
    /// Returns the name for a session without an id: its line, and its position on the line if it is not the
    /// first.
    pub(crate) fn place(&self) -> String {
        match self.nth {
            1 => self.line.to_string(),
            nth => format!("{}.{nth}", self.line),
        }
    }
}

/// An incomplete value at the end of a file, as during writing or after a crash.
pub(crate) struct Unfinished {
    pub(crate) line: usize,
    pub(crate) bytes: usize,
    /// The error to report if the incomplete value may not be omitted.
    pub(crate) fault: Error,
}

/// Splits a text into its JSON values, and an incomplete value at its end. Each session in a list of sessions
/// becomes a value of its own.
pub(crate) fn split(name: &str, text: &str) -> Result<(Vec<Document>, Option<Unfinished>), Error> {
    let mut documents = Documents { text, counted: 0, line: 1, found: Vec::new() };
    // Some editors write a byte order mark, which is not JSON.
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let marks = text.len() - json.len();
    let mut stream = serde_json::Deserializer::from_str(json).into_iter::<&RawValue>();
    while let Some(value) = stream.next() {
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                let place = format!("{name}:{}:{}", error.line(), error.column());
                let fault = Error::input(place, format!("not JSON: {}", plain::without_place(&error)));
                let end = documents.found.last().map_or(0, |last| last.end);
                let tail = text[end..].trim_start();
                let line = documents.line
                    + line_breaks(&text.as_bytes()[documents.counted..text.len() - tail.len()]);
                // A writer appends whole lines, so only a last line that ends too early is incomplete rather
                // than wrong.
                if !error.is_eof() || tail.contains('\n') {
                    return Err(fault);
                }
                return Ok((documents.found, Some(Unfinished { line, bytes: tail.len(), fault })));
            }
        };
        let start = marks + stream.byte_offset() - value.get().len();
        if !is_export(value.get()) {
            documents.add(start, value.get().len());
            continue;
        }
        let sessions: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        for session in sessions {
            // Both are slices of the same text, so the difference of the pointers is a byte offset.
            let inside = session.get().as_ptr() as usize - value.get().as_ptr() as usize;
            documents.add(start + inside, session.get().len());
        }
    }
    Ok((documents.found, None))
}

struct Documents<'a> {
    text: &'a str,
    /// The length of the text in which line breaks are counted, in bytes.
    counted: usize,
    line: usize,
    found: Vec<Document>,
}

impl Documents<'_> {
    fn add(&mut self, start: usize, length: usize) {
        // Starts are ascending, so counting goes on from the last one and the whole file is scanned once.
        let line = self.line + line_breaks(&self.text.as_bytes()[self.counted..start]);
        (self.line, self.counted) = (line, start);
        let before = self.found.last().filter(|before| before.line == line);
        let nth = before.map_or(1, |before| before.nth + 1);
        self.found.push(Document { start, end: start + length, line, nth, id: None });
    }
}

/// Returns the parts of a document as documents. Each part must be a slice of `text`.
pub(crate) fn split_one(text: &str, whole: &Document, parts: &[(Option<String>, &str)]) -> Vec<Document> {
    let mut documents = Documents { text, counted: whole.start, line: whole.line, found: Vec::new() };
    for (id, part) in parts {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        documents.add(start, part.len());
        if let Some(last) = documents.found.last_mut() {
            last.id.clone_from(id);
        }
    }
    documents.found
}

/// Checks whether a value is a list of sessions. The first element of a list of messages has a role.
fn is_export(value: &str) -> bool {
    let Some(inside) = value.strip_prefix('[') else { return false };
    let mut values = serde_json::Deserializer::from_str(inside).into_iter::<&RawValue>();
    let Some(Ok(first)) = values.next() else { return false };
    let keys = serde_json::from_str::<Keys>(first.get()).map(|keys| keys.0).unwrap_or_default();
    let has = |name: &str| keys.iter().any(|key| key == name);
    ["conversations", "messages", "contents"].into_iter().any(has) && !has("role")
}

pub(crate) fn line_breaks(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}
