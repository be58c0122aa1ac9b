//! Sizes on demand (rule N5). The fields are private: who holds a scale can weigh, and cannot read.

use super::{Pool, Results, Unit, traced::Traced};
use crate::{
    error::Error,
    message::Message,
    plan::reason::ExcludedReason,
    planner::{expiry::Fate, repair},
    provider::{conform::Standing, meter::Meter},
    tokens::Weight,
};
use indexmap::IndexMap;
use std::{borrow::Cow, cell::RefCell, ops::Range};

/// Weighs the candidates of one pool, each no further than asked for and never twice.
pub(crate) struct Scale<'a> {
    pool: &'a Pool<'a>,
    meter: &'a Meter,
    results: Results,
    known: RefCell<IndexMap<Unit, Known>>,
    /// How far decisions reach, only where that is asked for.
    pub(super) traced: Option<Traced>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    Exactly(u64),
    MoreThan(u64),
}

impl<'a> Scale<'a> {
    /// Results are weighed as they are sent (rule S7).
    pub(crate) fn new(pool: &'a Pool<'a>, meter: &'a Meter, results: Results) -> Self {
        Self { pool, meter, results, known: RefCell::default(), traced: None }
    }

    /// How tool results are sent.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    pub(super) fn meter(&self) -> &'a Meter {
        self.meter
    }

    pub(super) fn pool(&self) -> &'a Pool<'a> {
        self.pool
    }

    /// How many turns the conversation has; the last one is the live turn.
    pub(crate) fn turns(&self) -> u32 {
        self.pool.log.turns().count()
    }

    /// The turn that a message or exchange of the conversation belongs to.
    pub(crate) fn turn_of(&self, unit: Unit) -> u32 {
        match unit {
            Unit::Head(turn) => turn,
            Unit::Exchange(at) => self.pool.log.turns().turn_of(at),
            _ => 0,
        }
    }

    /// The user message of a turn.
    pub(crate) fn head(&self, turn: u32) -> Option<Unit> {
        self.pool.log.turns().head(turn).map(|_| Unit::Head(turn))
    }

    /// The exchanges of a turn, those that never can be sent among them.
    pub(crate) fn exchanges(&self, turn: u32) -> Range<u32> {
        self.pool.log.turns().exchanges(turn)
    }

    /// Whether a unit belongs to a turn as one of its exchanges.
    pub(crate) fn is_exchange_of(&self, unit: Unit, turn: u32) -> bool {
        matches!(unit, Unit::Exchange(at) if self.exchanges(turn).contains(&at))
    }

    /// Why a unit is out before it is weighed, if it is.
    pub(crate) fn dead(&self, unit: Unit) -> Result<Option<ExcludedReason>, Error> {
        Ok(match self.pool.fate(unit)? {
            Fate::Out(reason) => Some(reason),
            Fate::Lives | Fate::Asks(_) => None,
        })
    }

    /// What a unit costs, if that is no more than `limit`.
    pub(crate) fn weigh(&self, unit: Unit, limit: u64) -> Result<Weight, Error> {
        match self.known.borrow().get(&unit) {
            Some(Known::Exactly(n)) => {
                return Ok(if *n <= limit { Weight::Exactly(*n) } else { Weight::Over });
            }
            Some(Known::MoreThan(least)) if *least >= limit => return Ok(Weight::Over),
            _ => {}
        }
        let weight = self.count(unit, limit)?;
        let known = match weight {
            Weight::Exactly(n) => Known::Exactly(n),
            Weight::Over => Known::MoreThan(limit),
        };
        self.known.borrow_mut().insert(unit, known);
        Ok(weight)
    }

    /// What a unit costs, in full.
    pub(crate) fn whole(&self, unit: Unit) -> Result<u64, Error> {
        Ok(self.weigh(unit, u64::MAX)?.in_full())
    }

    fn count(&self, unit: Unit, limit: u64) -> Result<Weight, Error> {
        let (pool, meter) = (self.pool, self.meter);
        match unit {
            Unit::System(at) => meter.message(&pool.system(at).1, Standing::Head, limit),
            Unit::State(at) => meter.message(&pool.state(at).1, Standing::Live, limit),
            Unit::Focus => match pool.focus() {
                Some((_, focus)) => meter.message(focus, Standing::Head, limit),
                None => Ok(Weight::Exactly(0)),
            },
            Unit::Note(at) => meter.message(&pool.log.notes()[at as usize].message, Standing::Head, limit),
            Unit::Summary(at) => meter.message(pool.summary(at).2, Standing::Past, limit),
            Unit::Document(rank) => meter.document(pool.document(rank), limit),
            Unit::Head(_) => self.sum(unit, &[], limit),
            Unit::Exchange(at) => {
                let made_up = repair::synthetic_results(pool.log, pool.log.turns().exchange(at));
                self.sum(unit, &made_up, limit)
            }
        }
    }

    fn sum(&self, unit: Unit, made_up: &[Message], limit: u64) -> Result<Weight, Error> {
        let mut sum = 0;
        let standing = self.pool.standing(unit);
        let members = self.pool.members(unit).into_iter().map(|at| self.results.as_sent(self.pool, at));
        for message in members.chain(made_up.iter().map(Cow::Borrowed)) {
            match self.meter.message(&message, standing, limit - sum)? {
                Weight::Exactly(n) => sum += n,
                Weight::Over => return Ok(Weight::Over),
            }
        }
        Ok(Weight::Exactly(sum))
    }
}
