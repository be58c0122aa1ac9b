//! The log of a conversation.

use crate::{
    error::{input, raised},
    json,
    log::{self, Conversation, SharedLog},
    number::Number,
    plan::Plan,
    wire::{messages_json, messages_of, placed, read_message, rendered, texts, wire_format as form},
    work::{LONG, Stop, interruptible},
};
use context_window as core;
use context_window_formats::{ReadOptions, SessionFile};
use core::{Message, PinnedItem, Priority, StandingRule, Ttl, events::LogEvent, usage::ReplyReport};
use pyo3::{
    exceptions::PyUserWarning,
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use std::{ffi::CString, sync::Arc};

/// The result of `push_reply`: the reply's id, and events for a user interface. Each event is a dict whose
/// kind is in `event`.
#[pyclass(frozen, get_all, module = "context_window")]
pub(crate) struct Committed {
    /// The reply's id.
    id: String,
    /// The events for a user interface.
    events: Py<PyAny>,
}

#[pymethods]
impl Committed {
    fn __repr__(&self) -> String {
        format!("Committed({:?})", self.id)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let again = py.import("context_window._core")?.getattr("_committed")?;
        Ok((again, (&self.id, &self.events).into_pyobject(py)?))
    }
}

/// Restores the result of `push_reply` from its pickle.
#[pyfunction]
pub(crate) fn _committed(id: String, events: Py<PyAny>) -> Committed {
    Committed { id, events }
}

fn priority(name: &str) -> PyResult<Priority> {
    let all = [Priority::Low, Priority::Normal, Priority::High];
    let found = all.into_iter().find(|priority| priority.name() == name);
    found.ok_or_else(|| input(format!("priority `{name}`: expected low, normal or high")))
}

fn ttl(turns: Option<Number<u32>>) -> Ttl {
    turns.map_or(Ttl::Unlimited, |turns| Ttl::turns(turns.0))
}

impl Conversation {
    pub(crate) fn from_log(log: core::Conversation) -> Self {
        Self { log: log::shared(log) }
    }

    pub(crate) fn shared(&self) -> &SharedLog {
        &self.log
    }

    /// Changes the log in a moment.
    fn change<T: Send + 'static>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut core::Conversation) -> Result<T, core::Error> + Send + 'static,
    ) -> PyResult<T> {
        log::change(py, &self.log, change)
    }

    /// Reads a little of the log.
    fn look<T: Send + 'static>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&core::Conversation) -> Result<T, core::Error> + Send + 'static,
    ) -> PyResult<T> {
        log::look(py, &self.log, look)
    }

    /// Reads all of the log, which may take long.
    fn read<T: Send + 'static>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&core::Conversation) -> Result<T, core::Error> + Send + 'static,
    ) -> PyResult<T> {
        log::read(py, &self.log, read)
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

#[pymethods]
impl Conversation {
    /// Creates a conversation, empty or with these messages.
    #[new]
    #[pyo3(signature = (messages=None, *, wire_format="openai"))]
    fn new(py: Python<'_>, messages: Option<&Bound<'_, PyAny>>, wire_format: &str) -> PyResult<Self> {
        let conversation = Self::from_log(core::Conversation::new());
        if let Some(messages) = messages {
            conversation.push(py, messages, wire_format)?;
        }
        Ok(conversation)
    }

    /// Appends a message or a list of messages, and returns their ids. Appends all of them or none.
    #[pyo3(signature = (messages, wire_format="openai"))]
    fn push(&self, py: Python<'_>, messages: &Bound<'_, PyAny>, wire_format: &str) -> PyResult<Vec<String>> {
        let form = form(wire_format)?;
        let json = messages_json(messages)?;
        let is_long = json.len() >= LONG;
        let push = move |log: &mut core::Conversation| {
            Ok::<_, core::Error>(context_window_formats::push_json(log, &json, form))
        };
        let pushed = if is_long { log::change_copy(py, &self.log, push) } else { self.change(py, push) };
        Ok(texts(&pushed?.map_err(|error| placed(&error))?))
    }

    /// Adds a system text to the beginning of every prompt.
    fn push_system(&self, py: Python<'_>, id: String, text: String) -> PyResult<()> {
        self.change(py, move |log| {
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
        let form = form(wire_format)?;
        // A valid string needs no JSON. The other branch also handles strings with unpaired surrogates.
        let reply = if let Ok(text) = reply.extract::<String>() {
            Message::assistant(text)
        } else {
            let json = reply_json(reply)?;
            py.detach(|| read_message(&json, form)).map_err(|detail| input(format!("reply: {detail}")))?
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
        let sent = Arc::clone(plan.made());
        let committed = self.change(py, move |log| Ok(log.push_reply(sent.core(), reply, report)))?;
        let events = json::python(py, &committed.events)?.unbind();
        Ok(Committed { id: committed.id.to_string(), events })
    }

    /// Ends a turn. The TTL of each included item is reduced by one.
    fn complete_turn(&self, py: Python<'_>, plan: &Plan) -> PyResult<()> {
        let sent = Arc::clone(plan.made());
        self.change(py, move |log| {
            log.complete_turn(sent.core());
            Ok(())
        })
    }

    /// Pins a note, which every prompt then contains: for `ttl` turns, or permanently. Replaces a note with
    /// the same id.
    #[pyo3(signature = (id, text, *, priority="normal", ttl=None))]
    fn pin(
        &self,
        py: Python<'_>,
        id: &str,
        text: &str,
        priority: &str,
        ttl: Option<Number<u32>>,
    ) -> PyResult<()> {
        let note = PinnedItem::new(id, text).with_priority(self::priority(priority)?);
        // An explicit unlimited TTL would make the note required, so it is set only on request.
        let note = if ttl.is_some() { note.with_ttl(self::ttl(ttl)) } else { note };
        self.change(py, move |log| {
            log.pin(note);
            Ok(())
        })
    }

    /// Pins a message of the conversation.
    #[pyo3(signature = (id, *, priority="normal"))]
    fn pin_message(&self, py: Python<'_>, id: String, priority: &str) -> PyResult<()> {
        let priority = self::priority(priority)?;
        self.change(py, move |log| log.pin_message(id, priority))
    }

    /// Unpins a note or a message. Returns True if it was pinned.
    fn unpin(&self, py: Python<'_>, id: String) -> PyResult<bool> {
        self.change(py, move |log| Ok(log.unpin(id)))
    }

    /// Keeps a lasting rule of the user, or confirms or edits one that was found (`Plan.rules`).
    ///
    /// With `message`, the id of the user message that says it, it is sent only with prompts that leave this
    /// message out. Without it, every prompt has it.
    #[pyo3(signature = (id, text, *, message=None))]
    fn keep_rule(&self, py: Python<'_>, id: &str, text: &str, message: Option<String>) -> PyResult<()> {
        let rule = StandingRule::new(id, text);
        let rule = message.into_iter().fold(rule, StandingRule::from_message);
        self.change(py, move |log| log.keep_rule(rule))
    }

    /// Drops a rule of the user, also one that was found in a message. Returns True if the conversation has
    /// it.
    fn drop_rule(&self, py: Python<'_>, id: String) -> PyResult<bool> {
        self.change(py, move |log| Ok(log.drop_rule(id)))
    }

    /// Returns the user's rules: dicts with `id`, `text`, `source`, and `message` if a message says it.
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rules = self.read(py, |log| Ok(log.rules().collect::<Vec<_>>()))?;
        json::python(py, &rules)
    }

    /// Sets the TTL of an item in turns. None means no limit, and makes a pinned item required.
    #[pyo3(signature = (id, turns))]
    fn set_ttl(&self, py: Python<'_>, id: String, turns: Option<Number<u32>>) -> PyResult<()> {
        let ttl = ttl(turns);
        self.change(py, move |log| log.set_ttl(id, ttl))
    }

    /// Rewinds to before this message. The message and all later ones are archived.
    fn rewind_before(&self, py: Python<'_>, id: String) -> PyResult<()> {
        self.change(py, move |log| log.rewind_before(id))
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
        let form = form(wire_format)?;
        let messages = self.read(py, move |log| Ok(messages_of(rendered(log.messages().to_vec(), form))))?;
        json::python(py, &messages)
    }

    /// Returns the body of a request with all messages, including archived ones. `Plan.body` has only those
    /// that fit.
    #[pyo3(signature = (wire_format="openai"))]
    fn body<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        let form = form(wire_format)?;
        let body = self.read(py, move |log| Ok(rendered(log.messages().to_vec(), form)))?;
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
    fn position(&self, py: Python<'_>, id: String) -> PyResult<Option<usize>> {
        self.look(py, move |log| Ok(log.position_of_message(&id)))
    }

    /// Returns the tool calls without results. Each is a dict of `id`, `name` and `arguments` (a string).
    fn open_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let calls = self.look(py, |log| {
            let call = |call: &core::ToolCall| serde_json::json!({"id": call.id, "name": call.name, "arguments": call.arguments});
            Ok(log.open_calls().map(call).collect::<Vec<_>>())
        })?;
        json::python(py, &calls)
    }

    /// Returns the entries of the log from number `start` on, each as a JSON string. Use them for a store of
    /// your own.
    #[pyo3(signature = (start=Number(0)), text_signature = "($self, start=0)")]
    fn events(&self, py: Python<'_>, start: Number<usize>) -> PyResult<Vec<String>> {
        self.read(py, move |log| {
            // Entries are written one by one, so that a caller can store only the new ones.
            let events = log.events_from(start.0);
            Ok(events.map(|event| json_of(&event)).collect())
        })
    }

    /// Returns the number of entries in the log.
    fn event_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |log| Ok(log.event_count()))
    }

    /// Reads a conversation from the JSON of a session file. The file may come from `Manager.session_json`,
    /// from another log or from another tool. Emits a warning for each part that was not read.
    #[staticmethod]
    #[pyo3(signature = (session, *, read_as=None, lenient=false))]
    fn from_session(
        py: Python<'_>,
        session: String,
        read_as: Option<String>,
        lenient: bool,
    ) -> PyResult<Self> {
        let read = move || -> Result<_, context_window_formats::Error> {
            let mut options = ReadOptions::new();
            if let Some(format) = read_as {
                options = options.read_as(format.parse()?);
            }
            let options = if lenient { options.lenient() } else { options };
            SessionFile::with_options("session", session.into_bytes(), options)?.session(None)
        };
        let session = interruptible(py, move |_| read())?.map_err(raised)?;
        for note in session.ignored() {
            let note = CString::new(note.as_str()).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1)?;
        }
        Ok(Self::from_log(session.log))
    }

    /// Builds a conversation from its entries.
    #[staticmethod]
    fn from_events(py: Python<'_>, events: Vec<String>) -> PyResult<Self> {
        let log = interruptible(py, move |stop| of_events(&events, stop))??;
        Ok(Self::from_log(log))
    }

    /// Appends an entry.
    fn apply_event(&self, py: Python<'_>, event: &str) -> PyResult<()> {
        let event = log_event(0, event)?;
        self.change(py, move |log| log.apply_event(event))
    }

    /// Returns an independent copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::from_log(self.read(py, |log| Ok(log.clone()))?))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |log| Ok(log.messages().len()))
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
        self.read(py, move |log| Ok(*log == copy))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.look(py, |log| Ok(format!("Conversation({} messages)", log.messages().len())))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        // The pickle contains the entries, whose JSON is versioned.
        let again = py.import("context_window._core")?.getattr("_conversation")?;
        Ok((again, (self.events(py, Number(0))?,).into_pyobject(py)?))
    }
}

/// Restores a conversation from its pickle.
#[pyfunction]
pub(crate) fn _conversation(py: Python<'_>, events: Vec<String>) -> PyResult<Conversation> {
    Conversation::from_events(py, events)
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
fn of_events(events: &[String], stop: &Stop) -> PyResult<core::Conversation> {
    let entries = events.iter().enumerate().take_while(|_| !stop.is_set());
    let events = entries.map(|(at, json)| log_event(at, json)).collect::<PyResult<Vec<_>>>()?;
    core::Conversation::from_events(events).map_err(raised)
}

/// Parses the report of a provider: its whole response, or its usage alone.
fn report(response: &Bound<'_, PyAny>) -> PyResult<ReplyReport> {
    let read = json::dumps(response, "response")?;
    let read: serde_json::Value =
        serde_json::from_str(&read).map_err(|error| input(format!("response: {error}")))?;
    context_window_bindings::read_report(read).map_err(input)
}
