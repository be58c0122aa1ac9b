//! Compactions in session files: reading and writing of content blocks of type `context_compaction`
//! (compaction blocks, C1).

use super::{content::Content, timestamp::Timestamp, wire};
use context_window::{
    Conversation, ItemId, WireFormat,
    conversation::{Compaction, CompactionKind, PROVIDER_COMPACTION, ProviderSummary},
    text::object::Object,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The type that identifies the block. Its text is never used for that.
const TYPE: &str = "context_compaction";

/// The summary for other providers if the provider that compacted returns no readable text.
const NOT_SHOWN: &str = "What was said before this is held by another provider.";

#[derive(Serialize, Deserialize)]
pub(crate) struct Block {
    #[serde(rename = "type", default)]
    kind_of_part: String,
    compaction_number: Option<u32>,
    #[serde(default, skip_serializing_if = "is_summary")]
    kind: CompactionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_active: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_summary: Option<ProviderSummary>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    state: Vec<wire::StateText>,
    messages_archived: Option<u64>,
    context_size_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_size_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_summary(kind: &CompactionKind) -> bool {
    *kind == CompactionKind::Summary
}

/// Removes the compactions from a message's content and returns them. An unreadable one is returned as its
/// error. Other parts stay in the message.
pub(crate) fn taken_from(message: &mut wire::Message) -> Vec<Result<Block, String>> {
    let Content::Parts(parts) = &mut message.content else { return Vec::new() };
    let is_one = |raw: &str| {
        // Both types contain this word, so a cheap search in the raw text skips most parts.
        raw.contains(PROVIDER_COMPACTION)
            && serde_json::from_str::<wire::PartType>(raw)
                .is_ok_and(|part| part.kind.as_deref() == Some(TYPE) || by_anthropic(&part, raw).is_some())
    };
    let taken = parts.extract_if(.., |part| is_one(part.get()));
    let block = |raw: Box<RawValue>| {
        let made = serde_json::from_str(raw.get()).ok().and_then(|part| by_anthropic(&part, raw.get()));
        match made {
            Some(made) => Ok(Block::of_provider(made)),
            None => serde_json::from_str(raw.get())
                .map_err(|error| context_window::text::plain::without_place(&error)),
        }
    };
    taken.map(block).collect()
}

/// The key under which a message or a session may have a compaction outside its content.
pub(crate) const KEY: &str = "compaction";

/// Reads a compaction from the value under [`KEY`]. Returns `None` for any other value, because logs use this
/// key for other things.
pub(crate) fn beside(json: &str) -> Option<Result<Block, String>> {
    let object = Object::parse(json)?;
    object.text("summary").or_else(|| object.text("first_active"))?;
    Some(serde_json::from_str(json).map_err(|error| context_window::text::plain::without_place(&error)))
}

/// Removes the compaction that a message has outside its content, and returns it.
pub(crate) fn taken_from_key(message: &mut wire::Message) -> Option<Result<Block, String>> {
    let at = message.keys.iter().position(|key| key.name == KEY)?;
    let block = beside(message.keys[at].unread.as_ref()?.get())?;
    message.keys.remove(at);
    Some(block)
}

/// Reads a compaction of this library from a part of any tool's message.
pub(crate) fn from_part(json: &str) -> Option<Result<Block, String>> {
    let part: wire::PartType = serde_json::from_str(json).ok()?;
    let is_one = part.kind.as_deref() == Some(TYPE);
    is_one.then(|| {
        serde_json::from_str(json).map_err(|error| context_window::text::plain::without_place(&error))
    })
}

/// Returns the summary if the part is one that Anthropic made of the messages before it (provider compaction,
/// C11).
fn by_anthropic(part: &wire::PartType, raw: &str) -> Option<ProviderSummary> {
    let is_one = part.kind.as_deref() == Some(PROVIDER_COMPACTION);
    ProviderSummary::from_block("anthropic", WireFormat::Anthropic, raw).filter(|_| is_one)
}

/// The data of a compaction in a transcript.
#[derive(Default)]
pub(crate) struct Known {
    /// The summary. Without one, the archived messages have no replacement.
    pub(crate) summary: Option<String>,
    pub(crate) first_active: Option<ItemId>,
    pub(crate) tokens_before: Option<u64>,
    pub(crate) tokens_after: Option<u64>,
    pub(crate) timestamp: Option<Timestamp>,
}

impl From<Known> for Block {
    fn from(known: Known) -> Self {
        let summary = known.summary.filter(|summary| !summary.trim().is_empty());
        Self {
            kind_of_part: TYPE.into(),
            compaction_number: None,
            kind: if summary.is_some() { CompactionKind::Summary } else { CompactionKind::Fresh },
            head: None,
            from: None,
            first_active: known.first_active,
            summary,
            provider_summary: None,
            state: Vec::new(),
            messages_archived: None,
            context_size_before: known.tokens_before,
            context_size_after: known.tokens_after,
            timestamp: known.timestamp,
        }
    }
}

impl Block {
    /// Checks that the block names the first message that stays.
    pub(crate) fn with_place(self) -> Result<Self, String> {
        let hint =
            "it is next to the messages and does not specify `first_active`, the first message that is kept";
        if self.first_active.is_some() { Ok(self) } else { Err(hint.to_owned()) }
    }

    /// Creates the compaction that a provider made of everything before it.
    pub(crate) fn of_provider(made: ProviderSummary) -> Self {
        let known =
            Known { summary: Some(made.text().unwrap_or_else(|| NOT_SHOWN.into())), ..Known::default() };
        Self { provider_summary: Some(made), ..known.into() }
    }

    /// Converts the block to a record. `log` contains the entries before the block, and `next` is the id of
    /// the message after it. Returns an error if the block is incomplete or names a missing message. In that
    /// case the original messages stay (compaction blocks, C1).
    pub(crate) fn record(self, log: &Conversation, next: Option<&ItemId>) -> Result<Compaction, String> {
        let makes_no_sense = || "it has no summary, although its kind requires one".to_owned();
        if self.summary.is_none() && matches!(self.kind, CompactionKind::Summary | CompactionKind::Digest) {
            return Err(makes_no_sense());
        }
        let position = |id: &Option<ItemId>| match id {
            None => Ok(None),
            Some(id) => log.position_of(id).map(Some).ok_or_else(|| {
                format!(
                    "it refers to `{}`, which does not come before it",
                    context_window::text::plain::short(id.as_str())
                )
            }),
        };
        let first = if self.first_active.as_ref() == next { None } else { position(&self.first_active)? };
        let (head, from) = (position(&self.head)?, position(&self.from)?);
        let mut record = log.compaction_record(self.kind, head, from, first);
        // Numbers are unique and ascending. A number near the maximum would leave none for later compactions.
        let number = self.compaction_number.filter(|number| *number < u32::MAX / 2);
        record.number = number.unwrap_or(record.number).max(record.number);
        record.messages_archived = self.messages_archived.unwrap_or(record.messages_archived);
        record.tokens_before = self.context_size_before.unwrap_or_default();
        record.tokens_after = self.context_size_after.unwrap_or_default();
        record.summary = self.summary;
        record.provider_summary = self.provider_summary;
        record.state = self.state.into_iter().map(|state| (state.id, state.text)).collect();
        record.progress = true;
        record.timestamp = self.timestamp.map(Timestamp::into_text);
        if !log.would_archive(&record) {
            return Err(
                "it archives nothing, separates a tool call from its result, or its `head` is not a user message".into()
            );
        }
        Ok(record)
    }

    fn from_record(record: &Compaction) -> Self {
        Self {
            kind_of_part: TYPE.into(),
            compaction_number: Some(record.number),
            kind: record.kind,
            head: record.head.clone(),
            from: record.from.clone(),
            // The id `query` belongs to a user message outside the session's messages, so it comes after all
            // of them.
            first_active: record.first_active.clone().filter(|first| first.as_str() != "query"),
            summary: record.summary.clone(),
            provider_summary: record.provider_summary.clone(),
            state: record
                .state
                .iter()
                .map(|(id, text)| wire::StateText { id: id.clone(), text: text.clone() })
                .collect(),
            messages_archived: Some(record.messages_archived),
            context_size_before: Some(record.tokens_before),
            context_size_after: Some(record.tokens_after),
            timestamp: record.timestamp.clone().map(Timestamp::from),
        }
    }
}

/// Returns the message that represents a compaction in a session file.
pub(crate) fn message(record: &Compaction) -> String {
    let block = serde_json::to_string(&Block::from_record(record)).unwrap_or_default();
    format!("{{\"role\":\"user\",\"content\":[{block}]}}")
}
