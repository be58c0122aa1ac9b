//! The candidates of one request for all budgets, with the documents of the last prompt and without them.

use super::{budget_range::document, key::Key};
use crate::{
    error::Error,
    item::ItemId,
    plan::anchor::Sticky,
    planner::{
        assemble::PlanContext,
        candidates::{Candidates, Slot},
        manager::ContextWindowManager,
        replan::Replan,
        request::PlanRequest,
    },
};
use std::collections::BTreeMap;

/// The candidates of one round. A budget that cannot hold the documents of the last prompt gives them up, and
/// then documents are ranked again (sticky documents, rule S5). So the candidates may be gathered twice.
pub(super) struct Gathered<'r> {
    pub(super) first: Candidates<'r>,
    /// The candidates without the documents of the last prompt; `None` if it had none.
    pub(super) reranked: Option<Candidates<'r>>,
}

impl<'r> Gathered<'r> {
    pub(super) fn in_round(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        sticky: Sticky<'_>,
        replan: &Replan,
    ) -> Result<Self, Error> {
        let [kept, given_up] = [false, true].map(|gives_up| replan.with_documents_given_up(gives_up));
        let first = manager.candidates(request, sticky, &kept)?;
        let reranked =
            first.index().sticky_document_count.map(|_| manager.candidates(request, sticky, &given_up));
        Ok(Self { reranked: reranked.transpose()?, first })
    }

    /// Returns the competing documents by id, including those that compete only without the documents of the
    /// last prompt.
    fn documents(&self) -> impl Iterator<Item = (&ItemId, Key)> {
        // The result is collected into a map, where later entries win. A document that competes together with
        // those of the last prompt takes precedence.
        let both = self.reranked.iter().chain([&self.first]);
        let competing = both.flat_map(|candidates| {
            let slots = Slot::each(candidates.index().document_slots());
            slots.map(move |slot| (candidates, slot))
        });
        competing.map(|(candidates, slot)| {
            let rank = candidates.index().rank_at(slot);
            (&candidates.document(rank).item.id, document(candidates, slot))
        })
    }
}

/// The rounds in which a request is planned. At every budget, planning starts with the first round. The last
/// round is the final one at the present budget.
pub(super) struct Rounds<'r> {
    pub(super) first: Gathered<'r>,
    /// The last round; `None` if it is the first.
    last: Option<Gathered<'r>>,
    /// The parts of the last prompt that are continued. Parts that hold under the request's own limits count
    /// as holding under all others (counterfactual budgets, rule E1).
    pub(super) sticky: Sticky<'r>,
    /// True if each budget may lose reasoning, retained texts or messages with rules of its own (rules K1,
    /// S10, R1). Then each budget is planned in its own rounds.
    pub(super) can_lose_texts: bool,
}

impl<'r> Rounds<'r> {
    pub(super) fn from_request(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let sticky = manager.sticky(request, context);
        let first = Gathered::in_round(manager, request, sticky, &manager.first_replan(request.log))?;
        let can_lose_texts = manager.may_lose_reasoning(request)
            || first.first.retained().has_repeats()
            || first.first.index().has_rules;
        let last = can_lose_texts
            .then(|| Gathered::in_round(manager, request, sticky, &manager.final_adjustments(request)?));
        Ok(Self { last: last.transpose()?, first, sticky, can_lose_texts })
    }

    /// Returns the last round at the present budget.
    pub(super) fn present(&self) -> &Gathered<'r> {
        self.last.as_ref().unwrap_or(&self.first)
    }

    /// Returns the competing documents by id.
    pub(super) fn documents(&self) -> BTreeMap<&ItemId, Key> {
        // A retained document competes only at budgets where it has left the prompt. So every document of the
        // request gets a key, which later entries may replace. The order is reversed so that the first of
        // several documents with one id wins.
        let rag = &self.first.first.request().rag;
        let brought = rag.iter().enumerate().rev().filter(|_| self.can_lose_texts);
        let brought = brought.map(|(at, item)| (&item.id, Key::Document(at)));
        let last = self.last.iter().flat_map(Gathered::documents);
        brought.chain(self.first.documents()).chain(last).collect()
    }

    /// Returns true if some budget may rank documents differently: without those of the last prompt, or with
    /// those that left.
    pub(super) fn can_rank_differently(&self) -> bool {
        self.first.reranked.is_some() || self.can_lose_texts
    }
}
