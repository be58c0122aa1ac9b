//! Selection of documents by rank, each as a whole or not at all.
//!
//! - Input: the competing documents in rank order, and a room.
//! - Output: the included documents, and the reasons of the others.
//! - Rules: S8 (order), S9 (policies, near-duplicates, repeats), S14 (chunks), S15 (recalled
//!   messages), S17 (shorter forms), S19 (groups), S5 (the set of the last prompt), S10 (limit of one
//!   question).
//!
//! While the live question stays the same, the documents of the last prompt (the set) come first.

use super::{ExclusionReasons, Room, Selection, Selector, Walker, left_of};
use crate::{
    config::{RagFill, Variants},
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, LimitedBy, PolicyRule},
    planner::{
        budget::{BudgetVariable, Budgets},
        candidates::{CandidateIndex, Neighbours, Rank, Shorter, Slot, TakenDocuments},
    },
    provider::weight::Weight,
    rag::Form,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

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
            let mut excluded = set.excluded;
            excluded.sort_by_key(|(rank, _)| *rank);
            exclude_other_documents(self.index, room.tokens(), excluded, chosen);
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
        let rules = &self.config.rag;
        // Without documents to compare, the conversation is not split into words.
        if rules.repeats > 0 && slots.start < slots.end {
            self.costs.prepare_sources(chosen.included.ids());
        }
        // Documents of earlier offers count towards the limits.
        let mut offer = Offer::new(room, chosen.taken.clone());
        let mut is_stopped = false;
        for slot in Slot::each(slots) {
            let rank = self.index.rank_at(slot);
            if chosen.included.documents.has(slot) {
                if rules.variants == Variants::Depth {
                    self.grow(rank, room, &mut offer)?;
                }
                continue;
            }
            if offer.taken.paid().contains_key(&rank) || offer.refused.contains(&rank) {
                // It was decided together with a document of a better rank.
                continue;
            }
            if let Some(reason) = chosen.reasons.left_documents.get(&rank) {
                offer.excluded.push((rank, reason.clone()));
                continue;
            }
            if let Some(required) = &self.costs.document(rank).required {
                offer.excluded.push((rank, required.reason()));
                continue;
            }
            if let Some(group) = self.index.groups.group(rank) {
                let out = self.decide_group(group, is_stopped, room, &mut offer, chosen)?;
                is_stopped |= fill == RagFill::Prefix && out.iter().any(|(_, reason)| is_budget(reason));
                offer.refuse_all(out, &chosen.reasons);
                continue;
            }
            // A text that was sent is offered as a whole (S5). In the order of the text, each chunk costs its
            // rest; by rank, one between two others would come after both were paid as texts of their own.
            let together = self.costs.sent_together(rank, rules);
            let reason = self.decide(&together, is_stopped, room, &mut offer, chosen)?;
            let Some(reason) = reason else { continue };
            // `Prefix` stops here, so that a larger budget never loses a document (S8).
            is_stopped |= fill == RagFill::Prefix && is_budget(&reason);
            if together.len() > 1 {
                let out = together.into_iter().map(|rank| (rank, reason.clone()));
                offer.refuse_all(out, &chosen.reasons);
            } else {
                offer.excluded.push((rank, contained_or(reason, rank, &chosen.reasons)));
            }
        }
        Ok(offer)
    }

    /// Takes documents that are sent together if all of them fit. Otherwise returns the reason to exclude
    /// them.
    pub(super) fn decide(
        &self,
        together: &[Rank],
        is_stopped: bool,
        room: Room,
        offer: &mut Offer,
        chosen: &Selection<W>,
    ) -> Result<Option<ExcludedReason>, Error> {
        let taken = self.take_together(together, false, is_stopped, room, offer, chosen)?;
        Ok(taken.err().map(|(_, reason)| reason))
    }

    /// Takes documents that are sent together if all of them fit. Members of a group are taken in their
    /// shortest forms, without those that another item represents. Returns these with their reasons, or the
    /// first document that does not fit with its reason.
    pub(super) fn take_together(
        &self,
        together: &[Rank],
        is_group: bool,
        is_stopped: bool,
        room: Room,
        offer: &mut Offer,
        chosen: &Selection<W>,
    ) -> Result<Result<Vec<ExcludedDocument>, ExcludedDocument>, Error> {
        let (mut left, mut fitting, mut represented) = (offer.left, Vec::new(), Vec::new());
        let mut taken: Vec<(Rank, Neighbours)> = Vec::new();
        for rank in together {
            // A member that another item represents needs no room.
            let contained = if is_group { self.contained(*rank, &offer.taken, chosen) } else { None };
            if let Some(reason) = contained {
                represented.push((*rank, reason));
                continue;
            }
            match self.fit(*rank, is_group, is_stopped, (left, room), &offer.taken, chosen)? {
                Ok(Fitting { tokens, neighbours, shorter }) => {
                    taken.push((*rank, neighbours));
                    left -= tokens;
                    fitting.push((self.index.slot_of(*rank), tokens));
                    offer.taken.take(*rank, tokens, neighbours, &self.config.rag, &self.costs);
                    if let Some(shorter) = shorter {
                        offer.taken.shorten(*rank, shorter);
                    }
                }
                Err(reason) => {
                    // A copy of all taken documents for each group would take quadratic time.
                    for (rank, neighbours) in taken.into_iter().rev() {
                        offer.taken.give_back(rank, neighbours);
                    }
                    return Ok(Err((*rank, reason)));
                }
            }
        }
        offer.left = left;
        offer.fitting.extend(fitting);
        Ok(Ok(represented))
    }

    /// Finds the form of a document that fits into the `left` tokens of a room, or the reason to exclude it:
    /// the fullest form that fits, or only the shortest with `variants = "breadth"` (rule S17) and in a
    /// group. A document that does not fit is not compared with other texts (rule S9).
    fn fit(
        &self,
        rank: Rank,
        is_group: bool,
        is_stopped: bool,
        (left, room): (u64, Room),
        taken: &TakenDocuments,
        chosen: &Selection<W>,
    ) -> Result<Result<Fitting, ExcludedReason>, Error> {
        let rules = &self.config.rag;
        if let Some(rule) = taken.limit_of_items(rank, rules, &self.costs) {
            return Ok(Err(ExcludedReason::Policy(rule)));
        }
        let (left, room) = self.room_for_recalled(rank, (left, room), taken, chosen.most_recalled);
        let document = self.costs.document(rank);
        let (forms, shortest) = (&document.forms, document.forms.len() - 1);
        // A dependent has no later offer, so it is sent in the fullest form that fits.
        let grows = is_group || rules.variants == Variants::Breadth && document.required.is_none();
        let mut at = if grows { shortest } else { 0 };
        let mut fuller = None;
        let (tokens, neighbours) = loop {
            match self.price((rank, forms[at]), is_stopped, (left, room), taken)? {
                Ok(price) => break price,
                Err(reason) if at < shortest && depends_on_form(&reason) => fuller = Some(reason),
                Err(reason) => return Ok(Err(reason)),
            }
            at += 1;
        };
        let contained = if is_group { None } else { self.contained(rank, taken, chosen) };
        let shorter = (at > 0).then_some(Shorter { form: forms[at], fuller });
        Ok(contained.map_or(Ok(Fitting { tokens, neighbours, shorter }), Err))
    }

    /// Returns the reason to exclude a document because another item of the prompt contains its text.
    fn contained(&self, rank: Rank, taken: &TakenDocuments, chosen: &Selection<W>) -> Option<ExcludedReason> {
        let near = taken.near_duplicate(rank, &self.config.rag, &self.costs);
        near.or_else(|| self.repeated(rank, chosen))
    }

    /// Returns the tokens and neighbours of a form that fits into the `left` tokens of a room, or the reason
    /// that it does not.
    fn price(
        &self,
        form: (Rank, Form),
        is_stopped: bool,
        (left, room): (u64, Room),
        taken: &TakenDocuments,
    ) -> Result<Result<(u64, Neighbours), ExcludedReason>, Error> {
        let rules = &self.config.rag;
        let out_of_room = |room, limited_by| Ok(Err(ExcludedReason::Budget { room, limited_by }));
        let neighbours = taken.neighbours(form, rules, &self.costs);
        if let Some(rule) = taken.limit_of_tokens(form, neighbours, rules, &self.costs)? {
            return Ok(Err(ExcludedReason::Policy(rule)));
        }
        if is_stopped {
            return out_of_room(left, LimitedBy::Prefix);
        }
        let count = |limit| self.costs.weigh_beside(form, neighbours, limit);
        match self.compare(left, room, count)? {
            Weight::Exactly(tokens) => Ok(Ok((tokens, neighbours))),
            Weight::Over => out_of_room(left, room.limited_by(LimitedBy::Size)),
        }
    }

    /// Offers a room to fuller forms of the documents that are not in full, by rank (rule S17). `share` are
    /// the tokens that all documents may take beside those of the last prompt.
    pub(super) fn grow_documents(
        &self,
        room: Room,
        share: u64,
        chosen: &mut Selection<W>,
    ) -> Result<(), Error> {
        let room = self.beside_the_set(room, share, chosen);
        let mut offer = Offer::new(room, chosen.taken.clone());
        for rank in chosen.taken.all_shorter() {
            self.grow(rank, room, &mut offer)?;
        }
        offer.take_growth(chosen);
        Ok(())
    }

    /// Limits a room to the tokens that other documents may take beside those of the last prompt, if these
    /// stay.
    pub(super) fn beside_the_set(&self, room: Room, share: u64, chosen: &Selection<W>) -> Room {
        if self.index.sticky_document_count.is_none() {
            return room;
        }
        room.at_most(left_of(share, Section::Rag, chosen), BudgetVariable::FullDocumentShare)
    }

    /// Replaces a shorter form of a taken document by the fullest one that fits, if one does. The tokens of
    /// the shorter form count as free.
    pub(super) fn grow(&self, rank: Rank, room: Room, offer: &mut Offer) -> Result<(), Error> {
        let Some(shorter) = offer.taken.shorter(rank).cloned() else { return Ok(()) };
        let (document, now) = (self.costs.document(rank), shorter.form);
        let paid = offer.taken.paid().get(&rank).copied().unwrap_or_default();
        let left = offer.left.saturating_add(paid);
        let room = room.with(left.saturating_sub(room.tokens()));
        let mut fuller = None;
        for form in document.forms.iter().copied().take_while(|form| *form != now) {
            match self.price((rank, form), false, (left, room), &offer.taken)? {
                Ok((tokens, neighbours)) => {
                    offer.left = left - tokens;
                    offer.of_fuller_forms = offer.of_fuller_forms.saturating_add(tokens);
                    offer.of_replaced_forms = offer.of_replaced_forms.saturating_add(paid);
                    offer.taken.grow(rank, tokens, neighbours);
                    if form != document.fullest() {
                        offer.taken.shorten(rank, Shorter { form, fuller });
                    }
                    return Ok(());
                }
                Err(reason) => fuller = Some(reason),
            }
        }
        // The reason of the largest offer: later ones are the rest that other documents left.
        let fuller = match (&shorter.fuller, fuller) {
            (Some(before), Some(now)) if before.room() >= now.room() => Some(before.clone()),
            (_, now) => now,
        };
        offer.taken.shorten(rank, Shorter { form: now, fuller });
        Ok(())
    }

    /// Limits the room of a recalled message to the share of all recalled messages (rule S15). `left` tokens
    /// of the room are left.
    fn room_for_recalled(
        &self,
        rank: Rank,
        (left, room): (u64, Room),
        taken: &TakenDocuments,
        most: u64,
    ) -> (u64, Room) {
        if !self.costs.document(rank).is_recalled {
            return (left, room);
        }
        let rest = most.saturating_sub(taken.recalled_tokens(&self.costs));
        let room = room.without(room.tokens().saturating_sub(left)).for_recalled(rest);
        (left.min(room.tokens()), room)
    }

    /// Returns the reason to exclude a document because the conversation contains its text (rule S9), or the
    /// messages that it quotes (rule S15). Documents of the last prompt stay.
    fn repeated(&self, rank: Rank, chosen: &Selection<W>) -> Option<ExcludedReason> {
        let least = self.config.rag.repeats;
        if self.costs.is_sticky(rank) {
            return None;
        }
        if let Some(of) = self.costs.in_window(rank, |id| chosen.has(id)) {
            return Some(ExcludedReason::InWindow { of });
        }
        if least == 0 {
            return None;
        }
        let (of, share) = self.costs.repeated(rank, least, |id| chosen.has(id))?;
        Some(ExcludedReason::Repeats { of, share })
    }

    /// Excludes documents of this prompt whose text the conversation contains since it grew (rules S9, S15,
    /// B6). A joined text leaves if all its chunks are contained. None of them comes back.
    pub(super) fn drop_repeats(&self, chosen: &mut Selection<W>) {
        let repeats = self.config.rag.repeats > 0;
        if !repeats && !self.index.has_recalled || !chosen.has_documents() {
            return;
        }
        if repeats {
            self.costs.prepare_sources(chosen.included.ids());
        }
        // First all that repeat something, because chunks of one text leave together or not at all.
        let mut leaving: BTreeMap<Rank, ExcludedReason> = BTreeMap::new();
        for rank in chosen.taken.paid().keys() {
            leaving.extend(self.repeated(*rank, chosen).map(|reason| (*rank, reason)));
        }
        let stays = |rank: &Rank| {
            let joined = chosen.taken.joined_with(*rank);
            joined.iter().any(|(member, _)| !leaving.contains_key(member))
        };
        let ranks: Vec<Rank> = leaving.keys().copied().filter(|rank| !stays(rank)).collect();
        let tokens = chosen.taken.remove(&ranks);
        chosen.included.leave(ranks.iter().map(|rank| self.index.slot_of(*rank)), tokens);
        chosen.reasons.left_documents.extend(ranks.iter().filter_map(|rank| leaving.remove_entry(rank)));
    }
}

