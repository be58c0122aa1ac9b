//! Readers for the files of other tools. Each reader is a module with two functions: `fits` checks the shape
//! of a file, and `read` returns its conversation. This module selects the reader of a file and creates a
//! session of its result.
//!
//! A reader reads every key that it knows. An unread key is an error if it contains a text, a call or a
//! result (lossless reading, J3).

use crate::{
    error::Error,
    format::{FileFormat, ReadOptions},
    session::{Session, place::Place},
};
use context_window::Part;
use node::{Fault, Node, Reading};
use shape::Shape;
use talk::{Piece, Talk};

pub(crate) mod shape;
pub(crate) mod node;
mod talk;
mod assemble;

mod calls;
mod media;
mod task;

mod ai_sdk;
mod bedrock;
mod chatgpt;
mod claude_ai;
mod cline;
mod cohere;
mod dotnet_ai;
mod gemini_cli;
mod goose;
mod haystack;
mod langchain;
mod llamaindex;
mod mistral;
mod openai_agents;
mod opencode;
mod opentelemetry;
mod pydantic_ai;
mod refused;
mod roo;
mod semantic_kernel;

/// A reader for the files of one tool.
pub(crate) struct FormatReader {
    pub(crate) format: FileFormat,
    /// Checks whether a file has the tool's shape: keys or types that no other format has.
    fits: fn(&Shape) -> bool,
    read: fn(&Node<'_>, &mut Reading) -> Result<Talk, Fault>,
    /// Splits a value that may hold several conversations.
    conversations: Option<Conversations>,
    /// True if the session reader of this library reads all other request bodies of the tool.
    is_session_otherwise: bool,
}

/// A function that returns the conversations of a value, each with its id if that is outside it. It returns
/// `None` for a single conversation.
type Conversations = for<'a> fn(&Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>>;

/// All readers. Their order does not matter: if two fit a file, they must read it the same way.
const READERS: &[FormatReader] = &[
    ai_sdk::READER,
    bedrock::READER,
    chatgpt::READER,
    claude_ai::READER,
    cline::READER,
    cohere::READER,
    dotnet_ai::READER,
    gemini_cli::READER,
    goose::READER,
    haystack::READER,
    langchain::READER,
    llamaindex::READER,
    mistral::READER,
    openai_agents::READER,
    opencode::READER,
    opentelemetry::READER,
    pydantic_ai::READER,
    roo::READER,
    semantic_kernel::READER,
];

/// Returns the parts of a tool result.
///
/// # Errors
///
/// Returns an error for reasoning, a call or a result inside the tool result.
fn parts_of(node: &Node<'_>, pieces: Vec<Piece>) -> Result<Vec<Part>, Fault> {
    let part = |piece| match piece {
        Piece::Part(part) => Ok(part),
        Piece::Thought(_) | Piece::Call(_) | Piece::Answer(_) => {
            Err(node.fault("is a tool result with calls, results or reasoning; expected texts or images"))
        }
    };
    pieces.into_iter().map(part).collect()
}

impl FormatReader {
    const fn new(
        format: FileFormat,
        fits: fn(&Shape) -> bool,
        read: fn(&Node<'_>, &mut Reading) -> Result<Talk, Fault>,
    ) -> Self {
        Self { format, fits, read, conversations: None, is_session_otherwise: false }
    }

    /// Sets the function that splits a value with several conversations.
    const fn with_conversations(mut self, conversations: Conversations) -> Self {
        self.conversations = Some(conversations);
        self
    }

    /// Leaves all other request bodies of the tool to the session reader of this library.
    const fn or_session(mut self) -> Self {
        self.is_session_otherwise = true;
        self
    }

    /// Checks whether the reader applies to a file whose format was named by the user.
    pub(crate) fn takes(&self, json: &str) -> bool {
        !self.is_session_otherwise || (self.fits)(&Shape::read(json, true))
    }

    /// Returns the conversations of a value that holds several.
    pub(crate) fn conversations<'a>(&self, json: &'a str) -> Option<Vec<(Option<String>, &'a str)>> {
        let all = self.conversations?(&Node::root(json))?;
        Some(all.into_iter().map(|(id, node)| (id, node.json())).collect())
    }

    /// Returns the reader of a format. Returns `None` for a format that has no reader here.
    pub(crate) fn by_format(format: FileFormat) -> Option<&'static Self> {
        READERS.iter().find(|reader| reader.format == format)
    }

    /// Returns the readers whose shape matches the file.
    pub(crate) fn fitting(shape: &Shape) -> Vec<&'static Self> {
        READERS.iter().filter(|reader| (reader.fits)(shape)).collect()
    }

    /// Reads one conversation.
    ///
    /// # Errors
    ///
    /// Returns an error with the place for unknown content, unless the reading is lenient, and for a
    /// conversation without a message.
    pub(crate) fn session(
        &self,
        text: &str,
        place: Place<'_>,
        options: ReadOptions,
    ) -> Result<Session, Error> {
        let mut reading = Reading::new(options.is_lenient);
        let fault = |fault: Fault| {
            let path = if fault.path.is_empty() { self.format.name() } else { &fault.path };
            let hint = format!("(read as {}; --lenient reads the rest)", self.format);
            place.fault(path, &format!("{} {hint}", fault.detail))
        };
        let talk = (self.read)(&Node::root(text), &mut reading).map_err(fault)?;
        let session = assemble::session(talk, place, reading);
        session.map_err(|error| error.with_session_place(format!("{}:{}", place.name, place.line)))
    }
}

