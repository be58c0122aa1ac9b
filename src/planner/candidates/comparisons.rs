//! Comparisons of the texts of documents with each other and with the conversation.
//!
//! - Input: gathered candidates, and a predicate for those that are included.
//! - Output: the text that contains a document, and the documents that a document continues.
//! - Rules: S9 (near-duplicates and repeats), S14 (overlapping chunks).
//!
//! No answer depends on the budget: whoever asks names the included candidates. A text is split into words
//! when it is included first, and then kept, so selections for many budgets share this work.

use super::{
    CandidateId, Candidates, Rank, Slot, chunks,
    similar::{FEWEST_RUNS, SimilarTexts},
};
use crate::{
    config::RagOptions, item::ItemId, message::Part, planner::rendering::ToolResultRendering,
    text::words::Words,
};
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    hash::BuildHasher,
    rc::Rc,
};

/// The chunks next to a chunk, with the overlaps in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The chunk that it continues.
    pub(crate) before: Option<(Rank, u32)>,
    /// The chunk that continues it.
    pub(crate) after: Option<(Rank, u32)>,
}

/// The comparisons of one request, with tool results in one rendering.
#[derive(Default)]
pub(crate) struct Comparisons {
    words: RefCell<BTreeMap<Rank, Rc<Words>>>,
    documents: RefCell<SimilarTexts<Rank>>,
    /// The texts of the conversation, by candidate and number among its texts.
    sources: RefCell<SimilarTexts<(CandidateId, u32)>>,
    /// The candidates of the conversation whose texts were added.
    added: RefCell<BTreeSet<CandidateId>>,
    chunks: RefCell<KnownChunks>,
    has_all_sources: Cell<bool>,
    finds_any: OnceCell<bool>,
}

/// The chunks that were included in any selection so far.
#[derive(Default)]
struct KnownChunks {
    ranks: BTreeSet<Rank>,
    by_origin: BTreeMap<u32, Vec<Rank>>,
    /// By origin, the number of searches for neighbours.
    searches: BTreeMap<u32, u32>,
    /// By origin, the number of its documents in `pieces`. Most origins have one document, which is never
    /// added.
    added: BTreeMap<u32, usize>,
    /// Chunks by the hash of each piece of [`chunks::FEWEST_BYTES`] bytes, for a quick search of overlaps.
    pieces: IndexMap<u64, SmallVec<[Rank; 1]>, RandomState>,
    hasher: RandomState,
    overlaps: BTreeMap<(Rank, Rank), Option<u32>>,
}

/// The number of searches in the documents of one origin from which an index of their pieces is faster.
const MANY_SEARCHES: u32 = 256;

impl Comparisons {
    /// Returns the included document that contains a document, with the share of its runs in per cent: the
    /// one with the largest share, then the first by rank. `least` is the least share. The included documents
    /// are among the first `texts` texts.
    pub(crate) fn near_duplicate(
        &self,
        candidates: &Candidates<'_>,
        rank: Rank,
        least: u8,
        included: &BTreeMap<Rank, u64>,
        texts: usize,
    ) -> Option<(ItemId, u8)> {
        let words = self.words(candidates, rank);
        if is_short_message(candidates, rank, &words) {
            return None;
        }
        let mut known = self.documents.borrow_mut();
        let found = known.containing(rank, &words, least, texts).iter();
        let found = found.filter(|(other, _)| *other != rank && included.contains_key(other));
        let (other, share) = found.min_by_key(|(other, share)| (std::cmp::Reverse(*share), *other))?;
        Some((candidates.document(*other).id.clone(), *share))
    }

    /// Returns the included text of the conversation that contains a document, with the share of its runs in
    /// per cent: the one with the largest share, then the first in the prompt. `least` is the least share.
    pub(crate) fn repeated(
        &self,
        candidates: &Candidates<'_>,
        rendering: &ToolResultRendering,
        rank: Rank,
        least: u8,
        included: impl Fn(CandidateId) -> bool,
    ) -> Option<(ItemId, u8)> {
        let mut known = self.sources.borrow_mut();
        let words = self.words(candidates, rank);
        if is_short_message(candidates, rank, &words) {
            return None;
        }
        let texts = known.len();
        let found = known.containing(rank, &words, least, texts).iter();
        let found = found.filter(|((id, _), _)| included(*id));
        let ((id, number), share) = found.min_by_key(|((id, number), share)| {
            (std::cmp::Reverse(*share), candidates.order_of(*id), *id, *number)
        })?;
        let (id, _) = candidates.source_texts(*id, rendering).into_iter().nth(*number as usize)?;
        Some((id, *share))
    }

