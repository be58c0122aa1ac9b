//! Summaries made without a model (rule C6), and transcripts for models that accept text only. Equal messages
//! always give equal text.

mod words;
mod values;
mod texts;
mod calls;
mod statements;
mod record;
mod earlier;
mod selection;
mod transcript;

pub(super) use earlier::Earlier;
pub(super) use transcript::{Line, lines, newest};

use crate::{error::Error, message::Message, tokens::TokenCounter};
use record::{Entry, Record};
use selection::{MOST_TOUCHED, Selection};
use std::fmt::Write as _;
use texts::{ASKED, BEFORE, LAST, SAID, clipped, indented};

/// Maximum bytes of the assistant's last words.
const LAST_WORDS: usize = 2_000;

/// Builds the digest of messages in at most `most` tokens, beginning with earlier summaries. Written
/// summaries are never truncated. If they need more than half of `most`, the rest of the digest still gets
/// the other half, and the digest exceeds `most` accordingly.
pub(super) fn text(
    earlier: &Earlier,
    messages: &[&Message],
    most: u64,
    counter: &TokenCounter,
) -> Result<String, Error> {
    let mut record = earlier.read_digests();
    record.push_messages(messages);
    record.merge_repeats();
    let carried = earlier.carried();
    let carried = if carried.is_empty() { carried } else { format!("{BEFORE}{carried}\n\n") };
    let carried_tokens = counter.count(&carried)?.tokens;
    let most = most.max(carried_tokens.saturating_add(most / 2));
    let everything = written(&carried, &record);
    if counter.count_up_to(&everything, most)?.tokens <= most {
        return Ok(everything);
    }
    let text = Selection::choose(&record, &carried, most, counter)?.text();
    if !text.is_empty() && counter.count_up_to(&text, most)?.tokens <= most {
        return Ok(text);
    }
    // Not even one line fits.
    Ok(counter.prefix_within(&everything, most)?.0.trim_end().to_owned())
}

/// Writes a digest with everything.
fn written(carried: &str, record: &Record) -> String {
    let mut text = carried.to_owned();
    text.push_str(&selection::folded(record.left_out.calls, record.left_out.failed));
    if !record.said.is_empty() {
        let (kept, left_out) = (record.said.len() as u64, record.left_out.statements);
        let _ = writeln!(text, "{SAID}{kept} of {}):", kept + left_out);
        record.said.iter().for_each(|said| {
            let _ = writeln!(text, "{}", said.line());
        });
    }
    for entry in &record.entries {
        let _ = match entry {
            Entry::Request(request) if request.times == 1 => {
                writeln!(text, "{ASKED}: {}", indented(&request.text))
            }
            Entry::Request(request) => {
                writeln!(text, "{ASKED}, {} times: {}", request.times, indented(&request.text))
            }
            Entry::Call(call) => writeln!(text, "{}", call.line()),
        };
    }
    let touched = record.touched();
    if !touched.is_empty() {
        let first = touched.len().saturating_sub(MOST_TOUCHED);
        let all = touched.len() + record.left_out.touched;
        text.push_str(&selection::touched_heading(touched.len() - first, all));
        for (resource, name) in &touched[first..] {
            let _ = writeln!(text, "- {resource}: {name}");
        }
    }
    if let Some(last) = &record.last {
        let _ = writeln!(text, "{LAST}{}", indented(&clipped(last, LAST_WORDS)));
    }
    text.trim_end().to_owned()
}
