//! The log of a conversation.

use crate::{
    error::{input, raised},
    json,
    plan::Plan,
};
use context_window as core;
use context_window_formats::{ReadOptions, SessionFile};
use core::{
    ItemId, Message, PinnedItem, Priority, Ttl, WireFormat,
    events::LogEvent,
    message::Prompt,
    render::{self, Body},
    usage::{ContextEvent, ReplyReport},
};
use pyo3::{
    exceptions::PyUserWarning,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyString, PyTuple},
};
use std::{
    ffi::CString,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// A log that several threads can share.
pub(crate) type SharedLog = Arc<RwLock<core::Conversation>>;

/// The append-only log of a conversation: messages, pins, compactions and sent prompts. Nothing is ever
/// removed from it.
///
/// Several threads may share it. A call that changes it waits until plans in progress are finished.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Conversation {
    log: SharedLog,
}

/// The result of `push_reply`: the reply's id, and events for a user interface. Each event is a dict whose
/// kind is in `event`.
#[pyclass(frozen, get_all, module = "context_window")]
pub(crate) struct Committed {
    id: String,
    events: Py<PyAny>,
}

#[pymethods]
impl Committed {
    fn __repr__(&self) -> String {
        format!("Committed({:?})", self.id)
    }
}

/// Returns the wire format with this Python name.
pub(crate) fn wire_format(name: &str) -> PyResult<WireFormat> {
    match name {
        "openai" | "openai_chat" => Ok(WireFormat::OpenAiChat),
        "openai_responses" => Ok(WireFormat::OpenAiResponses),
        "anthropic" => Ok(WireFormat::Anthropic),
        "gemini" => Ok(WireFormat::Gemini),
        other => {
            let expected = "expected openai, openai_responses, anthropic or gemini";
            Err(input(format!("wire format `{other}`: {expected}")))
        }
    }
}

fn priority(name: &str) -> PyResult<Priority> {
    let all = [Priority::Low, Priority::Normal, Priority::High];
    let found = all.into_iter().find(|priority| priority.name() == name);
    found.ok_or_else(|| input(format!("priority `{name}`: expected low, normal or high")))
}

fn ttl(turns: Option<u32>) -> Ttl {
    turns.map_or(Ttl::Unlimited, Ttl::turns)
}

/// Converts a message or a list of messages to JSON. Dicts are used unchanged, other objects are read by
/// their attributes.
pub(crate) fn messages_json(given: &Bound<'_, PyAny>) -> PyResult<String> {
    static WIRE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // The common case of a single dict needs no Python helper.
    if let Ok(dict) = given.cast::<PyDict>()
        && dict.contains("role")?
    {
        return json::dumps(given, "messages");
    }
    // A string is iterable, so without this check it would be read as a list of messages.
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(input(
            "messages: expected a dict or a list of dicts, not a str; pass {\"role\": \"user\", \"content\": ...}",
        ));
    }
    // The import is cached, because it happens for each call.
    let wire = WIRE.import(given.py(), "context_window._wire", "messages")?;
    json::dumps(&wire.call1((given,))?, "messages")
}

impl Conversation {
    pub(crate) fn of(log: core::Conversation) -> Self {
        Self { log: Arc::new(RwLock::new(log)) }
    }

    pub(crate) fn shared(&self) -> &SharedLog {
        &self.log
    }

    /// Changes the log. Other Python threads run in the meantime.
    pub(crate) fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut core::Conversation) -> Result<T, core::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| change(&mut writing(&self.log))).map_err(raised)
    }

    /// Reads the log. Other Python threads run in the meantime.
    pub(crate) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&core::Conversation) -> Result<T, core::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| read(&reading(&self.log))).map_err(raised)
    }
}

/// Locks the log for reading. Ignores the poisoning by a panicked thread, because changes are never left half
/// made.
pub(crate) fn reading(log: &SharedLog) -> RwLockReadGuard<'_, core::Conversation> {
    log.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the log for writing.
