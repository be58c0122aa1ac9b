//! Conversion of messages and tools in a provider's form, for a conversation that continues.

use crate::{
    error::Error,
    foreign::{self, FormatReader, shape::Shape},
    format::ReadOptions,
    session::{bounded, count_values, place::Place, read, surrogates, tools, wire},
};
use context_window::{Conversation, ItemId, Tool, WireFormat, conversation::Entry, text::size::Tally};
use std::borrow::Cow;

/// The name of the messages' JSON in errors.
const MESSAGES: &str = "messages";
/// The name of the tools' JSON in errors.
const TOOLS: &str = "tools";

/// Appends messages in a provider's form, a JSON array or a single message, and returns the ids of the new
/// messages. The messages are the same as from a session file with this array.
///
/// `wire_format` selects the form. Gemini expects `contents`, and `OpenAI` Responses expects `input` items.
/// All other formats accept Chat messages of `OpenAI` and content blocks of Anthropic alike. A tool result
/// inside a user message becomes a message of its own. For an empty conversation, `OpenAiChat` accepts the
/// messages of other tools as well, such as those of the AI SDK.
///
/// ```
/// use context_window::{Conversation, WireFormat};
/// use context_window_formats::push_json;
///
/// # fn main() -> Result<(), context_window_formats::Error> {
/// let mut log = Conversation::new();
/// let question = r#"{"role": "user", "content": "How long do refunds take?"}"#;
/// let ids = push_json(&mut log, question, WireFormat::OpenAiChat)?;
/// assert_eq!(ids, ["m0"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns `ErrorKind::Input` with the place and the key for JSON without messages, for an id that is already
/// used, and for more than 10,000,000 JSON values. Also returns it for the record of a compaction, which only
/// a session file may contain. In all these cases nothing is appended.
pub fn push_json(log: &mut Conversation, json: &str, wire_format: WireFormat) -> Result<Vec<ItemId>, Error> {
    let place = Place { name: MESSAGES, line: 1 };
    within(json, MESSAGES)?;
    let (json, _) = surrogates::replace_lone_surrogates(json);
    let (read, has_compactions) = match read::pushed(&json, place, wire_format, log) {
        Ok(reader) => (reader.log, reader.compactions > 0),
        Err(error) if wire_format == WireFormat::OpenAiChat => {
            let read = read_as_file(&json, place, log).unwrap_or(Err(error))?;
            let has_compactions = read.compactions().next().is_some();
            (read, has_compactions)
        }
        Err(error) => return Err(error),
    };
    if has_compactions {
        let detail = "contain a compaction, which only a session file may contain; expected messages";
        return Err(Error::input(MESSAGES, detail));
    }
    bounded::check(read.messages(), &[]).map_err(|(key, detail)| place.fault(&key, &detail))?;
    // All ids are checked before the first push, so an error leaves the conversation unchanged.
    log.check_ids(read.messages().iter().filter_map(|one| Some((one.id()?, "a new message"))))?;
    let mut ids = Vec::with_capacity(read.messages().len());
    for entry in read.entries() {
        match entry {
            Entry::Message(message) => {
                // A default id is removed, because the conversation assigns it again from the position.
                let is_default = message.id() == Some(&ItemId::for_message(log.messages().len() as u32));
                let message = message.clone();
                ids.push(log.push(if is_default { message.without_id() } else { message }));
            }
            Entry::Event(event) => log.record(event.clone()),
        }
    }
    Ok(ids)
}

/// Reads the messages of another tool as its files are read, for an empty conversation. Returns `None` for
/// any other form.
///
/// # Errors
///
/// Returns the errors of the file, and an error if the conversation is not empty: ids and open calls of such
/// messages count from the beginning.
fn read_as_file(json: &str, place: Place<'_>, log: &Conversation) -> Option<Result<Conversation, Error>> {
    let is_one = json.trim_start().starts_with('{');
    let list = if is_one { Cow::Owned(format!("[{json}]")) } else { Cow::Borrowed(json) };
    let readers = FormatReader::fitting(&Shape::read(&list, true));
    let title = readers.first()?.format.title();
    if log.entries().next().is_some() {
        let detail = format!(
            "are messages of {title}, which only an empty conversation takes; expected the form of a provider"
        );
        return Some(Err(Error::input(MESSAGES, detail)));
    }
    Some(foreign::session(&readers, &list, place, ReadOptions::new()).map(|session| session.log))
}

/// Parses tool definitions in the form of any provider, a JSON array of them.
///
/// ```
/// use context_window_formats::tools_from_json;
///
/// # fn main() -> Result<(), context_window_formats::Error> {
/// let tools =
///     tools_from_json(r#"[{"name": "refund", "description": "Refunds an order.", "input_schema": {}}]"#)?;
/// assert_eq!(tools[0].name, "refund");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns `ErrorKind::Input` with the place for JSON that is not a list of tools, and for more than
/// 10,000,000 JSON values.
pub fn tools_from_json(json: &str) -> Result<Vec<Tool>, Error> {
    let place = Place { name: TOOLS, line: 1 };
    within(json, TOOLS)?;
    let (json, _) = surrogates::replace_lone_surrogates(json);
    let wire::Tools(declared) = place.parse(&json)?;
    let tools = tools::tools(&declared, Vec::new(), WireFormat::OpenAiResponses)
        .map_err(|(at, detail)| place.fault(&format!("[{at}]"), &detail))?;
    bounded::check(&[], &tools).map_err(|(key, detail)| place.fault(&key, &detail))?;
    Ok(tools)
}

/// Checks that JSON has no more values than a session may have.
fn within(json: &str, name: &str) -> Result<(), Error> {
    count_values(&mut Tally::default(), json.as_bytes(), name)
}
