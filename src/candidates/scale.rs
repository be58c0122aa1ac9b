//! Sizes on demand (rule N5). The fields are private: who holds a scale can weigh, and cannot read.

use super::{Basis, Pool, Results, Shelf, Trace, Unit};
use crate::{
    error::Error, expiry::Fate, message::Message, meter::Meter, reason::ExcludedReason, recipient::Standing,
    repair, tokens::Weight,
};
use indexmap::IndexMap;
use std::{
    borrow::Cow,
    cell::{OnceCell, RefCell},
    ops::Range,
};

/// Weighs the candidates of one pool, each no further than asked for and never twice.
pub(crate) struct Scale<'a> {
    pool: &'a Pool<'a>,
    meter: &'a Meter,
    results: Results,
    known: RefCell<IndexMap<Unit, Known>>,
    /// How far decisions reach, and the largest number of tokens that matters to that; only where it is asked for.
    trace: Option<(RefCell<Trace>, u64)>,
    /// The one unit of the conversation that is asked about, where it is only one.
    goal: Option<Unit>,
    shelf: OnceCell<Shelf>,
    notes: OnceCell<Shelf>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    Exactly(u64),
    MoreThan(u64),
}

impl<'a> Scale<'a> {
    /// Results are weighed as they are sent (rule S7).
    pub(crate) fn new(pool: &'a Pool<'a>, meter: &'a Meter, results: Results) -> Self {
        Self {
            pool,
            meter,
            results,
            known: RefCell::default(),
            trace: None,
            goal: None,
            shelf: OnceCell::new(),
            notes: OnceCell::new(),
        }
    }

    /// A scale that keeps how far decisions reach; weights above `most` never fit anything. With a goal, the window's
    /// decisions reach to where that unit may come in, whatever comes in before it.
    pub(crate) fn tracing(self, most: u64, goal: Option<Unit>) -> Self {
        Self { trace: Some((RefCell::default(), most)), goal, ..self }
    }

    /// The turn of the goal.
    pub(crate) fn goal(&self) -> Option<u32> {
        self.goal.map(|unit| self.turn_of(unit))
    }

    /// What the goal and everything of these turns costs, as far as it lives and is not in; none where some of it fits no
    /// budget at all.
    pub(crate) fn missing(
        &self,
        turns: Range<u32>,
        is_in: impl Fn(Unit) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some((_, most)) = &self.trace else { return Ok(None) };
        let units = turns
            .flat_map(|turn| self.head(turn).into_iter().chain(self.exchanges(turn).map(Unit::Exchange)));
        let mut sum = 0u64;
        for unit in units.chain(self.goal) {
            if is_in(unit) || self.dead(unit)?.is_some() {
                continue;
            }
            match self.weigh(unit, *most)? {
                Weight::Exactly(n) => sum = sum.saturating_add(n),
                Weight::Over => return Ok(None),
            }
        }
        Ok(Some(sum))
    }

    /// What the decisions since the last call rest on.
    pub(crate) fn take_trace(&self) -> Trace {
        self.trace.as_ref().map(|(trace, _)| trace.take()).unwrap_or_default()
    }

    /// The sizes of the documents, where decisions are traced: there the same ones are weighed again and again.
    pub(crate) fn shelf(&self) -> Result<Option<&Shelf>, Error> {
        let places = 0..self.pool.places();
        self.laid_out(&self.shelf, || places.map(|place| Unit::Document(self.pool.rank_at(place))).collect())
    }

    /// The sizes of the pins in their order, where decisions are traced and all of them are notes.
    pub(crate) fn notes(&self) -> Result<Option<&Shelf>, Error> {
        let notes = || self.pool.pins.iter().map(|pin| pin.unit);
        if notes().any(|unit| !matches!(unit, Unit::Note(_))) {
            return Ok(None);
        }
        self.laid_out(&self.notes, || notes().collect())
    }

    fn laid_out<'s>(
        &self,
        known: &'s OnceCell<Shelf>,
        units: impl FnOnce() -> Vec<Unit>,
    ) -> Result<Option<&'s Shelf>, Error> {
        let Some((_, most)) = &self.trace else { return Ok(None) };
        if let Some(found) = known.get() {
            return Ok(Some(found));
        }
        let size = |unit| {
            Ok(match self.weigh(unit, *most)? {
                Weight::Exactly(n) => n,
                Weight::Over => u64::MAX,
            })
        };
        let sizes: Vec<u64> = units().into_iter().map(size).collect::<Result<_, Error>>()?;
        Ok(Some(known.get_or_init(|| Shelf::new(&sizes))))
    }

    /// Whether what decisions rest on is kept, and reasons need not be.
    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Notes what a decision rests on, where that is kept.
    pub(crate) fn trace(&self, note: impl FnOnce(&mut Trace)) {
        if let Some((trace, _)) = &self.trace {
            note(&mut trace.borrow_mut());
        }
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

    /// What a unit costs, if that is no more than what is left of a room.
    pub(crate) fn offer(&self, unit: Unit, left: u64, basis: Basis) -> Result<Weight, Error> {
        let Some((trace, most)) = &self.trace else { return self.weigh(unit, left) };
        let weight = self.weigh(unit, left.max(*most))?;
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
