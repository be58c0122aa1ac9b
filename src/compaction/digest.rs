//! Summaries made without a model (rule C6), and transcripts for models that accept text only. Equal messages
//! always give equal text.

use crate::{
    error::Error,
    message::{Message, Role},
    text::size,
    tokens::TokenCounter,
};
use indexmap::IndexMap;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _};

/// Maximum bytes of a user request in a digest, once it has to be shortened.
const REQUEST: usize = 2_000;
/// Maximum bytes of the arguments of a call.
const ARGUMENTS: usize = 160;
/// Maximum bytes of the error text of a failed call.
const OUTCOME: usize = 160;

/// Maximum bytes of user requests in successive attempts to fit the limit. After the last one, the oldest
/// entries are replaced by counts.
const CLIPS: [usize; 5] = [usize::MAX, REQUEST, 600, 200, 80];

/// The first words of a digest that begins with earlier summaries.
const BEFORE: &str = "Before that: ";

/// Maximum number of listed resources.
const TOUCHED: usize = 20;

/// Argument keys that name the resource of a call.
const RESOURCES: [&str; 9] =
    ["path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "url", "uri"];

/// An event of the conversation, as one entry of a digest.
enum Entry {
    /// A user request, and the number of requests with its text.
    Request(String, u64),
    Call(Call),
}

/// A tool call and its outcome.
struct Call {
    name: String,
    arguments: String,
    /// The resource (file or address) of the call.
    resource: Option<String>,
    outcome: Outcome,
    /// The number of successive calls on one resource that this entry represents.
    times: u64,
}

/// The outcome of a call.
enum Outcome {
    /// No result is recorded.
    Open,
    /// The call succeeded with a result of this many bytes.
    Done(usize),
    /// The call failed with this error.
    Failed(String),
}

/// The earlier summaries at the beginning of a digest.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Summaries written by a model or a person. They are never truncated, because no other source can
    /// replace them.
    pub(super) written: Vec<String>,
    /// Digests, without the written summaries at their beginning. They are truncated to half of the limit.
    pub(super) digests: Vec<String>,
}

impl Earlier {
    /// Adds a digest. `carried` are the written summaries at its beginning, which are kept separately.
    pub(super) fn push_digest(&mut self, text: &str, carried: Vec<String>) {
        // The prefix is compared as text; a digest that was edited by hand may lack it and is then kept as a
        // whole.
        let own = text.strip_prefix(BEFORE).and_then(|rest| rest.strip_prefix(&joined(&carried)));
        let own = if carried.is_empty() { text } else { own.unwrap_or(text) };
        self.digests.push(own.trim().to_owned());
        self.written.extend(carried);
    }
}

/// Joins summaries in the form in which a digest begins with them.
fn joined(summaries: &[String]) -> String {
    let texts = summaries.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Builds the digest of messages in at most `most` tokens, beginning with earlier summaries. Written
/// summaries are never truncated. If they need more than half of `most`, the rest of the digest still gets
/// the other half, and the digest exceeds `most` accordingly.
pub(super) fn text(
    earlier: &Earlier,
    messages: &[&Message],
    most: u64,
    counter: &TokenCounter,
) -> Result<String, Error> {
    let entries = entries(messages);
    let (carried, digests) = (joined(&earlier.written), joined(&earlier.digests));
    let begins = |digests: &str| joined(&[carried.clone(), digests.to_owned()]);
    let carried_tokens =
        if carried.is_empty() { 0 } else { counter.count(&format!("{BEFORE}{carried}\n\n"))?.tokens };
    let most = most.max(carried_tokens.saturating_add(most / 2));
    let last = messages
        .iter()
        .rev()
        .find(|message| message.role() == Role::Assistant && !message_text(message).is_empty());
    let last = last.map(|message| message_text(message));
    let fits = |text: &str| -> Result<bool, Error> { Ok(counter.count_up_to(text, most)?.tokens <= most) };
    let everything = written(&begins(&digests), &entries, last.as_deref(), usize::MAX, 0);
    if fits(&everything)? {
        return Ok(everything);
    }
    // Earlier digests may use half of the remaining limit, so that the newest messages get the other half.
    let earlier = begins(&shortened(&digests, most.saturating_sub(carried_tokens) / 2, counter)?);
    let whole = |clip: usize, folded: usize| written(&earlier, &entries, last.as_deref(), clip, folded);
    for clip in CLIPS {
        let text = whole(clip, 0);
        if fits(&text)? {
            return Ok(text);
        }
    }
    // Replaces the oldest entries by counts, calls before requests, and only as many as necessary. Binary
    // search, because each attempt counts tokens.
    let (mut too_few, mut enough) = (0, entries.len());
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if fits(&whole(CLIPS[4], middle))? { enough = middle } else { too_few = middle }
    }
    let text = whole(CLIPS[4], enough);
    if fits(&text)? {
        return Ok(text);
    }
    Ok(counter.prefix_within(&text, most)?.0.trim_end().to_owned())
}

