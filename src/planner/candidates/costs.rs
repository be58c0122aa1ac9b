//! Token counts of candidates, on demand.
//!
//! - Input: candidates, a counter, and one rendering of tool results.
//! - Output: the tokens of each candidate, counted no further than a decision needs.
//! - Rules: N5, S7.
//!
//! The fields are private: whoever holds a [`Costs`] can query counts, but not texts.

use super::{CandidateId, CandidateMap, Candidates, Document, Neighbours, Rank, comparisons::Comparisons};
use crate::{
    config::{ListOptions, RagOptions},
    error::Error,
    item::ItemId,
    message::Message,
    plan::reason::ExcludedReason,
    planner::{eligibility::Eligibility, rendering::ToolResultRendering, repair},
    provider::weight::Weight,
    provider::{conform::TurnPosition, meter::Meter},
    rag::Form,
};
use std::{borrow::Cow, cell::RefCell, collections::BTreeMap, sync::Arc};

/// Counts the candidates of one request, each up to the requested limit and never twice.
pub(crate) struct Costs<'a> {
    candidates: &'a Candidates<'a>,
    meter: &'a Meter,
    rendering: ToolResultRendering,
    /// The weight of each candidate, and the limit up to which it was counted.
    known: RefCell<CandidateMap<(Weight, u64)>>,
    /// The largest number of tokens that any count is compared with among many budgets; `None` for one
    /// budget. Candidates are counted up to this number, once for all budgets.
    many_budgets: Option<u64>,
    /// The same for the forms of documents that are not the fullest ones.
    known_forms: RefCell<BTreeMap<(Rank, Form), (Weight, u64)>>,
    comparisons: Comparisons,
}

impl<'a> Costs<'a> {
    /// Creates the costs for one budget, with tool results in one rendering (rule S7).
    pub(crate) fn new(
        candidates: &'a Candidates<'a>,
        meter: &'a Meter,
        rendering: ToolResultRendering,
    ) -> Self {
        Self {
            candidates,
            meter,
            rendering,
            known: RefCell::new(CandidateMap::for_candidates(candidates.index())),
            many_budgets: None,
            known_forms: RefCell::default(),
            comparisons: Comparisons::default(),
        }
    }

    /// Returns the same costs for many budgets, none of which leaves more than `largest_budget` tokens.
    pub(crate) fn for_many_budgets(self, most: Option<u64>) -> Self {
        Self { many_budgets: most, ..self }
    }

    /// Returns the number of candidates that were counted.
    pub(crate) fn weighed(&self) -> usize {
        self.known.borrow().len()
    }

    /// Returns the largest number of tokens that any cost is compared with. Returns `None` for one budget.
    pub(crate) fn largest_budget(&self) -> Option<u64> {
        self.many_budgets
    }

    /// Returns the rendering of tool results that is counted.
    pub(crate) fn rendering(&self) -> &ToolResultRendering {
        &self.rendering
    }

