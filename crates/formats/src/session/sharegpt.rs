//! Conversion of the `conversations` of `ShareGPT` to messages. Calls have no ids there, so results answer
//! them in order.

use super::{unread::Unread, wire};
use context_window::{Message, ToolCall, text::plain};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// A turn of the file.
#[derive(Deserialize)]
#[serde(expecting = "expected a turn: an object with `from` and `value`")]
struct Turn {
    from: String,
    value: Option<String>,
}

/// The speaker of a turn, which identifies the format.
#[derive(Deserialize)]
struct Speaker {
    #[serde(rename = "from")]
    _from: String,
}

/// Returns the turns if the value is a list whose first element has a speaker. Returns `None` for any other
/// value.
pub(super) fn turns(raw: &RawValue) -> Option<Vec<Box<RawValue>>> {
    let turns: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
    serde_json::from_str::<Speaker>(turns.first()?.get()).ok()?;
    Some(turns)
}

/// The messages, and notes on turns that are not read.
pub(super) type Heard = (Vec<Message>, Vec<String>);

/// Converts the turns to messages. An error names the index of the turn and the expected value.
pub(super) fn messages(turns: &[Box<RawValue>], is_lenient: bool) -> Result<Heard, (Option<usize>, String)> {
    let mut read = Read::default();
    for (at, raw) in turns.iter().enumerate() {
        let turn: Turn =
            serde_json::from_str(raw.get()).map_err(|error| (Some(at), plain::without_place(&error)))?;
        let expected = || (Some(at), "has no value; expected a string".to_owned());
        let text = turn.value.ok_or_else(expected)?;
        let is_blank = text.trim().is_empty();
        // A blank turn of an unknown speaker loses nothing, so it is only counted.
        if !read.turn(at, &turn.from, text) && !is_lenient && !is_blank {
            let from = plain::short(&turn.from);
            let detail = format!("has the unknown speaker `{from}` (--lenient leaves it out)");
            return Err((Some(at), detail));
        }
    }
    let note = read
        .unread
        .note("turn is not read: its speaker is unknown", "turns are not read: their speakers are unknown");
    Ok((read.messages, note.into_iter().collect()))
}

#[derive(Default)]
struct Read {
    messages: Vec<Message>,
    /// Ids of the calls that wait for a result.
    open: VecDeque<String>,
    unread: Unread,
}

impl Read {
    /// Reads a turn. Returns false if its speaker is unknown.
    fn turn(&mut self, at: usize, from: &str, text: String) -> bool {
        match from {
            "human" | "user" => self.messages.push(Message::user(text)),
            "gpt" | "assistant" | "model" | "chatgpt" | "bing" | "bard" => self.said(at, text),
            "system" => self.messages.push(Message::system(text)),
            "function_call" | "tool_call" => {
                let calls = calls(&text);
                if calls.is_empty() {
                    self.messages.push(Message::assistant(text));
                } else {
                    self.called(at, "", calls);
                }
            }
            "observation" | "tool" | "tool_response" | "function" | "function_response" => {
                let id = self.open.pop_front().unwrap_or_else(|| format!("call_of_{at}"));
                self.messages.push(Message::tool(id, text));
            }
            other => {
                self.unread.count(other);
                return false;
            }
        }
        true
    }

    /// Reads a turn of the assistant. It may contain calls, each in a `<tool_call>` element.
    fn said(&mut self, at: usize, text: String) {
        let (mut rest, mut beside, mut found) = (&*text, String::new(), Vec::new());
        while let Some((before, after)) = rest.split_once("<tool_call>") {
            // An element that is not closed or holds no call is plain text. The calls before it are kept.
            let Some((inside, behind)) = after.split_once("</tool_call>") else { break };
            let mut inside = calls(inside);
            if inside.is_empty() {
                break;
            }
            beside.push_str(before);
            found.append(&mut inside);
            rest = behind;
        }
        if found.is_empty() {
            self.messages.push(Message::assistant(text));
        } else {
            beside.push_str(rest);
            self.called(at, beside.trim(), found);
        }
    }

    fn called(&mut self, at: usize, text: &str, calls: Vec<wire::CalledFunction>) {
        // Results follow their calls directly, so earlier calls without a result never get one.
        self.open.clear();
        let calls = calls.into_iter().enumerate().map(|(nth, call)| {
            let id = format!("call_{at}_{nth}");
            self.open.push_back(id.clone());
            ToolCall::new(id, call.name, wire::arguments(call.arguments.as_deref()))
        });
        let message = Message::assistant(text).with_tool_calls(calls);
        self.messages.push(message);
    }
}

/// Returns the calls in a text that is one JSON call or a list of them. Returns none for any other text.
fn calls(text: &str) -> Vec<wire::CalledFunction> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map(|call| vec![call]).unwrap_or_default();
    }
    serde_json::from_str(text).unwrap_or_default()
}