/// Returns the reason to exclude a document. A text that another one contains stays so while nothing leaves:
/// that it does not fit either is no news.
fn contained_or(reason: ExcludedReason, rank: Rank, reasons: &ExclusionReasons) -> ExcludedReason {
    reasons.of_contained_document(rank).cloned().unwrap_or(reason)
}

/// Checks if another item of the prompt represents an excluded document.
pub(super) fn is_represented(reason: &ExcludedReason) -> bool {
    use ExcludedReason::{InWindow, NearDuplicate, Repeats};
    matches!(reason, InWindow { .. } | NearDuplicate { .. } | Repeats { .. })
}

fn is_budget(reason: &ExcludedReason) -> bool {
    matches!(reason, ExcludedReason::Budget { .. })
}

/// Checks if a reason to exclude a document may not hold for a shorter form of it.
fn depends_on_form(reason: &ExcludedReason) -> bool {
    use PolicyRule::{MaxListTokens, MaxSourceTokens};
    match reason {
        ExcludedReason::Budget { limited_by, .. } => *limited_by != LimitedBy::Prefix,
        ExcludedReason::Policy(rule) => matches!(rule, MaxSourceTokens { .. } | MaxListTokens { .. }),
        _ => false,
    }
}

/// An excluded document with its reason.
pub(super) type ExcludedDocument = (Rank, ExcludedReason);