/// Extracts the entries from messages: user requests, and calls with their outcomes.
fn entries(messages: &[&Message]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    for message in messages {
        match message.role() {
            Role::User => {
                // A user with tools may call one without a word.
                let request = Some(message_text(message)).filter(|text| !text.is_empty());
                entries.extend(request.map(|text| Entry::Request(text, 1)));
            }
            Role::Tool => {
                // The newest open call with this id: ids may repeat in a long conversation.
                let answered = message.answers().and_then(|id| open.iter().rposition(|(call, _)| call == id));
                let Some((_, at)) = answered.map(|at| open.remove(at)) else { continue };
                if let Entry::Call(call) = &mut entries[at] {
                    call.outcome = outcome(message);
                }
            }
            _ => {}
        }
        for call in message.tool_calls() {
            open.push((call.id.clone(), entries.len()));
            entries.push(Entry::Call(Call {
                name: call.name.clone(),
                arguments: one_line(&call.arguments, ARGUMENTS),
                resource: resource(&call.arguments),
                outcome: Outcome::Open,
                times: 1,
            }));
        }
    }
    collapsed(entries)
}

/// Merges successive calls on one resource into the last one, and requests with the same text into the first
/// one. A failed call is kept as a separate entry.
fn collapsed(entries: Vec<Entry>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::new();
    let mut requests = repeated_requests(&entries);
    for entry in entries {
        let mut entry = entry;
        if let Entry::Request(text, times) = &mut entry {
            // The first one has the place, so that the order of different requests stays.
            let Some(all) = requests.remove(text) else { continue };
            *times = all;
        }
        if let (Entry::Call(call), Some(Entry::Call(last))) = (&mut entry, kept.last()) {
            let same = call.resource.is_some() && call.resource == last.resource && call.name == last.name;
            if same && !matches!(last.outcome, Outcome::Failed(_)) {
                call.times = last.times + 1;
                kept.pop();
            }
        }
        kept.push(entry);
    }
    kept
}

/// Counts the requests with each text.
fn repeated_requests(entries: &[Entry]) -> BTreeMap<String, u64> {
    let mut requests = BTreeMap::new();
    for entry in entries {
        if let Entry::Request(text, times) = entry {
            *requests.entry(text.clone()).or_default() += times;
        }
    }
    requests
}

/// Truncates a text to at most `most` tokens and appends the number of bytes cut.
fn shortened(text: &str, most: u64, counter: &TokenCounter) -> Result<String, Error> {
    let (beginning, _) = counter.prefix_within(text.trim(), most)?;
    let more = text.trim().len() - beginning.len();
    Ok(if more == 0 { beginning.into() } else { format!("{} [{more} more bytes]", beginning.trim_end()) })
}

