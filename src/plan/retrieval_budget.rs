//! The token budget of documents, before they are retrieved.

use serde::Serialize;

/// The tokens that documents could take in the prompt of a request, before any are retrieved.
/// [`retrieval_budget`](crate::ContextWindowManager::retrieval_budget) returns it.
///
/// A document costs the tokens of its text and of the lines around it:
/// [`count_document`](crate::ContextWindowManager::count_document).
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits,
///     TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(4_000));
/// let budget = manager.retrieval_budget(&request)?;
/// assert_eq!((budget.share, budget.most, budget.free), (1_196, 3_976, 3_976));
/// // Ask the retriever for this number of chunks of about 200 tokens.
/// assert_eq!(budget.top_k(200), 19);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetrievalBudget {
    /// The documents' share of the budget (`sections.rag.share`), in tokens. It is theirs even if the
    /// conversation could use the whole budget.
    pub share: u64,
    /// The most tokens that documents can get: their share, and the tokens that other sections do not use.
    /// One document of exactly this size is included, and one of a token more is not. The number may be
    /// smaller if the last prompt's window is continued and has pins without tokens of their own (sticky
    /// window, rule S5).
    pub most: u64,
    /// The tokens that are free after all other items. Up to this number documents exclude nothing. Beyond
    /// it, older messages are excluded. Documents may change the included items before that in three cases.
    /// The last prompt's window is continued (rule S5), a pin is dropped, or pins exceed their limit (rule
    /// S2).
    pub free: u64,
}

impl RetrievalBudget {
    /// Returns the number of documents of `tokens_each` tokens that could be included, within the most tokens
    /// that they can get.
    #[must_use]
    pub fn top_k(&self, tokens_each: u64) -> u64 {
        self.most / tokens_each.max(1)
    }
}
