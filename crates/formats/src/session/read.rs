//! Conversion of wire shapes to a [`Session`].

use super::{
    Session, bounded,
    chat::LogKeys,
    compacted, gemini,
    keys::KeysWithValues,
    logged::Logged,
    open_calls::note_on_results,
    passages::{self, Passages},
    place::Place,
    reader::Reader,
    reader::named,
    stated,
    tools::tools,
    unread_keys::UnreadKeys,
    wire,
};
use crate::{error::Error, format::ReadOptions, scan};
use context_window::{
    Conversation, ItemId, Message, Model, RetrievedItems, WireFormat, provider::StatedLimits, text::plain,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeSet};

/// Returns the id of a session. Returns `None` if its text is not an object or has no id.
pub(crate) fn id(text: &str) -> Option<String> {
    let only: wire::OnlyId = serde_json::from_str(text).ok()?;
    only.id.map(wire::Id::into_text)
}

/// The keys of a session that are read.
const KEYS: [&str; 23] = [
    "id",
    "model",
    "limits",
    "system",
    "focus",
    "tools",
    "functions",
    "state",
    "pinned",
    "rules",
    "messages",
    "contents",
    "systemInstruction",
    "system_instruction",
    "input",
    "instructions",
    "conversations",
    "rag",
    "passages",
    "query",
    "previous",
    "context_window",
    "role",
];

/// Usual names of the same keys in other tools, each with the key of this library.
const OTHER_NAMES: [(&str, &str); 16] = [
    ("documents", "rag"),
    ("docs", "rag"),
    ("context", "rag"),
    ("contexts", "rag"),
    ("chunks", "rag"),
    ("retrieved", "rag"),
    ("results", "rag"),
    ("question", "query"),
    ("system_prompt", "system"),
    ("conversation", "messages"),
    ("history", "messages"),
    ("pins", "pinned"),
    ("notes", "pinned"),
    ("standing_rules", "rules"),
    ("context_len", "limits"),
    ("max_completion", "limits"),
];

/// Returns the key that was probably meant by an unread key. Returns `None` if no key is near.
pub(crate) fn suggested_key(key: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == key).map(|(_, suggested)| *suggested);
    other.or_else(|| plain::nearest(key, KEYS)).filter(|suggested| *suggested != key)
}

/// Reads one session. `line` is the line of the file on which its text starts.
pub(crate) fn session(text: &str, name: &str, line: usize, options: ReadOptions) -> Result<Session, Error> {
    read(text, Place { name, line }, options)
        .map_err(|error| error.with_session_place(format!("{name}:{line}")))
}

/// Adds the documents of a user message without a reply: it is about to be sent, so they are candidates of
/// this prompt.
fn with_documents_of_the_question(rag: RetrievedItems, mut retrieved: RetrievedItems) -> RetrievedItems {
    let known: BTreeSet<ItemId> = rag.iter().map(|item| item.id.clone()).collect();
    retrieved.retain(|item| !known.contains(item.id()));
    passages::extended(rag, retrieved)
}

