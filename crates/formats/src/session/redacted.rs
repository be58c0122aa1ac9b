//! Meaningless texts with the same number of tokens as the texts that they replace.

use crate::error::Error;
use context_window::{
    ContextWindowManager, Message, RagItem, ToolCall, events::LogEvent, media, plan::Anchor,
    provider::wording, text::size,
};
use serde_json::Value;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

/// Words of 2 to 12 bytes including the leading space, eight of each length. In most tokenizers each is one
/// token. With so many, runs of words rarely occur twice, so no document becomes a near-duplicate.
const WORDS: [[&str; 8]; 11] = [
    [" a", " b", " c", " d", " e", " f", " x", " y"],
    [" of", " in", " to", " is", " it", " on", " we", " as"],
    [" the", " and", " for", " you", " not", " are", " can", " all"],
    [" that", " with", " from", " have", " this", " will", " time", " make"],
    [" which", " there", " their", " about", " other", " would", " these", " first"],
    [" people", " should", " system", " before", " number", " public", " follow", " little"],
    [" because", " through", " between", " another", " without", " program", " company", " general"],
    [" together", " national", " children", " question", " business", " possible", " personal", " research"],
    [
        " important",
        " different",
        " community",
        " something",
        " education",
        " available",
        " companies",
        " including",
    ],
    [
        " government",
        " experience",
        " management",
        " technology",
        " university",
        " production",
        " individual",
        " themselves",
    ],
    [
        " development",
        " information",
        " performance",
        " opportunity",
        " environment",
        " traditional",
        " application",
        " independent",
    ],
];

/// Keys of an entry's JSON whose values are texts.
const TEXT_KEYS: [&str; 2] = ["text", "thinking"];

/// Keys of a part of an unknown type that affect its destination and token count, and contain nothing that a
/// person wrote.
const KEPT_KEYS: [&str; 9] =
    ["type", "id", "tool_use_id", "media_type", "mime_type", "mimeType", "format", "detail", "level"];

/// Endings for a text, each one token in most tokenizers. They are used if words alone do not give the exact
/// token count.
const ENDS: [&str; 9] = [".", "?", "!", "1", "-", ":", "a", " -", ")"];

/// Maximum repetitions of one ending.
const MAX_ENDS: usize = 4;

/// Objects that replace the arguments of a call: the JSON before and after the inserted text.
const OBJECTS: [(&str, &str); 8] = [
    ("{\"x\":\"", "\"}"),
    ("{\"", "\":1}"),
    ("{\"x\":[\"", "\",1]}"),
    ("{\"", "\":\"\"}"),
    ("{ \"", "\": 1 }"),
    ("{\"", "\":[]}"),
    ("{\"", "\":{}}"),
    ("{\"", "\":[{\"x\":1}]}"),
];

/// Replaces the texts of a session, counting with one manager.
pub(super) struct Redactor<'m> {
    manager: &'m ContextWindowManager,
    /// The texts of documents with their replacements. Different documents must stay different, because equal
    /// ones are treated as duplicates.
    documents: RefCell<BTreeMap<String, String>>,
    used: RefCell<BTreeSet<String>>,
    /// The hashes of the texts of documents with those of their replacements.
    hashes: RefCell<BTreeMap<String, String>>,
}

impl<'m> Redactor<'m> {
    pub(super) fn new(manager: &'m ContextWindowManager) -> Self {
        Self { manager, documents: RefCell::default(), used: RefCell::default(), hashes: RefCell::default() }
    }

    /// Returns a text with the same number of tokens. Equal texts give equal results, and different texts
    /// mostly different ones.
    pub(super) fn text(&self, text: &str) -> Result<String, Error> {
        self.text_in(text, str::to_owned)
    }

