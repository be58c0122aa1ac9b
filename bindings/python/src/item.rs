//! Rows of a plan.

use crate::{
    frame::turns,
    json,
    wire::{messages_of, rendered, texts, wire_format},
};
use context_window as core;
use context_window_report as report;
use core::{ItemKind, Message, Part};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap};

/// A name that is the same in every plan.
type Name = Cow<'static, str>;

/// An item of the prompt, with its kind, reason and tokens.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct IncludedItem {
    /// The item's id.
    id: String,
    /// The kind of item, such as `message` or `document`.
    kind: Name,
    /// The section of the budget that pays for the item.
    section: Name,
    /// The origin of the item.
    source: Name,
    /// The role of the message, or None for an item without a role.
    role: Option<Name>,
    /// The reason for the inclusion.
    reason: Name,
    /// The priority among items of its section.
    priority: Name,
    /// The remaining turns, or None for no limit.
    ttl: Option<u32>,
    /// The item's tokens.
    token_estimate: u64,
    /// The certainty of the count: `exact`, an `estimate` or a bound.
    certainty: Name,
    /// The ranks of a document in the lists of the request, if there are several.
    #[serde(default)]
    ranks: BTreeMap<String, u64>,
    /// The id of the chunk before, if a document continues its text, or None.
    #[serde(default)]
    continues: Option<String>,
    /// The ids of the first and the last message that a recalled text quotes, or None.
    #[serde(default)]
    quoted_messages: Option<(String, String)>,
    /// The form in which a document of this question is sent, such as `summary`, or None if it is whole.
    #[serde(default)]
    form: Option<String>,
    /// The label with which a reply cites a document of this question, or None.
    #[serde(default)]
    label: Option<u32>,
    /// The hash of the item's content.
    hash: String,
}

/// An excluded item with its reason. It may be a run of `count` consecutive messages, from `id` to `last_id`.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct ExcludedItem {
    /// The item's id, or that of the first message of a run.
    id: String,
    /// The id of the last message of a run, or None for a single item.
    last_id: Option<String>,
    /// The number of items in the row.
    count: u64,
    /// The kind of item, such as `message` or `document`.
    kind: Name,
    /// The section of the budget to which the item belongs.
    section: Name,
    /// The origin of the item, if it is known.
    source: Option<Name>,
    /// The reason for the exclusion, as a code.
    reason: Name,
    /// The reason in words, with its numbers.
    why: String,
    /// The tokens of the row.
    token_estimate: u64,
    /// The certainty of the count: `exact`, an `estimate` or a bound.
    certainty: Name,
    /// The ranks of a document in the lists of the request, if there are several.
    #[serde(default)]
    ranks: BTreeMap<String, u64>,
}

/// A message of the prompt, before the provider's format joins messages. It contains one item, or several
/// consecutive documents.
///
/// `position` is the position of a message in the conversation. `changed` lists the fields that differ from
/// that message: `text` (a shortened tool result), `calls`, `reasoning`, `role`.
#[pyclass(frozen, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct ItemMessage {
    message: Message,
    /// The ids of the items in the message.
    #[pyo3(get)]
    ids: Vec<String>,
    /// The kind of the items.
    #[pyo3(get)]
    kind: Name,
    /// The position of the message in the conversation, or None for an item that is not in it.
    #[pyo3(get)]
    position: Option<usize>,
    /// The fields that differ from the message in the conversation.
    #[pyo3(get)]
    changed: Vec<Name>,
}

/// Returns ranks by the names of their lists.
fn ranks(ranks: &[core::ListRank]) -> BTreeMap<String, u64> {
    ranks.iter().map(|rank| (rank.list.to_string(), rank.rank)).collect()
}

impl IncludedItem {
    pub(crate) const PICKLED: &str = "IncludedItem";

    pub(crate) fn from_core(item: &core::PlannedItem) -> Self {
        Self {
            id: item.id.to_string(),
            kind: item.kind.name().into(),
            section: item.section.name().into(),
            source: item.source.name().into(),
            role: item.role.map(|role| role.name().into()),
            reason: item.reason.name().into(),
            priority: item.priority.name().into(),
            ttl: item.ttl.and_then(turns),
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty.name().into(),
            ranks: ranks(item.ranks()),
            continues: item.continues().map(ToString::to_string),
            quoted_messages: item
                .quoted_messages()
                .map(|[first, last]| (first.to_string(), last.to_string())),
            form: item.form().map(str::to_owned),
            label: item.label(),
            hash: item.hash(),
        }
    }
}

impl ExcludedItem {
    pub(crate) const PICKLED: &str = "ExcludedItem";

    pub(crate) fn from_core(item: &core::ExcludedItem) -> Self {
        Self {
            id: item.id.to_string(),
            last_id: item.last_id.as_ref().map(ToString::to_string),
            count: item.count,
            kind: item.kind.name().into(),
            section: item.section.name().into(),
            source: item.source.map(|source| source.name().into()),
            reason: item.reason.name().into(),
            why: item.reason.to_string(),
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty.name().into(),
            ranks: ranks(item.ranks()),
        }
    }
}

impl ItemMessage {
    pub(crate) const PICKLED: &str = "ItemMessage";

    /// Converts an item. `log` is the planned conversation, which may have grown since.
    pub(crate) fn from_core(item: core::plan::ItemMessage, log: &core::Conversation) -> Self {
        // Only messages and system texts can be in the log.
        let own = matches!(item.kind, ItemKind::Message | ItemKind::SystemText)
            .then(|| log.position_of_message(item.ids[0].as_str()))
            .flatten();
        let said = own.map(|position| &log.messages()[position]);
        let changed = said.map(|said| differences(said, &item.message)).unwrap_or_default();
        Self {
            ids: texts(&item.ids),
            kind: item.kind.name().into(),
            position: own,
            changed,
            message: item.message,
        }
    }
}

/// Returns the names of the fields in which a sent message differs from the logged one.
fn differences(said: &Message, sent: &Message) -> Vec<Name> {
    let differs = [
        ("role", said.role() != sent.role()),
        ("text", said.text() != sent.text() || said.parts() != sent.parts()),
        ("calls", said.tool_calls() != sent.tool_calls() || said.answers() != sent.answers()),
        ("reasoning", said.reasoning() != sent.reasoning()),
    ];
    differs.into_iter().filter(|(_, is)| *is).map(|(what, _)| what.into()).collect()
}

#[pymethods]
impl IncludedItem {
    fn __repr__(&self) -> String {
        format!("IncludedItem({:?}, {}, {}, {} tokens)", self.id, self.kind, self.reason, self.token_estimate)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
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

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
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

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
    }
}
