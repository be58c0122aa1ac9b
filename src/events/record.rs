//! The records of a log file: their JSON, independent of the names of the crate's types.
//!
//! The names in this module are the file format. Renaming a field of [`Event`] or [`Compaction`] changes
//! nothing on disk. A new field needs a default, so that files of earlier versions are still read.
//! `tests/logs` contains such files.

use super::stored_anchor::StoredAnchor;
use crate::{
    conversation::{Compaction, CompactionKind, Event, MessageRange, ProviderSummary, SentText},
    item::{ItemId, PinnedItem, Priority, Ttl},
    message::{Message, Tool, WireFormat},
    provider::model::RequestLimits,
    standing_rule::StandingRule,
    usage::{Level, Usage},
};
use serde::{Deserialize, Serialize};

/// The version of the file format.
#[doc(hidden)]
pub const VERSION: u32 = 1;

/// The content of a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[doc(hidden)]
pub enum Record {
    /// The first line, which identifies the file and its version.
    ContextWindowLog(u32),
    /// A message of the conversation.
    Message(Message),
    /// An event between messages.
    Event(Box<StoredEvent>),
    /// A sent prompt: the number of items at its beginning that it shares with the previous prompt, and the
    /// event with the remaining items.
    Sent(usize, Box<StoredEvent>),
}

/// An [`Event`] as stored on disk. Some names are those of earlier versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[doc(hidden)]
pub enum StoredEvent {
    SystemText {
        id: ItemId,
        text: String,
    },
    Pinned(PinnedItem),
    MessagePinned {
        id: ItemId,
        priority: Priority,
    },
    Unpinned(ItemId),
    RuleKept(StandingRule),
    RuleDropped(ItemId),
    TtlSet {
        id: ItemId,
        ttl: Ttl,
        asked: bool,
    },
    Sent {
        counted: u64,
        // Each `alias` is the name of an earlier version.
        #[serde(default, alias = "apart")]
        volatile_tokens: u64,
        #[serde(default, alias = "left_out")]
        dropped_tokens: u64,
        #[serde(default, alias = "head")]
        fixed_tokens: u64,
        #[serde(default)]
        archives: usize,
        tokenizer: String,
        anchor: Box<StoredAnchor>,
        usage: Option<StoredUsage>,
    },
    SentWith {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<ItemId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        documents: Vec<(ItemId, String)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        state: Vec<(ItemId, String)>,
    },
    PromptSettings {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<RequestLimits>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        new_tools: Vec<StoredTool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<u32>>,
    },
    TurnCompleted {
        // The name of earlier versions for `counted_down`.
        fallen: Vec<(ItemId, Ttl)>,
        asked: Vec<ItemId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        documents_asked: Vec<ItemId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        documents_renewed: Vec<ItemId>,
    },
    Compacted(Box<StoredCompaction>),
    CompactionUndone {
        number: u32,
    },
    Rewound {
        before: ItemId,
    },
    LevelCrossed {
        level: Level,
    },
}

impl StoredEvent {
    /// Returns its name on disk.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::SystemText { .. } => "system_text",
            Self::Pinned(_) => "pinned",
            Self::MessagePinned { .. } => "message_pinned",
            Self::Unpinned(_) => "unpinned",
            Self::RuleKept(_) => "rule_kept",
            Self::RuleDropped(_) => "rule_dropped",
            Self::TtlSet { .. } => "ttl_set",
            Self::Sent { .. } => "sent",
            Self::SentWith { .. } => "sent_with",
            Self::PromptSettings { .. } => "prompt_settings",
            Self::TurnCompleted { .. } => "turn_completed",
            Self::Compacted(_) => "compacted",
            Self::CompactionUndone { .. } => "compaction_undone",
            Self::Rewound { .. } => "rewound",
            Self::LevelCrossed { .. } => "level_crossed",
        }
    }
}

/// A [`Usage`] as stored on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredUsage {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

/// A [`Tool`] as stored on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTool {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    schema: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hosted: Option<(WireFormat, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<(WireFormat, String)>,
}

