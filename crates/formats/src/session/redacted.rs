//! Texts that say nothing, each of as many tokens as the one that it stands for.

use crate::error::Error;
use context_window::{
    ContextWindowManager, RagItem, TokenCounter, events::LogEvent, provider::wording, text::size,
};
use serde_json::Value;

/// Words of 2 to 12 bytes with the space before them, two of each length: most tokenizers have each as one token.
const WORDS: [[&str; 2]; 11] = [
    [" a", " I"],
    [" of", " in"],
    [" the", " and"],
    [" that", " with"],
    [" which", " there"],
    [" people", " should"],
    [" because", " through"],
    [" together", " national"],
    [" important", " different"],
    [" government", " experience"],
    [" development", " information"],
];

/// Where the keys of an entry's JSON hold texts.
const TEXT_KEYS: [&str; 2] = ["text", "thinking"];

/// Keys of a part of an unknown type that decide where it is sent, and hold nothing that anybody said.
const KEPT_KEYS: [&str; 6] = ["type", "id", "tool_use_id", "media_type", "mime_type", "mimeType"];

/// Replaces texts for one manager.
pub(super) struct Redactor<'m> {
    manager: &'m ContextWindowManager,
}

impl<'m> Redactor<'m> {
    pub(super) fn new(manager: &'m ContextWindowManager) -> Self {
        Self { manager }
    }

