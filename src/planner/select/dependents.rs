//! Selection of documents that are sent only beside others, from the tokens that nothing else can use.
//!
//! - Input: the selection at its end, and a room.
//! - Output: the included dependents, and the reasons of the others.
//! - Rules: S18.

use super::{
    Room, Selection, Selector, Walker,
    documents::{Offer, is_represented},
};
use crate::{
    error::Error,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::candidates::{Rank, Required},
};
use std::collections::{BTreeMap, BTreeSet};

impl<W: Walker> Selector<'_, W> {
    /// Offers a room to the dependents, by rank: each beside a document that is in the prompt, or that
    /// another item represents. One that is included may be required by the next.
    pub(super) fn offer_to_dependents(
        &self,
        room: Room,
        share: u64,
        chosen: &mut Selection<W>,
    ) -> Result<(), Error> {
        let stays = self.index.sticky_document_count.is_some();
        if stays && !self.index.others_join {
            return Ok(());
        }
        let is_open = |rank: Rank| {
            let is_included = chosen.included.documents.has(self.index.slot_of(rank));
            !is_included && !chosen.reasons.left_documents.contains_key(&rank)
        };
        let waiting: Vec<(Rank, &Required)> =
            self.index.dependents().filter(|(rank, _)| is_open(*rank)).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        if self.config.rag.repeats > 0 {
            self.costs.prepare_sources(chosen.included.ids());
        }
        let room = self.beside_the_set(room, share, chosen);
        let mut offer = Offer::new(room, chosen.taken.clone());
        let mut beside: BTreeMap<Rank, Vec<Rank>> = BTreeMap::new();
        let mut met: BTreeSet<Rank> = BTreeSet::new();
        for (rank, required) in waiting {
            required.ranks.iter().for_each(|other| beside.entry(*other).or_default().push(rank));
            let is_there = |other: &Rank| {
                offer.taken.paid().contains_key(other)
                    || chosen.reasons.of_document(*other).is_some_and(is_represented)
            };
            let is_sent = |place: &u32| self.costs.is_sent_before(*place, |id| chosen.has(id));
            if required.ranks.iter().any(is_there) || required.retained_at.iter().any(is_sent) {
                met.insert(rank);
            }
        }
        let mut decided: BTreeMap<Rank, Option<ExcludedReason>> = BTreeMap::new();
        while let Some(rank) = met.pop_first() {
            let reason = self.decide(&[rank], false, room, &mut offer, chosen)?;
            if reason.as_ref().is_none_or(is_represented) {
                let next = beside.get(&rank).into_iter().flatten();
                met.extend(next.filter(|next| **next != rank && !decided.contains_key(next)));
            }
            // Beside the documents of the last prompt, their share is the limit.
            let reason = reason.map(|reason| match reason {
                ExcludedReason::Budget { room, .. } if stays => {
                    ExcludedReason::Budget { room, limited_by: LimitedBy::StickyDocuments }
                }
                other => other,
            });
            decided.insert(rank, reason);
        }
        offer.include_dependents(&decided, chosen);
        Ok(())
    }
}
