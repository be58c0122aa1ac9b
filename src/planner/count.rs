//! Token counts of texts and messages, without a plan.
//!
//! - Input: a text, or messages and tools.
//! - Output: their tokens, each with its certainty.
//! - Rules: N3, N4.

use crate::{
    error::Error,
    message::{Message, Tool},
    planner::manager::ContextWindowManager,
    provider::conform::TurnPosition,
    tokens::TokenCount,
};

impl ContextWindowManager {
    /// Counts the tokens of a text.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub fn count(&self, text: &str) -> Result<TokenCount, Error> {
        Ok(self.counter().count(text)?)
    }

    /// Counts the tokens of a prompt with exactly these messages and tools.
    ///
    /// Nothing is left out, repaired or joined, so any part of a conversation can be counted. Use this if you
    /// need a count alone; a plan has its own ([`crate::ContextPlan::estimated_tokens_total`]).
    ///
    /// ```
    /// use context_window::{ContextWindowManager, Message};
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// # #[cfg(feature = "openai")] {
    /// let manager = ContextWindowManager::for_model("gpt-4o")?;
    /// assert_eq!(manager.count_messages(&[Message::user("Hello")], &[])?.tokens, 8);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub fn count_messages(&self, messages: &[Message], tools: &[Tool]) -> Result<TokenCount, Error> {
        let meter = self.meter();
        let declared = meter.declared(tools)?.count.tokens;
        let mut count = meter.counted(meter.start().saturating_add(meter.priming()).saturating_add(declared));
        for message in messages {
            let weight = meter.message(message, TurnPosition::Live, u64::MAX)?;
            let TokenCount { tokens: n, certainty } = meter.counted_message(message, weight.in_full());
            count.tokens = count.tokens.saturating_add(n);
            // The total is only as certain as its least certain part.
            count.certainty = count.certainty.max(certainty);
        }
        Ok(count)
    }
}
