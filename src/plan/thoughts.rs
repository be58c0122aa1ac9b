//! The reasoning of earlier replies in a prompt (reasoning rules K1 to K4).

use crate::{item::ItemId, provider::model::MismatchSwitch};
use serde::{Deserialize, Serialize};

/// The reasoning of earlier replies in a prompt: the sent part, and the dropped part with its reasons.
///
/// ```
/// use context_window::{
///     ContextWindowManager, Conversation, Message, PlanRequest, WireFormat, message::Reasoning,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// let manager = ContextWindowManager::for_model("claude-fable-5-2")?;
/// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let thought = Reasoning::signed(WireFormat::Anthropic, "The handbook says so.", "c2VhbA==");
/// log.push_reply(&plan, Message::assistant("5 days.").with_reasoning(thought), None);
/// log.push(Message::user("Thanks!"));
///
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// assert_eq!(plan.thoughts.sent, 1);
/// // Under another beginning the model would refuse its own reasoning.
/// let plan = manager.build_plan(&PlanRequest::new(&log).with_focus("refunds"))?;
/// assert_eq!((plan.thoughts.sent, plan.thoughts.lost.len()), (0, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReasoningReport {
    /// Number of messages that are sent with their reasoning.
    pub sent: u64,
    /// Messages whose reasoning the provider would refuse or leave out, in prompt order. It is not sent,
    /// unless the option `conversation.reasoning` is `provider`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<DroppedReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) switch: Option<MismatchSwitch>,
}

impl ReasoningReport {
    /// Returns the HTTP header, as name and value, that asks the provider to leave out reasoning that it
    /// would refuse. Returns `None` unless `conversation.reasoning` is `provider` and the model refuses
    /// reasoning.
    ///
    /// Send the header with every request of the conversation from then on, because another setting of
    /// thinking restarts the cache.
    #[must_use]
    pub fn switch_header(&self) -> Option<(&str, &str)> {
        self.switch.as_ref().map(|switch| (switch.header.as_str(), switch.value.as_str()))
    }

    /// Returns the JSON object to add to `thinking` of the body, together with
    /// [`ReasoningReport::switch_header`]. Add it only if the type of `thinking` is `adaptive` or `enabled`.
    /// Returns `None` if there is no such header.
    #[must_use]
    pub fn switch_thinking(&self) -> Option<&str> {
        self.switch.as_ref().map(|switch| switch.thinking.as_str())
    }
}

/// Reasoning that the provider would not accept again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DroppedReasoning {
    /// The id of the message with the reasoning.
    pub id: ItemId,
    /// The reason why it is dropped.
    pub why: DropReason,
}

/// The reason why reasoning is not sent, or why its provider leaves it out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DropReason {
    /// A prompt before the reasoning that changed since the reasoning was made (rule K1).
    PrefixChanged {
        /// The first item that changed. It is an item of the earlier prompt, or a new one.
        at: ItemId,
        /// The cause of the change.
        cause: PrefixCause,
    },
    /// Different reasoning directly before it than when it was made (rule K2).
    ChainBroken,
    /// An unknown prompt: the reply was not committed, and the last prompt was another one (rule K5).
    Uncovered,
    /// A model that cannot read the reasoning of the model that made it (rule K3).
    Unreadable {
        /// The model that made the reasoning.
        model: String,
    },
    /// Another account or end user than the one that the reasoning is bound to (rule K8).
    OtherSender,
    /// The option `conversation.reasoning = "drop"`.
    Dropped,
    /// A report of the provider that it dropped the reasoning (rule K7).
    DroppedByProvider {
        /// The reason, in the provider's words.
        reason: String,
    },
}

impl std::fmt::Display for DropReason {
    /// Writes the reason in words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PrefixChanged { at, cause } => {
                write!(
                    f,
                    "the prompt before it changed at `{}` ({})",
                    crate::text::plain::short(at.as_str()),
                    cause.text()
                )
            }
            Self::ChainBroken => f.write_str("the reasoning before it has changed since it was made"),
            Self::Uncovered => f.write_str("the prompt that it was made for is unknown"),
            Self::Unreadable { model } => {
                write!(f, "the model does not read the reasoning of {}", crate::text::plain::short(model))
            }
            Self::OtherSender => f.write_str("it is bound to another account or end user"),
            Self::Dropped => f.write_str("conversation.reasoning is drop"),
            Self::DroppedByProvider { reason } => {
                write!(f, "the provider dropped it: {}", crate::text::plain::short(reason))
            }
        }
    }
}

/// The reason why a prompt does not begin like the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PrefixCause {
    /// Another model or wire format. Nothing of the previous cache is valid.
    Target,
    /// Another text of the item: it changed, was cleared or clipped, or is merged with another text.
    Changed,
    /// A new item before it.
    Inserted,
    /// An exclusion of the item by the budget.
    Budget,
    /// A TTL that is used up.
    Expired,
    /// A policy or repair that leaves the item out, or a duplicate.
    LeftOut,
    /// A compaction or rewind that archived the item.
    Archived,
    /// An item that the request no longer has.
    Removed,
}

impl PrefixCause {
    /// Returns the change in words, such as `dropped: budget`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Target => "other model or wire format",
            Self::Changed => "text changed",
            Self::Inserted => "new item inserted before it",
            Self::Budget => "dropped: budget",
            Self::Expired => "expired",
            Self::LeftOut => "skipped by a policy or repair",
            Self::Archived => "archived",
            Self::Removed => "no longer in the request",
        }
    }
}
