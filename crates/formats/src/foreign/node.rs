//! A JSON value of another tool's file, with its place and a record of the keys that were read: a key that
//! nobody read and that holds content is an error, so that no reader can lose it by not knowing it.

use crate::{scan, session::keys::KeysWithValues};
use context_window::text::{object::Object, plain};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};

/// A place in a file and what is wrong there.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The keys to it, empty for the whole value.
    pub(crate) path: String,
    /// A sentence: what was found and what was expected.
    pub(crate) detail: String,
}

/// A JSON value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    json: &'a str,
    path: String,
}

impl<'a> Node<'a> {
    /// Makes the node of a whole text, which is JSON.
    pub(crate) fn root(json: &'a str) -> Self {
        Self { json: json.trim(), path: String::new() }
    }

    /// Makes the node of JSON that a place holds as a string, or in another form.
    pub(crate) fn at(json: &'a str, path: &str) -> Self {
        Self { json: json.trim(), path: path.to_owned() }
    }

    fn child(&self, json: &'a str, key: &str) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { json, path }
    }

    /// Returns the value as it is spelt.
    pub(crate) fn json(&self) -> &'a str {
        self.json
    }

    /// Returns the value as JSON without white space around its parts.
    pub(crate) fn compact(&self) -> String {
        plain::compact_json(self.json)
    }

    /// Returns the keys to the value.
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

    /// Makes the error of this value.
    pub(crate) fn fault(&self, detail: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), detail: detail.into() }
    }

    /// Checks that the value is not nested too deep: readers of it are recursive.
    pub(crate) fn check_depth(&self) -> Result<(), Fault> {
        const LONGEST: usize = 4_000;
        if self.path.len() <= LONGEST {
            return Ok(());
        }
        let path = self.path.chars().take(80).collect::<String>() + "...";
        Err(Fault { path, detail: "is nested too deeply to be read".into() })
    }

    /// Makes the error of a value of another type than the expected one.
    pub(crate) fn expected(&self, expected: &str) -> Fault {
        let found = match self.json.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a text",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "a number",
        };
        self.fault(format!("is {found}; expected {expected}"))
    }

    /// Returns the text that the value is.
    pub(crate) fn text(&self) -> Result<String, Fault> {
        serde_json::from_str(self.json).map_err(|_| self.expected("a text"))
    }

    /// Returns the text that the value is, or its JSON if it is another value: tools answer and call with
    /// both.
    pub(crate) fn text_or_json(&self) -> String {
        serde_json::from_str(self.json).unwrap_or_else(|_| self.compact())
    }

    /// Returns the text or number that the value is.
    pub(crate) fn name(&self) -> Result<String, Fault> {
        let is_number = self.json.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        if is_number { Ok(self.json.to_owned()) } else { self.text() }
    }

    /// Returns the number that the value is. Returns `None` if it is none from 0 on.
    pub(crate) fn number(&self) -> Option<u64> {
        serde_json::from_str(self.json).ok()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.json == "true"
    }

    /// Returns the elements of the list that the value is.
    pub(crate) fn list(&self) -> Result<Vec<Node<'a>>, Fault> {
        let all: Vec<&'a RawValue> = serde_json::from_str(self.json).map_err(|_| self.expected("a list"))?;
        let element =
            |(at, raw): (usize, &'a RawValue)| Node { json: raw.get(), path: format!("{}[{at}]", self.path) };
        Ok(all.into_iter().enumerate().map(element).collect())
    }

    /// Returns the only element of the list that the value is, or the value itself.
    pub(crate) fn only(&self, of: &str) -> Result<Node<'a>, Fault> {
        if !self.is_list() {
            return Ok(self.clone());
        }
        let all = self.list()?;
        match &all[..] {
            [one] => Ok(one.clone()),
            all => Err(self.fault(format!("holds {} {of}; expected one", all.len()))),
        }
    }

    /// Returns the keys of the object that the value is.
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

    /// Returns the object that the value is, with the spelling of its values.
    pub(crate) fn as_object(&self) -> Option<Object> {
        Object::parse(self.json)
    }
}

/// The keys of an object, each with a note of who read it.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    node: Node<'a>,
    all: Vec<Field<'a>>,
    /// Keys that were asked for: an unknown key may be one of them, misspelt.
    asked: RefCell<Vec<&'static str>>,
}

