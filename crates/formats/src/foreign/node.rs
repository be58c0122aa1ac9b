//! A JSON value of another tool's file, with its place and a record of the keys that were read. An unread key
//! with content is an error, so a reader cannot lose content that it does not know.

use crate::{scan, session::keys::KeysWithValues};
use context_window::text::{object::Object, plain};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};

/// An error: a place in a file and a description.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The path of keys to the value. It is empty for the whole file.
    pub(crate) path: String,
    /// A sentence that states the value found and the value expected.
    pub(crate) detail: String,
}

/// A JSON value with its path.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    json: &'a str,
    path: String,
}

impl<'a> Node<'a> {
    /// Creates the node of a whole JSON text.
    pub(crate) fn root(json: &'a str) -> Self {
        Self { json: json.trim(), path: String::new() }
    }

    /// Creates a node for JSON from inside a string, or from another form, at the path `path`.
    pub(crate) fn at(json: &'a str, path: &str) -> Self {
        Self { json: json.trim(), path: path.to_owned() }
    }

    fn child(&self, json: &'a str, key: &str) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { json, path }
    }

    /// Returns the JSON of the value, unchanged.
    pub(crate) fn json(&self) -> &'a str {
        self.json
    }

    /// Returns the JSON of the value without white space between tokens.
    pub(crate) fn compact(&self) -> String {
        plain::compact_json(self.json)
    }

    /// Returns the path of keys to the value.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn is_null(&self) -> bool {
        self.json == "null"
    }

    pub(crate) fn is_text(&self) -> bool {
        self.json.starts_with('"')
    }

    pub(crate) fn is_object(&self) -> bool {
        self.json.starts_with('{')
    }

    pub(crate) fn is_list(&self) -> bool {
        self.json.starts_with('[')
    }

    /// Creates an error at this value.
    pub(crate) fn fault(&self, detail: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), detail: detail.into() }
    }

    /// Creates the error for an unknown name. `detail` follows the name in the error.
    pub(crate) fn unknown(&self, detail: &str) -> Fault {
        self.fault(format!("`{}` {detail}", plain::short(&self.text_or_json())))
    }

    /// Checks that the value is not nested too deeply, because its readers are recursive.
    pub(crate) fn check_depth(&self) -> Result<(), Fault> {
        const LONGEST: usize = 4_000;
        // The length of the path bounds the depth, because each level below the first adds to it.
        if self.path.len() <= LONGEST {
            return Ok(());
        }
        let path = self.path.chars().take(80).collect::<String>() + "...";
        Err(Fault { path, detail: "is nested too deeply to be read".into() })
    }

    /// Creates the error for a value of another type than the expected one.
    pub(crate) fn expected(&self, expected: &str) -> Fault {
        let found = match self.json.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        };
        self.fault(format!("is {found}; expected {expected}"))
    }

    /// Returns the value of a JSON string. Returns an error for any other value.
    pub(crate) fn text(&self) -> Result<String, Fault> {
        serde_json::from_str(self.json).map_err(|_| self.expected("a string"))
    }

    /// Returns the value of a JSON string, or the JSON of any other value. Tools use both for arguments and
    /// results.
    pub(crate) fn text_or_json(&self) -> String {
        serde_json::from_str(self.json).unwrap_or_else(|_| self.compact())
    }

    /// Returns a string, or a number as text. Returns an error for any other value.
    pub(crate) fn name(&self) -> Result<String, Fault> {
        let is_number = self.json.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        if is_number { Ok(self.json.to_owned()) } else { self.text() }
    }

    /// Returns a number. Returns `None` for any value that is not an integer from 0.
    pub(crate) fn number(&self) -> Option<u64> {
        serde_json::from_str(self.json).ok()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.json == "true"
    }

    /// Returns the elements of a list.
    pub(crate) fn list(&self) -> Result<Vec<Node<'a>>, Fault> {
        let all: Vec<&'a RawValue> =
            serde_json::from_str(self.json).map_err(|_| self.expected("an array"))?;
        let element =
            |(at, raw): (usize, &'a RawValue)| Node { json: raw.get(), path: format!("{}[{at}]", self.path) };
        Ok(all.into_iter().enumerate().map(element).collect())
    }

    /// Returns the only element of a list, or the value itself if it is not a list.
    pub(crate) fn only(&self, of: &str) -> Result<Node<'a>, Fault> {
        if !self.is_list() {
            return Ok(self.clone());
        }
        let all = self.list()?;
        match &all[..] {
            [one] => Ok(one.clone()),
            all => Err(self.fault(format!("contains {} {of}; expected one", all.len()))),
        }
    }

    /// Returns the keys of an object.
    pub(crate) fn object(&self) -> Result<Fields<'a>, Fault> {
        let entries: KeysWithValues<'a> =
            serde_json::from_str(self.json).map_err(|_| self.expected("an object"))?;
        let field = |(name, raw): (String, &'a RawValue)| Field {
            node: self.child(raw.get(), &name),
            name,
            is_read: Cell::new(false),
        };
        let all = entries.0.into_iter().map(field).collect();
        Ok(Fields { node: self.clone(), all, asked: RefCell::new(Vec::new()) })
    }

    /// Returns an object whose values keep their spelling.
    pub(crate) fn as_object(&self) -> Option<Object> {
        Object::parse(self.json)
    }
}

