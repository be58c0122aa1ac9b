//! The reasons for including or excluding an item, with their numbers and their wording.

mod code;

use crate::{item::ItemId, text::plain::grouped};
pub(crate) use code::Numbers;
pub use code::{Never, Reason};
use serde::Serialize;
use std::{fmt, sync::Arc};

/// The reason why an item is in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IncludedReason {
    /// An item that every prompt needs (rule S1).
    Required,
    /// A pin, or an item that comes with a pinned exchange (rules S2, S3).
    Pinned,
    /// A rule of the user whose message is not in the prompt (rule R1).
    Rule,
    /// A message in the kept window (rule S4).
    Recent,
    /// The user message of a turn whose earlier exchanges are left out. It comes with the exchanges that are
    /// kept (rules S4, S5).
    Question,
    /// A document, by its score (rule S8).
    Relevant,
    /// A message that left the window and comes back for this question (rule S15).
    Recalled,
    /// A summary of archived messages.
    Summary,
}

impl IncludedReason {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Pinned => "pinned",
            Self::Rule => "rule",
            Self::Recent => "recent",
            Self::Question => "question",
            Self::Relevant => "relevant",
            Self::Recalled => "recalled",
            Self::Summary => "summary",
        }
    }
}

// Levels of reasons, for adding a new one:
//
// - `LimitedBy`: too few tokens; another budget may let the item in.
// - `PolicyRule`: a rule leaves the item out, whatever the budget.
// - `ExcludedReason`: neither of the two; a new kind, with a code of its own in `ExcludedCode`.
//
// Places that need the new reason too, and that the compiler does not report:
//
// - `Display for Never` in code.rs
// - planner/assemble/excluded.rs, `tokens`; planner/assemble/pressure.rs; planner/telemetry.rs
// - `ContextPlan::drops_conversation`
// - analysis/explain/subject.rs, `can_move` and `is_excluded_for_room`: without it explain answers "never"
// - analysis/explain/displaced.rs
// - crates/report: row.rs; crates/ratatui: filter.rs
// - crates/plan-inspect/schema/plan.json

/// The reason why an item is not in the prompt, with the numbers that decided it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ExcludedReason {
    /// A lack of tokens (rules B5, B6).
    Budget {
        /// Tokens that the rules left for the item.
        room: u64,
        /// The limit that excludes the item.
        limited_by: LimitedBy,
    },
    /// A TTL that is used up (rules T1, T2).
    TtlExpired {
        /// True if the item already had one more turn under the policy `ask`.
        asked: bool,
    },
    /// A duplicate of an earlier document in the list, by id or text (rule S9).
    Duplicate {
        /// The id of the document that was kept.
        of: ItemId,
    },
    /// A document whose text an included document has almost whole (rule S9).
    NearDuplicate {
        /// The id of the included document.
        of: ItemId,
        /// The share of its runs of five words that the other item has, in per cent.
        share: u8,
    },
    /// A document whose text another item of the prompt has almost whole: a message, a note, a summary
    /// or a retained document (rule S9).
    Repeats {
        /// The id of that item.
        of: ItemId,
        /// The share of its runs of five words that the other item has, in per cent.
        share: u8,
    },
    /// A recalled message, or a rule of the user, that the conversation of this prompt has anyway (rules S15,
    /// R1).
    InWindow {
        /// The id of the message; of several, the first.
        of: ItemId,
    },
    /// A policy that excludes the item (rules S9, H2, H3).
    Policy(PolicyRule),
    /// An archived message, which is still in the log but no longer sent (rule C1).
    Archived {
        /// The number of the compaction; `None` if a rewind went back to before the message.
        compaction: Option<u32>,
    },
}

/// The limit that excludes an item, in addition to the tokens left (rule B6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitedBy {
    /// No other limit: the item is larger than the tokens left.
    Size,
    /// The contiguous window of whole turns: something newer did not fit (rule S4).
    Window,
    /// The section's cap (rule B4).
    Cap,
    /// The limit of tokens for all pins, `sections.system_pinned.pins_limit` (rule S2).
    PinsLimit,
    /// The limit of tokens for rules of the user, `compaction.rules_limit` (rule R3).
    RulesLimit,
    /// The limit of tokens for the documents of one question, `rag.question_limit` (rule S10).
    QuestionLimit,
    /// The limit of tokens for recalled messages, `rag.recall_share` (rule S15).
    RecallShare,
    /// An earlier document that did not fit, under `fill = "prefix"` (rule S8).
    Prefix,
    /// The group of the document, which is too large to be sent together (rule S19).
    Group,
    /// The sticky window, which starts at the same message as the last one, or was cut to its low mark (rule
    /// S5).
    StickyWindow,
    /// The sticky documents, which stay while the live question is the same (rule S5).
    StickyDocuments,
    /// The minimum, which does not fit by itself (rule S6).
    Overflow,
}

