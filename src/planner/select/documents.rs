//! Documents by rank, whole or not at all (rules S8, S9); while the live question is the same, those that were in (S5).

use super::{
    PassedOver, Selection, Selector,
    room::{AfterQuestion, Room},
};
use crate::{
    config::{RagFill, RagOptions},
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy, PolicyRule},
    planner::{
        budget::Budgets,
        candidates::{CandidateId, CandidateIndex, List, Slot},
        observer::{BudgetVariable, Observer},
    },
    provider::weight::Weight,
};
use std::{collections::BTreeMap, ops::Range};

impl<O: Observer> Selector<'_, O> {
    /// Offers every document that policy lets in, or those that are kept for their question. What is in stays in; why the
    /// others are out is replaced. Behind those that are kept, others may fill up `share` tokens.
    pub(super) fn take_documents(&self, room: Room, share: u64, chosen: &mut Selection) -> Result<(), Error> {
        if !chosen.has_documents() {
            chosen.offered_to_documents = chosen.offered_to_documents.max(room.tokens(AfterQuestion::No));
        }
        chosen.dropped_documents.clear();
        chosen.documents_passed_over.clear();
        if self.index.kept_documents.is_some() {
            let set = self.set_within(room, chosen)?;
            if set.all && set.fitting.is_empty() && chosen.has_documents() && self.index.others_join {
                let left = share.saturating_sub(chosen.used[Section::Rag as usize]);
                return self.fill_up_the_share(room.at_most(left, BudgetVariable::FullDocumentShare), chosen);
            }
            if set.all || !chosen.has_documents() {
                // Where nothing of it is in yet, as many as fit from the front, or no set at all.
                chosen.gave_up_the_set = set.fitting.is_empty() && !chosen.has_documents();
                set.keep(self.index, chosen);
            } else {
                chosen.dropped_documents.extend(set.by_policy);
                hold_the_others(self.index, room.tokens(AfterQuestion::No), chosen);
            }
            return Ok(());
        }
        let rules = self.rules();
        if rules.max_items.is_none() && rules.max_source_tokens.is_none() {
            return self.fill_with_documents(room, chosen);
        }
        self.take_by_rank(room, chosen).map(drop)
    }

    /// Offers every document that is not in yet, by rank. Returns the tokens that are left.
    fn take_by_rank(&self, room: Room, chosen: &mut Selection) -> Result<u64, Error> {
        let mut offer = self.document_offer(room, self.rules().fill, chosen)?;
        for Waiting { slot, id, origin } in waiting(self.index, self.index.document_slots(), chosen) {
            match offer.decide(self, id, origin)? {
                Ok(tokens) => chosen.keep_document(slot, tokens),
                Err(reason) => drop(chosen.dropped_documents.insert(id, reason)),
            }
        }
        Ok(offer.left)
    }

    /// All of the kept documents are in: others join behind them, by rank, while the documents take no more than their share.
    fn fill_up_the_share(&self, room: Room, chosen: &mut Selection) -> Result<(), Error> {
        let left = self.take_by_rank(room, chosen)?;
        chosen.dropped_documents.retain(|_, reason| matches!(reason, ExcludedReason::Policy(_)));
        hold_the_others(self.index, left, chosen);
        Ok(())
    }

    /// Where nothing but tokens decides.
    fn fill_with_documents(&self, room: Room, chosen: &mut Selection) -> Result<(), Error> {
        let fill = self.rules().fill;
        let sizes = self.costs.sizes(List::Documents)?;
        let filled = chosen.documents.offer_all(&sizes, room.tokens(AfterQuestion::No), fill)?;
        filled.tell(self.observer, room.constraint(AfterQuestion::No));
        chosen.documents.extend(&filled);
        chosen.pay_for_documents(filled.tokens);
        let limited_by = room.limited_by(AfterQuestion::No, LimitedBy::Size);
        let after_the_first = if fill == RagFill::Prefix { LimitedBy::Prefix } else { limited_by };
        chosen.documents_passed_over = PassedOver::all(filled.passed_over, limited_by, after_the_first);
        Ok(())
    }

    /// The first offer, of the section's own budget. The documents that are kept for their question are in if all of them
    /// fit. What must go goes from the end and in bulk: down to what the section's `share` holds, which is what it is left
    /// with however much the other sections come to need, so that nothing need go again with the next step.
    pub(super) fn take_documents_within(
        &self,
        budgets: &Budgets,
        chosen: &mut Selection,
    ) -> Result<(), Error> {
        let room = Room::of(budgets.of(Section::Rag), BudgetVariable::Rag);
        let room = self.for_a_question(room, &budgets.available, chosen);
        if self.index.kept_documents.is_none() {
            return self.take_documents(room, 0, chosen);
        }
        let mut set = self.set_within(room, chosen)?;
        if !set.all {
            set =
                self.set_within(Room::of(budgets.document_share(), BudgetVariable::DocumentShare), chosen)?;
        }
        set.keep(self.index, chosen);
        Ok(())
    }

    /// What of the last prompt's documents fits into a room, from the front.
    fn set_within(&self, room: Room, chosen: &Selection) -> Result<KeptDocuments, Error> {
        let kept = self.index.kept_documents.unwrap_or(0);
        let slots = self.index.document_slots();
        let of_the_set =
            Slot::each(slots.clone()).take_while(|slot| self.index.rank_at(*slot).number() < kept);
        let slots = slots.start..Slot::new(of_the_set.count() as u32);
        let mut offer = self.document_offer(room, RagFill::Prefix, chosen)?;
        let mut set = KeptDocuments { fitting: Vec::new(), all: true, by_policy: Vec::new(), left: 0 };
        for Waiting { slot, id, origin } in waiting(self.index, slots, chosen) {
            match offer.decide(self, id, origin)? {
                Ok(tokens) => set.fitting.push((slot, tokens)),
                Err(ExcludedReason::Budget { .. }) => set.all = false,
                Err(policy) => set.by_policy.push((id, policy)),
            }
        }
        set.left = offer.left;
        Ok(set)
    }

    fn document_offer(&self, room: Room, fill: RagFill, chosen: &Selection) -> Result<Offer, Error> {
        let left = room.tokens(AfterQuestion::No);
        let mut offer = Offer { fill, room, left, items: 0, origins: BTreeMap::new(), stopped: false };
        for slot in chosen.documents.iter() {
            let rank = self.index.rank_at(slot);
            let origin = self.index.document(rank).origin;
            offer.count(origin, self.costs.whole(CandidateId::Document(rank))?);
        }
        Ok(offer)
    }

    fn rules(&self) -> &RagOptions {
        &self.config.rag
    }
}

