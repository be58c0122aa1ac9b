//! Tool calls with their outcomes, and the resources (files and addresses) that they touched.

use super::texts::{message_text, one_line};
use crate::{
    message::{Message, ToolCall},
    text::size,
};
use serde_json::Value;
use std::fmt::Write as _;

/// Maximum bytes of the arguments of a call.
pub(super) const ARGUMENTS: usize = 160;
/// Maximum bytes of the error text of a failed call.
pub(super) const OUTCOME: usize = 160;

/// Argument keys that name the resource of a call.
const RESOURCES: [&str; 9] =
    ["path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "url", "uri"];

/// A tool call and its outcome.
pub(super) struct Call {
    pub(super) name: String,
    arguments: String,
    /// The resource (file or address) of the call.
    pub(super) resource: Option<String>,
    pub(super) outcome: Outcome,
    /// The number of successive calls on one resource that this entry represents.
    pub(super) times: u64,
}

/// The outcome of a call.
pub(super) enum Outcome {
    /// No result is recorded.
    Open,
    /// The call succeeded with a result of this many bytes.
    Done(usize),
    /// The call failed with this error.
    Failed(String),
}

impl Call {
    /// Creates a call without an outcome.
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            name: one_line(&call.name, ARGUMENTS),
            arguments: one_line(&call.arguments, ARGUMENTS),
            resource: resource(&call.arguments),
            outcome: Outcome::Open,
            times: 1,
        }
    }

    /// Formats the call as one line.
    pub(super) fn line(&self) -> String {
        let mut line = format!("- {} {}", self.name, self.arguments);
        if self.times > 1 {
            let _ = write!(line, " ({} times)", self.times);
        }
        match &self.outcome {
            Outcome::Open => line.push_str(OPEN),
            Outcome::Done(bytes) => {
                let _ = write!(line, "{DONE}{bytes} bytes");
            }
            Outcome::Failed(why) => {
                let _ = write!(line, "{FAILED}{why}");
            }
        }
        line
    }

    /// Reads a call from its line in an earlier digest.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let line = line.strip_prefix("- ")?;
        let done = |(call, bytes): (&'_ str, &str)| {
            Some((call.to_owned(), Outcome::Done(bytes.strip_suffix(" bytes")?.parse().ok()?)))
        };
        let failed = |(call, why): (&'_ str, &str)| (call.to_owned(), Outcome::Failed(why.to_owned()));
        let open = line.strip_suffix(OPEN).map(|call| (call.to_owned(), Outcome::Open));
        let done = || line.rsplit_once(DONE).and_then(done);
        let (call, outcome) = open.or_else(done).or_else(|| line.split_once(FAILED).map(failed))?;
        let counted = call.strip_suffix(" times)").and_then(|call| call.rsplit_once(" ("));
        let counted = counted.and_then(|(call, times)| Some((call, times.parse::<u32>().ok()?.into())));
        let (call, times) = counted.unwrap_or((&call, 1));
        let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
        // The earlier digest lists or counts its resource.
        Some(Self { name: name.to_owned(), arguments: arguments.to_owned(), resource: None, outcome, times })
    }

    /// Returns true if the call failed.
    pub(super) fn is_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }
}

const OPEN: &str = ": no result";
const DONE: &str = ": done, ";
const FAILED: &str = ": failed: ";

impl Outcome {
    /// Returns the outcome in a result: failed if the result is marked as failed or begins like an error
    /// message.
    pub(super) fn from_result(result: &Message) -> Self {
        let text = message_text(result);
        let begin: String = text.trim_start().chars().take(64).collect::<String>().to_lowercase();
        let sounds = ["error", "traceback", "fatal:", "failed", "exception", "panicked at", "command failed"];
        if result.is_failed()
            || sounds.iter().any(|opening| begin.starts_with(opening))
            || begin.contains("\"error\"")
        {
            return Self::Failed(one_line(&text, OUTCOME));
        }
        Self::Done(text.len())
    }
}

/// Returns the resource of a call, taken from its arguments.
fn resource(arguments: &str) -> Option<String> {
    let arguments: Value = size::tree(arguments)?;
    let named = RESOURCES.iter().find_map(|key| arguments.get(key)?.as_str());
    named.map(|name| one_line(name, ARGUMENTS))
}