fn read(text: &str, place: Place<'_>, options: ReadOptions) -> Result<Session, Error> {
    let session = wire_session(text, place)?;
    let keys: KeysWithValues<'_> = serde_json::from_str(text).unwrap_or_default();
    let of_body = |key: &str| stated::KEYS.contains(&key);
    // Most sessions have none of these keys, so the second parse is skipped for them.
    let body: stated::Body = if keys.0.iter().any(|(key, _)| of_body(key)) {
        serde_json::from_str(text).unwrap_or_default()
    } else {
        stated::Body::default()
    };
    let mut remote = body.remote(&session);
    let logged = match session.messages {
        Some(_) => None,
        None => Logged::read(place, &session, options.is_lenient)?,
    };
    let outside = keys.0.iter().find(|(key, _)| key == compacted::KEY);
    let compaction = outside.and_then(|(_, value)| compacted::from_key(value.get()));
    let is_sharegpt = logged.as_ref().is_some_and(|logged| logged.is_sharegpt);
    let is_read = |key: &str| match key {
        "conversation" => remote.iter().any(|remote| remote.body_key() == "conversation"),
        // The messages come from the first of these keys that is present.
        "contents" | "systemInstruction" | "system_instruction" => session.messages.is_none(),
        "input" | "instructions" => session.messages.is_none() && session.contents.is_none(),
        "conversations" => is_sharegpt,
        compacted::KEY => compaction.is_some(),
        key => KEYS.contains(&key) || of_body(key),
    };
    let unread: Vec<(String, &RawValue)> = keys.0.into_iter().filter(|(key, _)| !is_read(key)).collect();
    let mut reader = Reader::new(place);
    reader.is_lenient = options.is_lenient;
    reader.unknown = dialect(text, session.model.as_deref());
    let options = gemini::config(&session);
    let texts = logged.as_ref().map(|logged| logged.instructions.clone()).unwrap_or_default();
    reader.add_preamble(session.system, texts, session.pinned.unwrap_or_default())?;
    let is_bare = session.messages.is_none() && logged.is_none();
    messages(&mut reader, session.messages.unwrap_or_default())?;
    // A list of `messages` names no format. Anthropic's is detected below from its blocks and tools.
    let mut wire_format = logged.as_ref().and_then(|logged| logged.wire_format);
    if let Some(logged) = logged {
        reader.ignored.extend(logged.ignored);
        let provider = session.model.as_deref().and_then(|name| Model::named(name).ok());
        let provider =
            provider.filter(|model| !model.unknown).map_or_else(|| "openai".into(), |model| model.provider);
        for message in logged.messages {
            reader.logged(message, &provider);
        }
    }
    reader.add_rules(session.rules.unwrap_or_default())?;
    reader.log.check_ids(std::iter::empty())?;
    let unread = unread_keys(&mut reader, unread)?;
    if let Some(compaction) = compaction {
        // A compaction outside the messages has no position: its first active message determines it.
        reader.compaction(compaction.and_then(compacted::Block::with_place), None);
    }
    // A completion request has a single prompt in place of messages (Ollama's /api/generate).
    let asked = if is_bare { body.asked() } else { None };
    reader.query(session.query.or(asked));
    let declared = session.tools.map(|tools| tools.0).or(options.tools).unwrap_or_default();
    let of_anthropic =
        reader.of_anthropic || declared.iter().any(|tool| tool.get().contains("\"input_schema\""));
    wire_format = wire_format.or(of_anthropic.then_some(WireFormat::Anthropic));
    let reader_unknown = reader.unknown;
    let (mut log, mut ignored) = (reader.log, reader.ignored);
    let own = session.context_window.as_ref().map(|own| own.settings()).transpose();
    let own = own.map_err(|detail| place.fault("context_window", &detail))?;
    let structured_output = body.wants_structured_output()
        || session.context_window.as_ref().is_some_and(|own| own.structured_output);
    remote.extend(session.context_window.iter().flat_map(|own| own.remote.iter().cloned()));
    // The events of this library's own file contain the whole conversation, so they replace the messages.
    if let Some(own) = session.context_window.filter(|own| !own.events.is_empty()) {
        log = Conversation::from_events(own.events)
            .map_err(|error| place.fault("context_window.events", &error.to_string()))?;
    }
    let (options, tokenizer) = own.unzip();
    let passages = session.rag.into_iter().chain(session.passages).map(Passages::into_items);
    let rag = passages.fold(RetrievedItems::default(), passages::extended);
    let rag = with_documents_of_the_question(rag, reader.retrieved);
    let holds_nothing = log.messages().iter().all(Message::is_empty) && log.compactions().next().is_none();
    if holds_nothing && log.system().is_empty() && rag.is_empty() {
        return Err(empty_session_error(place, &log, session.role.is_some(), &unread));
    }
    ignored.extend(note_on_results(log.messages()));
    let tools = tools(&declared, session.functions.unwrap_or_default(), reader_unknown)
        .map_err(|(at, detail)| place.fault(&format!("tools[{at}]"), &detail))?;
    bounded::check(log.messages(), &tools).map_err(|(key, detail)| place.fault(&key, &detail))?;
    let mut limits = session.limits.unwrap_or_default();
    if limits.stated == StatedLimits::default() {
        limits.stated = body.limits();
    }
    Ok(Session {
        id: session.id.map(wire::Id::into_text),
        model: session.model.filter(|name| !name.is_empty()),
        wire_format,
        limits,
        log,
        tools,
        rag,
        focus: session.focus,
        state: named(session.state.unwrap_or_default(), "state"),
        remote,
        structured_output,
        previous: session.previous,
        options,
        tokenizer,
        unread,
        ignored,
    })
}