/// A [`Compaction`] as stored on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCompaction {
    number: u32,
    kind: CompactionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_active: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    archived: Vec<StoredRange>,
    messages_archived: u64,
    tokens_before: u64,
    tokens_after: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    limit: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_summary: Option<ProviderSummary>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    state: Vec<(ItemId, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<StandingRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<ItemId>,
    #[serde(default)]
    progress: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
}

/// A [`MessageRange`] as stored on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredRange {
    id: ItemId,
    last_id: ItemId,
    count: u64,
}

impl From<Event> for StoredEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::SystemText { id, text } => Self::SystemText { id, text },
            Event::Pinned(item) => Self::Pinned(item),
            Event::MessagePinned { id, priority } => Self::MessagePinned { id, priority },
            Event::Unpinned(id) => Self::Unpinned(id),
            Event::RuleKept(rule) => Self::RuleKept(rule),
            Event::RuleDropped(id) => Self::RuleDropped(id),
            Event::TtlSet { id, ttl, asked } => Self::TtlSet { id, ttl, asked },
            Event::Sent {
                counted,
                volatile_tokens,
                dropped_tokens,
                fixed_tokens,
                archives,
                tokenizer,
                anchor,
                usage,
            } => Self::Sent {
                counted,
                volatile_tokens,
                dropped_tokens,
                fixed_tokens,
                archives,
                tokenizer,
                anchor: Box::new((*anchor).into()),
                usage: usage.map(Into::into),
            },
            Event::SentWith { question, documents, state } => {
                Self::SentWith { question, documents: pairs(documents), state: pairs(state) }
            }
            Event::PromptSettings { limits, focus, new_tools, tools } => {
                let new_tools = new_tools.into_iter().map(Into::into).collect();
                Self::PromptSettings { limits, focus, new_tools, tools }
            }
            Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed } => {
                Self::TurnCompleted { fallen: counted_down, asked, documents_asked, documents_renewed }
            }
            Event::Compacted(record) => Self::Compacted(Box::new((*record).into())),
            Event::CompactionUndone { number } => Self::CompactionUndone { number },
            Event::Rewound { before } => Self::Rewound { before },
            Event::LevelCrossed { level } => Self::LevelCrossed { level },
        }
    }
}

impl From<StoredEvent> for Event {
    fn from(stored: StoredEvent) -> Self {
        match stored {
            StoredEvent::SystemText { id, text } => Self::SystemText { id, text },
            StoredEvent::Pinned(item) => Self::Pinned(item),
            StoredEvent::MessagePinned { id, priority } => Self::MessagePinned { id, priority },
            StoredEvent::Unpinned(id) => Self::Unpinned(id),
            StoredEvent::RuleKept(rule) => Self::RuleKept(rule),
            StoredEvent::RuleDropped(id) => Self::RuleDropped(id),
            StoredEvent::TtlSet { id, ttl, asked } => Self::TtlSet { id, ttl, asked },
            StoredEvent::Sent {
                counted,
                volatile_tokens,
                dropped_tokens,
                fixed_tokens,
                archives,
                tokenizer,
                anchor,
                usage,
            } => Self::Sent {
                counted,
                volatile_tokens,
                dropped_tokens,
                fixed_tokens,
                archives,
                tokenizer,
                anchor: Box::new((*anchor).into()),
                usage: usage.map(Into::into),
            },
            StoredEvent::SentWith { question, documents, state } => {
                Self::SentWith { question, documents: sent_texts(documents), state: sent_texts(state) }
            }
            StoredEvent::PromptSettings { limits, focus, new_tools, tools } => {
                let new_tools = new_tools.into_iter().map(Into::into).collect();
                Self::PromptSettings { limits, focus, new_tools, tools }
            }
            StoredEvent::TurnCompleted { fallen, asked, documents_asked, documents_renewed } => {
                Self::TurnCompleted { counted_down: fallen, asked, documents_asked, documents_renewed }
            }
            StoredEvent::Compacted(record) => Self::Compacted(Box::new((*record).into())),
            StoredEvent::CompactionUndone { number } => Self::CompactionUndone { number },
            StoredEvent::Rewound { before } => Self::Rewound { before },
            StoredEvent::LevelCrossed { level } => Self::LevelCrossed { level },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

fn pairs(sent: Vec<SentText>) -> Vec<(ItemId, String)> {
    sent.into_iter().map(|SentText { id, text }| (id, text)).collect()
}

fn sent_texts(stored: Vec<(ItemId, String)>) -> Vec<SentText> {
    stored.into_iter().map(|(id, text)| SentText { id, text }).collect()
}

impl From<Tool> for StoredTool {
    fn from(tool: Tool) -> Self {
        // Destructured without `..` here and below, so that a new field cannot be forgotten.
        let Tool { name, description, schema, hosted, written } = tool;
        Self { name, description, schema, hosted, written }
    }
}

impl From<StoredTool> for Tool {
    fn from(stored: StoredTool) -> Self {
        let StoredTool { name, description, schema, hosted, written } = stored;
        Self { name, description, schema, hosted, written }
    }
}

impl From<Usage> for StoredUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input, cache_read, cache_write, output } = usage;
        Self { input, cache_read, cache_write, output }
    }
}

