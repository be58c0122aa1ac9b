//! A map from candidates to values, compact for neighbours.
//!
//! - Input: candidates, each with a value.
//! - Output: the value of a candidate.
//! - Rules: none.

use super::{CandidateId, CandidateIndex};
use crate::conversation::TurnIndex;
use foldhash::fast::FixedState;
use indexmap::IndexMap;

/// Maximum number of empty places that an insertion may add to a list.
const GAP: usize = 64;

/// A map from candidates to values.
///
/// Planning looks each candidate up several times. It visits documents by rank, and turns and exchanges from
/// the newest back. So these have places in lists, and only the other candidates are hashed.
#[derive(Debug)]
pub(crate) struct CandidateMap<V> {
    /// Values of turns, counted down from the last turn; those of exchanges in the same way.
    turns: Vec<Option<V>>,
    exchanges: Vec<Option<V>>,
    /// The number after the last turn, and after the last exchange.
    ends: (u32, u32),
    /// Values by rank.
    documents: Vec<Option<V>>,
    others: IndexMap<CandidateId, V, FixedState>,
    /// True if a turn or an exchange is among the hashed candidates.
    has_distant: bool,
    len: usize,
}

impl<V: Copy> CandidateMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the value of a candidate.
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

    /// Sets the value of a candidate. Returns the value before.
    pub(crate) fn insert(&mut self, id: CandidateId, value: V) -> Option<V> {
        // A value that is hashed already stays hashed. Otherwise the map would hold two.
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

/// Returns the place of a number in a list that counts down from `end - 1`.
fn place(end: u32, number: u32) -> Option<usize> {
    Some(end.checked_sub(1)?.checked_sub(number)? as usize)
}

/// Returns the place for the value of a number. Returns `None` if it is too far after the end of the list.
fn near_place<V: Copy>(end: u32, values: &mut Vec<Option<V>>, number: u32) -> Option<&mut Option<V>> {
    let place = place(end, number)?;
    // A distant number would fill the list with empty places.
    (place <= values.len() + GAP).then(|| place_in(values, place))
}

/// Returns a place of a list, and extends the list up to it.
fn place_in<V: Copy>(values: &mut Vec<Option<V>>, place: usize) -> &mut Option<V> {
    if place >= values.len() {
        values.resize(place + 1, None);
    }
    &mut values[place]
}

/// Creates a map for a conversation without turns; any turn that is inserted is hashed.
impl<V> Default for CandidateMap<V> {
    fn default() -> Self {
        Self::ending(0, 0)
    }
}

impl<V> CandidateMap<V> {
    /// Creates a map for the candidates of a request.
    pub(crate) fn for_candidates(index: &CandidateIndex<'_>) -> Self {
        let turns = index.turns();
        let last = TurnIndex::each(turns.clone()).next_back();
        let exchanges = last.map_or(0, |last| index.exchanges(last).end.number());
        Self::ending(turns.end.number(), exchanges)
    }

    /// Creates a map for turns and exchanges with numbers below these ends.
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