/// Parses the shape of a session: an object, or a list of messages.
fn wire_session(text: &str, place: Place<'_>) -> Result<wire::Session, Error> {
    match text.as_bytes().first() {
        Some(b'{') => place.parse(text),
        Some(b'[') => Ok(wire::Session { messages: Some(place.parse(text)?), ..wire::Session::default() }),
        _ => {
            let detail = "expected a session: a JSON object, or an array of chat messages";
            Err(Error::input(format!("{}:{}", place.name, place.line), detail))
        }
    }
}

/// Checks the keys of a session that are not read, and returns their names.
///
/// # Errors
///
/// Returns an error for a key that holds messages, or the text of a prompt under a misspelt name (lossless
/// reading, J3), unless the reader is lenient.
fn unread_keys(reader: &mut Reader<'_>, keys: Vec<(String, &RawValue)>) -> Result<Vec<String>, Error> {
    const OF_PROMPT: [&str; 4] = ["system", "instructions", "system_instruction", "systemInstruction"];
    // Each check searches the whole log. The bound keeps the cost linear, and no known writer has more keys.
    const MAX_LOST: usize = 32;
    let mut unread = Vec::new();
    for (key, value) in keys {
        let is_lost = |found: &scan::Found| unread.len() >= MAX_LOST || !has_text(&reader.log, found);
        let suggested = suggested_key(&key);
        let hint = suggested.map(|suggested| format!("; did you mean `{suggested}`?")).unwrap_or_default();
        let is_of_prompt = suggested.is_some_and(|suggested| OF_PROMPT.contains(&suggested));
        let value_kind = if is_of_prompt && scan::find_prose(value.get()).is_some_and(|found| is_lost(&found))
        {
            Some("text")
        } else {
            scan::has_messages(value.get()).then_some("messages")
        };
        if let Some(value_kind) = value_kind {
            reader.leave(
                &key,
                &format!("is not read and contains {value_kind}{hint} (--lenient leaves it out)"),
            )?;
        } else if suggested.is_none()
            && scan::find_part_or_prose(value.get()).is_some_and(|found| is_lost(&found))
        {
            let key = plain::short(&key);
            reader.ignored.push(format!("the session's key `{key}` is not read; it contains text"));
        }
        unread.push(key);
    }
    Ok(unread)
}

/// Checks whether a text was read from another key too, since some logs contain every text twice.
fn has_text(log: &Conversation, found: &scan::Found) -> bool {
    let Some(text) = found.text.as_deref() else { return false };
    log.system().iter().chain(log.messages()).flat_map(Message::texts).any(|own| own.contains(text))
}

/// Returns the error for a session that would give an empty prompt.
fn empty_session_error(place: Place<'_>, log: &Conversation, is_message: bool, unread: &[String]) -> Error {
    let detail = if !log.messages().is_empty() {
        "contains only messages without content; expected a text, a tool call or a tool result in one of them"
    } else if is_message {
        "looks like one message; expected a session: an object with `messages`, or an array of them"
    } else {
        "is an empty session; expected messages, system, rag or query (pins alone are not a prompt)"
    };
    let near = unread.iter().find_map(|key| Some((key, suggested_key(key)?)));
    let near =
        near.map(|(key, suggested)| format!("; its key `{key}` is not read, did you mean `{suggested}`?"));
    Error::input(format!("{}:{}", place.name, place.line), detail.to_owned() + &near.unwrap_or_default())
}