/// Writes a digest. Requests are cut to `clip` bytes, and the oldest `folded` entries become counts.
fn written(earlier: &str, entries: &[Entry], last: Option<&str>, clip: usize, folded: usize) -> String {
    let mut text = String::new();
    if !earlier.is_empty() {
        let _ = writeln!(text, "{BEFORE}{earlier}\n");
    }
    let (old, recent) = split_folded(entries, folded);
    if !old.is_empty() {
        let requests: u64 =
            old.iter().map(|entry| if let Entry::Request(_, times) = entry { *times } else { 0 }).sum();
        let calls = |counts: &dyn Fn(&Call) -> bool| -> u64 {
            let call = |entry: &&Entry| match entry {
                Entry::Call(call) if counts(call) => call.times,
                _ => 0,
            };
            old.iter().map(call).sum()
        };
        let failed = calls(&|call| matches!(call.outcome, Outcome::Failed(_)));
        let mut folded = vec![counted(calls(&|_| true), "tool call")];
        if requests > 0 {
            folded.insert(0, counted(requests, "request"));
        }
        let _ = writeln!(text, "Earlier: {}, {failed} of the calls failed.", folded.join(" and "));
    }
    for entry in recent {
        match entry {
            Entry::Request(request, times) => {
                let _ = match times {
                    1 => writeln!(text, "The user asked: {}", clipped(request, clip)),
                    _ => writeln!(text, "The user asked, {times} times: {}", clipped(request, clip)),
                };
            }
            Entry::Call(call) => {
                let _ = writeln!(text, "- {}", call.line());
            }
        }
    }
    let touched = touched(entries);
    if !touched.is_empty() {
        let more = touched.len().saturating_sub(TOUCHED);
        let of =
            if more > 0 { format!(" (the newest {TOUCHED} of {})", touched.len()) } else { String::new() };
        let _ = writeln!(text, "Touched, with the last call on each{of}:");
        for (resource, name) in touched.iter().skip(more) {
            let _ = writeln!(text, "- {resource}: {name}");
        }
    }
    if let Some(last) = last {
        let _ = writeln!(text, "The assistant said last: {}", clipped(last, clip.min(REQUEST)));
    }
    text.trim_end().to_owned()
}

/// Splits entries into those that become counts and the others. Calls become counts first, then requests, the
/// oldest first.
fn split_folded(entries: &[Entry], folded: usize) -> (Vec<&Entry>, Vec<&Entry>) {
    let calls = entries.iter().filter(|entry| matches!(entry, Entry::Call(_))).count();
    let (mut calls_left, mut requests_left) = (folded.min(calls), folded.saturating_sub(calls));
    entries.iter().partition(|entry| {
        let left = match entry {
            Entry::Call(_) => &mut calls_left,
            Entry::Request(..) => &mut requests_left,
        };
        let folds = *left > 0;
        *left = left.saturating_sub(1);
        folds
    })
}

/// Formats a count with a noun in the singular or plural.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the resources of the calls with the name of the last call on each, in the order of these last
/// calls.
fn touched(entries: &[Entry]) -> IndexMap<&str, &str> {
    let mut touched = IndexMap::new();
    for entry in entries {
        if let Entry::Call(Call { resource: Some(resource), name, .. }) = entry {
            // Removed first, so that a resource moves to the end at each call. The removal is linear in the
            // number of resources.
            touched.shift_remove(resource.as_str());
            touched.insert(resource.as_str(), name.as_str());
        }
    }
    touched
}

impl Call {
    /// Formats the call as one line.
    fn line(&self) -> String {
        let mut line = format!("{} {}", one_line(&self.name, ARGUMENTS), self.arguments);
        if self.times > 1 {
            let _ = write!(line, " ({} times)", self.times);
        }
        match &self.outcome {
            Outcome::Open => line.push_str(": no result"),
            Outcome::Done(bytes) => {
                let _ = write!(line, ": done, {bytes} bytes");
            }
            Outcome::Failed(why) => {
                let _ = write!(line, ": failed: {why}");
            }
        }
        line
    }
}

/// Returns the outcome of a call: failed if the result is marked as failed or begins like an error message.
fn outcome(result: &Message) -> Outcome {
    let text = message_text(result);
    let begin: String = text.trim_start().chars().take(64).collect::<String>().to_lowercase();
    let sounds = ["error", "traceback", "fatal:", "failed", "exception", "panicked at", "command failed"];
    if result.is_failed()
        || sounds.iter().any(|opening| begin.starts_with(opening))
        || begin.contains("\"error\"")
    {
        return Outcome::Failed(one_line(&text, OUTCOME));
    }
    Outcome::Done(text.len())
}

