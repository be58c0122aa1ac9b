//! The entry point of explanations: one request, bound to one manager.

use crate::planner::{manager::ContextWindowManager, request::PlanRequest};

/// Answers questions about one request: the reasons for its included and excluded items, the changes that
/// would help, and the prompts before it. Made by [`ContextWindowManager::explainer`].
///
/// ```
/// # use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits};
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let refunds = RagItem::new("refunds", 0.92, "Refunds take 5 days.");
/// let request = PlanRequest::new(&log).with_rag([refunds]).with_limits(RequestLimits::prompt_budget(20));
///
/// let answer = manager.explainer(&request).explain("refunds")?;
/// assert!(!answer.included);
/// assert_eq!(answer.enters_at, Some(40)); // the smallest prompt budget that brings it in, in tokens
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Explainer<'a> {
    pub(super) manager: &'a ContextWindowManager,
    pub(super) request: &'a PlanRequest<'a>,
}

impl ContextWindowManager {
    /// Returns an [`Explainer`] of a request, for [`Explainer::explain`], [`Explainer::remedies`] and
    /// [`Explainer::replay`]. Compare two of them with [`Diff::between`](crate::analysis::Diff::between).
    #[must_use]
    pub fn explainer<'a>(&'a self, request: &'a PlanRequest<'a>) -> Explainer<'a> {
        Explainer { manager: self, request }
    }
}