/// Returns the wire format assumed for messages whose parts do not determine it. It is `OpenAI` Chat if a key
/// of that format occurs. Otherwise it is Anthropic's if a key of its format occurs, or if the model is
/// Anthropic's. The default is `OpenAI` Chat.
fn dialect(text: &str, model: Option<&str>) -> WireFormat {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // A search in the raw text is enough for a default, and avoids another parse.
    if has(&["\"tool_calls\"", "\"tool_call_id\"", "\"image_url\""]) {
        return WireFormat::OpenAiChat;
    }
    let is_named = || {
        model
            .and_then(|name| Model::named(name).ok())
            .is_some_and(|model| model.wire_format == WireFormat::Anthropic)
    };
    let has_blocks = has(&["\"tool_use_id\"", "\"input_schema\"", "\"redacted_thinking\"", "\"tool_use\""]);
    if has_blocks || is_named() { WireFormat::Anthropic } else { WireFormat::OpenAiChat }
}

/// Reads messages that are appended to a conversation, in the same way as those of a session file.
pub(crate) fn pushed<'a>(
    json: &str,
    place: Place<'a>,
    wire_format: WireFormat,
    log: &Conversation,
) -> Result<Reader<'a>, Error> {
    let one = json.trim_start().starts_with('{');
    let list = if one { Cow::Owned(format!("[{json}]")) } else { Cow::Borrowed(json) };
    let mut reader = Reader::new(place);
    if wire_format == WireFormat::Anthropic {
        reader.unknown = wire_format;
    }
    // Default ids continue at the length of the conversation.
    reader.read = log.messages().len();
    reader.expects(log.open_calls());
    match wire_format {
        WireFormat::Gemini | WireFormat::OpenAiResponses => {
            for message in Logged::items(place, &list, wire_format)? {
                // A provider summary is kept as a message here: only a session file records compactions.
                reader.log.push(message);
            }
        }
        _ => messages(&mut reader, place.parse(&list)?)?,
    }
    Ok(reader)
}

/// Checks that all messages that name a conversation name the same one. Messages of another conversation do
/// not belong to this prompt.
fn one_conversation(reader: &mut Reader<'_>, messages: &[wire::Message]) -> Result<(), Error> {
    const NAMES: [&str; 6] =
        ["session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"];
    let mut first: Option<(&str, &str)> = None;
    for (at, message) in messages.iter().enumerate() {
        let named = message.keys.iter().filter(|key| NAMES.contains(&&*key.name));
        let mut named = named.filter_map(|key| Some((key.name.as_ref(), key.unread.as_deref()?.get())));
        let Some((name, value)) = named.find(|(_, value)| *value != "null") else { continue };
        match first {
            None => first = Some((name, value)),
            Some((own, other)) if own == name && other != value => {
                let detail = "belongs to another conversation than the earlier messages; expected one conversation: split the file by this key";
                return reader.leave(&format!("messages[{at}].{name}"), detail);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Reads the messages of a session, and the compactions among them.
fn messages(reader: &mut Reader<'_>, messages: Vec<wire::Message>) -> Result<(), Error> {
    let mut unread = UnreadKeys::default();
    one_conversation(reader, &messages)?;
    reader.log_keys = LogKeys::from_messages(&messages);
    let mut messages = messages.into_iter().enumerate().peekable();
    while let Some((at, mut message)) = messages.next() {
        let outside = compacted::remove_compaction_key(&mut message);
        for lost in unread.check_keys(at, &message, &reader.log_keys) {
            reader.leave(&format!("messages[{at}].{}", lost.key), &lost.detail)?;
        }
        let mut compactions = compacted::remove_compactions(&mut message);
        compactions.extend(outside);
        // Content that comes with a compaction becomes a message right after it, so the compaction does not
        // archive content that was never sent.
        let is_message = compactions.is_empty() || message.has_any_data();
        let next = if is_message { Some(&message) } else { messages.peek().map(|(_, next)| next) };
        reader.content = (format!("messages[{at}].content"), compactions.is_empty());
        let next = next.map(|next| reader.next_id(next.id.as_ref().map(ToString::to_string)));
        for compaction in compactions {
            reader.compaction(compaction, next.as_ref());
        }
        if is_message {
            reader.message(message)?;
        }
    }
    reader.ignored.extend(unread.notes());
    reader.ignored.extend(reader.open.note());
    Ok(())
}
