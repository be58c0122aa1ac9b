//! Documents that a walk by rank has taken, as far as further documents depend on them.
//!
//! - Input: documents one by one, with their tokens.
//! - Output: for the next document: the policy that excludes it, its tokens beside its neighbours, and the
//!   included text that contains it.
//! - Rules: S9 (limits, near-duplicates), S14 (overlapping chunks), S17 (forms).

use super::{Costs, Document, Neighbours, Rank};
use crate::{
    config::RagOptions,
    error::Error,
    plan::reason::{ExcludedReason, PolicyRule},
    provider::weight::Weight,
    rag::Form,
};
use std::collections::BTreeMap;

/// The documents taken so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenDocuments {
    /// The tokens paid for each document.
    paid: BTreeMap<Rank, u64>,
    /// The number of texts that a further document has to be compared with (see `SimilarTexts`).
    texts: usize,
    /// By chunk, the chunk that it continues, with the overlap in bytes.
    follows: BTreeMap<Rank, (Rank, u32)>,
    /// By chunk, the chunk that continues it.
    followed: BTreeMap<Rank, Rank>,
    /// Documents that are not in their fullest form.
    shorter: BTreeMap<Rank, Shorter>,
    /// The number of times that a document got a fuller form.
    grown: usize,
}

/// The form of a document that has a fuller one.
#[derive(Debug, Clone)]
pub(crate) struct Shorter {
    pub(crate) form: Form,
    /// The reason why the next fuller form is not sent; `None` before it was tried.
    pub(crate) fuller: Option<ExcludedReason>,
}

impl TakenDocuments {
    /// Adds a document with the tokens that it takes beside its neighbours.
    pub(crate) fn take(
        &mut self,
        rank: Rank,
        tokens: u64,
        neighbours: Neighbours,
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) {
        self.texts = self.texts.max(costs.take(rank, rules));
        self.paid.insert(rank, tokens);
        self.link(rank, neighbours);
    }

    /// Records the chunks that a document is joined with.
    fn link(&mut self, rank: Rank, neighbours: Neighbours) {
        if let Some((before, overlap)) = neighbours.before {
            self.follows.insert(rank, (before, overlap));
            self.followed.insert(before, rank);
        }
        if let Some((after, overlap)) = neighbours.after {
            self.follows.insert(after, (rank, overlap));
            self.followed.insert(rank, after);
        }
    }

    /// Removes the document that was taken last, with the neighbours that it was taken beside.
    pub(crate) fn give_back(&mut self, rank: Rank, neighbours: Neighbours) {
        self.paid.remove(&rank);
        self.shorter.remove(&rank);
        if let Some((before, _)) = neighbours.before {
            self.follows.remove(&rank);
            self.followed.remove(&before);
        }
        if let Some((after, _)) = neighbours.after {
            self.follows.remove(&after);
            self.followed.remove(&rank);
        }
    }

    /// Records that a taken document is in a shorter form.
    pub(crate) fn shorten(&mut self, rank: Rank, shorter: Shorter) {
        self.shorter.insert(rank, shorter);
    }

    /// Replaces the form of a taken document by its fullest one, with these tokens and neighbours.
    pub(crate) fn grow(&mut self, rank: Rank, tokens: u64, neighbours: Neighbours) {
        self.shorter.remove(&rank);
        self.paid.insert(rank, tokens);
        self.link(rank, neighbours);
        self.grown += 1;
    }

    /// Returns the number of times that a document got a fuller form.
    pub(crate) fn grown(&self) -> usize {
        self.grown
    }

    /// Returns the form of a document that has a fuller one. Returns `None` if it is in its fullest form.
    pub(crate) fn shorter(&self, rank: Rank) -> Option<&Shorter> {
        self.shorter.get(&rank)
    }

    /// Returns the form of a taken document.
    pub(crate) fn form(&self, rank: Rank, document: &Document) -> Form {
        self.shorter.get(&rank).map_or(document.fullest(), |shorter| shorter.form)
    }

    /// Returns the documents that have a fuller form, by rank.
    pub(crate) fn all_shorter(&self) -> impl Iterator<Item = Rank> {
        self.shorter.keys().copied()
    }