/// The keys of an object, each with a mark if it was read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    node: Node<'a>,
    all: Vec<Field<'a>>,
    /// Keys that were requested. An unknown key may be a misspelling of one of them.
    asked: RefCell<Vec<&'static str>>,
}

#[derive(Debug)]
struct Field<'a> {
    name: String,
    node: Node<'a>,
    // A cell, so that several closures of a reader can mark keys through a shared reference.
    is_read: Cell<bool>,
}

impl<'a> Fields<'a> {
    /// Returns the object itself.
    pub(crate) fn node(&self) -> &Node<'a> {
        &self.node
    }

    /// Iterates over the names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|field| field.name.as_str())
    }

    /// Iterates over the keys with their values, and marks all of them as read.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        self.ignore_all();
        self.all.iter().map(|field| (field.name.as_str(), field.node.clone()))
    }

    /// Iterates over the values, in the order of the keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = Node<'a>> {
        self.all.iter().map(|field| field.node.clone())
    }

    /// Checks whether the object has a key with a value other than null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|field| field.name == key && !field.node.is_null())
    }

    /// Reads a key. Returns `None` if the key is missing or its value is null.
    pub(crate) fn get(&self, key: &'static str) -> Option<Node<'a>> {
        self.asked.borrow_mut().push(key);
        // The last of several equal keys counts, as in serde_json's objects.
        let field = self.all.iter().rev().find(|field| field.name == key)?;
        for same in self.all.iter().filter(|field| field.name == key) {
            same.is_read.set(true);
        }
        Some(field.node.clone()).filter(|node| !node.is_null())
    }

    /// Returns the value of a key without marking the key as read.
    pub(crate) fn peek(&self, key: &str) -> Option<&Node<'a>> {
        self.all.iter().rev().find(|field| field.name == key).map(|field| &field.node)
    }

    /// Reads the keys with a prefix. Returns each without the prefix.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<(&str, Node<'a>)> {
        let own = self.all.iter().filter_map(|field| Some((field.name.strip_prefix(prefix)?, field)));
        own.map(|(rest, field)| {
            field.is_read.set(true);
            (rest, field.node.clone())
        })
        .collect()
    }

    /// Returns the unread keys with their values.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.all.iter().filter(|field| !field.is_read.get()).map(|field| (field.name.as_str(), &field.node))
    }

    /// Reads all of `keys`, and returns the value of the first one that is present.
    pub(crate) fn first(&self, keys: &[&'static str]) -> Option<Node<'a>> {
        // All keys are read, not only the first one found, so that its synonyms are not reported as unread.
        let found: Vec<_> = keys.iter().filter_map(|key| self.get(key)).collect();
        found.into_iter().next()
    }

    /// Reads a required key.
    pub(crate) fn need(&self, key: &'static str) -> Result<Node<'a>, Fault> {
        self.get(key).ok_or_else(|| self.node.fault(format!("has no `{key}`")))
    }

    /// Reads the text of a key.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, Fault> {
        self.get(key).map(|node| node.text()).transpose()
    }

    /// Reads the text or number of a key, as for ids. Returns `None` if it is empty.
    pub(crate) fn name(&self, key: &'static str) -> Result<Option<String>, Fault> {
        let name = self.get(key).map(|node| node.name()).transpose()?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// Reads a key, and returns true if its value is true.
    pub(crate) fn is_true(&self, key: &'static str) -> bool {
        self.get(key).is_some_and(|node| node.is_true())
    }

    /// Marks keys without conversation content as read.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        for key in keys {
            self.get(key);
        }
    }

    /// Marks every key as read.
    pub(crate) fn ignore_all(&self) {
        for field in &self.all {
            field.is_read.set(true);
        }
    }

    /// Checks that no unread key contains a text, a call or a result.
    pub(crate) fn finish(&self, reading: &mut Reading) -> Result<(), Fault> {
        for field in self.all.iter().filter(|field| !field.is_read.get()) {
            // Null, booleans, numbers and empty values contain nothing that could be lost.
            if !scan::is_something(field.node.json) {
                continue;
            }
            // Applications add such metadata freely, so it is never an error.
            if scan::is_metadata(&field.name, field.node.json) {
                if scan::find_prose(field.node.json).is_some() {
                    let key = plain::short(&field.name);
                    reading.note_once(&format!("keys `{key}` are not read; the first contains text"));
                }
                continue;
            }
            let near = plain::nearest(&field.name, self.asked.borrow().iter().copied());
            let found = scan::find_any(field.node.json).map(|found| found.name);
            // A misspelt key is an error even if its value has no text, since the value was meant to be read.
            let Some(found) = found.or(near.map(|_| "a value")) else { continue };
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            reading.leave(field.node.fault(format!("is unknown and contains {found}{near}")))?;
        }
        Ok(())
    }
}