    /// Adds the texts of candidates of the conversation, which documents may repeat.
    pub(crate) fn add_sources(
        &self,
        candidates: &Candidates<'_>,
        rendering: &ToolResultRendering,
        ids: impl Iterator<Item = CandidateId>,
    ) {
        let (mut known, mut added) = (self.sources.borrow_mut(), self.added.borrow_mut());
        for id in ids.filter(|id| added.insert(*id)) {
            for ((_, text), number) in candidates.source_texts(id, rendering).iter().zip(0..) {
                known.insert((id, number), || Rc::new(Words::new(text)));
            }
        }
    }

    /// Adds the texts of all candidates of the conversation, once.
    pub(crate) fn add_all_sources(&self, candidates: &Candidates<'_>, rendering: &ToolResultRendering) {
        if !self.has_all_sources.replace(true) {
            let notes = candidates.notes().iter().map(|(at, _)| CandidateId::Note(at));
            self.add_sources(candidates, rendering, notes.chain(candidates.conversation()));
        }
    }

    /// Adds a document that was taken. Returns the number of texts up to its own.
    pub(crate) fn take(&self, candidates: &Candidates<'_>, rank: Rank, rules: &RagOptions) -> usize {
        if rules.join_chunks {
            self.chunks.borrow_mut().insert(candidates, rank);
        }
        if rules.near_duplicates == 0 {
            return 0;
        }
        self.documents.borrow_mut().insert(rank, || self.words(candidates, rank))
    }

    /// Adds all competing documents. Returns them by rank.
    fn take_all(&self, candidates: &Candidates<'_>, rules: &RagOptions) -> BTreeMap<Rank, u64> {
        let index = candidates.index();
        let all: BTreeMap<Rank, u64> =
            Slot::each(index.document_slots()).map(|slot| (index.rank_at(slot), 0)).collect();
        for rank in all.keys() {
            self.take(candidates, *rank, rules);
        }
        all
    }

    /// Checks if any competing document is a near-duplicate, repeats a text, or continues another document.
    /// The answer is computed once.
    pub(crate) fn finds_any(
        &self,
        candidates: &Candidates<'_>,
        rendering: &ToolResultRendering,
        rules: &RagOptions,
    ) -> bool {
        if rules.near_duplicates == 0 && rules.repeats == 0 && !rules.join_chunks {
            return false;
        }
        *self.finds_any.get_or_init(|| {
            let all = self.take_all(candidates, rules);
            if rules.repeats > 0 && !all.is_empty() {
                self.add_all_sources(candidates, rendering);
            }
            all.keys().any(|rank| {
                rules.near_duplicates > 0
                    && self
                        .near_duplicate(candidates, *rank, rules.near_duplicates, &all, all.len())
                        .is_some()
                    || rules.repeats > 0
                        && self.repeated(candidates, rendering, *rank, rules.repeats, |_| true).is_some()
                    || rules.join_chunks && self.has_neighbours(candidates, *rank, &all)
            })
        })
    }

    /// Checks if any competing document continues another one.
    pub(crate) fn finds_joins(&self, candidates: &Candidates<'_>, rules: &RagOptions) -> bool {
        if !rules.join_chunks {
            return false;
        }
        let all = self.take_all(candidates, &RagOptions { near_duplicates: 0, ..rules.clone() });
        all.keys().any(|rank| self.has_neighbours(candidates, *rank, &all))
    }

    fn has_neighbours(
        &self,
        candidates: &Candidates<'_>,
        rank: Rank,
        included: &BTreeMap<Rank, u64>,
    ) -> bool {
        self.neighbours(candidates, rank, included).iter().any(|neighbours| !neighbours.is_empty())
    }

    /// Returns the words of a document.
    fn words(&self, candidates: &Candidates<'_>, rank: Rank) -> Rc<Words> {
        let mut words = self.words.borrow_mut();
        Rc::clone(words.entry(rank).or_insert_with(|| Rc::new(Words::new(&candidates.document(rank).text))))
    }

    /// Returns the documents that a document continues, and those that continue it, each with the overlap in
    /// bytes, among the included ones.
    pub(crate) fn neighbours(
        &self,
        candidates: &Candidates<'_>,
        rank: Rank,
        included: &BTreeMap<Rank, u64>,
    ) -> [Vec<(Rank, u32)>; 2] {
        let Some(origin) = candidates.index().document(rank).origin else { return Default::default() };
        let mut known = self.chunks.borrow_mut();
        let near = known.near(candidates, rank, origin);
        let near = near.into_iter().filter(|other| *other != rank && included.contains_key(other));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for other in near {
            before.extend(known.overlap(candidates, other, rank).map(|length| (other, length)));
            after.extend(known.overlap(candidates, rank, other).map(|length| (other, length)));
        }
        [before, after]
    }

    /// Returns the overlap of two documents in bytes, if the second continues the first.
    pub(crate) fn overlap(&self, candidates: &Candidates<'_>, before: Rank, after: Rank) -> Option<u32> {
        self.chunks.borrow_mut().overlap(candidates, before, after)
    }
}