    /// Removes documents that leave again, and returns their tokens. All chunks of a joined text leave
    /// together.
    pub(crate) fn remove(&mut self, ranks: &[Rank]) -> u64 {
        let mut tokens = 0;
        for rank in ranks {
            tokens += self.paid.remove(rank).unwrap_or_default();
            self.follows.remove(rank);
            self.followed.remove(rank);
            self.shorter.remove(rank);
        }
        tokens
    }

    /// Returns the tokens paid for each document, by rank.
    pub(crate) fn paid(&self) -> &BTreeMap<Rank, u64> {
        &self.paid
    }

    /// Returns the chunks that are sent as one text with this one, in their order in the text, each with the
    /// overlap with the chunk before it in bytes.
    pub(crate) fn joined_with(&self, rank: Rank) -> Vec<(Rank, u32)> {
        let mut first = rank;
        // Ends, because neighbours are never linked to a circle.
        while let Some((before, _)) = self.follows.get(&first) {
            first = *before;
        }
        let mut joined = vec![(first, 0)];
        let mut last = first;
        while let Some(next) = self.followed.get(&last) {
            joined.push((*next, self.follows[next].1));
            last = *next;
        }
        joined
    }

    /// Returns the tokens of recalled messages (rule S15).
    pub(crate) fn recalled_tokens(&self, costs: &Costs<'_>) -> u64 {
        self.tokens_of(None, |other| other.is_recalled, costs).sum()
    }

    /// Returns the limit that excludes a document, whatever its tokens.
    pub(crate) fn limit_of_items(
        &self,
        rank: Rank,
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) -> Option<PolicyRule> {
        if let Some(limit) = rules.max_items.filter(|limit| self.paid.len() as u64 >= *limit) {
            return Some(PolicyRule::MaxItems { limit });
        }
        let document = costs.document(rank);
        if let (Some(limit), Some(origin)) = (rules.max_source_items, document.origin)
            && self.tokens_of(None, |other| other.origin == Some(origin), costs).count() as u64 >= limit
        {
            return Some(PolicyRule::MaxSourceItems { limit });
        }
        let list = document.best_list()?;
        let (name, options) = costs.list_options(list, rules)?;
        let limit = options.max_items?;
        let items = self.tokens_of(None, |other| other.best_list() == Some(list), costs).count() as u64;
        (items >= limit).then_some(PolicyRule::MaxListItems { list: name, limit })
    }

