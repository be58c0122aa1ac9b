//! Wire shapes → a [`Session`].

use super::{Session, wire};
use crate::{
    conversation::Conversation,
    error::{Error, Repr},
    item::{ItemId, PinnedItem, RagItem},
    message::{Framing, Message, Part, Role, Tool, ToolCall},
    plain,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};

/// The id of a session, when its text is an object that has one.
pub(super) fn id(text: &str) -> Option<String> {
    let only: wire::OnlyId = serde_json::from_str(text).ok()?;
    only.id.map(wire::Name::into_text)
}

/// The keys of a session that are read.
const KEYS: [&str; 15] = [
    "id",
    "model",
    "limits",
    "system",
    "focus",
    "tools",
    "functions",
    "state",
    "pinned",
    "messages",
    "rag",
    "passages",
    "query",
    "previous",
    "role",
];

/// What others call the same.
const OTHER_NAMES: [(&str, &str); 16] = [
    ("documents", "rag"),
    ("docs", "rag"),
    ("context", "rag"),
    ("contexts", "rag"),
    ("chunks", "rag"),
    ("retrieved", "rag"),
    ("results", "rag"),
    ("question", "query"),
    ("instructions", "system"),
    ("system_prompt", "system"),
    ("conversation", "messages"),
    ("history", "messages"),
    ("pins", "pinned"),
    ("notes", "pinned"),
    ("context_len", "limits"),
    ("max_completion", "limits"),
];

/// The key that may have been meant by one that is not read.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == key).map(|(_, meant)| *meant);
    other.or_else(|| plain::nearest(key, KEYS))
}

/// Reads one session; `line` is where its text starts in the file.
pub(super) fn session(text: &str, name: &str, line: usize) -> Result<Session, Error> {
    let place = Place { name, line };
    let session: wire::Session = match text.as_bytes().first() {
        Some(b'{') => place.parse(text)?,
        Some(b'[') => wire::Session { messages: Some(place.parse(text)?), ..wire::Session::default() },
        _ => {
            let detail = "expected a session: a JSON object, or an array of chat messages";
            return Err(Error::input(format!("{name}:{line}"), detail));
        }
    };
    let keys: wire::Keys = serde_json::from_str(text).unwrap_or_default();
    let unread: Vec<String> = keys.0.into_iter().filter(|key| !KEYS.contains(&key.as_str())).collect();
    let mut reader = Reader { place, log: Conversation::new(), legacy: BTreeMap::new(), unnamed: Vec::new() };
    reader.head(session.system, session.pinned.unwrap_or_default())?;
    let messages = session.messages.unwrap_or_default();
    for (position, message) in messages.into_iter().enumerate() {
        reader.message(position, message)?;
    }
    reader.query(session.query);
    let log = reader.log;
    let passages = session.rag.into_iter().chain(session.passages).flatten();
    let rag: Vec<RagItem> = passages.map(document).collect();
    if log.messages().is_empty() && log.system().is_empty() && rag.is_empty() {
        let detail = if session.role.is_some() {
            "looks like one message; expected a session: an object with `messages`, or an array of them"
        } else {
            "is an empty session; expected messages, system, rag or query (pins alone make no prompt)"
        };
        let near = unread.iter().find_map(|key| Some((key, meant(key)?)));
        let near = near.map(|(key, meant)| format!("; its key `{key}` is not read, did you mean `{meant}`?"));
        return Err(Error::input(format!("{name}:{line}"), detail.to_owned() + &near.unwrap_or_default()));
    }
    let tools = tools(session.tools.unwrap_or_default(), session.functions.unwrap_or_default());
    Ok(Session {
        id: session.id.map(wire::Name::into_text),
        model: session.model,
        limits: session.limits.unwrap_or_default(),
        log,
        tools: tools.map_err(|at| place.fault(&format!("tools[{at}]"), "expected a function with a name"))?,
        rag,
        focus: session.focus,
        state: named(session.state.unwrap_or_default(), "state"),
        previous: session.previous,
        unread,
    })
}

/// An error's text without serde's own "at line … column …", which counts from the session's start.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    plain::words(text.strip_suffix(&place).unwrap_or(&text))
}

/// Where a session's text stands, for errors.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    line: usize,
}