    /// Returns a text with the same number of tokens in its surroundings: `around` returns the text as it is
    /// counted.
    pub(super) fn text_in(&self, text: &str, around: impl Fn(&str) -> String) -> Result<String, Error> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let count = |text: &str| Ok(self.manager.counter().count(&around(text))?.tokens);
        Ok(find_filler(text, count(text)?, count, |_| true)?.0)
    }

    /// Returns a document with other texts of the same numbers of tokens, delimiters included. Different
    /// texts never get the same result.
    pub(super) fn document(&self, item: &RagItem) -> Result<RagItem, Error> {
        let bare = RagItem { variants: Vec::new(), ..item.clone() };
        let count = |text: &str| {
            let item = RagItem { text: text.into(), ..bare.clone() };
            Ok(self.manager.count_document(&item)?.tokens)
        };
        let replaced = |text: &str| {
            let sizes = self.sizes_with_labels(&bare, text)?;
            let is_same = |filler: &str| {
                sizes.is_empty() || self.sizes_with_labels(&bare, filler).is_ok_and(|other| other == sizes)
            };
            self.document_text(text, count, is_same)
        };
        let mut redacted = RagItem { text: replaced(&item.text)?.into(), ..bare.clone() };
        for (name, text) in &item.variants {
            redacted = redacted.with_variant(name.clone(), replaced(text)?);
        }
        // A label belongs to a document with these texts (rule S16).
        self.hashes.borrow_mut().insert(item.text_fingerprint(), redacted.text_fingerprint());
        Ok(redacted)
    }

    /// Returns the tokens of a document with a text, without a label and with labels of one and two digits.
    /// Returns nothing if documents have no labels. A counter may round, so two texts of the same tokens may
    /// differ with another label.
    fn sizes_with_labels(&self, bare: &RagItem, text: &str) -> Result<Vec<u64>, Error> {
        if !self.manager.requested_config().rag.labels {
            return Ok(Vec::new());
        }
        let item = RagItem { text: text.into(), ..bare.clone() };
        let sizes = [None, Some(1), Some(10)].map(|label| self.manager.count_labelled_document(&item, label));
        sizes.into_iter().map(|size| Ok(size?.tokens)).collect()
    }

    /// Returns the last prompt without texts of messages. Labels belong to the replaced documents.
    pub(super) fn anchor(&self, anchor: Anchor) -> Result<Anchor, Error> {
        let fault = |error: serde_json::Error| Error::input("the last prompt", error.to_string());
        let mut json = serde_json::to_value(anchor.without_rules()).map_err(fault)?;
        if let Some(labels) = json.get_mut("labels") {
            self.relabel(labels);
        }
        serde_json::from_value(json).map_err(fault)
    }

    /// Replaces the hashes of documents beside their labels.
    fn relabel(&self, labels: &mut Value) {
        let given = labels.get_mut("given").and_then(Value::as_array_mut);
        for hash in given.into_iter().flatten().filter_map(|label| label.get_mut(2)) {
            let hashes = self.hashes.borrow();
            if let Some(new) = hash.as_str().and_then(|hash| hashes.get(hash)) {
                *hash = Value::from(new.as_str());
            }
        }
    }

    /// Returns the replacement of a document's text. `count` counts the document with a text, and `is_same`
    /// checks if a replacement has the same tokens in other surroundings too.
    fn document_text(
        &self,
        text: &str,
        count: impl Fn(&str) -> Result<u64, Error>,
        is_same: impl Fn(&str) -> bool,
    ) -> Result<String, Error> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let tokens = count(text)?;
        // Documents that differ only in a final line break share a replacement if it counts the same.
        let key = text.strip_suffix('\n').unwrap_or(text);
        let known = self.documents.borrow().get(key).cloned();
        if let Some(known) = known
            && count(&known)? == tokens
            && is_same(&known)
        {
            return Ok(known);
        }
        let is_new = |filler: &str| !self.used.borrow().contains(filler.trim()) && is_same(filler);
        let (replaced, _) = find_filler(text, tokens, count, is_new)?;
        self.used.borrow_mut().insert(replaced.trim().to_owned());
        self.documents.borrow_mut().insert(key.to_owned(), replaced.clone());
        Ok(replaced)
    }

    /// Replaces the text of a document or state entry inside its sent form. Its delimiters stay.
    fn delimited(&self, sent: &str) -> Result<String, Error> {
        let inside = sent.find(">\n").map(|open| open + 2).zip(sent.rfind("\n</"));
        let Some((open, close)) = inside.filter(|(open, close)| open <= close) else {
            return self.text(sent);
        };
        let (head, inside, tail) = (&sent[..open], &sent[open..close], &sent[close..]);
        let around = |text: &str| format!("{head}{text}{tail}");
        if !sent.starts_with("<document") {
            return Ok(around(&self.text_in(inside, around)?));
        }
        let count = |text: &str| Ok(self.manager.count_sent_document(&around(text))?);
        Ok(around(&self.document_text(inside, count, |_| true)?))
    }

    /// Returns an entry of the log with its texts replaced.
    pub(super) fn event(&self, event: LogEvent) -> Result<LogEvent, Error> {
        let unreadable =
            |error: serde_json::Error| Error::input("entry of the conversation", error.to_string());
        let original = serde_json::to_value(event).map_err(unreadable)?;
        let mut json = original.clone();
        self.redact(&mut json)?;
        if let (Some(message), Some(new)) = (original.get("message"), json.get_mut("message")) {
            self.correct_count(message, new)?;
        }
        serde_json::from_value(json).map_err(unreadable)
    }

    /// Corrects the token count of a message if it differs from the original's. Changes one text, the longest
    /// one that can give the exact count. The tokens of a message are not the sum over its texts, so an equal
    /// count of each text may not be enough.
    fn correct_count(&self, original: &Value, new: &mut Value) -> Result<(), Error> {
        let count = |json: &Value| -> Result<Option<u64>, Error> {
            let Ok(message) = serde_json::from_value::<Message>(json.clone()) else { return Ok(None) };
            Ok(Some(self.manager.count_messages(&[message], &[])?.tokens))
        };
        let Some(tokens) = count(original)? else { return Ok(()) };
        if count(new)? == Some(tokens) {
            return Ok(());
        }
        let mut texts = Vec::new();
        differing(original, new, &mut String::new(), &mut texts);
        texts.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        for (pointer, text) in
            texts.iter().filter(|(pointer, _)| TEXT_KEYS.iter().any(|key| pointer.ends_with(key)))
        {
            let with = |filler: &str| {
                let mut json = new.clone();
                if let Some(leaf) = json.pointer_mut(pointer) {
                    *leaf = Value::from(filler);
                }
                json
            };
            let counted = |filler: &str| Ok(count(&with(filler))?.unwrap_or(u64::MAX));
            let (replaced, exact) = find_filler(text, tokens, counted, |_| true)?;
            if exact {
                *new = with(&replaced);
                return Ok(());
            }
        }
        Ok(())
    }

    fn redact(&self, json: &mut Value) -> Result<(), Error> {
        match json {
            Value::Object(fields) => {
                // Rules that were found in messages are no longer in them once those are replaced. They are
                // kept by events of their own.
                fields.remove("rules");
                if let Some(labels) = fields.get_mut("labels") {
                    self.relabel(labels);
                }
                if let Some(Value::Object(rule)) = fields.get_mut("rule_kept")
                    && let Some(Value::String(text)) = rule.get_mut("text")
                {
                    *text = self.text_in(text, wording::standing_rule)?;
                    return Ok(());
                }
                // A summary is sent inside a standard wording, so its tokens are counted inside it.
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
                        Value::String(url) if key == "url" => *url = media::redacted_url(url),
                        Value::String(json) if key == "json" => *json = self.opaque(json)?,
                        Value::String(text) if TEXT_KEYS.contains(&key.as_str()) => {
                            *text = self.text(text)?;
                        }
                        Value::Object(sent) if key == "sent_with" => {
                            let pairs = sent.values_mut().filter_map(Value::as_array_mut).flatten();
                            for text in pairs.filter_map(|pair| pair.get_mut(1)) {
                                *text = Value::String(self.delimited(text.as_str().unwrap_or_default())?);
                            }
                        }
                        // State entries inside a compaction are pairs of id and text.
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

    /// Replaces the texts in a part of an unknown type. Its type, ids and keys stay, and so does its token
    /// count.
    fn opaque(&self, text: &str) -> Result<String, Error> {
        let Some(mut json) = size::tree(text) else { return self.text(text) };
        let count_text = |json: &str| -> Result<u64, Error> {
            let text = media::counted_text(json);
            Ok(self.manager.counter().count(text.as_deref().unwrap_or(json))?.tokens)
        };
        let spelt = |json: &Value| with_numbers_of(text, &json.to_string());
        let count = |json: &Value| count_text(&spelt(json));
        let data = media::redacted_data(text);
        let mut longest = None;
        self.leaves(&mut json, "", &data, &mut String::new(), &mut longest)?;
        // The longest text compensates for the token differences of the others.
        let Some((pointer, original)) = longest else {
            return Ok(spelt(&json));
        };
        let tokens = count_text(text)?;
        let with = |filler: &str| {
            let mut json = json.clone();
            if let Some(leaf) = json.pointer_mut(&pointer) {
                *leaf = Value::String(filler.to_owned());
            }
            json
        };
        Ok(spelt(&with(&find_filler(&original, tokens, |filler| count(&with(filler)), |_| true)?.0)))
    }

    /// Replaces every text of a part. Records the longest text in `longest`: its JSON pointer and its
    /// original value. Media data is replaced by the values of `data`.
    fn leaves(
        &self,
        json: &mut Value,
        key: &str,
        data: &BTreeMap<String, String>,
        pointer: &mut String,
        longest: &mut Option<(String, String)>,
    ) -> Result<(), Error> {
        let known = pointer.len();
        match json {
            Value::String(text) if text.is_empty() || KEPT_KEYS.contains(&key) => {}
            Value::String(text) if data.contains_key(data_of(text)) => {
                let bare = data_of(text);
                let head = text.len() - bare.len();
                let replaced = data.get(bare).map(String::as_str).unwrap_or_default().to_owned();
                text.truncate(head);
                text.push_str(&replaced);
            }
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
                    self.leaves(value, key, data, pointer, longest)?;
                    pointer.truncate(known);
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter_mut().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&at.to_string());
                    self.leaves(value, "", data, pointer, longest)?;
                    pointer.truncate(known);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces the arguments of a call. A JSON object stays an object and other arguments do not become one,
    /// because that decides the form in which they are sent.
    fn arguments(&self, text: &str) -> Result<String, Error> {
        if text.trim().is_empty() || text.trim() == "{}" {
            return Ok(text.to_owned());
        }
        let count = |arguments: &str| -> Result<u64, Error> {
            let call = ToolCall::new("c", "f", arguments);
            let message = Message::assistant("").with_tool_calls([call]);
            Ok(self.manager.count_messages(&[message], &[])?.tokens)
        };
        let tokens = count(text)?;
        if !size::tree::<Value>(text).is_some_and(|json| json.is_object()) {
            return Ok(find_filler(text, tokens, count, |_| true)?.0);
        }
        let mut nearest = None;
        for (open, close) in OBJECTS {
            let object = |filler: &str| format!("{open}{}{close}", filler.trim_start());
            let (replaced, exact) = find_filler(text, tokens, |filler| count(&object(filler)), |_| true)?;
            if exact {
                return Ok(object(&replaced));
            }
            nearest.get_or_insert_with(|| object(&replaced));
        }
        Ok(nearest.unwrap_or_default())
    }
}

/// Collects the texts in which two values of the same structure differ: each with its JSON pointer and its
/// original value.
fn differing(original: &Value, new: &Value, pointer: &mut String, texts: &mut Vec<(String, String)>) {
    let known = pointer.len();
    match (original, new) {
        (Value::String(text), Value::String(other)) if text != other => {
            texts.push((pointer.clone(), text.clone()));
        }
        (Value::Object(fields), Value::Object(others)) => {
            for (key, value) in fields {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                differing(value, others.get(key).unwrap_or(&Value::Null), pointer, texts);
                pointer.truncate(known);
            }
        }
        (Value::Array(values), Value::Array(others)) => {
            for (at, (value, other)) in values.iter().zip(others).enumerate() {
                pointer.push('/');
                pointer.push_str(&at.to_string());
                differing(value, other, pointer, texts);
                pointer.truncate(known);
            }
        }
        _ => {}
    }
}

/// Returns the data of a data URL, or the whole text if it is not one.
fn data_of(text: &str) -> &str {
    text.strip_prefix("data:").and_then(|url| url.split_once(',')).map_or(text, |(_, data)| data)
}

/// Returns a text of about as many bytes as `text` that counts `tokens` tokens and passes `is_free`, with
/// true. If none is found, returns a text of nearly as many tokens, with false.
fn find_filler(
    text: &str,
    tokens: u64,
    count: impl Fn(&str) -> Result<u64, Error>,
    is_free: impl Fn(&str) -> bool,
) -> Result<(String, bool), Error> {
    let (mut low, mut high) = (1, tokens.saturating_mul(2).saturating_add(8));
    // The count grows with the number of words, so a binary search finds the fewest words that reach it.
    while low < high {
        let middle = low + (high - low) / 2;
        if count(&words(text, middle, tokens, 0))? < tokens { low = middle + 1 } else { high = middle }
    }
    // For a long text, one choice of words gives enough candidates, and each count is slow.
    for choice in 0..if text.len() < 2_000 { 4 } else { 1 } {
        // Endings add tokens, so fewer words are tried too.
        for number in [low, low - 1, low.saturating_sub(2), low + 1] {
            let words = words(text, number, tokens, choice);
            for begun in [words.as_str(), words.trim_start()] {
                let ends = ENDS.iter().flat_map(|end| (1..=MAX_ENDS).map(|times| end.repeat(times)));
                for end in [String::new()].into_iter().chain(ends) {
                    let filler = format!("{begun}{end}");
                    if !filler.trim().is_empty() && is_free(&filler) && count(&filler)? == tokens {
                        return Ok((filler, true));
                    }
                }
            }
        }
    }
    // Many short documents need as many different short texts: all of one letter, then all of two.
    for number in 0..if text.len() < 2_000 { 26 * 27 } else { 0_u32 } {
        let letter = |number: u32| char::from(b'a' + u8::try_from(number % 26).unwrap_or_default());
        let filler: String =
            (number >= 26).then(|| letter(number / 26 - 1)).into_iter().chain([letter(number)]).collect();
        if is_free(&filler) && count(&filler)? == tokens {
            return Ok((filler, true));
        }
    }
    Ok((words(text, low, tokens, 0), false))
}

/// Returns `number` words. The first `tokens` of them have about as many bytes as `text`. Another `choice`
/// selects other words.
fn words(text: &str, number: u64, tokens: u64, choice: u8) -> String {
    let (bytes, tokens) = (text.len() as u64, tokens.max(1));
    let (mean, longer) = (bytes / tokens, bytes % tokens);
    // The hash of the text selects among the words of a length, so equal texts give equal words.
    let mut bits_of_text =
        blake3::Hasher::new().update(text.as_bytes()).update(&vec![0; choice.into()]).finalize_xof();
    let mut bits = [0u8; 1];
    let mut filler = String::new();
    for at in 0..number {
        bits_of_text.fill(&mut bits);
        // The first `longer` words take the remainder of the division, so the bytes add up.
        let length = mean + u64::from(at < longer);
        let of_length = WORDS[usize::try_from(length.clamp(2, 12)).unwrap_or(12) - 2];
        filler.push_str(of_length[usize::from(bits[0] & 7)]);
    }
    filler
}

/// Returns `json` with its numbers spelled as in `original`, which has the same numbers in the same order.
/// This keeps the token counts of numbers.
fn with_numbers_of(original: &str, json: &str) -> String {
    let mut numbers = numbers(original);
    let mut out = String::with_capacity(json.len());
    let mut at = 0;
    for (start, end) in spans(json) {
        out.push_str(&json[at..start]);
        out.push_str(numbers.next().unwrap_or(&json[start..end]));
        at = end;
    }
    out.push_str(&json[at..]);
    out
}

fn numbers(json: &str) -> impl Iterator<Item = &str> {
    spans(json).into_iter().map(|(start, end)| &json[start..end])
}

/// Returns the byte ranges of the numbers in a JSON text.
fn spans(json: &str) -> Vec<(usize, usize)> {
    let (mut spans, mut quoted, mut escaped, mut begun) = (Vec::new(), false, false, None);
    // The final space ends a number at the end of the text.
    for (at, byte) in json.bytes().chain([b' ']).enumerate() {
        let is_part = byte.is_ascii_digit() || begun.is_some() && b"+-.eE".contains(&byte) || byte == b'-';
        match begun {
            Some(start) if !is_part => {
                spans.push((start, at));
                begun = None;
            }
            None if !quoted && is_part => begun = Some(at),
            _ => {}
        }
        if begun.is_none() {
            quoted ^= byte == b'"' && !escaped;
            escaped = quoted && byte == b'\\' && !escaped;
        }
    }
    spans
}
