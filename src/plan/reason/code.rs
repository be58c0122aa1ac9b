//! Reasons as data: a code that is stable across versions, and its numbers.

use super::{ExcludedReason, IncludedReason, LimitedBy, PolicyRule};
use crate::{item::ItemId, text::plain::grouped};
use serde::{Serialize, Serializer};
use std::fmt;

/// The numbers of a reason, each under its own name.
#[derive(Default, Serialize)]
pub(crate) struct Numbers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<u64>,
    #[serde(rename = "held_by", skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a ItemId>,
    /// The share of a document's text that the item `of` has, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(reason: &'a ExcludedReason) -> Self {
        let none = Self::default();
        match reason {
            ExcludedReason::Budget { room, limited_by } => {
                Self { room: Some(*room), limited_by: Some(*limited_by), ..none }
            }
            ExcludedReason::TtlExpired { asked } => Self { asked: Some(*asked), ..none },
            ExcludedReason::Duplicate { of } | ExcludedReason::InWindow { of } => {
                Self { of: Some(of), ..none }
            }
            ExcludedReason::NearDuplicate { of, share } | ExcludedReason::Repeats { of, share } => {
                Self { of: Some(of), share: Some(*share), ..none }
            }
            ExcludedReason::Archived { compaction } => Self { compaction: *compaction, ..none },
            ExcludedReason::Policy(rule) => {
                // Every policy names its rule, and some add the numbers that decided.
                let named = Self { rule: Some(rule.name()), ..none };
                match rule {
                    PolicyRule::MinScore { score, limit } => {
                        Self { score: Some(*score), min_score: Some(*limit), ..named }
                    }
                    PolicyRule::MaxSourceTokens { used, limit } => {
                        Self { used: Some(*used), limit: Some(*limit), ..named }
                    }
                    PolicyRule::MaxItemTokens { limit }
                    | PolicyRule::MaxItems { limit }
                    | PolicyRule::MaxSourceItems { limit } => Self { limit: Some(*limit), ..named },
                    PolicyRule::MaxListItems { list, limit } => {
                        Self { list: Some(list), limit: Some(*limit), ..named }
                    }
                    PolicyRule::MaxListTokens { list, used, limit } => {
                        Self { list: Some(list), used: Some(*used), limit: Some(*limit), ..named }
                    }
                    PolicyRule::Requires { of } | PolicyRule::Group { of } => Self { of: Some(of), ..named },
                    PolicyRule::NextQuestion
                    | PolicyRule::QuestionSent
                    | PolicyRule::Unconfirmed
                    | PolicyRule::OrphanResult
                    | PolicyRule::SecondResult
                    | PolicyRule::EmptyMessage
                    | PolicyRule::ForeignMessage
                    | PolicyRule::MissingResult => named,
                }
            }
        }
    }
}

/// A code with its numbers.
#[derive(Serialize)]
struct Coded<'a> {
    code: &'static str,
    #[serde(flatten)]
    numbers: Numbers<'a>,
    /// The largest budget of the model, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_to: Option<u64>,
}

/// Writes an object. `code` is the reason's name, and its numbers (`room`, `held_by`, `rule`, `limit`, ...)
/// have the names that they have in a plan's JSON.
impl Serialize for ExcludedReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Coded { code: self.name(), numbers: Numbers::new(self), up_to: None }.serialize(serializer)
    }
}

/// The reason why an item is included or excluded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The reason of an included item.
    Included(IncludedReason),
    /// The reason of an excluded item.
    Excluded(ExcludedReason),
}

/// Writes an object with a `code`: `required`, `pinned`, `recent`, `question`, `relevant`, `summary`, or the
/// code of the exclusion.
impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Included(reason) => {
                let numbers = Numbers::default();
                Coded { code: reason.name(), numbers, up_to: None }.serialize(serializer)
            }
            Self::Excluded(reason) => reason.serialize(serializer),
        }
    }
}

/// The reason why a decision is the same at every prompt budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Never {
    /// An item that every budget includes.
    AlwaysIn,
    /// An exclusion that does not depend on the budget.
    Reason(ExcludedReason),
    /// An exclusion at every budget that the model can have.
    UpTo {
        /// The reason at the largest budget.
        reason: ExcludedReason,
        /// The largest budget of the model, in tokens.
        largest_budget: u64,
    },
}

/// Writes an object with a `code`: `always_in`, or the code of the exclusion. `up_to` is the largest budget,
/// if the exclusion depends on the budget.
impl Serialize for Never {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AlwaysIn => {
                let numbers = Numbers::default();
                Coded { code: "always_in", numbers, up_to: None }.serialize(serializer)
            }
            Self::Reason(reason) => reason.serialize(serializer),
            Self::UpTo { reason, largest_budget: most } => {
                let numbers = Numbers::new(reason);
                Coded { code: reason.name(), numbers, up_to: Some(*most) }.serialize(serializer)
            }
        }
    }
}

/// Writes the name of an inclusion, or the sentence of an exclusion.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Included(reason) => f.write_str(reason.name()),
            Self::Excluded(reason) => reason.fmt(f),
        }
    }
}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, most) = match self {
            Self::AlwaysIn => return f.write_str("required in every plan of this request"),
            Self::Reason(reason) => return reason.fmt(f),
            Self::UpTo { reason, largest_budget } => (reason, largest_budget),
        };
        let held = match reason {
            ExcludedReason::Budget { limited_by: LimitedBy::Cap, .. } => {
                "the section's cap keeps it out at every"
            }
            ExcludedReason::Budget { limited_by: LimitedBy::PinsLimit, .. } => {
                "the limit for pins keeps it out at every"
            }
            ExcludedReason::Budget { limited_by: LimitedBy::RulesLimit, .. } => {
                "the limit for standing rules keeps it out at every"
            }
            ExcludedReason::Budget { limited_by: LimitedBy::QuestionLimit, .. } => {
                "the limit for one question's documents keeps it out at every"
            }
            ExcludedReason::Budget { limited_by: LimitedBy::RecallShare, .. } => {
                "the share for recalled messages keeps it out at every"
            }
            // Under another budget than the last prompt's, the window is not continued (sticky window, rule
            // S5). So no budget of the model is named here.
            ExcludedReason::Budget { limited_by: LimitedBy::StickyWindow, .. } => {
                return f.write_str(
                    "the sticky window keeps it out; a prompt with another budget begins a new one",
                );
            }
            ExcludedReason::Budget { limited_by: LimitedBy::StickyDocuments, .. } => {
                "the documents kept for this question keep it out at every"
            }
            ExcludedReason::InWindow { .. } => "its messages stand in the window at every",
            ExcludedReason::NearDuplicate { .. } | ExcludedReason::Repeats { .. } => {
                "another item has its text at every"
            }
            ExcludedReason::Policy(_) => "the policy keeps it out at every",
            _ => "it does not fit in any",
        };
        write!(f, "{held} budget of this model, up to {}", grouped(*most))
    }
}