#[derive(Debug)]
struct Field<'a> {
    name: String,
    node: Node<'a>,
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

    /// Iterates over the keys with their values, and takes all of them for read.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        self.ignore_all();
        self.all.iter().map(|field| (field.name.as_str(), field.node.clone()))
    }

    /// Iterates over the values, in the order of the keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = Node<'a>> {
        self.all.iter().map(|field| field.node.clone())
    }

    /// Checks whether the object has a key whose value is not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|field| field.name == key && !field.node.is_null())
    }

    /// Reads a key. Returns `None` if the object lacks it or holds null.
    pub(crate) fn get(&self, key: &'static str) -> Option<Node<'a>> {
        self.asked.borrow_mut().push(key);
        // The last of several counts, as serde_json's objects have it.
        let field = self.all.iter().rev().find(|field| field.name == key)?;
        for same in self.all.iter().filter(|field| field.name == key) {
            same.is_read.set(true);
        }
        Some(field.node.clone()).filter(|node| !node.is_null())
    }

    /// Returns the value of a key, which stays unread.
    pub(crate) fn peek(&self, key: &str) -> Option<&Node<'a>> {
        self.all.iter().rev().find(|field| field.name == key).map(|field| &field.node)
    }

    /// Reads the keys that begin with a prefix, each without it.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<(&str, Node<'a>)> {
        let own = self.all.iter().filter_map(|field| Some((field.name.strip_prefix(prefix)?, field)));
        own.map(|(rest, field)| {
            field.is_read.set(true);
            (rest, field.node.clone())
        })
        .collect()
    }

    /// Returns the keys that were not read, with their values.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.all.iter().filter(|field| !field.is_read.get()).map(|field| (field.name.as_str(), &field.node))
    }

    /// Reads the first of several keys that the object has.
    pub(crate) fn first(&self, keys: &[&'static str]) -> Option<Node<'a>> {
        let found: Vec<_> = keys.iter().filter_map(|key| self.get(key)).collect();
        found.into_iter().next()
    }

    /// Reads a key that the object has to have.
    pub(crate) fn need(&self, key: &'static str) -> Result<Node<'a>, Fault> {
        self.get(key).ok_or_else(|| self.node.fault(format!("has no `{key}`")))
    }

    /// Reads the text of a key.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, Fault> {
        self.get(key).map(|node| node.text()).transpose()
    }

    /// Reads the text or number of a key, as ids are; an empty one is none.
    pub(crate) fn name(&self, key: &'static str) -> Result<Option<String>, Fault> {
        let name = self.get(key).map(|node| node.name()).transpose()?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// Reads whether a key is true.
    pub(crate) fn is_true(&self, key: &'static str) -> bool {
        self.get(key).is_some_and(|node| node.is_true())
    }

    /// Takes keys for read that hold nothing of a conversation.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        for key in keys {
            self.get(key);
        }
    }

    /// Takes every key for read.
    pub(crate) fn ignore_all(&self) {
        for field in &self.all {
            field.is_read.set(true);
        }
    }

    /// Checks that no key is left that holds a text, a call or a result.
    pub(crate) fn finish(&self, reading: &mut Reading) -> Result<(), Fault> {
        for field in self.all.iter().filter(|field| !field.is_read.get()) {
            if !scan::is_something(field.node.json) {
                continue;
            }
            if scan::is_metadata(&field.name, field.node.json) {
                if scan::find_prose(field.node.json).is_some() {
                    let key = plain::short(&field.name);
                    reading.note_once(&format!("keys `{key}` are not read; the first holds a text"));
                }
                continue;
            }
            let near = plain::nearest(&field.name, self.asked.borrow().iter().copied());
            let found = scan::find_any(field.node.json).map(|found| found.name);
            let Some(found) = found.or(near.map(|_| "a value")) else { continue };
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            reading.leave(field.node.fault(format!("is not known and holds {found}{near}")))?;
        }
        Ok(())
    }
}

/// A reading of one file: whether it goes on where something is not known, and what it left.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) is_lenient: bool,
    /// Notes on values that are not read.
    pub(crate) notes: Vec<String>,
    left: u64,
}

/// So many notes name what was left; others are counted.
const MOST_NOTES: u64 = 16;

impl Reading {
    /// Makes the reading of one file.
    pub(crate) fn new(is_lenient: bool) -> Self {
        Self { is_lenient, ..Self::default() }
    }

    /// Adds a note for the user.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a note that was not made yet.
    pub(crate) fn note_once(&mut self, note: &str) {
        if !self.notes.iter().any(|own| own == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Adds a note that begins with a number, if there are any.
    pub(crate) fn note_count(&mut self, count: usize, one: &str, many: &str) {
        if count > 0 {
            let what = if count == 1 { one } else { many };
            self.note(format!("{} {what}", plain::grouped(count as u64)));
        }
    }

    /// Leaves what is not known, with a note.
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
            let path = if fault.path.is_empty() { "the whole" } else { &fault.path };
            self.notes.push(format!("left out: {} {}", plain::short_path(path), fault.detail));
        }
        Ok(())
    }

    /// Returns the notes, with the number of those that were not written.
    pub(crate) fn into_notes(mut self) -> Vec<String> {
        let more = self.left.saturating_sub(MOST_NOTES);
        if more > 0 {
            self.notes.push(format!("left out: {} more values that are not known", plain::grouped(more)));
        }
        self.notes
    }

    /// Reads each of several values; a lenient reading leaves those that cannot be read.
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