impl LimitedBy {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Window => "window",
            Self::Cap => "cap",
            Self::PinsLimit => "pins_limit",
            Self::RulesLimit => "rules_limit",
            Self::QuestionLimit => "question_limit",
            Self::RecallShare => "recall_share",
            Self::Prefix => "prefix",
            Self::Group => "group",
            Self::StickyWindow => "sticky_window",
            Self::StickyDocuments => "sticky_documents",
            Self::Overflow => "overflow",
        }
    }
}

/// The policy that excludes an item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PolicyRule {
    /// `rag.min_score`.
    MinScore {
        /// The score of the item.
        score: f64,
        /// The smallest score that is kept.
        limit: f64,
    },
    /// `rag.max_item_tokens`.
    MaxItemTokens {
        /// The size of the largest document that is kept, in tokens.
        limit: u64,
    },
    /// `rag.max_items`: this number of documents is already included.
    MaxItems {
        /// The limit, in documents.
        limit: u64,
    },
    /// `rag.max_source_tokens`: the other documents of the source are already included.
    MaxSourceTokens {
        /// Tokens of these documents.
        used: u64,
        /// The most tokens of one source.
        limit: u64,
    },
    /// `rag.max_source_items`: this number of documents of the source is already included.
    MaxSourceItems {
        /// The limit, in documents.
        limit: u64,
    },
    /// `max_items` of a list: this number of documents that the list ranks best is already included.
    MaxListItems {
        /// The name of the list.
        list: Arc<str>,
        /// The limit, in documents.
        limit: u64,
    },
    /// `max_tokens` of a list: the other documents that the list ranks best are already included.
    MaxListTokens {
        /// The name of the list.
        list: Arc<str>,
        /// Tokens of these documents.
        used: u64,
        /// The most tokens of the list.
        limit: u64,
    },
    /// A note that was pinned while the model is at work. It is sent from the next question on (rule S10).
    NextQuestion,
    /// A document that is sent only beside others, none of which is in the prompt (rule S18).
    Requires {
        /// The id of the required document; of several, the first.
        of: ItemId,
    },
    /// A document of a group of which another member is not in the prompt (rule S19).
    Group {
        /// The id of that member.
        of: ItemId,
    },
    /// A message that was not recalled when its question was sent (rule S15).
    QuestionSent,
    /// A rule of the user that the user has to confirm, under `compaction.rules = "ask"` (rule R2).
    Unconfirmed,
    /// A tool result without a call (rule H3).
    OrphanResult,
    /// A second result for an answered call (rule H3).
    SecondResult,
    /// A message without content (rule H3).
    EmptyMessage,
    /// An assistant message whose content is all in another wire format (rule H6).
    ForeignMessage,
    /// An exchange with a tool call without a result, under `repair = "drop"` (rule H2).
    MissingResult,
}

impl PolicyRule {
    /// Returns the rule's name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::MinScore { .. } => "min_score",
            Self::MaxItemTokens { .. } => "max_item_tokens",
            Self::MaxItems { .. } => "max_items",
            Self::MaxSourceTokens { .. } => "max_source_tokens",
            Self::MaxSourceItems { .. } => "max_source_items",
            Self::MaxListItems { .. } => "max_list_items",
            Self::MaxListTokens { .. } => "max_list_tokens",
            Self::NextQuestion => "next_question",
            Self::Requires { .. } => "requires",
            Self::Group { .. } => "group",
            Self::QuestionSent => "question_sent",
            Self::Unconfirmed => "unconfirmed",
            Self::OrphanResult => "orphan_result",
            Self::SecondResult => "second_result",
            Self::EmptyMessage => "empty_message",
            Self::ForeignMessage => "foreign_message",
            Self::MissingResult => "missing_result",
        }
    }
}

/// The reason why an item is not in the prompt, without its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExcludedCode {
    /// [`ExcludedReason::Budget`]
    Budget,
    /// [`ExcludedReason::TtlExpired`]
    TtlExpired,
    /// [`ExcludedReason::Duplicate`]
    Duplicate,
    /// [`ExcludedReason::NearDuplicate`]
    NearDuplicate,
    /// [`ExcludedReason::Repeats`]
    Repeats,
    /// [`ExcludedReason::InWindow`]
    InWindow,
    /// [`ExcludedReason::Policy`]
    Policy,
    /// [`ExcludedReason::Archived`]
    Archived,
}

impl ExcludedCode {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::TtlExpired => "ttl_expired",
            Self::Duplicate => "duplicate",
            Self::NearDuplicate => "near_duplicate",
            Self::Repeats => "repeats",
            Self::InWindow => "in_window",
            Self::Policy => "policy",
            Self::Archived => "archived",
        }
    }
}