/// A document that fits.
struct Fitting {
    tokens: u64,
    neighbours: Neighbours,
    /// Its form, unless it is the fullest one.
    shorter: Option<Shorter>,
}

/// One offer to documents, and the decisions on them.
pub(super) struct Offer {
    /// Tokens left of the offer.
    left: u64,
    pub(super) taken: TakenDocuments,
    /// Documents that fit, each with its tokens.
    fitting: Vec<(Slot, u64)>,
    /// The other documents with their reasons.
    excluded: Vec<ExcludedDocument>,
    /// Those of them that were decided together with others.
    refused: BTreeSet<Rank>,
    /// Tokens of the fuller forms that documents got.
    of_fuller_forms: u64,
    /// Tokens of the forms that these replaced.
    of_replaced_forms: u64,
}

impl Offer {
    pub(super) fn new(room: Room, taken: TakenDocuments) -> Self {
        Self {
            left: room.tokens(),
            taken,
            fitting: Vec::new(),
            excluded: Vec::new(),
            refused: BTreeSet::new(),
            of_fuller_forms: 0,
            of_replaced_forms: 0,
        }
    }

    /// Excludes documents that were decided together.
    fn refuse_all(&mut self, out: impl IntoIterator<Item = ExcludedDocument>, reasons: &ExclusionReasons) {
        for (rank, reason) in out {
            self.refused.insert(rank);
            self.excluded.push((rank, contained_or(reason, rank, reasons)));
        }
    }

