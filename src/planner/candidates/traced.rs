//! Scales that keep what decisions rest on: for plans that are explained, where the same candidates are weighed against
//! one budget after the other.

use super::{Basis, List, Scale, Trace, Unit, shelf::Shelf};
use crate::{error::Error, tokens::Weight};
use std::{
    cell::{OnceCell, RefCell},
    ops::Range,
};

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// The largest total, in tokens: what is larger never fits anything.
    pub(crate) most: u64,
    /// The one unit of the conversation, where it is only one: the window's decisions then reach to where that unit may
    /// come in, whatever comes in before it.
    pub(crate) goal: Option<Unit>,
}

/// What decisions rest on, and the sizes that they are made by again and again.
pub(super) struct Traced {
    scope: Scope,
    trace: RefCell<Trace>,
    documents: OnceCell<Shelf>,
    notes: OnceCell<Shelf>,
}

impl Scale<'_> {
    /// The same scale, keeping how far decisions reach in this scope, where there is one.
    pub(crate) fn traced(mut self, scope: Option<Scope>) -> Self {
        self.traced = scope.map(|scope| Traced {
            scope,
            trace: RefCell::default(),
            documents: OnceCell::new(),
            notes: OnceCell::new(),
        });
        self
    }

    /// Whether what decisions rest on is kept, and reasons need not be.
    pub(crate) fn is_traced(&self) -> bool {
        self.traced.is_some()
    }

    /// Notes what a decision rests on, where that is kept.
    pub(crate) fn trace(&self, note: impl FnOnce(&mut Trace)) {
        if let Some(traced) = &self.traced {
            note(&mut traced.trace.borrow_mut());
        }
    }

    /// What the decisions since the last call rest on.
    pub(crate) fn take_trace(&self) -> Trace {
        self.traced.as_ref().map(|traced| traced.trace.take()).unwrap_or_default()
    }

    /// What a unit costs, if that is no more than what is left of a room. The decision is noted.
    pub(crate) fn offer(&self, unit: Unit, left: u64, basis: Basis) -> Result<Weight, Error> {
        let Some(Traced { scope, trace, .. }) = &self.traced else { return self.weigh(unit, left) };
        let weight = self.weigh(unit, left.max(scope.most))?;
        let mut trace = trace.borrow_mut();
        Ok(match weight {
            Weight::Exactly(n) if n <= left => {
                trace.fits(basis, left - n);
                weight
            }
            Weight::Exactly(n) => {
                trace.over(basis, n - left);
                Weight::Over
            }
            Weight::Over => weight,
        })
    }

    /// The sizes of a list, laid out, where what decisions rest on is kept.
    pub(super) fn laid_out(&self, list: List) -> Result<Option<&Shelf>, Error> {
        let Some(traced) = &self.traced else { return Ok(None) };
        let known = match list {
            List::Documents => &traced.documents,
            List::Notes => &traced.notes,
        };
        if let Some(found) = known.get() {
            return Ok(Some(found));
        }
        let size = |place| {
            Ok(match self.weigh(self.unit_at(list, place), traced.scope.most)? {
                Weight::Exactly(n) => n,
                Weight::Over => u64::MAX,
            })
        };
        let sizes: Vec<u64> = (0..self.len(list)).map(size).collect::<Result<_, Error>>()?;
        Ok(Some(known.get_or_init(|| Shelf::new(&sizes))))
    }

    /// The one unit that is asked about, and its turn.
    pub(crate) fn goal(&self) -> Option<(u32, Unit)> {
        let traced = self.traced.as_ref()?;
        traced.scope.goal.map(|unit| (self.turn_of(unit), unit))
    }

    /// What a unit costs, no further than to the largest budget that is asked about; none where it is more.
    pub(crate) fn most_of(&self, unit: Unit) -> Result<Option<u64>, Error> {
        let most = self.traced.as_ref().map_or(u64::MAX, |traced| traced.scope.most);
        Ok(match self.weigh(unit, most)? {
            Weight::Exactly(n) => Some(n),
            Weight::Over => None,
        })
    }

    /// What everything of these turns costs, as far as it lives and is not in; none where some of it fits no budget at all.
    pub(crate) fn missing(
        &self,
        turns: Range<u32>,
        is_in: impl Fn(Unit) -> bool,
    ) -> Result<Option<u64>, Error> {
        let units = turns
            .flat_map(|turn| self.head(turn).into_iter().chain(self.exchanges(turn).map(Unit::Exchange)));
        self.missing_of(units, is_in)
    }

    /// The same of these units.
    pub(crate) fn missing_of(
        &self,
        units: impl Iterator<Item = Unit>,
        is_in: impl Fn(Unit) -> bool,
    ) -> Result<Option<u64>, Error> {
        let mut sum = 0u64;
        for unit in units {
            if is_in(unit) || self.dead(unit)?.is_some() {
                continue;
            }
            let Some(n) = self.most_of(unit)? else { return Ok(None) };
            sum = sum.saturating_add(n);
        }
        Ok(Some(sum))
    }
}
