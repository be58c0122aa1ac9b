//! The tokens that documents could take, before they are retrieved.
//!
//! - Input: a request; its documents are ignored.
//! - Output: a [`RetrievalBudget`].
//! - Rules: B5, B6, S5, S10.

use crate::{
    conversation::SentText,
    error::Error,
    item::ItemId,
    plan::{
        RetrievalBudget,
        anchor::{Sticky, StickyDocuments},
    },
    planner::{assemble::PlanContext, manager::ContextWindowManager, request::PlanRequest, solve::Solver},
    rag::{Form, LabelledItem, RagItem, RetrievedItems},
    text::hash::text_hash,
    tokens::TokenCount,
};
use std::collections::BTreeSet;

/// The tokens of documents in a prompt whose documents could take any number of them.
struct CrowdedPrompt {
    is_minimal: bool,
    share: u64,
    most: u64,
}

impl CrowdedPrompt {
    /// Solves such a prompt. Also returns the user's rules whose messages it leaves out, and that it does not
    /// have.
    fn solve(solver: &Solver<'_>, context: &PlanContext<'_>) -> Result<(Self, BTreeSet<ItemId>), Error> {
        let crowded = solver.solve_expecting_documents(context, context.prompt_budget)?;
        let missing = solver.candidates().unselected_rules(|id| crowded.chosen.has(id));
        let most = crowded.chosen.offered_to_documents;
        Ok((Self { is_minimal: crowded.is_minimal(), share: crowded.document_share(), most }, missing))
    }
}

/// The label that documents are counted with before they have one.
const MANY_DOCUMENTS: u32 = 999;

impl ContextWindowManager {
    /// Returns the tokens that documents could take in the prompt of this request. Documents that the request
    /// already has are ignored.
    ///
    /// Counts no more than [`ContextWindowManager::build_plan`] for the same request. Limits on documents,
    /// such as `rag.max_items`, are not applied. A document that displaces a message whose rule then enters
    /// (rule R1) may find less room. All numbers are 0 if the minimum overflows the budget (rule S6).
    ///
    /// # Errors
    ///
    /// Same as [`ContextWindowManager::build_plan`].
    #[doc(alias = "budget_hint")]
    #[doc(alias = "budget hint")]
    pub fn retrieval_budget(&self, request: &PlanRequest<'_>) -> Result<RetrievalBudget, Error> {
        let request = PlanRequest { rag: RetrievedItems::default(), ..request.clone() };
        let context = self.context(&request)?;
        // The documents of the last prompt are set aside too: the budget is for retrieving them again.
        let mut replan = self.final_adjustments(&request)?;
        let sticky = Sticky { rag: StickyDocuments::default(), ..self.sticky(&request, &context) };
        let candidates = self.candidates(&request, sticky, &replan)?;
        // Solve twice: the budget of documents that could use all of it, and the tokens that a prompt without
        // documents leaves free.
        let solver = self.solver(&candidates);
        let (mut crowded, mut missing) = CrowdedPrompt::solve(&solver, &context)?;
        let without = solver.solve(&context, context.prompt_budget, 0)?;
        // Documents may take the place of a message, whose rules then take some of theirs.
        while replan.send_rules(missing) {
            let candidates = self.candidates(&request, sticky, &replan)?;
            (crowded, missing) = CrowdedPrompt::solve(&self.solver(&candidates), &context)?;
        }
        if crowded.is_minimal {
            return Ok(RetrievalBudget::default());
        }
        let CrowdedPrompt { share, most, .. } = crowded;
        Ok(RetrievalBudget { share, most, free: without.left_for_documents().min(most) })
    }

    /// Returns a document as it is sent, with the delimiter lines around it.
    #[must_use]
    pub fn sent_document(&self, document: &RagItem) -> SentText {
        SentText::new(document.id.clone(), self.meter().delimited_document(document))
    }

    /// Counts a document that is given between its delimiter lines, in tokens.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    #[doc(hidden)]
    pub fn count_sent_document(&self, sent: &str) -> Result<u64, Error> {
        let (tokens, _) = self.new_document_meter().document_pieces(&[sent])?;
        Ok(tokens.into_iter().sum())
    }

    /// Counts a document in a prompt, with the delimiter lines around it, in tokens. The planner counts
    /// documents in the same way. With `rag.labels`, this counts a label of three digits, with `rag.format =
    /// "native"` a block with citations.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub fn count_document(&self, document: &RagItem) -> Result<TokenCount, Error> {
        let label = self.config().rag.labels.then_some(MANY_DOCUMENTS);
        self.count_labelled_document(document, label)
    }

    /// Counts a document with a label, or without one, in tokens.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    #[doc(hidden)]
    pub fn count_labelled_document(
        &self,
        document: &RagItem,
        label: Option<u32>,
    ) -> Result<TokenCount, Error> {
        let meter = self.new_document_meter();
        let labelled = LabelledItem { item: document, form: Form::WHOLE, label };
        let tokens = meter.document(labelled, text_hash(&document.text), u64::MAX)?.in_full();
        Ok(meter.counted(tokens))
    }
}
