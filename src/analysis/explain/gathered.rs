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
        request::PlanRequest,
    },
};
use std::collections::BTreeMap;

/// The candidates of a request, gathered once or twice: a budget that cannot hold the documents of the last prompt gives
/// them up, and then documents are ranked anew (rule S5).
pub(super) struct Gathered<'r> {
    pub(super) first: Candidates<'r>,
    /// Without the documents of the last prompt, where it held any.
    pub(super) anew: Option<Candidates<'r>>,
}

impl<'r> Gathered<'r> {
    /// What holds of the last prompt under the request's own limits is taken to hold under all others, and so is what is
    /// withheld of earlier reasoning (rule K1).
    pub(super) fn of(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let (withheld, again) = manager.settled(request)?;
        let sticky = manager.sticky(request, context);
        let sticky = Sticky { withheld: Some(&withheld), sent_again: Some(&again), ..sticky };
        let first = manager.candidates(request, sticky)?;
        let anew =
            first.index().kept_documents.map(|_| manager.candidates(request, Sticky { rag: &[], ..sticky }));
        Ok(Self { anew: anew.transpose()?, first })
    }

    /// The documents that compete, by their ids; those that do only without the documents of the last prompt among them.
    pub(super) fn documents(&self) -> BTreeMap<&ItemId, Key> {
        // Later entries win: what competes beside the documents of the last prompt counts more.
        let both = self.anew.iter().chain([&self.first]);
        let competing = both.flat_map(|candidates| {
            let slots = Slot::each(candidates.index().document_slots());
            slots.map(move |slot| (candidates, slot))
        });
        let by_id = competing.map(|(candidates, slot)| {
            let rank = candidates.index().rank_at(slot);
            (&candidates.document(rank).id, document(candidates, slot))
        });
        by_id.collect()
    }

    /// Whether there are documents of the last prompt, which some budget may not hold.
    pub(super) fn may_give_up(&self) -> bool {
        self.anew.is_some()
    }
}
