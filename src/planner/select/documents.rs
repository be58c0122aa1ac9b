//! Selection of documents by rank, each as a whole or not at all.
//!
//! - Input: the competing documents in rank order, and a room.
//! - Output: the included documents, and the reasons of the others.
//! - Rules: S8 (order), S9 (policies), S5 (the set of the last prompt), S10 (limit of one question).
//!
//! While the live question stays the same, the documents of the last prompt (the set) come first.

use super::{Room, Selection, Selector, Walker, left_of};
use crate::{
    config::RagFill,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy, PolicyRule},
    planner::{
        budget::{BudgetVariable, Budgets},
        candidates::{CandidateId, CandidateIndex, Rank, Slot},
    },
    provider::weight::Weight,
};
use std::{collections::BTreeMap, ops::Range};

impl<W: Walker> Selector<'_, W> {
    /// Makes the first offer: the section's own budget.
    ///
    /// The documents of the last prompt are included if all of them fit. Otherwise they are cut from the end
    /// at once, down to the section's share. The share does not depend on the demands of other sections, so
    /// the next prompt does not have to cut again.
    pub(super) fn offer_budget_to_documents(
        &self,
        budgets: &Budgets,
        chosen: &mut Selection<W>,
    ) -> Result<(), Error> {
        let room = Room::new(budgets.budget(Section::Rag), BudgetVariable::Rag);
        let room = self.room_for_documents(room, &budgets.available, chosen);
        let Some(kept) = self.index.sticky_document_count else {
            return self.offer_to_documents(room, 0, chosen);
        };
        let mut offer = self.offer_to_sticky_documents(kept, room, chosen)?;
        if !offer.has_room_for_all() {
            let share = Room::new(budgets.document_share(), BudgetVariable::DocumentShare);
            offer = self.offer_to_sticky_documents(kept, share, chosen)?;
        }
        offer.include_sticky_documents(self.index, chosen);
        Ok(())
    }

    /// Offers a room to all documents that no policy excludes, or to those of the last prompt. Replaces the
    /// reasons of excluded documents. After the documents of the last prompt, others may fill the documents'
    /// `share` (in tokens).
    pub(super) fn offer_to_documents(
        &self,
        room: Room,
        share: u64,
        chosen: &mut Selection<W>,
    ) -> Result<(), Error> {
        if !chosen.has_documents() {
            chosen.offered_to_documents = chosen.offered_to_documents.max(room.tokens());
        }
        let Some(kept) = self.index.sticky_document_count else {
            if !self.walker.offer_documents(self, room, chosen)? {
                let slots = self.index.document_slots();
                self.offer_by_rank(room, self.config.rag.fill, slots, chosen)?.include(chosen);
            }
            return Ok(());
        };
        let set = self.offer_to_sticky_documents(kept, room, chosen)?;
        let (all, is_included) = (set.has_room_for_all(), chosen.has_documents());
        if all && set.fitting.is_empty() && is_included && self.index.others_join {
            let left = left_of(share, Section::Rag, chosen);
            return self.fill_share(room.at_most(left, BudgetVariable::FullDocumentShare), chosen);
        }
        if all || !is_included {
            // If no document of the set is included yet, include as many as fit from the front. If none fits,
            // give up the set.
            chosen.set_does_not_fit = set.fitting.is_empty() && !is_included;
            set.include_sticky_documents(self.index, chosen);
        } else {
            exclude_other_documents(self.index, room.tokens(), set.excluded, chosen);
        }
        Ok(())
    }

    /// Includes other documents by rank after those of the last prompt, while all documents take at most
    /// their share.
    fn fill_share(&self, room: Room, chosen: &mut Selection<W>) -> Result<(), Error> {
        let offer = self.offer_by_rank(room, self.config.rag.fill, self.index.document_slots(), chosen)?;
        offer.include_sticky_documents(self.index, chosen);
        Ok(())
    }

    /// Offers a room to the documents of the last prompt, which are the first `kept` ranks, from the front.
    fn offer_to_sticky_documents(
        &self,
        kept: u32,
        room: Room,
        chosen: &Selection<W>,
    ) -> Result<Offer, Error> {
        let Range { start, end } = self.index.document_slots();
        let of_the_set = Slot::each(start..end).take_while(|slot| self.index.rank_at(*slot).number() < kept);
        let slots = start..Slot::new(of_the_set.count() as u32);
        self.offer_by_rank(room, RagFill::Prefix, slots, chosen)
    }

    /// Offers a room to the documents at these slots that are not included yet, by rank.
    fn offer_by_rank(
        &self,
        room: Room,
        fill: RagFill,
        slots: Range<Slot>,
        chosen: &Selection<W>,
    ) -> Result<Offer, Error> {
        let mut offer = Offer::new(room);
        let rules = &self.config.rag;
        // Documents of earlier offers count towards the limits. Without limits they are not counted here.
        if rules.max_items.is_some() || rules.max_source_tokens.is_some() {
            for slot in chosen.included.documents.iter() {
                let rank = self.index.rank_at(slot);
                let tokens = self.costs.whole(CandidateId::Document(rank))?;
                offer.count(self.index.document(rank).origin, tokens);
            }
        }
        let mut is_stopped = false;
        for slot in Slot::each(slots).filter(|slot| !chosen.included.documents.has(*slot)) {
            let rank = self.index.rank_at(slot);
            let (id, origin) = (CandidateId::Document(rank), self.index.document(rank).origin);
            let left = offer.left;
            if let Some(rule) = self.policy_against(id, origin, &offer)? {
                offer.excluded.push((rank, ExcludedReason::Policy(rule)));
            } else if is_stopped {
                let limited_by = LimitedBy::Prefix;
                offer.excluded.push((rank, ExcludedReason::Budget { room: left, limited_by }));
            } else if let Weight::Exactly(tokens) = self.offer(id, left, room)? {
                offer.left -= tokens;
                offer.count(origin, tokens);
                offer.fitting.push((slot, tokens));
            } else {
                // `Prefix` stops here, so that a larger budget never loses a document (S8).
                is_stopped = fill == RagFill::Prefix;
                let limited_by = room.limited_by(LimitedBy::Size);
                offer.excluded.push((rank, ExcludedReason::Budget { room: left, limited_by }));
            }
        }
        Ok(offer)
    }

    /// Returns the policy that excludes a document because of the documents already included (rule S9).
    fn policy_against(
        &self,
        id: CandidateId,
        origin: Option<u32>,
        offer: &Offer,
    ) -> Result<Option<PolicyRule>, Error> {
        let rules = &self.config.rag;
        if let Some(limit) = rules.max_items.filter(|limit| offer.items >= *limit) {
            return Ok(Some(PolicyRule::MaxItems { limit }));
        }
        if let (Some(limit), Some(origin)) = (rules.max_source_tokens, origin) {
            let used = offer.origins.get(&origin).copied().unwrap_or_default();
            if self.costs.weigh(id, limit.saturating_sub(used))? == Weight::Over {
                return Ok(Some(PolicyRule::MaxSourceTokens { used, limit }));
            }
        }
        Ok(None)
    }
}