/// Returns the resource of a call, taken from its arguments.
fn resource(arguments: &str) -> Option<String> {
    let arguments: Value = size::tree(arguments)?;
    let named = RESOURCES.iter().find_map(|key| arguments.get(key)?.as_str());
    named.map(|name| one_line(name, ARGUMENTS))
}

/// Returns the text of a message, with a placeholder for each part other than text.
fn message_text(message: &Message) -> String {
    let mut text = message.text().trim().to_owned();
    for part in message.as_texts() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part.trim());
    }
    text
}

/// Joins a text to one line and cuts it to `most` bytes.
fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clipped(&words.join(" "), most)
}

/// Cuts a text to `most` bytes and appends the number of bytes cut.
fn clipped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{} [{} more bytes]", text[..end].trim_end(), text.len() - end)
}

/// Formats a message as lines of a transcript: its text, and the names, arguments and outcomes of its calls.
pub(super) fn lines(message: &Message) -> Vec<String> {
    let text = message_text(message);
    let mut lines = Vec::new();
    match message.role() {
        Role::Tool => lines.push(match outcome(message) {
            Outcome::Failed(why) => format!("Tool result, failed: {why}"),
            _ => format!("Tool result: {}", one_line(&text, OUTCOME * 4)),
        }),
        _ if text.is_empty() => {}
        Role::User => lines.push(format!("User: {text}")),
        Role::Assistant => lines.push(format!("Assistant: {text}")),
        Role::System | Role::Developer => lines.push(format!("System: {text}")),
    }
    let calls = message.tool_calls().iter();
    lines.extend(
        calls.map(|call| format!("Tool call: {} {}", call.name, one_line(&call.arguments, ARGUMENTS * 4))),
    );
    lines
}

/// A line of a transcript: a message, a call or an earlier summary.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    /// True for an earlier summary, which is kept when a transcript is truncated.
    pub(super) is_summary: bool,
}

/// Cuts a transcript to `limit` tokens. Every earlier summary is kept whole. The remaining tokens go to the
/// newest other lines and the beginning of the first line that does not fit. Returns `None` if the summaries
/// do not fit, or if they leave no room for any other line.
pub(super) fn newest(lines: &[Line], limit: u64, counter: &TokenCounter) -> Result<Option<String>, Error> {
    let mut left = limit.saturating_sub(NOTICE_TOKENS);
    for summary in lines.iter().filter(|line| line.is_summary) {
        // One token more than the count, for the line break.
        let tokens = counter.count_up_to(&summary.text, left)?.tokens.saturating_add(1);
        let Some(rest) = left.checked_sub(tokens) else { return Ok(None) };
        left = rest;
    }
    // The index of the first kept line, and the kept beginning of the line before it.
    let (mut first, mut beginning) = (0, "");
    let others = || lines.iter().enumerate().filter(|(_, line)| !line.is_summary);
    for (at, line) in others().rev() {
        let tokens = counter.count_up_to(&line.text, left)?.tokens.saturating_add(1);
        if let Some(rest) = left.checked_sub(tokens) {
            left = rest;
            continue;
        }
        first = at + 1;
        beginning = counter.prefix_within(&line.text, left.saturating_sub(1))?.0.trim_end();
        break;
    }
    if beginning.is_empty() && first > 0 && !lines[first..].iter().any(|line| !line.is_summary) {
        return Ok(None);
    }
    let left_out = others().take_while(|(at, _)| *at < first).count() - usize::from(!beginning.is_empty());
    let mut kept: Vec<&str> = Vec::new();
    let stays = lines[..first].iter().filter(|line| line.is_summary);
    kept.extend(stays.map(|line| line.text.as_str()));
    let gap = format!("[{left_out} earlier lines are left out.]");
    if left_out > 0 {
        kept.push(&gap);
    }
    if !beginning.is_empty() {
        kept.push(beginning);
    }
    kept.extend(lines[first..].iter().map(|line| line.text.as_str()));
    Ok(Some(kept.join("\n")))
}

/// Tokens reserved for the line with the number of omitted lines.
const NOTICE_TOKENS: u64 = 16;
