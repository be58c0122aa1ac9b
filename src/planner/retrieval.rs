//! The tokens that documents could take, before they are known.

use crate::{
    conversation::SentText,
    error::Error,
    item::RagItem,
    plan::{RetrievalBudget, anchor::Sticky},
    planner::{manager::ContextWindowManager, request::PlanRequest},
    text::hash::text_hash,
    tokens::TokenCount,
};

impl ContextWindowManager {
    /// Returns the tokens that documents could take in the prompt of this request; the documents that it has
    /// already are left aside.
    ///
    /// Counts no more than [`ContextWindowManager::build_plan`] for the same request. The limits on documents
    /// (`rag.max_items` and the like) are not part of it. Under an overflow (rule S6) all of it is 0.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    #[doc(alias = "budget_hint")]
    #[doc(alias = "budget hint")]
    pub fn retrieval_budget(&self, request: &PlanRequest<'_>) -> Result<RetrievalBudget, Error> {
        let request = PlanRequest { rag: Vec::new(), ..request.clone() };
        let context = self.context(&request)?;
        // The documents of the last prompt are set aside too: what stays of them is the question.
        let replan = self.settled(&request)?;
        let sticky = self.sticky(&request, &context);
        let candidates = self.candidates(&request, Sticky { rag: &[], ..sticky }, &replan)?;
        // Their budget if they could use all of it, and the tokens that a prompt without documents leaves.
        let solver = self.solver(&candidates);
        let crowded = solver.solve_expecting_documents(&context, context.prompt_budget)?;
        let without = solver.solve(&context, context.prompt_budget, 0)?;
        if crowded.is_minimal() {
            return Ok(RetrievalBudget::default());
        }
        let most = crowded.chosen.offered_to_documents;
        Ok(RetrievalBudget {
            share: crowded.document_share(),
            most,
            free: without.left_for_documents().min(most),
        })
    }

    /// Returns a document as it is sent, with the lines around it.
    #[must_use]
    pub fn sent_document(&self, document: &RagItem) -> SentText {
        SentText::new(document.id.clone(), self.meter().fenced(document))
    }

    /// Counts a document in a prompt, with the lines around it; tokens, in the form in which the planner
    /// counts them.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` when the counter fails.
    pub fn count_document(&self, document: &RagItem) -> Result<TokenCount, Error> {
        let tokens = self.meter().document(document, text_hash(&document.text), u64::MAX)?.in_full();
        Ok(self.meter().counted(tokens))
    }
}
