//! Values by candidate, those of neighbours side by side.

use super::{CandidateId, CandidateIndex};
use crate::conversation::TurnIndex;
use foldhash::fast::FixedState;
use indexmap::IndexMap;

/// The largest gap behind the last value of a list that is filled with nothing.
const GAP: usize = 64;

/// Values by candidate. Planning looks each candidate up several times, and meets documents by rank, turns
/// and exchanges one after the other, the newest first: each of them has a place in a list, and only the
/// others are hashed.
#[derive(Debug)]
pub(crate) struct CandidateMap<V> {
    /// By number, down from the largest turn and exchange.
    turns: Vec<Option<V>>,
    exchanges: Vec<Option<V>>,
    /// The numbers behind the largest ones.
    ends: (u32, u32),
    /// By rank.
    documents: Vec<Option<V>>,
    others: IndexMap<CandidateId, V, FixedState>,
    /// True if a turn or an exchange is among the others.
    has_distant: bool,
    len: usize,
}

impl<V: Copy> CandidateMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: CandidateId) -> Option<V> {
        let found = match id {
            CandidateId::UserMessage(turn) => {
                place(self.ends.0, turn.number()).and_then(|place| *self.turns.get(place)?)
            }
            CandidateId::Exchange(at) => {
                place(self.ends.1, at.number()).and_then(|place| *self.exchanges.get(place)?)
            }
            CandidateId::Document(rank) => return *self.documents.get(rank.to_usize())?,
            _ => return self.others.get(&id).copied(),
        };
        found.or_else(|| if self.has_distant { self.others.get(&id).copied() } else { None })
    }

    /// The value that was there before.
    pub(crate) fn insert(&mut self, id: CandidateId, value: V) -> Option<V> {
        let is_distant = self.has_distant && self.others.contains_key(&id);
        let place = match id {
            CandidateId::UserMessage(turn) if !is_distant => {
                near_place(self.ends.0, &mut self.turns, turn.number())
            }
            CandidateId::Exchange(at) if !is_distant => {
                near_place(self.ends.1, &mut self.exchanges, at.number())
            }
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

/// Returns the place of a number in a list of values by number, down from the one before `end`.
fn place(end: u32, number: u32) -> Option<usize> {
    Some(end.checked_sub(1)?.checked_sub(number)? as usize)
}

/// Returns the place for the value of a number. Returns `None` if that is too far behind the last one of the
/// list.
fn near_place<V: Copy>(end: u32, values: &mut Vec<Option<V>>, number: u32) -> Option<&mut Option<V>> {
    let place = place(end, number)?;
    (place <= values.len() + GAP).then(|| place_in(values, place))
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
    pub(crate) fn for_candidates(index: &CandidateIndex<'_>) -> Self {
        let turns = index.turns();
        let last = TurnIndex::each(turns.clone()).next_back();
        let exchanges = last.map_or(0, |last| index.exchanges(last).end.number());
        Self::ending(turns.end.number(), exchanges)
    }

    fn ending(turns: u32, exchanges: u32) -> Self {
        Self {
            turns: Vec::new(),
            exchanges: Vec::new(),
            ends: (turns, exchanges),
            documents: Vec::new(),
            others: IndexMap::default(),
            has_distant: false,
            len: 0,
        }
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
        fn map_equals_a_btree_map(
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