pub(crate) fn writing(log: &SharedLog) -> RwLockWriteGuard<'_, core::Conversation> {
    log.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an error about messages. It omits the position in an intermediate JSON text that the caller has
/// never seen.
fn placed(error: &context_window_formats::Error) -> PyErr {
    let text = error.to_string();
    let key = text.strip_prefix("messages:").and_then(|rest| rest.split_once(": ")).map(|(_, key)| key);
    match key {
        Some(key) if key.starts_with('[') => input(format!("messages{key}")),
        Some(key) => input(format!("messages: {key}")),
        None => input(text),
    }
}

/// Returns a reply as JSON. A string may contain an unpaired UTF-16 surrogate.
fn reply_json(reply: &Bound<'_, PyAny>) -> PyResult<String> {
    if !reply.is_instance_of::<PyString>() {
        return messages_json(reply);
    }
    let said = PyDict::new(reply.py());
    said.set_item("role", "assistant")?;
    said.set_item("content", reply)?;
    json::dumps(&said, "reply")
}

/// Parses one message in a provider's format.
pub(crate) fn message(json: &str, form: WireFormat) -> Result<Message, String> {
    // The formats crate parses into a conversation; a temporary one yields the message.
    let mut one = core::Conversation::new();
    context_window_formats::push_json(&mut one, json, form).map_err(|error| placed(&error).to_string())?;
    match one.messages() {
        [message] => Ok(message.clone()),
        several => Err(format!("expected one message, found {}", several.len())),
    }
}

/// Returns a body as JSON.
pub(crate) fn body_json(body: Body<'_>) -> serde_json::Value {
    // A body is plain data with string keys, so serialization cannot fail.
    serde_json::to_value(body).unwrap_or_default()
}

/// Renders messages as a provider's request body.
pub(crate) fn rendered(messages: Vec<Message>, form: WireFormat) -> serde_json::Value {
    body_json(render::body(&Prompt::from(messages), form))
}

/// Returns the messages of a body. Wire formats use different keys for them.
pub(crate) fn messages_of(mut body: serde_json::Value) -> serde_json::Value {
    ["messages", "input", "contents"]
        .iter()
        .find_map(|key| body.get_mut(*key).map(serde_json::Value::take))
        .unwrap_or_default()
}

#[pymethods]
impl Conversation {
    /// Creates a conversation, empty or with these messages.
    #[new]
    #[pyo3(signature = (messages=None, *, wire_format="openai"))]
    fn new(py: Python<'_>, messages: Option<&Bound<'_, PyAny>>, wire_format: &str) -> PyResult<Self> {
        let conversation = Self::of(core::Conversation::new());
        if let Some(messages) = messages {
            conversation.push(py, messages, wire_format)?;
        }
        Ok(conversation)
    }

    /// Appends a message or a list of messages, and returns their ids. Appends all of them or none.
    #[pyo3(signature = (messages, wire_format="openai"))]
    fn push(&self, py: Python<'_>, messages: &Bound<'_, PyAny>, wire_format: &str) -> PyResult<Vec<String>> {
        let form = self::wire_format(wire_format)?;
        let json = messages_json(messages)?;
        let ids = py
            .detach(|| context_window_formats::push_json(&mut writing(&self.log), &json, form))
            .map_err(|error| placed(&error))?;
        Ok(texts(&ids))
    }

    /// Adds a system text to the beginning of every prompt.
    fn push_system(&self, py: Python<'_>, id: &str, text: &str) -> PyResult<()> {
        self.change(py, |log| {
            log.push_system(id, text);
            Ok(())
        })
    }