/// One offer to documents, and the decisions on them.
struct Offer {
    /// Tokens left of the offer.
    left: u64,
    /// The number of included documents.
    items: u64,
    /// Tokens of included documents by origin.
    origins: BTreeMap<u32, u64>,
    /// The slots of documents that fit, with their tokens.
    fitting: Vec<(Slot, u64)>,
    excluded: Vec<(Rank, ExcludedReason)>,
}

impl Offer {
    fn new(room: Room) -> Self {
        let (fitting, excluded) = (Vec::new(), Vec::new());
        Self { left: room.tokens(), items: 0, origins: BTreeMap::new(), fitting, excluded }
    }

    /// Counts an included document towards the limits of items and origins.
    fn count(&mut self, origin: Option<u32>, tokens: u64) {
        self.items += 1;
        if let Some(origin) = origin {
            *self.origins.entry(origin).or_default() += tokens;
        }
    }

    /// Checks if all documents fit that no policy excludes.
    fn has_room_for_all(&self) -> bool {
        !self.excluded.iter().any(|(_, reason)| matches!(reason, ExcludedReason::Budget { .. }))
    }

    /// Includes the documents that fit, and records the reasons of the others.
    fn include<W: Walker>(self, chosen: &mut Selection<W>) {
        for (slot, tokens) in self.fitting {
            chosen.included.keep_document(slot, tokens);
        }
        chosen.reasons.documents = self.excluded;
    }

    /// Includes the documents that fit, in addition to those of the last prompt. All others are held back by
    /// these.
    fn include_sticky_documents<W: Walker>(self, index: &CandidateIndex<'_>, chosen: &mut Selection<W>) {
        for (slot, tokens) in self.fitting {
            chosen.included.keep_document(slot, tokens);
        }
        exclude_other_documents(index, self.left, self.excluded, chosen);
    }
}

/// Records that the included documents hold back the others. A policy in `excluded` takes precedence as the
/// reason.
fn exclude_other_documents<W: Walker>(
    index: &CandidateIndex<'_>,
    left: u64,
    excluded: Vec<(Rank, ExcludedReason)>,
    chosen: &mut Selection<W>,
) {
    let excluded_by_set = ExcludedReason::Budget { room: left, limited_by: LimitedBy::StickyDocuments };
    let by_policy = excluded.into_iter().filter(|(_, reason)| matches!(reason, ExcludedReason::Policy(_)));
    let mut by_policy = by_policy.peekable();
    let Selection { included, reasons, .. } = chosen;
    let others = Slot::each(index.document_slots()).filter(|slot| !included.documents.has(*slot));
    reasons.documents.clear();
    reasons.documents.extend(others.map(|slot| {
        let rank = index.rank_at(slot);
        // Both lists ascend by rank, so one pass over them is enough.
        let policy = by_policy.next_if(|(other, _)| *other == rank);
        policy.unwrap_or_else(|| (rank, excluded_by_set.clone()))
    }));
}