/// Reads one conversation with the readers that fit. If several can read it, their results must be equal.
///
/// # Errors
///
/// See [`FormatReader::session`]. Also returns an error if two readers read the conversation differently.
pub(crate) fn session(
    readers: &[&FormatReader],
    text: &str,
    place: Place<'_>,
    options: ReadOptions,
) -> Result<Session, Error> {
    let mut read: Vec<(FileFormat, Session)> = Vec::new();
    let mut first_error = None;
    for reader in readers {
        match reader.session(text, place, options) {
            Ok(session) => read.push((reader.format, session)),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    // The errors of other readers do not matter if one reader succeeds.
    let mut read = read.into_iter();
    let Some((format, session)) = read.next() else {
        let none = || place.fault("", "has no known format");
        return Err(first_error.unwrap_or_else(none));
    };
    if let Some((other, _)) = read.find(|(_, other)| !session.says_the_same(other)) {
        let detail = format!(
            "fits {} and {}, which read it differently; choose one with --from {format} or --from {other}",
            format.title(),
            other.title()
        );
        return Err(Error::input(format!("{}:{}", place.name, place.line), detail));
    }
    Ok(session)
}

/// Returns the reason and the remedy for a file of a tool that is known but not read. Returns `None` for any
/// other file.
pub(crate) fn refusal(shape: &Shape) -> Option<String> {
    refused::refusal(shape)
}

/// Checks whether a file belongs to another tool, read or refused.
pub(crate) fn is_known(shape: &Shape) -> bool {
    READERS.iter().any(|reader| (reader.fits)(shape)) || refusal(shape).is_some()
}

/// Returns the conversations of a value that holds several. Returns `None` for a single conversation.
pub(crate) fn conversations(json: &str, options: ReadOptions) -> Option<Vec<(Option<String>, &str)>> {
    let fitting = || FormatReader::fitting(&Shape::read(json, false));
    let readers =
        options.format.map_or_else(fitting, |format| FormatReader::by_format(format).into_iter().collect());
    readers.into_iter().find_map(|reader| reader.conversations(json))
}

/// Checks whether the values of a file are the messages of one session, one per line.
pub(crate) fn are_messages<'a>(
    mut lines: impl Iterator<Item = &'a str> + Clone,
    options: ReadOptions,
) -> bool {
    const OF_SESSIONS: [&str; 5] = ["messages", "chat_messages", "chat_history", "contents", "history"];
    let all = lines.clone();
    let Some(first) = lines.next() else { return false };
    let first = Shape::read(first, false);
    let by_name =
        options.format.and_then(FormatReader::by_format).filter(|reader| !reader.is_session_otherwise);
    // A line with a role and without messages is a single message in every format.
    if by_name.is_none() && first.has("role") && !first.has("messages") {
        return true;
    }
    // Lines with lists of messages are conversations of their own, not the messages of one.
    if OF_SESSIONS.contains(&&*first.container) {
        return false;
    }
    // A single line with a known shape is a whole conversation, not its only message.
    let several = lines.next().is_some();
    let shape = Shape::read_lines(all, false);
    by_name.map_or_else(|| several && is_known(&shape), |reader| (reader.fits)(&shape))
}

#[cfg(test)]
#[expect(clippy::unnecessary_wraps, reason = "a reader may fail")]
mod tests {
    use super::*;
    use context_window::Role;
    use talk::{Entry, Step};

    fn as_is(node: &Node<'_>, _: &mut Reading) -> Result<Talk, Fault> {
        let said = Entry::new(Role::User, vec![Piece::text(node.json())]);
        Ok(Talk { steps: vec![Step::Entry(said)], ..Talk::default() })
    }

    fn reversed(node: &Node<'_>, _: &mut Reading) -> Result<Talk, Fault> {
        let said = Entry::new(Role::User, vec![Piece::text(node.json().chars().rev().collect::<String>())]);
        Ok(Talk { steps: vec![Step::Entry(said)], ..Talk::default() })
    }

    fn never(node: &Node<'_>, _: &mut Reading) -> Result<Talk, Fault> {
        Err(node.fault("matches no format"))
    }

    /// Two formats that fit a file are an error only if they read it differently.
    #[test]
    fn formats_that_read_differently_are_named() {
        let reader = |format, read| FormatReader::new(format, |_| true, read);
        let goose = reader(FileFormat::Goose, as_is);
        let roo = reader(FileFormat::Roo, reversed);
        let cline = reader(FileFormat::Cline, never);
        let place = Place { name: "talk.json", line: 1 };
        let read = |readers: &[&FormatReader], text: &str| session(readers, text, place, ReadOptions::new());
        let said = |session: Session| session.log.messages()[0].text().to_owned();
        assert_eq!(
            read(&[&goose, &roo], "[1]").unwrap_err().to_string(),
            "talk.json:1: fits goose and Roo Code, which read it differently; choose one with --from goose or --from roo"
        );
        assert_eq!(said(read(&[&goose, &roo], "1").unwrap()), "1");
        assert_eq!(said(read(&[&cline, &goose], "[1]").unwrap()), "[1]");
        let error = read(&[&cline], "[1]").unwrap_err().to_string();
        assert!(error.starts_with("talk.json:1: cline: matches no format (read as cline;"), "{error}");
    }
}