    /// Returns the tokens of each taken document that `is_one` accepts, without those of the document
    /// `without`.
    fn tokens_of<'t>(
        &'t self,
        without: Option<Rank>,
        is_one: impl Fn(&Document) -> bool + 't,
        costs: &'t Costs<'_>,
    ) -> impl Iterator<Item = u64> + 't {
        let is_one = move |rank: Rank| Some(rank) != without && is_one(costs.document(rank));
        self.paid.iter().filter(move |(rank, _)| is_one(**rank)).map(|(_, tokens)| *tokens)
    }

    /// Returns the limit of tokens that excludes a form of a document beside these neighbours.
    pub(crate) fn limit_of_tokens(
        &self,
        (rank, form): (Rank, Form),
        neighbours: Neighbours,
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) -> Result<Option<PolicyRule>, Error> {
        let document = costs.document(rank);
        if let (Some(limit), Some(origin)) = (rules.max_source_tokens, document.origin) {
            let used = self.tokens_of(Some(rank), |other| other.origin == Some(origin), costs).sum();
            if costs.weigh_beside((rank, form), neighbours, limit.saturating_sub(used))? == Weight::Over {
                return Ok(Some(PolicyRule::MaxSourceTokens { used, limit }));
            }
        }
        let Some(list) = document.best_list() else { return Ok(None) };
        let Some((name, options)) = costs.list_options(list, rules) else { return Ok(None) };
        let Some(limit) = options.max_tokens else { return Ok(None) };
        let used = self.tokens_of(Some(rank), |other| other.best_list() == Some(list), costs).sum();
        let is_over =
            costs.weigh_beside((rank, form), neighbours, limit.saturating_sub(used))? == Weight::Over;
        Ok(is_over.then_some(PolicyRule::MaxListTokens { list: name, used, limit }))
    }

    /// Returns the fullest form of a document that no limit of tokens excludes, with the chunks that it would
    /// be joined with. Returns `None` if there is none.
    pub(crate) fn fullest_within_limits(
        &self,
        rank: Rank,
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) -> Result<Option<(Form, Neighbours)>, Error> {
        for form in costs.document(rank).forms.iter().copied() {
            let neighbours = self.neighbours((rank, form), rules, costs);
            if self.limit_of_tokens((rank, form), neighbours, rules, costs)?.is_none() {
                return Ok(Some((form, neighbours)));
            }
        }
        Ok(None)
    }

    /// Returns the taken chunks that a document would be joined with: of several, the one with the longest
    /// overlap, then the first by rank. A chunk has one neighbour on each side.
    pub(crate) fn neighbours(
        &self,
        (rank, form): (Rank, Form),
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) -> Neighbours {
        // A shorter form is no part of its source.
        if !rules.join_chunks || !form.is_whole() || self.paid.is_empty() {
            return Neighbours::default();
        }
        if costs.is_sticky(rank) {
            return self.sent_neighbours(rank, costs);
        }
        // Both sides are looked up at once, because a chunk may close the gap between two others.
        let [before, after] = costs.neighbours(rank, &self.paid);
        // A text that was sent is never joined to again (S5, S10).
        let is_whole = |other: Rank| self.form(other, costs.document(other)).is_whole();
        let new = |(other, _): &(Rank, u32)| !costs.is_sticky(*other);
        let best = |near: Vec<(Rank, u32)>, is_free: &dyn Fn(Rank) -> bool| {
            let is_free = |near: &(Rank, u32)| new(near) && is_whole(near.0) && is_free(near.0);
            let free = near.into_iter().filter(is_free);
            free.min_by_key(|(other, overlap)| (std::cmp::Reverse(*overlap), *other))
        };
        let before = best(before, &|other| !self.followed.contains_key(&other));
        let after = best(after, &|other| !self.follows.contains_key(&other));
        // Both may be parts of one text already. Joined with both, it would be a circle.
        let is_circle = before.zip(after).is_some_and(|(before, after)| {
            self.joined_with(before.0).iter().any(|(member, _)| *member == after.0)
        });
        Neighbours { before, after: after.filter(|_| !is_circle) }
    }

    /// Returns the taken chunks that a document of the last prompt was joined with.
    fn sent_neighbours(&self, rank: Rank, costs: &Costs<'_>) -> Neighbours {
        let is_whole = |other: Rank| self.form(other, costs.document(other)).is_whole();
        let is_taken = |other: Rank| self.paid.contains_key(&other) && is_whole(other);
        let taken = |(other, overlap): (Rank, u32)| is_taken(other).then_some((other, overlap));
        Neighbours {
            before: costs.was_joined_to(rank).and_then(taken),
            after: costs.was_joined_by(rank).and_then(taken),
        }
    }

    /// Returns the reason to exclude a document because a taken one contains it (rule S9).
    pub(crate) fn near_duplicate(
        &self,
        rank: Rank,
        rules: &RagOptions,
        costs: &Costs<'_>,
    ) -> Option<ExcludedReason> {
        if rules.near_duplicates == 0 || self.paid.is_empty() || costs.is_sticky(rank) {
            return None;
        }
        let (of, share) = costs.near_duplicate(rank, rules.near_duplicates, &self.paid, self.texts)?;
        Some(ExcludedReason::NearDuplicate { of, share })
    }
}

impl Costs<'_> {
    /// Counts a form of a document beside its neighbours, up to `limit` tokens: without the text that a
    /// neighbour contains, and without delimiters of its own.
    pub(crate) fn weigh_beside(
        &self,
        (rank, form): (Rank, Form),
        neighbours: Neighbours,
        limit: u64,
    ) -> Result<Weight, Error> {
        if neighbours == Neighbours::default() {
            return self.weigh_form(rank, form, limit);
        }
        let tokens = self.count_rest(rank, neighbours)?;
        Ok(if tokens <= limit { Weight::Exactly(tokens) } else { Weight::Over })
    }
}
