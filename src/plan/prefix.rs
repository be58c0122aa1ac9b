//! The beginning that two prompts share, which a provider's cache can serve again.

use super::{
    ContextPlan, Decision, LastPrompt, SentPrompt, TOOLS,
    anchor::{Anchor, PromptPiece, Target},
    find_row_by_id,
    reason::ExcludedReason,
    reasoning::PrefixCause,
};
use crate::item::ItemId;
use serde::Serialize;

/// The part of the previous prompt that a plan repeats byte for byte, before the first item that differs.
///
/// Only whole items count. Tool definitions are the first item, with the id `tools`.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// log.push_reply(&plan, Message::assistant("5 days."), None);
/// log.push(Message::user("Thanks!"));
/// let next = manager.build_plan(&PlanRequest::new(&log))?;
/// let prefix = next.repeated().expect("there was a prompt before");
/// assert_eq!(prefix.tokens, prefix.of); // the whole last prompt is repeated
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Prefix {
    /// Tokens of the previous prompt that are repeated.
    pub tokens: u64,
    /// Number of items that are repeated.
    pub items: u64,
    /// Tokens of all items of the previous prompt.
    pub of: u64,
    /// The item of this prompt at the cache break. `None` if this prompt ends there, or only continues the
    /// previous one.
    pub differs_at: Option<ItemId>,
    /// The item of the previous prompt at the cache break. `None` if everything is repeated.
    pub instead_of: Option<ItemId>,
    /// The cause of the difference. `None` if everything is repeated.
    pub cause: Option<PrefixCause>,
}

impl ContextPlan {
    /// Compares this prompt with the one whose anchor is `previous` ([`ContextPlan::anchor`]). Returns `None`
    /// if the anchor does not contain its prompt.
    #[must_use]
    pub fn prefix(&self, previous: &Anchor) -> Option<Prefix> {
        self.repeats(previous, None)
    }

    /// Compares this prompt with the one before it. Returns `None` if neither the request nor the
    /// conversation remembers that prompt.
    #[must_use]
    pub fn repeated(&self) -> Option<Prefix> {
        let LastPrompt { anchor, changed_at_message, .. } = self.carryover.before.as_ref()?;
        self.repeats(anchor, Some(*changed_at_message))
    }

    fn repeats(&self, previous: &Anchor, changed_at_message: Option<bool>) -> Option<Prefix> {
        let before = previous.prompt.as_deref()?;
        let own = Target::new(&self.model, &self.provider).with_wire_format(self.wire_format);
        let same_target = previous.target.as_ref().is_none_or(|target| target.matches(&own));
        let sent = self.sent_prompt();
        let now = sent.pieces();
        // Without a log, only documents and tools are known not to be messages.
        let may_be_one = |was: &ItemId| {
            let documents = previous.rag.iter().flatten();
            changed_at_message
                .unwrap_or_else(|| was.as_str() != TOOLS && !documents.into_iter().any(|id| id == was))
        };
        let same = before.iter().zip(&now).take_while(|(was, is)| was.is_sent_as(is));
        // A provider's cache is bound to one target, so another target repeats nothing.
        let items = if same_target { same.count() } else { 0 };
        let instead_of = before.get(items).map(|piece| piece.id.clone());
        let cause = instead_of.as_ref().map(|was| {
            if same_target { sent.cause(was, &now[items..], may_be_one(was)) } else { PrefixCause::Target }
        });
        Some(Prefix {
            tokens: before[..items].iter().map(|piece| piece.tokens).sum(),
            items: items as u64,
            of: before.iter().map(|piece| piece.tokens).sum(),
            // Without a difference, the further items only continue the previous prompt.
            differs_at: now.get(items).map(|piece| piece.id.clone()).filter(|_| instead_of.is_some()),
            instead_of,
            cause,
        })
    }
}

impl SentPrompt<'_> {
    /// Returns the reason why an item of the last prompt is no longer at its position. `now` holds the items
    /// of this prompt from that position on.
    pub(crate) fn cause(&self, was: &ItemId, now: &[PromptPiece], may_be_a_message: bool) -> PrefixCause {
        if now.first().is_some_and(|piece| piece.id == *was) {
            return PrefixCause::Changed;
        }
        if now.iter().any(|piece| piece.id == *was) {
            return PrefixCause::Inserted;
        }
        match find_row_by_id(self.included, self.excluded, was.as_str()) {
            Some(Decision::Excluded(row)) => match row.reason {
                ExcludedReason::Budget { .. } => PrefixCause::Budget,
                ExcludedReason::TtlExpired { .. } => PrefixCause::Expired,
                ExcludedReason::Duplicate { .. }
                | ExcludedReason::NearDuplicate { .. }
                | ExcludedReason::InWindow { .. }
                | ExcludedReason::Repeats { .. }
                | ExcludedReason::Policy(_) => PrefixCause::LeftOut,
                ExcludedReason::Archived { .. } => PrefixCause::Archived,
            },
            // A run of messages is known only by the ids of its ends. A message that may be inside a run
            // counts as excluded by the budget.
            _ if may_be_a_message && self.excluded.iter().any(|row| row.count > 2) => PrefixCause::Budget,
            _ => PrefixCause::Removed,
        }
    }
}
