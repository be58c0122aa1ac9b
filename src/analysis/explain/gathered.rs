//! The candidates of one request for all budgets: with the documents of the last prompt, and without.

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

/// The candidates of one round, gathered once or twice: a budget that cannot hold the documents of the last
/// prompt gives them up, and then documents are ranked anew (rule S5).
pub(super) struct Gathered<'r> {
    pub(super) first: Candidates<'r>,
    /// Without the documents of the last prompt, where it held any.
    pub(super) anew: Option<Candidates<'r>>,
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
        let anew = first.index().kept_documents.map(|_| manager.candidates(request, sticky, &given_up));
        Ok(Self { anew: anew.transpose()?, first })
    }

    /// The documents that compete, by their ids; those that do only without the documents of the last prompt
    /// among them.
    fn documents(&self) -> impl Iterator<Item = (&ItemId, Key)> {
        // Later entries win: what competes beside the documents of the last prompt counts more.
        let both = self.anew.iter().chain([&self.first]);
        let competing = both.flat_map(|candidates| {
            let slots = Slot::each(candidates.index().document_slots());
            slots.map(move |slot| (candidates, slot))
        });
        competing.map(|(candidates, slot)| {
            let rank = candidates.index().rank_at(slot);
            (&candidates.document(rank).id, document(candidates, slot))
        })
    }
}

/// The rounds in which a request is planned: the first one, from which planning starts at every budget, and
/// the last one at the present budget.
pub(super) struct Rounds<'r> {
    pub(super) first: Gathered<'r>,
    /// The last one, where it is not the first.
    last: Option<Gathered<'r>>,
    /// What is continued of the last prompt: what holds of it under the request's own limits is taken to hold
    /// under all others (rule E1).
    pub(super) sticky: Sticky<'r>,
    /// Each budget may lose something else (rules K1, S10), and is planned in rounds of its own.
    pub(super) may_lose: bool,
}

impl<'r> Rounds<'r> {
    pub(super) fn of(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let sticky = manager.sticky(request, context);
        let first = Gathered::in_round(manager, request, sticky, &manager.first_replan(request.log))?;
        let may_lose = manager.may_lose_reasoning(request) || first.first.retained().has_repeats();
        let last = may_lose.then(|| Gathered::in_round(manager, request, sticky, &manager.settled(request)?));
        Ok(Self { last: last.transpose()?, first, sticky, may_lose })
    }

    /// The last round at the present budget.
    pub(super) fn present(&self) -> &Gathered<'r> {
        self.last.as_ref().unwrap_or(&self.first)
    }

    /// The documents that compete, by their ids.
    pub(super) fn documents(&self) -> BTreeMap<&ItemId, Key> {
        // What stands in the prompt competes where it has left.
        let rag = &self.first.first.request().rag;
        let brought = rag.iter().enumerate().rev().filter(|_| self.may_lose);
        let brought = brought.map(|(at, item)| (&item.id, Key::Document(at)));
        let last = self.last.iter().flat_map(Gathered::documents);
        brought.chain(self.first.documents()).chain(last).collect()
    }

    /// Returns true if some budget may rank documents otherwise: without those of the last prompt, or with
    /// those that left.
    pub(super) fn may_rank_anew(&self) -> bool {
        self.first.anew.is_some() || self.may_lose
    }
}
