//! Values by candidate, those of neighbours side by side.

use super::{CandidateId, CandidateIndex};
use crate::conversation::TurnIndex;
use foldhash::fast::FixedState;
use indexmap::IndexMap;

/// How far from the last one of a run a number may be, and still get a place in it.
const GAP: usize = 64;

/// Values by candidate. Planning looks each candidate up several times, and meets documents by rank, turns and exchanges one
/// after the other, the newest first: each of them has a place in a list, and only the others are hashed.
#[derive(Debug)]
pub(crate) struct CandidateMap<V> {
    turns: Run<V>,
    exchanges: Run<V>,
    /// By rank.
    documents: Vec<Option<V>>,
    others: IndexMap<CandidateId, V, FixedState>,
    /// Whether a turn or an exchange is among the others.
    has_distant: bool,
    len: usize,
}

/// Values by number, down from the largest one: the first is that of `end - 1`.
#[derive(Debug)]
struct Run<V> {
    end: u32,
    values: Vec<Option<V>>,
}

impl<V: Copy> CandidateMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: CandidateId) -> Option<V> {
        let found = match id {
            CandidateId::UserMessage(turn) => self.turns.get(turn.number()),
            CandidateId::Exchange(at) => self.exchanges.get(at.number()),
            CandidateId::Document(rank) => return *self.documents.get(rank.to_usize())?,
            _ => return self.others.get(&id).copied(),
        };
        found.or_else(|| if self.has_distant { self.others.get(&id).copied() } else { None })
    }

    /// The value that was there before.
    pub(crate) fn insert(&mut self, id: CandidateId, value: V) -> Option<V> {
        let is_distant = self.has_distant && self.others.contains_key(&id);
        let place = match id {
            CandidateId::UserMessage(turn) if !is_distant => self.turns.place_for(turn.number()),
            CandidateId::Exchange(at) if !is_distant => self.exchanges.place_for(at.number()),
            CandidateId::Document(rank) => Some(place_in(&mut self.documents, rank.to_usize())),
            _ => None,
        };
        let before = match place {
            Some(place) => place.replace(value),
            None => {
                self.has_distant |= matches!(id, CandidateId::UserMessage(_) | CandidateId::Exchange(_));
                self.others.insert(id, value)
            }
        };
        self.len += usize::from(before.is_none());
        before
    }
}

impl<V: Copy> Run<V> {
    fn get(&self, number: u32) -> Option<V> {
        let place = self.end.checked_sub(1)?.checked_sub(number)?;
        *self.values.get(place as usize)?
    }

    /// Where the value of a number goes; none where that is too far away.
    fn place_for(&mut self, number: u32) -> Option<&mut Option<V>> {
        let place = self.end.checked_sub(1)?.checked_sub(number)? as usize;
        (place <= self.values.len() + GAP).then(|| place_in(&mut self.values, place))
    }
}

fn place_in<V: Copy>(values: &mut Vec<Option<V>>, place: usize) -> &mut Option<V> {
    if place >= values.len() {
        values.resize(place + 1, None);
    }
    &mut values[place]
}

/// For a conversation without a turn; any other one has all of its turns hashed.
impl<V> Default for CandidateMap<V> {
    fn default() -> Self {
        Self::ending(0, 0)
    }
}

impl<V> CandidateMap<V> {
    /// For the candidates of a request.
    pub(crate) fn of(index: &CandidateIndex<'_>) -> Self {
        let turns = index.turns();
        let last = TurnIndex::each(turns.clone()).next_back();
        let exchanges = last.map_or(0, |last| index.exchanges(last).end.number());
        Self::ending(turns.end.number(), exchanges)
    }

    fn ending(turns: u32, exchanges: u32) -> Self {
        let run = |end| Run { end, values: Vec::new() };
        let (documents, others) = (Vec::new(), IndexMap::default());
        Self { turns: run(turns), exchanges: run(exchanges), documents, others, has_distant: false, len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{ExchangeIndex, TurnIndex};
    use crate::planner::candidates::Rank;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_holds_what_a_tree_holds(
            pairs in prop::collection::vec((0u32..4, prop_oneof![0u32..40, 89_900u32..90_010, 0u32..100_000], 0u8..9), 0..80),
        ) {
            let (mut map, mut tree) = (CandidateMap::ending(30, 90_000), BTreeMap::new());
            let id = |kind: u32, number: u32| match kind {
                0 => CandidateId::UserMessage(TurnIndex::new(number)),
                1 => CandidateId::Exchange(ExchangeIndex::new(number)),
                2 => CandidateId::Document(Rank::new(number)),
                _ => CandidateId::Note(number),
            };
            for (kind, number, value) in &pairs {
                let id = id(*kind, *number);
                prop_assert_eq!(map.insert(id, *value), tree.insert(id, *value));
                prop_assert_eq!(map.len(), tree.len());
            }
            for (kind, number, _) in pairs {
                for number in number.saturating_sub(1)..number + 2 {
                    let id = id(kind, number);
                    prop_assert_eq!(map.get(id), tree.get(&id).copied());
                }
            }
        }
    }
}