    /// Removes the reasons of documents that are taken now.
    pub(super) fn forget(&mut self, ranks: &[Rank]) {
        let Self { excluded, taken, .. } = self;
        let is_taken = |rank: &Rank| ranks.binary_search(rank).is_ok() && taken.paid().contains_key(rank);
        if excluded.iter().any(|(rank, _)| is_taken(rank)) {
            excluded.retain(|(rank, _)| !is_taken(rank));
        }
    }

    /// Returns the tokens left of the offer.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Checks if all documents fit that no policy excludes.
    fn has_room_for_all(&self) -> bool {
        !self.excluded.iter().any(|(_, reason)| matches!(reason, ExcludedReason::Budget { .. }))
    }

    /// Includes the dependents that fit, and replaces the reasons of the others that were offered tokens.
    pub(super) fn include_dependents<W: Walker>(
        mut self,
        decided: &BTreeMap<Rank, Option<ExcludedReason>>,
        chosen: &mut Selection<W>,
    ) {
        for (slot, tokens) in std::mem::take(&mut self.fitting) {
            chosen.included.keep_document(slot, tokens);
        }
        chosen.reasons.documents.retain_mut(|(rank, reason)| match decided.get(rank) {
            Some(None) => false,
            Some(Some(now)) => {
                reason.clone_from(now);
                true
            }
            None => true,
        });
        self.take_growth(chosen);
    }

