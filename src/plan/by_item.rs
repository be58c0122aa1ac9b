//! The prompt item by item, for applications whose framework builds the provider's request from its own
//! messages.

use super::ContextPlan;
use crate::{
    item::{ItemId, ItemKind},
    message::Message,
};

/// The message of one item, or of consecutive documents.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ItemMessage {
    /// The id of the item, or the ids of all documents in the message.
    pub ids: Vec<ItemId>,
    /// The kind of the item; for documents, the kind of the first.
    pub kind: ItemKind,
    /// The message as it is in the conversation, or as a rule changed it, such as a shortened result or
    /// removed reasoning.
    pub message: Message,
}

impl ContextPlan {
    /// Returns the prompt in order, with one message per item. These are the messages of
    /// [`ContextPlan::messages`] before the wire format joins or moves any (rules H3, H5).
    ///
    /// Use it with a framework that turns its own messages into the provider's request. The framework still
    /// has to learn about messages that are left out, shortened, repaired or added.
    ///
    /// ```
    /// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, RagItem};
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// # #[cfg(feature = "openai")] {
    /// let manager = ContextWindowManager::for_model("gpt-4o")?;
    /// let log =
    ///     Conversation::from([Message::system("Be brief."), Message::user("How long do refunds take?")]);
    /// let documents =
    ///     [RagItem::new("refunds", 0.92, "Refunds take 5 days."), RagItem::new("hours", 0.5, "9 to 18.")];
    /// let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(documents))?;
    /// let items = plan.by_item();
    /// assert_eq!(items[1].ids, ["refunds", "hours"]);
    /// assert!(items[1].message.text().starts_with("<documents>"));
    /// assert_eq!(items[2].message, log.messages()[1]);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn by_item(&self) -> Vec<ItemMessage> {
        let mut all = Vec::with_capacity(self.included.len());
        // `row_messages` has one entry for each included row, in the same order.
        let mut rows = self.included.iter().zip(&self.carryover.row_messages).peekable();
        while let Some((row, block)) = rows.next() {
            let mut ids = vec![row.id.clone()];
            let message = if row.kind.is_document() {
                let mut pieces = vec![row.body.text()];
                // Documents of one block follow each other, and are sent as one message between one pair of
                // delimiters.
                while let Some((row, _)) = rows.next_if(|(next, of)| next.kind.is_document() && *of == block)
                {
                    ids.push(row.id.clone());
                    pieces.push(row.body.text());
                }
                row.block().message(&pieces)
            } else {
                row.body.clone()
            };
            all.push(ItemMessage { ids, kind: row.kind.clone(), message });
        }
        all
    }
}
