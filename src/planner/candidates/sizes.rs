//! What the candidates of a list cost, by their places in it.

use super::{Scale, Unit, shelf::Shelf};
use crate::{error::Error, tokens::Weight};

/// A list of candidates that are whole or out, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// The documents that compete, by rank.
    Documents,
    /// The pins in the order of rule S2, where all of them are notes.
    Notes,
}

/// Where the next one that fits stands: found by weighing one after the other, each no further than asked for, or among
/// sizes that are laid out, where the same list is filled for one budget after the other.
pub(crate) enum Sizes<'s, 'p> {
    Weighed(&'s Scale<'p>, List),
    LaidOut(&'s Shelf),
}

impl Sizes<'_, '_> {
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::Weighed(scale, list) => scale.len(*list),
            Self::LaidOut(sizes) => sizes.len(),
        }
    }

    /// How far from a place on, and no further than to `end`, all fit into a room one after the other, and what they come
    /// to.
    pub(crate) fn run(&self, from: u32, end: u32, room: u64) -> Result<(u32, u64), Error> {
        match self {
            Self::LaidOut(sizes) => Ok(sizes.run(from, end, room)),
            Self::Weighed(scale, list) => {
                let mut tokens = 0;
                for place in from..end {
                    match scale.weigh(scale.unit_at(*list, place), room - tokens)? {
                        Weight::Exactly(n) => tokens += n,
                        Weight::Over => return Ok((place, tokens)),
                    }
                }
                Ok((end, tokens))
            }
        }
    }

    /// The first place from `from` on whose size fits a room, and by how much the smallest of those before it is larger than
    /// the room, where sizes are laid out.
    pub(crate) fn next(&self, from: u32, room: u64) -> Result<(Option<u32>, Option<u64>), Error> {
        match self {
            Self::LaidOut(sizes) => {
                let (next, least) = sizes.next(from, room);
                Ok((next, over(least, room)))
            }
            Self::Weighed(scale, list) => {
                for place in from..self.len() {
                    if scale.weigh(scale.unit_at(*list, place), room)? != Weight::Over {
                        return Ok((Some(place), None));
                    }
                }
                Ok((None, None))
            }
        }
    }

    /// By how much the size at a place is larger than a room, where sizes are laid out.
    pub(crate) fn over(&self, place: u32, room: u64) -> Option<u64> {
        match self {
            Self::LaidOut(sizes) => over(sizes.size(place), room),
            Self::Weighed(..) => None,
        }
    }
}

/// What is larger than any room stays out at every budget.
fn over(size: u64, room: u64) -> Option<u64> {
    (size < u64::MAX).then(|| size.saturating_sub(room))
}

impl Scale<'_> {
    /// The sizes of a list: laid out where its decisions are traced.
    pub(crate) fn sizes(&self, list: List) -> Result<Sizes<'_, '_>, Error> {
        Ok(match self.laid_out(list)? {
            Some(sizes) => Sizes::LaidOut(sizes),
            None => Sizes::Weighed(self, list),
        })
    }

    pub(super) fn len(&self, list: List) -> u32 {
        match list {
            List::Documents => self.pool().places(),
            List::Notes => self.pool().pins.len() as u32,
        }
    }

    /// What stands at a place of a list.
    pub(crate) fn unit_at(&self, list: List, place: u32) -> Unit {
        match list {
            List::Documents => Unit::Document(self.pool().rank_at(place)),
            List::Notes => self.pool().pins[place as usize].unit,
        }
    }
}