impl ExcludedReason {
    /// Returns the reason without its numbers.
    #[must_use]
    pub fn code(&self) -> ExcludedCode {
        match self {
            Self::Budget { .. } => ExcludedCode::Budget,
            Self::TtlExpired { .. } => ExcludedCode::TtlExpired,
            Self::Duplicate { .. } => ExcludedCode::Duplicate,
            Self::NearDuplicate { .. } => ExcludedCode::NearDuplicate,
            Self::Repeats { .. } => ExcludedCode::Repeats,
            Self::InWindow { .. } => ExcludedCode::InWindow,
            Self::Policy(_) => ExcludedCode::Policy,
            Self::Archived { .. } => ExcludedCode::Archived,
        }
    }

    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.code().name()
    }

    /// Returns the number of tokens that the rules left, if the reason is a lack of tokens.
    pub(crate) fn room(&self) -> Option<u64> {
        match self {
            Self::Budget { room, .. } => Some(*room),
            _ => None,
        }
    }
}

impl fmt::Display for ExcludedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { room, limited_by } => match limited_by {
                LimitedBy::Size => write!(f, "too large; {} tokens left", grouped(*room)),
                LimitedBy::Window => {
                    write!(f, "older; {} tokens left, the next older turn needs more", grouped(*room))
                }
                LimitedBy::Cap => {
                    write!(f, "too large; {} tokens left under the section's cap", grouped(*room))
                }
                LimitedBy::PinsLimit => {
                    write!(f, "too large; {} tokens left of the limit for pins", grouped(*room))
                }
                LimitedBy::RulesLimit => {
                    write!(f, "too large; {} tokens left of the limit for standing rules", grouped(*room))
                }
                LimitedBy::QuestionLimit => {
                    write!(
                        f,
                        "too large; {} tokens left of the limit for one question's documents",
                        grouped(*room)
                    )
                }
                LimitedBy::RecallShare => {
                    write!(f, "too large; {} tokens left of the share for recalled messages", grouped(*room))
                }
                LimitedBy::Prefix => {
                    write!(f, "after a document that did not fit; {} tokens left", grouped(*room))
                }
                LimitedBy::Group => {
                    write!(f, "too large with its whole group; {} tokens left", grouped(*room))
                }
                LimitedBy::StickyWindow => {
                    write!(f, "before the sticky window; {} tokens left", grouped(*room))
                }
                LimitedBy::StickyDocuments => {
                    write!(f, "last documents kept for this question; {} tokens left", grouped(*room))
                }
                LimitedBy::Overflow => f.write_str("required items exceed the budget"),
            },
            Self::TtlExpired { asked: false } => f.write_str("expired"),
            Self::TtlExpired { asked: true } => f.write_str("expired, kept one more turn before"),
            Self::Duplicate { of } => write!(f, "duplicate of {of}"),
            Self::NearDuplicate { of, share } => write!(f, "near duplicate of {of}, {share} %"),
            Self::Repeats { of, share } => write!(f, "repeats {of}, {share} %"),
            Self::InWindow { of } => write!(f, "stands in the window as {of}"),
            Self::Policy(rule) => rule.fmt(f),
            Self::Archived { compaction: Some(number) } => write!(f, "archived by compaction #{number}"),
            Self::Archived { compaction: None } => f.write_str("archived by a rewind"),
        }
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MinScore { score, limit } => write!(f, "score {score} is below the minimum of {limit}"),
            Self::MaxItemTokens { limit } => {
                write!(f, "exceeds the {} tokens allowed for a document", grouped(*limit))
            }
            Self::MaxItems { limit } => write!(f, "the limit of {} documents is reached", grouped(*limit)),
            Self::MaxSourceTokens { used, limit } => {
                write!(f, "its source already has {} of at most {} tokens", grouped(*used), grouped(*limit))
            }
            Self::MaxSourceItems { limit } => {
                write!(f, "the limit of {} documents of its source is reached", grouped(*limit))
            }
            Self::MaxListItems { list, limit } => {
                write!(f, "the limit of {} documents of the list {list} is reached", grouped(*limit))
            }
            Self::MaxListTokens { list, used, limit } => {
                let (used, limit) = (grouped(*used), grouped(*limit));
                write!(f, "the list {list} already has {used} of at most {limit} tokens")
            }
            Self::Unconfirmed => f.write_str("waits until the user confirms it as a standing rule"),
            Self::NextQuestion => f.write_str("pinned during a running turn: sent from the next question on"),
            Self::Requires { of } => write!(f, "sent only beside {of}, which is not in the prompt"),
            Self::Group { of } => write!(f, "sent only with its whole group, and {of} is not in the prompt"),
            Self::QuestionSent => f.write_str("not recalled when this question was sent"),
            Self::OrphanResult => f.write_str("tool result without a call"),
            Self::SecondResult => f.write_str("second result for one call"),
            Self::EmptyMessage => f.write_str("empty message"),
            Self::ForeignMessage => f.write_str("contains only data of another provider"),
            Self::MissingResult => f.write_str("tool call without a result"),
        }
    }
}