    /// Stores a reply with the plan of its prompt. `response` is the provider's response (a dict with its
    /// `usage` and finish reason), or its usage alone.
    #[pyo3(signature = (plan, reply, response=None, *, wire_format="openai"))]
    fn push_reply(
        &self,
        py: Python<'_>,
        plan: &Plan,
        reply: &Bound<'_, PyAny>,
        response: Option<&Bound<'_, PyAny>>,
        wire_format: &str,
    ) -> PyResult<Committed> {
        let form = self::wire_format(wire_format)?;
        // A valid string needs no JSON. The other branch also handles strings with unpaired surrogates.
        let reply = if let Ok(text) = reply.extract::<String>() {
            Message::assistant(text)
        } else {
            let json = reply_json(reply)?;
            py.detach(|| message(&json, form)).map_err(|detail| input(format!("reply: {detail}")))?
        };
        // Only the assistant answers a prompt, so any other role is a mistake of the caller.
        if reply.role() != core::Role::Assistant {
            return Err(input(format!(
                "reply: has the role {}; expected the role assistant",
                reply.role().name()
            )));
        }
        let report = match response {
            Some(response) => report(response)?,
            None => ReplyReport::new(),
        };
        let committed = self.change(py, |log| Ok(log.push_reply(plan.core(), reply, report)))?;
        let events: Vec<_> = committed.events.iter().map(event).collect();
        Ok(Committed { id: committed.id.to_string(), events: json::python(py, &events)?.unbind() })
    }

    /// Ends a turn. The TTL of each included item is reduced by one.
    fn complete_turn(&self, py: Python<'_>, plan: &Plan) -> PyResult<()> {
        self.change(py, |log| {
            log.complete_turn(plan.core());
            Ok(())
        })
    }

    /// Pins a note, which every prompt then contains: for `ttl` turns, or permanently. Replaces a note with
    /// the same id.
    #[pyo3(signature = (id, text, *, priority="normal", ttl=None))]
    fn pin(&self, py: Python<'_>, id: &str, text: &str, priority: &str, ttl: Option<u32>) -> PyResult<()> {
        let note = PinnedItem::new(id, text).with_priority(self::priority(priority)?);
        // An explicit unlimited TTL would make the note required, so it is set only on request.
        let note = if ttl.is_some() { note.with_ttl(self::ttl(ttl)) } else { note };
        self.change(py, |log| {
            log.pin(note);
            Ok(())
        })
    }

    /// Pins a message of the conversation.
    #[pyo3(signature = (id, *, priority="normal"))]
    fn pin_message(&self, py: Python<'_>, id: &str, priority: &str) -> PyResult<()> {
        let priority = self::priority(priority)?;
        self.change(py, |log| log.pin_message(id, priority))
    }

    /// Unpins a note or a message. Returns True if it was pinned.
    fn unpin(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        self.change(py, |log| Ok(log.unpin(id)))
    }

    /// Sets the TTL of an item in turns. None means no limit, and makes a pinned item required.
    #[pyo3(signature = (id, turns))]
    fn set_ttl(&self, py: Python<'_>, id: &str, turns: Option<u32>) -> PyResult<()> {
        self.change(py, |log| log.set_ttl(id, ttl(turns)))
    }

    /// Rewinds to before this message. The message and all later ones are archived.
    fn rewind_before(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.change(py, |log| log.rewind_before(id))
    }

