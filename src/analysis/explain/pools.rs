//! The candidates of one request, for all budgets: with the documents of the last prompt, and without.

use super::{piece::document, sweep::Key};
use crate::{
    error::Error,
    item::ItemId,
    plan::anchor::Sticky,
    planner::{assemble::Frame, candidates::Pool, manager::ContextWindowManager, request::PlanRequest},
};
use std::collections::BTreeMap;

/// The pools of a request: with the documents of the last prompt, and without.
pub(super) struct Pools<'r> {
    pub(super) first: Pool<'r>,
    /// Without the documents of the last prompt (rule S5), where it held any.
    pub(super) anew: Option<Pool<'r>>,
}

impl<'r> Pools<'r> {
    /// The documents that compete, by their ids; those that do only without the last prompt's set among them.
    pub(super) fn documents(&self) -> BTreeMap<&ItemId, Key> {
        // What competes in the first place counts more.
        let pools = self.anew.iter().chain([&self.first]);
        let places = pools.flat_map(|pool| (0..pool.places()).map(move |place| (pool, place)));
        places.map(|(pool, place)| (&pool.document(pool.rank_at(place)).id, document(pool, place))).collect()
    }

    /// Whether there are documents of the last prompt, which some budget may not hold.
    pub(super) fn may_give_up(&self) -> bool {
        self.anew.is_some()
    }

    /// What of the last prompt holds under the request's own limits is taken to hold under all others.
    pub(super) fn gather(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        frame: &Frame<'_>,
    ) -> Result<Self, Error> {
        let sticky = manager.sticky(request, frame);
        let first = manager.pool(request, sticky)?;
        let anew = first.sticky_documents.map(|_| manager.pool(request, Sticky { rag: &[], ..sticky }));
        Ok(Self { anew: anew.transpose()?, first })
    }
}
