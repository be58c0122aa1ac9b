//! What documents could take, before they are known.

use serde::Serialize;

/// How many tokens documents could take in the prompt of a request, as
/// [`retrieval_budget`](crate::ContextWindowManager::retrieval_budget) says before anything is retrieved; all
/// in tokens.
///
/// A document costs its text and the lines around it:
/// [`count_document`](crate::ContextWindowManager::count_document).
///
/// ```
/// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(4_000));
/// let budget = manager.retrieval_budget(&request)?;
/// assert_eq!((budget.share, budget.most, budget.free), (1_196, 3_976, 3_976));
/// // Ask the retriever for so many chunks of about 200 tokens.
/// assert_eq!(budget.top_k(200), 19);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetrievalBudget {
    /// The documents' share of the budget (`sections.rag.share`): theirs even where the conversation could
    /// use all of it.
    pub share: u64,
    /// The most that they can get: their share, and what the other sections do not use. One document of so
    /// many tokens is in, one of a token more is not; it may be less where the window of the last prompt is
    /// continued and holds pins that find no tokens of their own (rule S5).
    pub most: u64,
    /// What is left beside everything else as it is: so much, and the prompt holds all that it would hold
    /// without documents. Beyond it older messages make room. Where the window of the last prompt is
    /// continued (rule S5), a pin is dropped, or pins take more than their limit (rule S2), documents may
    /// change what is in before that.
    pub free: u64,
}

impl RetrievalBudget {
    /// How many documents of so many tokens each could be in, by what they can get at the most.
    #[must_use]
    pub fn top_k(&self, tokens_each: u64) -> u64 {
        self.most / tokens_each.max(1)
    }
}