impl Place<'_> {
    fn parse<T: DeserializeOwned>(self, text: &str) -> Result<T, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.inner();
            let line = self.line + inner.line().saturating_sub(1);
            let place = format!("{}:{line}:{}", self.name, inner.column());
            let key = if path == "." { String::new() } else { format!("{path}: ") };
            Error::input(place, format!("{key}{}", without_place(inner)))
        })
    }

    fn fault(self, key: &str, detail: &str) -> Error {
        Error::input(format!("{}:{}", self.name, self.line), format!("{key}: {detail}"))
    }
}

struct Reader<'a> {
    place: Place<'a>,
    log: Conversation,
    /// Legacy function calls without a result yet: by the function's name the ids made up for its calls.
    legacy: BTreeMap<String, Vec<String>>,
    /// Ids made up for calls that came without one, those of one message together, the newest message last.
    unnamed: Vec<VecDeque<String>>,
}

impl Reader<'_> {
    /// System texts and pinned notes, which stand before the messages.
    fn head(&mut self, system: Option<wire::System>, notes: Vec<wire::Note>) -> Result<(), Error> {
        let texts = match system {
            None => Vec::new(),
            Some(wire::System::One(text)) => vec![wire::Text { id: None, text }],
            Some(wire::System::Many(texts)) => texts,
        };
        for (id, text) in named(texts, "s") {
            self.log.push_system(id, text);
        }
        for note in notes {
            let id = ItemId::from(note.id.into_text());
            if self.log.has_note(&id) {
                let (first, second) = ("a pinned note".into(), "another pinned note".into());
                return Err(Error::new(Repr::DuplicateId { id, first, second }));
            }
            let mut item = PinnedItem::new(&id, note.text).priority(note.priority.unwrap_or_default());
            item.ttl = note.ttl;
            self.log.pin(item);
            if let (Some(ttl), Some(true)) = (note.ttl, note.ttl_asked) {
                self.log.restore_ttl(id, ttl, true)?;
            }
        }
        Ok(())
    }

    fn message(&mut self, position: usize, wire: wire::Message) -> Result<(), Error> {
        let (pinned, ttl) = (wire.pinned.unwrap_or_default(), wire.ttl);
        let (priority, asked) = (wire.priority.unwrap_or_default(), wire.ttl_asked.unwrap_or_default());
        let message = self.neutral(position, wire)?;
        let id = self.log.push(message);
        self.log.check_ids(std::iter::empty())?;
        if pinned {
            self.log.pin_message(&id, priority)?;
        }
        if let Some(ttl) = ttl {
            self.log.restore_ttl(id, ttl, asked)?;
        }
        Ok(())
    }

    fn neutral(&mut self, position: usize, wire: wire::Message) -> Result<Message, Error> {
        let role = match wire.role {
            wire::Role::System => Role::System,
            wire::Role::Developer => Role::Developer,
            wire::Role::User => Role::User,
            wire::Role::Assistant => Role::Assistant,
            wire::Role::Tool | wire::Role::Function => Role::Tool,
        };
        let (text, parts) = match wire.content {
            wire::Content::Null => (String::new(), None),
            wire::Content::Text(text) => (text, None),
            wire::Content::Parts(parts) => (String::new(), Some(parts)),
        };
        let answers = match wire.role {
            wire::Role::Tool => wire.tool_call_id.map(wire::Name::into_text).or_else(|| self.unnamed_call()),
            wire::Role::Function => Some(self.legacy_call(wire.name.as_deref())),
            _ => None,
        };
        let mut message = match answers {
            Some(id) => Message::tool(id, text),
            None => Message::new(role, text),
        };
        if let Some(id) = wire.id {
            message = message.id(id.into_text());
        }
        if let Some(parts) = parts {
            let parts = parts.iter().enumerate();
            let key = |at| format!("messages[{position}].content[{at}]");
            let parts: Result<Vec<Part>, Error> = parts
                .map(|(at, raw)| part(raw).map_err(|detail| self.place.fault(&key(at), &detail)))
                .collect();
            message = message.parts(parts?);
        }
        if let Some(name) = wire.name.filter(|_| wire.role != wire::Role::Function) {
            message = message.name(name);
        }
        if let Some(reasoning) = wire.reasoning_content {
            message = message.reasoning(reasoning);
        }
        let calls = self.calls(position, wire.tool_calls.unwrap_or_default(), wire.function_call);
        Ok(if calls.is_empty() { message } else { message.calls(calls) })
    }

    fn calls(
        &mut self,
        position: usize,
        calls: Vec<wire::Call>,
        legacy: Option<wire::CalledFunction>,
    ) -> Vec<ToolCall> {
        let call = |id: String, function: wire::CalledFunction| {
            ToolCall::new(id, function.name, arguments(function.arguments.as_deref()))
        };
        let mut all = Vec::with_capacity(calls.len());
        let mut unnamed = VecDeque::new();
        for (at, wire) in calls.into_iter().enumerate() {
            let id = wire.id.map_or_else(
                || {
                    let id = format!("call_{position}_{at}");
                    unnamed.push_back(id.clone());
                    id
                },
                wire::Name::into_text,
            );
            all.push(call(id, wire.function));
        }
        if !unnamed.is_empty() {
            self.unnamed.push(unnamed);
        }
        if let Some(function) = legacy {
            let id = format!("call_{position}");
            self.legacy.entry(function.name.clone()).or_default().push(id.clone());
            all.push(call(id, function));
        }
        all
    }

    /// The first call without an id of the nearest message that has one open: results come in the order of the calls.
    fn unnamed_call(&mut self) -> Option<String> {
        let id = self.unnamed.last_mut()?.pop_front();
        self.unnamed.pop_if(|calls| calls.is_empty());
        id
    }

    /// The id of the nearest legacy call of this function that has no result yet; a made-up one where there is none.
    fn legacy_call(&mut self, function: Option<&str>) -> String {
        let function = function.unwrap_or_default();
        let open = self.legacy.get_mut(function).and_then(Vec::pop);
        open.unwrap_or_else(|| format!("call_of_{function}"))
    }

    /// The query is the live question where no user message has anything in it.
    fn query(&mut self, query: Option<String>) {
        let asked = |message: &Message| message.role() == Role::User && !message.is_empty();
        if let Some(query) = query.filter(|query| !query.trim().is_empty())
            && !self.log.messages().iter().any(asked)
        {
            self.log.push(Message::user(query).id("query"));
        }
    }
}