/// The state of reading one file: the mode, and notes on the omitted values.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) is_lenient: bool,
    /// Notes on values that are not read.
    pub(crate) notes: Vec<String>,
    left: u64,
}

/// Maximum number of notes that name an omitted value. Further values are only counted.
const MOST_NOTES: u64 = 16;

impl Reading {
    /// Creates the state of reading one file.
    pub(crate) fn new(is_lenient: bool) -> Self {
        Self { is_lenient, ..Self::default() }
    }

    /// Adds a note for the user.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a note unless it was added before.
    pub(crate) fn note_once(&mut self, note: &str) {
        if !self.notes.iter().any(|own| own == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Adds a note that begins with a number, unless the number is 0.
    pub(crate) fn note_count(&mut self, count: usize, one: &str, many: &str) {
        if count > 0 {
            let what = if count == 1 { one } else { many };
            self.note(format!("{} {what}", plain::grouped(count as u64)));
        }
    }

    /// Omits an unknown value, with a note.
    ///
    /// # Errors
    ///
    /// Returns the fault if the reading is not lenient.
    pub(crate) fn leave(&mut self, fault: Fault) -> Result<(), Fault> {
        if !self.is_lenient {
            return Err(fault);
        }
        self.left += 1;
        if self.left <= MOST_NOTES {
            let path = if fault.path.is_empty() { "the whole file" } else { &fault.path };
            self.notes.push(format!("left out: {} {}", plain::short_path(path), fault.detail));
        }
        Ok(())
    }

    /// Returns the notes, followed by the number of omitted values without a note.
    pub(crate) fn into_notes(mut self) -> Vec<String> {
        let more = self.left.saturating_sub(MOST_NOTES);
        if more > 0 {
            self.notes.push(format!("left out: {} more unknown values", plain::grouped(more)));
        }
        self.notes
    }

    /// Reads each of several values. A lenient reading omits the ones that cannot be read.
    pub(crate) fn each<'a, T>(
        &mut self,
        nodes: Vec<Node<'a>>,
        mut read: impl FnMut(&Node<'a>, &mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            match read(&node, self) {
                Ok(value) => all.push(value),
                Err(fault) => self.leave(fault)?,
            }
        }
        Ok(all)
    }
}