impl From<StoredUsage> for Usage {
    fn from(stored: StoredUsage) -> Self {
        let StoredUsage { input, cache_read, cache_write, output } = stored;
        Self { input, cache_read, cache_write, output }
    }
}

impl From<Compaction> for StoredCompaction {
    fn from(record: Compaction) -> Self {
        let range = |MessageRange { id, last_id, count }| StoredRange { id, last_id, count };
        Self {
            number: record.number,
            kind: record.kind,
            head: record.head,
            from: record.from,
            first_active: record.first_active,
            archived: record.archived.into_iter().map(range).collect(),
            messages_archived: record.messages_archived,
            tokens_before: record.tokens_before,
            tokens_after: record.tokens_after,
            limit: record.limit,
            summary: record.summary,
            provider_summary: record.provider_summary,
            state: record.state,
            rules: record.rules,
            left_out: record.left_out,
            progress: record.progress,
            timestamp: record.timestamp,
        }
    }
}

impl From<StoredCompaction> for Compaction {
    fn from(stored: StoredCompaction) -> Self {
        let range = |StoredRange { id, last_id, count }| MessageRange { id, last_id, count };
        Self {
            number: stored.number,
            kind: stored.kind,
            head: stored.head,
            from: stored.from,
            first_active: stored.first_active,
            archived: stored.archived.into_iter().map(range).collect(),
            messages_archived: stored.messages_archived,
            tokens_before: stored.tokens_before,
            tokens_after: stored.tokens_after,
            limit: stored.limit,
            summary: stored.summary,
            provider_summary: stored.provider_summary,
            state: stored.state,
            rules: stored.rules,
            left_out: stored.left_out,
            progress: stored.progress,
            timestamp: stored.timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Target;

    /// Logs of earlier versions are still read. They call the wire format `framing`, and the figures of a
    /// sent prompt `apart`, `left_out` and `head`.
    #[test]
    fn names_of_earlier_versions_are_read() {
        let event = |figures: &str, format: &str| -> Event {
            let json = format!(
                r#"{{"sent":{{"counted":9,{figures},"archives":0,"tokenizer":"bytes","anchor":{{"target":{{"model":"m","provider":"p","{format}":"gemini"}}}},"usage":null}}}}"#
            );
            serde_json::from_str::<StoredEvent>(&json).unwrap().into()
        };
        let now = event(r#""volatile_tokens":1,"dropped_tokens":2,"fixed_tokens":3"#, "wire_format");
        assert_eq!(event(r#""apart":1,"left_out":2,"head":3"#, "framing"), now);
        let Event::Sent { volatile_tokens: 1, dropped_tokens: 2, fixed_tokens: 3, anchor, .. } = now else {
            panic!("{now:?}")
        };
        assert_eq!(anchor.target, Some(Target::new("m", "p").with_wire_format(WireFormat::Gemini)));
    }
}
