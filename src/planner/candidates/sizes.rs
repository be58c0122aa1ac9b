//! What the candidates of a list cost, by their slots.

use super::{CandidateId, Costs, Slot, size_index::SizeIndex};
use crate::{error::Error, provider::weight::Weight};
use std::ops::Range;

/// A list of candidates that are each in or out for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// The documents that compete, by rank.
    Documents,
    /// The pins in the order of rule S2, where all of them are notes.
    Notes,
}

/// The costs of a list. For one budget each is counted when it is met, and no further than what it is offered. For many
/// budgets all are counted once and laid out, so that the next one that fits is found without looking at each.
pub(crate) enum Sizes<'s, 'p> {
    OnDemand(&'s Costs<'p>, List),
    LaidOut(&'s SizeIndex),
}

impl Sizes<'_, '_> {
    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::OnDemand(costs, list) => costs.slots(*list).end.number(),
            Self::LaidOut(sizes) => sizes.len(),
        }
    }

    /// How far from a slot on, and no further than to `end`, all fit into so many tokens one after the other, and what they
    /// come to.
    pub(crate) fn run(&self, from: u32, end: u32, left: u64) -> Result<(u32, u64), Error> {
        match self {
            Self::LaidOut(sizes) => Ok(sizes.run(from, end, left)),
            Self::OnDemand(costs, list) => {
                let mut tokens = 0;
                for slot in from..end {
                    match costs.weigh(costs.id_at(*list, Slot::new(slot)), left - tokens)? {
                        Weight::Exactly(n) => tokens += n,
                        Weight::Over => return Ok((slot, tokens)),
                    }
                }
                Ok((end, tokens))
            }
        }
    }

    /// The first slot from `from` on whose candidate fits into so many tokens, and by how much the smallest of those before
    /// it is larger, where costs are laid out.
    pub(crate) fn next(&self, from: u32, left: u64) -> Result<(Option<u32>, Option<u64>), Error> {
        match self {
            Self::LaidOut(sizes) => {
                let (next, least) = sizes.next(from, left);
                Ok((next, over(least, left)))
            }
            Self::OnDemand(costs, list) => {
                for slot in from..self.len() {
                    if costs.weigh(costs.id_at(*list, Slot::new(slot)), left)? != Weight::Over {
                        return Ok((Some(slot), None));
                    }
                }
                Ok((None, None))
            }
        }
    }

    /// By how much the candidate at a slot is larger than so many tokens, where costs are laid out.
    pub(crate) fn over(&self, slot: u32, left: u64) -> Option<u64> {
        match self {
            Self::LaidOut(sizes) => over(sizes.size(slot), left),
            Self::OnDemand(..) => None,
        }
    }
}

/// What is larger than any offer stays out at every budget.
fn over(size: u64, left: u64) -> Option<u64> {
    (size < u64::MAX).then(|| size.saturating_sub(left))
}

impl<'p> Costs<'p> {
    /// The costs of a list.
    pub(crate) fn sizes(&self, list: List) -> Result<Sizes<'_, 'p>, Error> {
        let Some(most) = self.most() else { return Ok(Sizes::OnDemand(self, list)) };
        let known = match list {
            List::Documents => &self.documents,
            List::Notes => &self.notes,
        };
        if let Some(found) = known.get() {
            return Ok(Sizes::LaidOut(found));
        }
        let size = |slot| {
            Ok(match self.weigh(self.id_at(list, slot), most)? {
                Weight::Exactly(n) => n,
                Weight::Over => u64::MAX,
            })
        };
        let sizes: Vec<u64> = Slot::each(self.slots(list)).map(size).collect::<Result<_, Error>>()?;
        Ok(Sizes::LaidOut(known.get_or_init(|| SizeIndex::new(&sizes))))
    }

    fn slots(&self, list: List) -> Range<Slot> {
        let index = self.candidates().index();
        match list {
            List::Documents => index.document_slots(),
            List::Notes => Slot::new(0)..Slot::new(index.pins.len() as u32),
        }
    }

    /// The candidate at a slot of a list.
    pub(crate) fn id_at(&self, list: List, slot: Slot) -> CandidateId {
        let index = self.candidates().index();
        match list {
            List::Documents => CandidateId::Document(index.rank_at(slot)),
            List::Notes => index.pins[slot.to_usize()].id,
        }
    }
}