/// What of the last prompt's documents fits into a room, from the front.
struct KeptDocuments {
    /// Their slots, and what they cost.
    fitting: Vec<(Slot, u64)>,
    /// Whether that is all that policy lets in.
    all: bool,
    by_policy: Vec<(CandidateId, ExcludedReason)>,
    left: u64,
}

impl KeptDocuments {
    fn keep(self, index: &CandidateIndex<'_>, chosen: &mut Selection) {
        for (slot, tokens) in self.fitting {
            chosen.keep_document(slot, tokens);
        }
        chosen.dropped_documents.extend(self.by_policy);
        hold_the_others(index, self.left, chosen);
    }
}

/// What is not in is held back by what is.
fn hold_the_others(index: &CandidateIndex<'_>, left: u64, chosen: &mut Selection) {
    let held = ExcludedReason::Budget { room: left, limited_by: LimitedBy::StickyDocuments };
    for Waiting { id, .. } in waiting(index, index.document_slots(), chosen) {
        chosen.dropped_documents.entry(id).or_insert_with(|| held.clone());
    }
}

/// A document that policy lets in and that is not in yet.
struct Waiting {
    slot: Slot,
    id: CandidateId,
    origin: Option<u32>,
}

/// The documents at these slots that are not in yet.
fn waiting(index: &CandidateIndex<'_>, slots: Range<Slot>, chosen: &Selection) -> Vec<Waiting> {
    let waiting = |slot: Slot| {
        let rank = index.rank_at(slot);
        Waiting { slot, id: CandidateId::Document(rank), origin: index.document(rank).origin }
    };
    Slot::each(slots).filter(|slot| !chosen.documents.has(*slot)).map(waiting).collect()
}

/// One walk over documents with the policies that count them (rule S9).
struct Offer {
    fill: RagFill,
    room: Room,
    left: u64,
    items: u64,
    origins: BTreeMap<u32, u64>,
    /// An item did not fit, and nothing after it is tried.
    stopped: bool,
}

impl Offer {
    fn count(&mut self, origin: Option<u32>, tokens: u64) {
        self.items += 1;
        if let Some(origin) = origin {
            *self.origins.entry(origin).or_default() += tokens;
        }
    }

    /// What the document costs, if it comes in; otherwise why not: policies first, then tokens.
    fn decide<O: Observer>(
        &mut self,
        selector: &Selector<'_, O>,
        id: CandidateId,
        origin: Option<u32>,
    ) -> Result<Result<u64, ExcludedReason>, Error> {
        let rules = selector.rules();
        if let Some(limit) = rules.max_items.filter(|limit| self.items >= *limit) {
            return Ok(Err(ExcludedReason::Policy(PolicyRule::MaxItems { limit })));
        }
        if let (Some(limit), Some(origin)) = (rules.max_source_tokens, origin) {
            let used = self.origins.get(&origin).copied().unwrap_or_default();
            if selector.costs.weigh(id, limit.saturating_sub(used))? == Weight::Over {
                return Ok(Err(ExcludedReason::Policy(PolicyRule::MaxSourceTokens { used, limit })));
            }
        }
        let room = self.left;
        if self.stopped {
            return Ok(Err(ExcludedReason::Budget { room, limited_by: LimitedBy::Prefix }));
        }
        match selector.offer(id, room, self.room.constraint(AfterQuestion::No))? {
            Weight::Exactly(tokens) => {
                self.left -= tokens;
                self.count(origin, tokens);
                Ok(Ok(tokens))
            }
            Weight::Over => {
                self.stopped = self.fill == RagFill::Prefix;
                let limited_by = self.room.limited_by(AfterQuestion::No, LimitedBy::Size);
                Ok(Err(ExcludedReason::Budget { room, limited_by }))
            }
        }
    }
}
