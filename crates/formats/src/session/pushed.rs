//! Messages and tools in a provider's form → a conversation that goes on, and the tools of a request.

use super::{bounded, place::Place, read, surrogates, tools, wire};
use crate::error::Error;
use context_window::{Conversation, ItemId, Tool, WireFormat, conversation::Entry, text::size::Tally};

/// What errors call the JSON of messages.
const MESSAGES: &str = "messages";
/// What errors call the JSON of tools.
const TOOLS: &str = "tools";

/// Appends messages in the form of a provider, a JSON array of them or a single one, and returns the ids of
/// what was appended: the same messages as a session file with this array has. Chat messages of `OpenAI` and
/// of Anthropic (content blocks) are read alike, so any `wire_format` but two takes both: Gemini takes
/// `contents`, `OpenAI` Responses takes `input` items. A result that stands inside of a user message becomes
/// a message of its own.
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
/// `ErrorKind::Input` with the place and the key for JSON that holds no messages, for an id that is taken,
/// for a record of a compaction, which belongs to a session file, and for more than 10,000,000 JSON values.
/// Nothing is appended then.
pub fn push_json(log: &mut Conversation, json: &str, wire_format: WireFormat) -> Result<Vec<ItemId>, Error> {
    let place = Place { name: MESSAGES, line: 1 };
    within(json, MESSAGES)?;
    let (json, _) = surrogates::mended(json);
    let reader = read::pushed(&json, place, wire_format, log)?;
    if reader.compactions > 0 {
        let detail = "hold a compaction, which belongs to a session file; expected messages";
        return Err(Error::input(MESSAGES, detail));
    }
    let read = reader.log;
    bounded::check(read.messages(), &[]).map_err(|(key, detail)| place.fault(&key, &detail))?;
    log.check_ids(read.messages().iter().filter_map(|one| Some((one.id()?, "a new message"))))?;
    let mut ids = Vec::with_capacity(read.messages().len());
    for entry in read.entries() {
        match entry {
            Entry::Message(message) => {
                // A message goes by its position unless it was given another name.
                let is_default = message.id() == Some(&ItemId::for_message(log.messages().len() as u32));
                let message = message.clone();
                ids.push(log.push(if is_default { message.without_id() } else { message }));
            }
            Entry::Event(event) => log.record(event.clone()),
        }
    }
    Ok(ids)
}

/// Tool definitions in the form of any provider, a JSON array of them.
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
/// `ErrorKind::Input` with the place for JSON that is no list of tools, and for more than 10,000,000 JSON
/// values.
pub fn tools_from_json(json: &str) -> Result<Vec<Tool>, Error> {
    let place = Place { name: TOOLS, line: 1 };
    within(json, TOOLS)?;
    let (json, _) = surrogates::mended(json);
    let wire::Tools(declared) = place.parse(&json)?;
    let tools = tools::tools(&declared, Vec::new(), WireFormat::OpenAiResponses)
        .map_err(|(at, detail)| place.fault(&format!("[{at}]"), &detail))?;
    bounded::check(&[], &tools).map_err(|(key, detail)| place.fault(&key, &detail))?;
    Ok(tools)
}

/// Fails for JSON of more values than a session may have.
fn within(json: &str, name: &str) -> Result<(), Error> {
    super::count_values(&mut Tally::default(), json.as_bytes(), name)
}