    /// Archives all messages without a summary. System texts, notes and pinned messages stay.
    fn start_fresh(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |log| {
            log.start_fresh();
            Ok(())
        })
    }

    /// Undoes the newest compaction. Returns its number, or None if there is none.
    fn undo_compaction(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.change(py, |log| Ok(log.undo_compaction()))
    }

    /// Returns all messages, including archived ones, as the dicts of a provider's request.
    ///
    /// The messages follow the provider's rules. For Anthropic and Gemini, the system texts are only in
    /// `body`. An incomplete end of the conversation is completed.
    #[pyo3(signature = (wire_format="openai"))]
    fn messages<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        let form = self::wire_format(wire_format)?;
        let messages = self.read(py, |log| Ok(messages_of(rendered(log.messages().to_vec(), form))))?;
        json::python(py, &messages)
    }

    /// Returns the body of a request with all messages, including archived ones. `Plan.body` has only those
    /// that fit.
    #[pyo3(signature = (wire_format="openai"))]
    fn body<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        let form = self::wire_format(wire_format)?;
        let body = self.read(py, |log| Ok(rendered(log.messages().to_vec(), form)))?;
        json::python(py, &body)
    }

    /// Returns the ids of all messages in order.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |log| {
            let id = |(at, message): (usize, &Message)| {
                message.id().map_or_else(|| format!("m{at}"), ToString::to_string)
            };
            Ok(log.messages().iter().enumerate().map(id).collect())
        })
    }

    /// Returns the position of the message with this id, from 0, or None if there is none.
    fn position(&self, py: Python<'_>, id: &str) -> PyResult<Option<usize>> {
        self.read(py, |log| Ok(log.position_of_message(id)))
    }

    /// Returns the tool calls without results. Each is a dict of `id`, `name` and `arguments` (a string).
    fn open_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let calls = self.read(py, |log| {
            let call = |call: &core::ToolCall| serde_json::json!({"id": call.id, "name": call.name, "arguments": call.arguments});
            Ok(log.open_calls().map(call).collect::<Vec<_>>())
        })?;
        json::python(py, &calls)
    }

    /// Returns the entries of the log from number `start` on, each as a JSON string. Use them for a store of
    /// your own.
    #[pyo3(signature = (start=0))]
    fn events(&self, py: Python<'_>, start: usize) -> PyResult<Vec<String>> {
        self.read(py, |log| {
            // Entries are written one by one, so that a caller can store only the new ones.
            let events = log.events_from(start);
            Ok(events.map(|event| json_of(&event)).collect())
        })
    }

    /// Returns the number of entries in the log.
    fn event_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |log| Ok(log.event_count()))
    }

    /// Reads a conversation from the JSON of a session file. The file may come from `Manager.session_json`,
    /// from another log or from another tool. Emits a warning for each part that was not read.
    #[staticmethod]
    #[pyo3(signature = (session, *, read_as=None, lenient=false))]
    fn from_session(py: Python<'_>, session: &str, read_as: Option<&str>, lenient: bool) -> PyResult<Self> {
        let read = || -> Result<_, context_window_formats::Error> {
            let mut options = ReadOptions::new();
            if let Some(format) = read_as {
                options = options.read_as(format.parse()?);
            }
            let options = if lenient { options.lenient() } else { options };
            SessionFile::with_options("session", session.as_bytes().to_vec(), options)?.session(None)
        };
        let session = py.detach(read).map_err(raised)?;
        for note in session.ignored() {
            let note = CString::new(note.as_str()).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1)?;
        }
        Ok(Self::of(session.log))
    }

    /// Builds a conversation from its entries.
    #[staticmethod]
    fn from_events(py: Python<'_>, events: Vec<String>) -> PyResult<Self> {
        let log = py.detach(|| of_events(&events))?;
        Ok(Self::of(log))
    }

    /// Appends an entry.
    fn apply_event(&self, py: Python<'_>, event: &str) -> PyResult<()> {
        let event = log_event(0, event)?;
        self.change(py, |log| log.apply_event(event))
    }

    /// Returns an independent copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::of(self.read(py, |log| Ok(log.clone()))?))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |log| Ok(log.messages().len()))
    }

    #[expect(clippy::unused_self, reason = "an empty conversation is one too, whatever its length")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        // A log equals itself, so no copy is needed.
        if Arc::ptr_eq(&self.log, &other.log) {
            return Ok(true);
        }
        // The locks are taken one after the other. Two threads that compare in opposite order would otherwise
        // deadlock.
        let copy = other.read(py, |log| Ok(log.clone()))?;
        self.read(py, |log| Ok(*log == copy))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |log| Ok(format!("Conversation({} messages)", log.messages().len())))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        // The pickle contains the entries, whose JSON is versioned.
        let again = py.import("context_window._core")?.getattr("_conversation")?;
        Ok((again, (self.events(py, 0)?,).into_pyobject(py)?))
    }
}