/// Arguments as the text they are: unwrapped where they are a JSON text, as they came where they are JSON itself.
fn arguments(raw: Option<&RawValue>) -> String {
    let raw = raw.map_or("", RawValue::get);
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.into())
}

fn part(raw: &RawValue) -> Result<Part, String> {
    let json = raw.get();
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Ok(Part::Text(text));
    }
    let kind: wire::PartType =
        serde_json::from_str(json).map_err(|_| "expected a part: a text or an object".to_owned())?;
    match kind.kind.as_deref() {
        Some("text" | "image_url") => {
            let known = serde_json::from_str(json).map_err(|error| without_place(&error))?;
            Ok(match known {
                wire::Part::Text { text } => Part::Text(text),
                wire::Part::ImageUrl { image_url: wire::ImageUrl::Bare(url) } => {
                    Part::Image { url, detail: None }
                }
                wire::Part::ImageUrl { image_url: wire::ImageUrl::Full { url, detail } } => {
                    Part::Image { url, detail }
                }
            })
        }
        _ => Ok(Part::Opaque { framing: Framing::OpenAiChat, json: json.into() }),
    }
}

fn document(passage: wire::Passage) -> RagItem {
    let mut item = RagItem::new(passage.id.into_text(), passage.score, passage.text);
    item.origin = passage.source.map(Into::into);
    item.ttl = passage.ttl;
    item
}

/// Texts with their ids, or the given letter and a number.
fn named(texts: Vec<wire::Text>, letter: &str) -> Vec<(ItemId, String)> {
    let id = |at: usize, id: Option<wire::Name>| {
        id.map_or_else(|| format!("{letter}{at}"), wire::Name::into_text).into()
    };
    texts.into_iter().enumerate().map(|(at, text)| (id(at, text.id), text.text)).collect()
}

/// The tools, or the place of the first that is no function.
fn tools(tools: Vec<wire::Tool>, functions: Vec<wire::Function>) -> Result<Vec<Tool>, usize> {
    let schema = |raw: Option<Box<RawValue>>| raw.map(|raw| raw.get().to_owned()).unwrap_or_default();
    let full = |function: wire::Function| {
        Tool::new(function.name, function.description.unwrap_or_default(), schema(function.parameters))
    };
    let bare = |tool: wire::Tool| {
        let (description, parameters) = (tool.description, tool.parameters);
        tool.name.map(|name| wire::Function { name, description, parameters })
    };
    let wrapped = |mut tool: wire::Tool| tool.function.take().or_else(|| bare(tool));
    let wrapped = tools.into_iter().enumerate().map(|(at, tool)| wrapped(tool).ok_or(at));
    wrapped.chain(functions.into_iter().map(Ok)).map(|function| function.map(full)).collect()
}