    /// A text of as many tokens. Equal texts give equal ones, and others mostly others.
    pub(super) fn text(&self, text: &str) -> Result<String, Error> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let counter = self.manager.counter();
        let tokens = counter.count(text)?.n;
        filler(text, tokens, |filler| Ok(counter.count(filler)?.n))
    }

    /// A text of as many tokens where it stands: inside of what `around` puts about it.
    pub(super) fn text_in(&self, text: &str, around: impl Fn(&str) -> String) -> Result<String, Error> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let count = |text: &str| Ok(self.manager.counter().count(&around(text))?.n);
        filler(text, count(text)?, count)
    }

    /// The text of a document of as many tokens, its fence included.
    pub(super) fn document(&self, item: &RagItem) -> Result<String, Error> {
        let count = |text: &str| -> Result<u64, Error> {
            let item = RagItem { text: text.into(), ..item.clone() };
            Ok(self.manager.count_document(&item)?.n)
        };
        if item.text.trim().is_empty() {
            return Ok(item.text.to_string());
        }
        filler(&item.text, count(&item.text)?, count)
    }

    /// The text of a document or of state as it was sent: its fence stays.
    fn fenced(&self, sent: &str) -> Result<String, Error> {
        let inside = sent.find(">\n").map(|open| open + 2).zip(sent.rfind("\n</"));
        let Some((open, close)) = inside.filter(|(open, close)| open <= close) else {
            return self.text(sent);
        };
        let (head, tail) = (&sent[..open], &sent[close..]);
        let around = |text: &str| format!("{head}{text}{tail}");
        Ok(around(&self.text_in(&sent[open..close], around)?))
    }

    /// An entry of the log without its texts.
    pub(super) fn event(&self, event: LogEvent) -> Result<LogEvent, Error> {
        let unreadable =
            |error: serde_json::Error| Error::input("entry of the conversation", error.to_string());
        let mut json = serde_json::to_value(event).map_err(unreadable)?;
        self.redact(&mut json)?;
        serde_json::from_value(json).map_err(unreadable)
    }

    fn redact(&self, json: &mut Value) -> Result<(), Error> {
        match json {
            Value::Object(fields) => {
                // A summary is sent with words about it.
                let summary = fields
                    .get("summary")
                    .and_then(Value::as_str)
                    .map(|text| self.text_in(text, |text| wording::summary(text, 0, &[])));
                if let Some(summary) = summary {
                    fields.insert("summary".into(), Value::String(summary?));
                }
                for (key, value) in fields {
                    match value {
                        Value::String(text) if key == "arguments" => *text = self.arguments(text)?,
                        Value::String(url) if key == "url" => *url = image(url),
                        Value::String(json) if key == "json" => *json = self.opaque(json)?,
                        Value::String(text) if TEXT_KEYS.contains(&key.as_str()) => {
                            *text = self.text(text)?;
                        }
                        Value::Object(sent) if key == "sent_with" => {
                            let pairs = sent.values_mut().filter_map(Value::as_array_mut).flatten();
                            for text in pairs.filter_map(|pair| pair.get_mut(1)) {
                                *text = Value::String(self.fenced(text.as_str().unwrap_or_default())?);
                            }
                        }
                        // State inside a compaction: pairs of id and text.
                        Value::Array(pairs) if key == "state" => {
                            for pair in pairs {
                                let id = pair[0].as_str().unwrap_or_default().to_owned();
                                if let Some(Value::String(text)) = pair.get_mut(1) {
                                    *text = self.text_in(text, |text| wording::state(&id, text))?;
                                }
                            }
                        }
                        value => self.redact(value)?,
                    }
                }
            }
            Value::Array(values) => values.iter_mut().try_for_each(|value| self.redact(value))?,
            _ => {}
        }
        Ok(())
    }

    /// A part of an unknown type keeps its type, its ids and its keys, and takes as many tokens as before.
    fn opaque(&self, text: &str) -> Result<String, Error> {
        let Some(mut json) = size::tree(text) else { return self.text(text) };
        let count =
            |json: &Value| -> Result<u64, Error> { Ok(self.manager.counter().count(&json.to_string())?.n) };
        let mut longest = None;
        self.leaves(&mut json, "", &mut String::new(), &mut longest)?;
        // The longest text makes up for what the others differ in.
        let Some((pointer, original)) = longest else { return Ok(json.to_string()) };
        let tokens = self.manager.counter().count(text)?.n;
        let with = |filler: &str| {
            let mut json = json.clone();
            if let Some(leaf) = json.pointer_mut(&pointer) {
                *leaf = Value::String(filler.to_owned());
            }
            json
        };
        Ok(with(&filler(&original, tokens, |filler| count(&with(filler)))?).to_string())
    }

    /// Replaces every text of a part, and finds the longest: its pointer, and what it was.
    fn leaves(
        &self,
        json: &mut Value,
        key: &str,
        pointer: &mut String,
        longest: &mut Option<(String, String)>,
    ) -> Result<(), Error> {
        let known = pointer.len();
        match json {
            Value::String(_) if KEPT_KEYS.contains(&key) => {}
            Value::String(text) => {
                let replaced = self.text(text)?;
                let original = std::mem::replace(text, replaced);
                if longest.as_ref().is_none_or(|(_, most)| most.len() < original.len()) {
                    *longest = Some((pointer.clone(), original));
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    self.leaves(value, key, pointer, longest)?;
                    pointer.truncate(known);
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter_mut().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&at.to_string());
                    self.leaves(value, "", pointer, longest)?;
                    pointer.truncate(known);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The arguments of a call stay a JSON object.
    fn arguments(&self, text: &str) -> Result<String, Error> {
        if text.trim().is_empty() || text.trim() == "{}" {
            return Ok(text.to_owned());
        }
        let counter: &TokenCounter = self.manager.counter();
        let object = |filler: &str| format!("{{\"x\":\"{}\"}}", filler.trim_start());
        let tokens = counter.count(text)?.n;
        Ok(object(&filler(text, tokens, |filler| Ok(counter.count(&object(filler))?.n))?))
    }
}

/// The address of another image, of the same kind: inline, of the same media type, or elsewhere.
fn image(url: &str) -> String {
    match url.split_once(',') {
        Some((head, _)) if head.starts_with("data:") => format!("{head},AAAA"),
        _ => "https://redacted.invalid/image".into(),
    }
}

/// A text of about as many bytes that counts `tokens`, or as near to that as words come.
fn filler(text: &str, tokens: u64, count: impl Fn(&str) -> Result<u64, Error>) -> Result<String, Error> {
    let words = |number: u64| words(text, number, tokens);
    let (mut low, mut high) = (1, tokens.saturating_mul(2).saturating_add(8));
    // Counts grow with the number of words: the fewest that reach it.
    while low < high {
        let middle = low + (high - low) / 2;
        if count(&words(middle))? < tokens { low = middle + 1 } else { high = middle }
    }
    Ok(words(low))
}

/// So many words, of which as many as the text has tokens come to the bytes of the text.
fn words(text: &str, number: u64, tokens: u64) -> String {
    let (bytes, tokens) = (text.len() as u64, tokens.max(1));
    let (mean, longer) = (bytes / tokens, bytes % tokens);
    let mut choice = blake3::Hasher::new().update(text.as_bytes()).finalize_xof();
    let mut bits = [0u8; 1];
    let mut filler = String::new();
    for at in 0..number {
        choice.fill(&mut bits);
        let length = mean + u64::from(at < longer);
        let of_length = WORDS[usize::try_from(length.clamp(2, 12)).unwrap_or(12) - 2];
        filler.push_str(of_length[usize::from(bits[0] & 1)]);
    }
    filler
}
