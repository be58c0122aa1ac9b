//! The order of the documents in the prompt.
//!
//! - Input: the included documents, and those that are sent as one text.
//! - Output: texts in prompt order, each with its chunks.
//! - Rules: O1, S5, S14.
//!
//! The order is layout only: nothing is included or excluded for it.

use crate::{
    config::DocumentOrder,
    planner::candidates::{Candidates, Rank, TakenDocuments},
};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the texts of the documents in prompt order: for each, its chunks in their order, with the overlap
/// with the one before in bytes. Documents of the last prompt come first, in the order
/// in which they were sent; only the others are ordered.
pub(super) fn in_prompt_order(
    candidates: &Candidates<'_>,
    taken: &TakenDocuments,
    order: DocumentOrder,
) -> Vec<Vec<(Rank, u32)>> {
    let index = candidates.index();
    let mut seen = BTreeSet::new();
    let (mut sent, mut new) = (Vec::new(), Vec::new());
    // By rank, so that a joined text comes at the place of its best chunk.
    for rank in taken.paid().keys() {
        if seen.contains(rank) {
            continue;
        }
        let chunks = taken.joined_with(*rank);
        seen.extend(chunks.iter().map(|(rank, _)| *rank));
        match index.document(chunks[0].0).sent_at.filter(|_| index.stays(chunks[0].0)) {
            Some(place) => sent.push((place, chunks)),
            None => new.push(chunks),
        }
    }
    sent.sort_by_key(|(place, _)| *place);
    let sent = sent.into_iter().map(|(_, chunks)| chunks);
    sent.chain(ordered(candidates, new, order)).collect()
}

/// Orders texts, which come by the best rank of their chunks.
fn ordered(
    candidates: &Candidates<'_>,
    texts: Vec<Vec<(Rank, u32)>>,
    order: DocumentOrder,
) -> Vec<Vec<(Rank, u32)>> {
    match order {
        DocumentOrder::Relevance => texts,
        DocumentOrder::RelevanceLast => texts.into_iter().rev().collect(),
        DocumentOrder::Edges => {
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for (number, text) in texts.into_iter().enumerate() {
                if number % 2 == 0 { front.push(text) } else { back.push(text) }
            }
            front.into_iter().chain(back.into_iter().rev()).collect()
        }
        DocumentOrder::Source => by_source(candidates, texts),
    }
}

/// Orders texts by their sources: sources by their best text, texts of one source by their places in it. A
/// document without an origin is a source of its own.
fn by_source(candidates: &Candidates<'_>, texts: Vec<Vec<(Rank, u32)>>) -> Vec<Vec<(Rank, u32)>> {
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    let mut placed = Vec::with_capacity(texts.len());
    for (number, text) in texts.into_iter().enumerate() {
        let first = text[0].0;
        let origin = candidates.index().document(first).origin;
        let group = origin.map_or(number, |origin| *groups.entry(origin).or_insert(number));
        let item = candidates.document(first);
        let place = item.span.as_ref().map(|span| span.start).or(item.position);
        placed.push((group, place, text));
    }
    // A stable sort: texts without a place keep the order of their ranks.
    placed.sort_by_key(|(group, place, _)| (*group, *place));
    placed.into_iter().map(|(_, _, text)| text).collect()
}
