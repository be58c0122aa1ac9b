//! Rows of a plan.

use crate::conversation::{messages_of, rendered, texts, wire_format};
use crate::json;
use context_window as core;
use context_window_report as report;
use core::{ItemKind, Message, Part, Ttl};
use pyo3::prelude::*;

/// An item of the prompt, with its kind, reason and tokens.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq)]
pub(crate) struct IncludedItem {
    id: String,
    kind: &'static str,
    section: &'static str,
    source: &'static str,
    role: Option<&'static str>,
    reason: &'static str,
    priority: &'static str,
    ttl: Option<u32>,
    token_estimate: u64,
    certainty: &'static str,
    hash: String,
}

/// An excluded item with its reason. It may be a run of `count` consecutive messages, from `id` to `last_id`.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq)]
pub(crate) struct ExcludedItem {
    id: String,
    last_id: Option<String>,
    count: u64,
    kind: &'static str,
    section: &'static str,
    source: Option<&'static str>,
    reason: &'static str,
    why: String,
    token_estimate: u64,
    certainty: &'static str,
}

/// A message of the prompt, before the provider's format joins messages. It contains one item, or several
/// consecutive documents.
///
/// `position` is the position of a message in the conversation. `changed` lists the fields that differ from
/// that message: `text` (a shortened tool result), `calls`, `reasoning`, `role`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct ItemMessage {
    message: Message,
    #[pyo3(get)]
    ids: Vec<String>,
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    position: Option<usize>,
    #[pyo3(get)]
    changed: Vec<&'static str>,
}

impl IncludedItem {
    pub(crate) fn of(item: &core::PlannedItem) -> Self {
        Self {
            id: item.id.to_string(),
            kind: item.kind.name(),
            section: item.section.name(),
            source: item.source.name(),
            role: item.role.map(core::Role::name),
            reason: item.reason.name(),
            priority: item.priority.name(),
            ttl: item.ttl.and_then(turns),
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty.name(),
            hash: item.hash(),
        }
    }
}

impl ExcludedItem {
    pub(crate) fn of(item: &core::ExcludedItem) -> Self {
        Self {
            id: item.id.to_string(),
            last_id: item.last_id.as_ref().map(ToString::to_string),
            count: item.count,
            kind: item.kind.name(),
            section: item.section.name(),
            source: item.source.map(core::Source::name),
            reason: item.reason.name(),
            why: item.reason.to_string(),
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty.name(),
        }
    }
}

/// Returns the remaining turns, or `None` if there is no limit.
fn turns(ttl: Ttl) -> Option<u32> {
    match ttl {
        Ttl::Limited(turns) => Some(turns.get()),
        // An expired item has 0 turns left; `None` means that it never expires.
        Ttl::NoneRemaining => Some(0),
        Ttl::Unlimited => None,
    }
}

impl ItemMessage {
    /// Converts an item. `log` is the planned conversation, which may have grown since.
    pub(crate) fn of(item: core::plan::ItemMessage, log: &core::Conversation) -> Self {
        // Only messages and system texts can be in the log.
        let own = matches!(item.kind, ItemKind::Message | ItemKind::SystemText)
            .then(|| log.position_of_message(item.ids[0].as_str()))
            .flatten();
        let said = own.map(|position| &log.messages()[position]);
        let changed = said.map(|said| differences(said, &item.message)).unwrap_or_default();
        Self { ids: texts(&item.ids), kind: item.kind.name(), position: own, changed, message: item.message }
    }
}

/// Returns the names of the fields in which a sent message differs from the logged one.
fn differences(said: &Message, sent: &Message) -> Vec<&'static str> {
    let differs = [
        ("role", said.role() != sent.role()),
        ("text", said.text() != sent.text() || said.parts() != sent.parts()),
        ("calls", said.tool_calls() != sent.tool_calls() || said.answers() != sent.answers()),
        ("reasoning", said.reasoning() != sent.reasoning()),
    ];
    differs.into_iter().filter_map(|(what, is)| is.then_some(what)).collect()
}

#[pymethods]
impl IncludedItem {
    fn __repr__(&self) -> String {
        format!("IncludedItem({:?}, {}, {}, {} tokens)", self.id, self.kind, self.reason, self.token_estimate)
    }
}

#[pymethods]
impl ExcludedItem {
    fn __repr__(&self) -> String {
        let to = self.last_id.as_ref().map(|last| format!("..{last:?} ({})", self.count)).unwrap_or_default();
        format!(
            "ExcludedItem({:?}{to}, {}, {:?}, {} tokens)",
            self.id, self.kind, self.why, self.token_estimate
        )
    }
}

#[pymethods]
impl ItemMessage {
    /// The role of the message.
    #[getter]
    fn role(&self) -> &'static str {
        self.message.role().name()
    }

    /// The text. For a message with parts, the texts of its parts.
    #[getter]
    fn text(&self) -> String {
        let texts = self.message.parts().iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> =
            [self.message.text()].into_iter().chain(texts).filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    /// The id of the tool call that this result answers.
    #[getter]
    fn tool_call_id(&self) -> Option<&str> {
        self.message.answers()
    }

    /// Returns the message as dicts in a provider's format. Some formats split it into several.
    #[pyo3(signature = (wire_format="openai"))]
    fn messages<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        let form = self::wire_format(wire_format)?;
        json::python(py, &messages_of(rendered(vec![self.message.clone()], form)))
    }

    fn __repr__(&self) -> String {
        let changed = if self.changed.is_empty() {
            String::new()
        } else {
            format!(", changed: {}", self.changed.join(", "))
        };
        format!("ItemMessage({:?}, {}, {}{changed})", self.ids, self.kind, report::brief(self.message.text()))
    }
}
