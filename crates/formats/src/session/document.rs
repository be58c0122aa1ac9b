//! The JSON values of a file, which stand one after another.

use super::keys::Keys;
use crate::error::Error;
use context_window::text::plain;
use serde_json::value::RawValue;

/// The position of one value in the file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The line it starts on, from 1.
    pub(crate) line: usize,
    /// Which one on that line, from 1.
    pub(crate) nth: usize,
    /// Its id, if that is outside of it.
    pub(crate) id: Option<String>,
}

impl Document {
    /// The name of a session that has no id.
    pub(crate) fn place(&self) -> String {
        match self.nth {
            1 => self.line.to_string(),
            nth => format!("{}.{nth}", self.line),
        }
    }
}

/// The end of a file that is no whole value, as it is while its writer is at work or after a crash.
pub(crate) struct Unfinished {
    pub(crate) line: usize,
    pub(crate) bytes: usize,
    /// What is wrong with it where it may not be left out.
    pub(crate) fault: Error,
}

/// Finds the JSON values of a text, and an end that is none. A list of sessions is each of them by itself.
pub(crate) fn split(name: &str, text: &str) -> Result<(Vec<Document>, Option<Unfinished>), Error> {
    let mut documents = Documents { text, counted: 0, line: 1, found: Vec::new() };
    // A byte order mark is no JSON, and some editors write one.
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
            let inside = session.get().as_ptr() as usize - value.get().as_ptr() as usize;
            documents.add(start + inside, session.get().len());
        }
    }
    Ok((documents.found, None))
}

struct Documents<'a> {
    text: &'a str,
    /// Bytes whose line breaks are counted.
    counted: usize,
    line: usize,
    found: Vec<Document>,
}

impl Documents<'_> {
    fn add(&mut self, start: usize, length: usize) {
        let line = self.line + line_breaks(&self.text.as_bytes()[self.counted..start]);
        (self.line, self.counted) = (line, start);
        let before = self.found.last().filter(|before| before.line == line);
        let nth = before.map_or(1, |before| before.nth + 1);
        self.found.push(Document { start, end: start + length, line, nth, id: None });
    }
}

/// Returns the documents inside of one.
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

/// Checks whether a value is a list of sessions: what begins a list of messages has a role.
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