    /// Includes the fuller forms that documents got.
    fn take_growth<W: Walker>(self, chosen: &mut Selection<W>) {
        chosen.included.pay(Section::Rag, self.of_fuller_forms);
        chosen.included.leave(std::iter::empty(), self.of_replaced_forms);
        chosen.taken = self.taken;
    }

    /// Includes the documents that fit, and records the reasons of the others.
    fn include<W: Walker>(mut self, chosen: &mut Selection<W>) {
        self.excluded.sort_by_key(|(rank, _)| *rank);
        for (slot, tokens) in std::mem::take(&mut self.fitting) {
            chosen.included.keep_document(slot, tokens);
        }
        let excluded = std::mem::take(&mut self.excluded);
        self.take_growth(chosen);
        chosen.reasons.add_contained_documents(&excluded);
        chosen.reasons.documents = excluded;
    }

    /// Includes the documents that fit, in addition to those of the last prompt. All others are held back by
    /// these.
    fn include_sticky_documents<W: Walker>(mut self, index: &CandidateIndex<'_>, chosen: &mut Selection<W>) {
        self.excluded.sort_by_key(|(rank, _)| *rank);
        for (slot, tokens) in std::mem::take(&mut self.fitting) {
            chosen.included.keep_document(slot, tokens);
        }
        let (excluded, left) = (std::mem::take(&mut self.excluded), self.left);
        self.take_growth(chosen);
        chosen.reasons.add_contained_documents(&excluded);
        exclude_other_documents(index, left, excluded, chosen);
    }
}

/// Records that the included documents hold back the others. A policy in `excluded`, or a text that contains
/// the document, takes precedence as the reason.
fn exclude_other_documents<W: Walker>(
    index: &CandidateIndex<'_>,
    left: u64,
    excluded: Vec<ExcludedDocument>,
    chosen: &mut Selection<W>,
) {
    let excluded_by_set = ExcludedReason::Budget { room: left, limited_by: LimitedBy::StickyDocuments };
    let by_policy =
        excluded.into_iter().filter(|(_, reason)| !matches!(reason, ExcludedReason::Budget { .. }));
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