    pub(super) fn meter(&self) -> &'a Meter {
        self.meter
    }

    pub(super) fn candidates(&self) -> &'a Candidates<'a> {
        self.candidates
    }

    /// Checks if no item of the conversation is archived or has a TTL.
    pub(crate) fn nothing_leaves(&self) -> bool {
        self.candidates.nothing_leaves()
    }

    /// Returns the reason to exclude a candidate before it is counted. Returns `None` if it may be included.
    pub(crate) fn ineligible(&self, id: CandidateId) -> Result<Option<ExcludedReason>, Error> {
        Ok(match self.candidates.eligibility(id)? {
            Eligibility::Out(reason) => Some(reason),
            Eligibility::Eligible | Eligibility::Asks(_) => None,
        })
    }

    /// Counts a candidate, up to `limit` tokens.
    pub(crate) fn weigh(&self, id: CandidateId, limit: u64) -> Result<Weight, Error> {
        #[cfg(test)]
        WEIGHED.with(|weighed| weighed.set(weighed.get() + 1));
        if let Some(weight) = self.known.borrow().get(id).and_then(|known| within(known, limit)) {
            return Ok(weight);
        }
        let weight = self.count(id, limit)?;
        self.known.borrow_mut().insert(id, (weight, limit));
        Ok(weight)
    }

    /// Counts a document in one of its forms, up to `limit` tokens.
    pub(crate) fn weigh_form(&self, rank: Rank, form: Form, limit: u64) -> Result<Weight, Error> {
        if form == self.document(rank).fullest() {
            return self.weigh(CandidateId::Document(rank), limit);
        }
        let known = self.known_forms.borrow().get(&(rank, form)).copied();
        if let Some(weight) = known.and_then(|known| within(known, limit)) {
            return Ok(weight);
        }
        let weight = self.count_document(rank, form, limit)?;
        self.known_forms.borrow_mut().insert((rank, form), (weight, limit));
        Ok(weight)
    }

    /// Counts a document in one of its forms, up to `limit` tokens, without looking at known counts.
    fn count_document(&self, rank: Rank, form: Form, limit: u64) -> Result<Weight, Error> {
        let item = self.candidates.document_in(rank, form);
        self.meter.document(item, item.hash(self.document(rank).hash), limit)
    }

    /// Counts a candidate in full, in tokens.
    pub(crate) fn whole(&self, id: CandidateId) -> Result<u64, Error> {
        Ok(self.weigh(id, u64::MAX)?.in_full())
    }

    /// Counts a candidate, up to `limit` tokens, without looking at known counts.
    fn count(&self, id: CandidateId, limit: u64) -> Result<Weight, Error> {
        let (candidates, meter) = (self.candidates, self.meter);
        match id {
            CandidateId::System(at) => meter.message(&candidates.system(at).1, TurnPosition::Preamble, limit),
            CandidateId::State(at) => meter.message(&candidates.state(at).1, TurnPosition::Live, limit),
            CandidateId::Focus => match candidates.focus() {
                Some((_, focus)) => meter.message(focus, TurnPosition::Preamble, limit),
                None => Ok(Weight::Exactly(0)),
            },
            CandidateId::Note(at) => {
                meter.message(&candidates.notes().get(at).message, TurnPosition::Preamble, limit)
            }
            CandidateId::Summary(at) => meter.message(candidates.summary(at).2, TurnPosition::Past, limit),
            CandidateId::Document(rank) => self.count_document(rank, self.document(rank).fullest(), limit),
            CandidateId::UserMessage(_) => self.sum(id, &[], limit),
            CandidateId::Exchange(at) => {
                let placeholders =
                    repair::synthetic_results(candidates.log, candidates.log.turns().exchange(at));
                self.sum(id, &placeholders, limit)
            }
        }
    }

    /// Counts the messages of a candidate with the texts retained before it and its placeholder results.
    fn sum(&self, id: CandidateId, placeholders: &[Message], limit: u64) -> Result<Weight, Error> {
        let mut sum = 0;
        let turn_position = self.candidates.turn_position(id);
        let members =
            self.candidates.members(id).into_iter().map(|at| self.candidates.rendered(at, &self.rendering));
        // Retained texts count with the candidate that they precede: both are included or excluded together.
        let released = self.rendering.released_before;
        let place = self.candidates.place_of(id);
        let before =
            place.map(|at| self.candidates.retained().messages_before(at, released)).unwrap_or_default();
        let before = before.into_iter().map(Cow::Owned);
        for message in before.chain(members).chain(placeholders.iter().map(Cow::Borrowed)) {
            match self.meter.message(&message, turn_position, limit - sum)? {
                Weight::Exactly(n) => sum += n,
                Weight::Over => return Ok(Weight::Over),
            }
        }
        Ok(Weight::Exactly(sum))
    }

    /// Returns a document without its text.
    pub(crate) fn document(&self, rank: Rank) -> &Document {
        self.candidates.index().document(rank)
    }

    /// Returns the id of a document.
    pub(crate) fn document_id(&self, rank: Rank) -> &'a ItemId {
        &self.candidates.document(rank).item.id
    }

    /// Returns the name of a list and its options. Returns `None` if it has none.
    pub(crate) fn list_options(&self, list: u32, rules: &RagOptions) -> Option<(Arc<str>, ListOptions)> {
        let name = &self.candidates.request().rag.named_lists()[list as usize].name;
        rules.lists.get(&**name).map(|options| (Arc::clone(name), *options))
    }

    /// Checks if a document stays from the last prompt (rule S5).
    pub(crate) fn is_sticky(&self, rank: Rank) -> bool {
        self.candidates.index().stays(rank)
    }

    /// Returns the document of the last prompt that a document was sent as one text with, before it, with the
    /// overlap in bytes.
    pub(crate) fn was_joined_to(&self, rank: Rank) -> Option<(Rank, u32)> {
        let before = self.candidates.index().was_joined_to(rank)?;
        Some((before, self.comparisons.overlap(self.candidates, before, rank)?))
    }

    /// Returns the document of the last prompt that a document was sent as one text with, after it.
    pub(crate) fn was_joined_by(&self, rank: Rank) -> Option<(Rank, u32)> {
        let after = self.candidates.index().was_joined_by(rank)?;
        Some((after, self.comparisons.overlap(self.candidates, rank, after)?))
    }

    /// Returns the taken documents that a document continues, and those that continue it, each with the
    /// overlap in bytes (rule S14).
    pub(super) fn neighbours(&self, rank: Rank, taken: &BTreeMap<Rank, u64>) -> [Vec<(Rank, u32)>; 2] {
        self.comparisons.neighbours(self.candidates, rank, taken)
    }

    /// Returns the taken document that contains at least `least` per cent of a document (rule S9). The taken
    /// ones are among the first `texts` texts.
    pub(super) fn near_duplicate(
        &self,
        rank: Rank,
        least: u8,
        taken: &BTreeMap<Rank, u64>,
        texts: usize,
    ) -> Option<(ItemId, u8)> {
        self.comparisons.near_duplicate(self.candidates, rank, least, taken, texts)
    }

    /// Prepares comparisons with a document that was taken. Returns the number of texts up to its own.
    pub(super) fn take(&self, rank: Rank, rules: &RagOptions) -> usize {
        self.comparisons.take(self.candidates, rank, rules)
    }

    /// Prepares comparisons with the included candidates of the conversation.
    pub(crate) fn prepare_sources(&self, included: impl Iterator<Item = CandidateId>) {
        let (candidates, rendering) = (self.candidates, &self.rendering);
        if self.many_budgets.is_some() {
            // Any budget may include any candidate, so all of them are prepared once.
            self.comparisons.add_all_sources(candidates, rendering);
        } else {
            self.comparisons.add_sources(candidates, rendering, included);
        }
    }

    /// Returns the included text of the conversation that contains at least `least` per cent of a document
    /// (rule S9). `has` checks if a candidate is included; [`Costs::prepare_sources`] has to know it.
    pub(crate) fn repeated(
        &self,
        rank: Rank,
        least: u8,
        has: impl Fn(CandidateId) -> bool,
    ) -> Option<(ItemId, u8)> {
        self.comparisons.repeated(self.candidates, &self.rendering, rank, least, has)
    }

    /// Returns the first of the messages that a document quotes, if all of them are included as they are in
    /// the log (rule S15). `has` checks if a candidate is included.
    pub(crate) fn in_window(&self, rank: Rank, has: impl Fn(CandidateId) -> bool) -> Option<ItemId> {
        let candidates = self.candidates;
        let messages = candidates.document(rank).messages.clone()?;
        let known = candidates.log.turns().messages();
        let is_sent = |position: u32| {
            // A cleared or clipped result stands there without its text.
            let is_whole = !candidates.is_shortened(position, &self.rendering);
            is_whole && candidates.candidate_of(position).is_some_and(&has)
        };
        let stands = messages.end <= known && !messages.is_empty() && messages.clone().all(is_sent);
        stands.then(|| candidates.log.message_id(messages.start))
    }

    /// Checks if the documents that are retained before a message are in the prompt. `has` checks if a
    /// candidate is included.
    pub(crate) fn is_sent_before(&self, place: u32, has: impl Fn(CandidateId) -> bool) -> bool {
        let (candidates, released) = (self.candidates, self.rendering.released_before);
        candidates.retained().is_sent_at(place, released) && candidates.candidate_of(place).is_some_and(has)
    }

    /// Returns the documents of the last prompt that were sent as one text with a document, in their order in
    /// the text; the document alone if it was sent alone.
    pub(crate) fn sent_together(&self, rank: Rank, rules: &RagOptions) -> Vec<Rank> {
        let mut together = vec![rank];
        if !rules.join_chunks || !self.is_sticky(rank) {
            return together;
        }
        let mut first = rank;
        while let Some((before, _)) = self.was_joined_to(first) {
            together.push(before);
            first = before;
        }
        together.reverse();
        let mut last = rank;
        while let Some((after, _)) = self.was_joined_by(last) {
            together.push(after);
            last = after;
        }
        together
    }

    /// Checks if a document is not decided by its tokens alone: it has several forms, or depends on others or
    /// on the conversation (required documents, groups, near-duplicates, repeats, chunks that are joined).
    pub(crate) fn documents_are_decided_one_by_one(&self, rules: &RagOptions) -> bool {
        self.candidates.index().has_recalled
            || self.candidates.index().has_forms_or_dependents
            || !self.candidates.index().groups.is_empty()
            || self.comparisons.finds_any(self.candidates, &self.rendering, rules)
    }

    /// Counts the part of a document that its neighbours do not contain, in tokens.
    pub(super) fn count_rest(&self, rank: Rank, neighbours: Neighbours) -> Result<u64, Error> {
        let item = self.candidates.document(rank);
        let text = &item.text;
        let start = neighbours.before.map_or(0, |(_, overlap)| overlap as usize);
        let end = text.len() - neighbours.after.map_or(0, |(_, overlap)| overlap as usize);
        // Both neighbours together may contain all of it.
        let rest = if start < end { self.meter.document_part(&text[start..end])? } else { 0 };
        // The header of a joined text names each of its documents.
        Ok(rest.saturating_add(self.meter.further_id(item)?))
    }

    /// Returns the sum of those candidates that can be sent, in tokens. Returns `None` if one of them is
    /// larger than every budget.
    pub(crate) fn together(&self, ids: impl IntoIterator<Item = CandidateId>) -> Result<Option<u64>, Error> {
        let most = self.many_budgets.unwrap_or(u64::MAX);
        let mut sum = 0u64;
        for id in ids {
            if self.ineligible(id)?.is_some() {
                continue;
            }
            let Weight::Exactly(n) = self.weigh(id, most)? else { return Ok(None) };
            sum = sum.saturating_add(n);
        }
        Ok(Some(sum))
    }
}

/// Returns a weight up to `limit`. Returns `None` if it was counted up to a limit that is too low for that.
fn within((weight, counted_to): (Weight, u64), limit: u64) -> Option<Weight> {
    match weight {
        Weight::Exactly(n) => Some(if n <= limit { Weight::Exactly(n) } else { Weight::Over }),
        Weight::Over => (counted_to >= limit).then_some(Weight::Over),
    }
}

#[cfg(test)]
thread_local! {
    /// The number of times that a candidate was counted or looked up.
    pub(crate) static WEIGHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