/// Checks if a document is a recalled message that is compared only as a whole. Messages such as "Yes." are
/// alike, and a passage needs each of them where it was said (rule S15).
fn is_short_message(candidates: &Candidates<'_>, rank: Rank, words: &Words) -> bool {
    words.runs() < FEWEST_RUNS && candidates.document(rank).messages.is_some()
}

impl KnownChunks {
    fn insert(&mut self, candidates: &Candidates<'_>, rank: Rank) {
        let Some(origin) = candidates.index().document(rank).origin else { return };
        if !self.ranks.insert(rank) {
            return;
        }
        self.by_origin.entry(origin).or_default().push(rank);
    }

    /// Adds the pieces of the known documents of an origin.
    fn add_pieces(&mut self, candidates: &Candidates<'_>, origin: u32) {
        let Some(of_origin) = self.by_origin.get(&origin) else { return };
        let added = self.added.entry(origin).or_default();
        for rank in &of_origin[*added..] {
            for piece in candidates.document(*rank).text.as_bytes().windows(chunks::FEWEST_BYTES) {
                let ranks = self.pieces.entry(self.hasher.hash_one(piece)).or_default();
                if ranks.last() != Some(rank) {
                    ranks.push(*rank);
                }
            }
        }
        *added = of_origin.len();
    }

    /// Returns known documents of an origin that may overlap with a document.
    fn near(&mut self, candidates: &Candidates<'_>, rank: Rank, origin: u32) -> BTreeSet<Rank> {
        let of_origin = match self.by_origin.get(&origin) {
            Some(of_origin) if *of_origin != [rank] => of_origin,
            _ => return BTreeSet::new(),
        };
        let item = candidates.document(rank);
        if item.span.is_some() || item.position.is_some() {
            let near = |other: &Rank| chunks::may_be_neighbours(&item, &candidates.document(*other));
            return of_origin.iter().copied().filter(near).collect();
        }
        let text = item.text.as_bytes();
        // An overlap holds the first bytes of the second text, and the last bytes of the first.
        let ends = text.first_chunk::<{ chunks::FEWEST_BYTES }>().into_iter().chain(text.last_chunk());
        let searches = self.searches.entry(origin).or_default();
        *searches = searches.saturating_add(1);
        if *searches < MANY_SEARCHES {
            // Most origins have few documents, and an index of their pieces would cost more than it saves.
            let has = |other: &Rank| {
                let other = candidates.document(*other).item.text.as_bytes();
                ends.clone().any(|piece| memchr::memmem::find(other, piece).is_some())
            };
            return of_origin.iter().copied().filter(has).collect();
        }
        self.add_pieces(candidates, origin);
        let near =
            ends.filter_map(|piece| self.pieces.get(&self.hasher.hash_one(piece.as_slice()))).flatten();
        near.copied().filter(|other| candidates.index().document(*other).origin == Some(origin)).collect()
    }

    fn overlap(&mut self, candidates: &Candidates<'_>, before: Rank, after: Rank) -> Option<u32> {
        let known = self.overlaps.entry((before, after)).or_insert_with(|| {
            let length = chunks::overlap(&candidates.document(before), &candidates.document(after))?;
            u32::try_from(length).ok()
        });
        *known
    }
}

impl Candidates<'_> {
    /// Returns the texts of a candidate that a document may repeat, as they are sent, with their row ids: a
    /// note, a summary, or messages with the documents that are retained before them.
    fn source_texts(&self, id: CandidateId, rendering: &ToolResultRendering) -> Vec<(ItemId, Cow<'_, str>)> {
        match id {
            CandidateId::Note(at) => {
                let item = &self.notes().get(at).item;
                vec![(item.id.clone(), Cow::Borrowed(&*item.text))]
            }
            CandidateId::Summary(at) => {
                let (id, _, message) = self.summary(at);
                vec![(id.clone(), Cow::Borrowed(message.text()))]
            }
            CandidateId::UserMessage(_) | CandidateId::Exchange(_) => {
                let mut texts = Vec::new();
                if let Some(place) = self.place_of(id) {
                    let documents = self.retained().documents_before(place, rendering.released_before);
                    let rows = self.retained().document_rows(documents, place);
                    texts.extend(rows.zip(documents).map(|(row, sent)| (row, Cow::Borrowed(&*sent.text))));
                }
                for position in self.members(id) {
                    let message = self.rendered(position, rendering);
                    let mut text = message.text().to_owned();
                    for part in message.parts() {
                        if let Part::Text(part) = part {
                            text.push_str(if text.is_empty() { "" } else { "\n" });
                            text.push_str(part);
                        }
                    }
                    texts.push((self.log().message_id(position), Cow::Owned(text)));
                }
                texts
            }
            CandidateId::System(_)
            | CandidateId::Focus
            | CandidateId::State(_)
            | CandidateId::Document(_) => Vec::new(),
        }
    }
}