/// Restores a conversation from its pickle.
#[pyfunction]
pub(crate) fn _conversation(py: Python<'_>, events: Vec<String>) -> PyResult<Conversation> {
    Conversation::from_events(py, events)
}

/// Returns ids as strings.
pub(crate) fn texts(ids: &[ItemId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Returns an entry as JSON.
pub(crate) fn json_of(event: &LogEvent) -> String {
    // Plain data with string keys cannot fail to serialize.
    serde_json::to_string(event).unwrap_or_default()
}

/// Parses the entry with index `at`.
fn log_event(at: usize, json: &str) -> PyResult<LogEvent> {
    serde_json::from_str(json).map_err(|error| input(format!("events[{at}]: {error}")))
}

/// Builds the core conversation from its entries as JSON.
pub(crate) fn of_events(events: &[String]) -> PyResult<core::Conversation> {
    let events =
        events.iter().enumerate().map(|(at, json)| log_event(at, json)).collect::<PyResult<Vec<_>>>()?;
    core::Conversation::from_events(events).map_err(raised)
}

/// Parses the report of a provider: its whole response, or its usage alone.
fn report(response: &Bound<'_, PyAny>) -> PyResult<ReplyReport> {
    let read = json::dumps(response, "response")?;
    let mut read: serde_json::Value =
        serde_json::from_str(&read).map_err(|error| input(format!("response: {error}")))?;
    // These keys identify a whole response of any provider; a usage alone has none of them.
    let is_answer = ["usage", "usageMetadata", "stop_reason", "choices", "candidates"]
        .iter()
        .any(|key| read.get(*key).is_some());
    if !is_answer {
        if core::Usage::from_json(&read).is_none() {
            return Err(input("response: expected a provider's answer with its usage, or the usage alone"));
        }
        read = serde_json::json!({ "usage": read });
    }
    Ok(ReplyReport::from_json(&read))
}

/// Converts an event to a dict.
fn event(event: &ContextEvent) -> serde_json::Value {
    use serde_json::json;
    match event {
        ContextEvent::Usage(usage) => json!({"event": "usage", "usage": usage}),
        ContextEvent::LevelCrossed { from, to } => json!({"event": "level_crossed", "from": from, "to": to}),
        ContextEvent::SummaryRequested {
            messages,
            conversation_tokens,
            limit,
            request_tokens,
            max_tokens,
        } => {
            json!({"event": "summary_requested", "messages": messages,
                   "conversation_tokens": conversation_tokens, "limit": limit,
                   "request_tokens": request_tokens, "max_tokens": max_tokens})
        }
        ContextEvent::Compacted { number, messages, tokens_before, tokens_after, freed, limit, summary } => {
            json!({"event": "compacted", "number": number, "messages": messages,
                   "tokens_before": tokens_before, "tokens_after": tokens_after, "freed": freed,
                   "limit": limit, "summary": summary})
        }
        ContextEvent::ReportNotBelieved { reported, counted } => {
            json!({"event": "report_not_believed", "reported": reported, "counted": counted})
        }
        ContextEvent::MaxTokens => json!({"event": "max_tokens"}),
        ContextEvent::WindowFull => json!({"event": "window_full"}),
        ContextEvent::ReasoningDropped { ids, dropped, reason } => {
            json!({"event": "reasoning_dropped", "ids": ids, "dropped": dropped, "reason": reason})
        }
        ContextEvent::ClearedByProvider { edit, tokens } => {
            json!({"event": "cleared_by_provider", "edit": edit, "tokens": tokens})
        }
        ContextEvent::TtlAsk { id } => json!({"event": "ttl_ask", "id": id}),
        // New kinds of events in the crate must not break existing Python programs.
        other => json!({"event": "other", "text": format!("{other:?}")}),
    }
}
