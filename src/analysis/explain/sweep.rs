//! Every budget of a range, piece by piece: within a piece everything is decided alike, so one plan stands for all.

use super::{piece::Piece, pools::Pools};
use crate::{
    error::Error,
    item::ItemId,
    plan::{ContextPlan, reason::ExcludedReason},
    planner::{
        assemble::Frame,
        candidates::{Pool, Scope, Unit},
        expiry::Fate,
        manager::ContextWindowManager,
        select::Selection,
        solve::{Decided, Planning},
    },
    tokens::TokenCount,
};
use std::collections::BTreeSet;

/// What may be in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A unit, or a document by its place in the request. Documents rank differently once the set of the last prompt is
    /// given up, and are the same documents.
    Item(Unit),
    /// A message that the target demands (rule H5), by its place among those of the present plan. It follows from what else
    /// is in.
    Demanded(u32),
}

/// A request under hypothetical budgets.
pub(super) struct Hypothesis<'p> {
    frame: &'p Frame<'p>,
    first: View<'p>,
    /// Without the documents of the last prompt (rule S5).
    anew: Option<View<'p>>,
    /// By how much a prompt can come out larger than its parts, where that can be said (rules N3, H5).
    most_added: Option<u64>,
    /// The largest budget that is asked about.
    pub(super) most: u64,
    minimum: BTreeSet<Key>,
    /// The ids of the messages that the present plan's target demands, where they are asked about.
    demanded: Vec<ItemId>,
    /// By its place in the request, the rank of each document.
    ranks: Vec<u32>,
}

/// One pool, and how it is planned.
struct View<'p> {
    pool: &'p Pool<'p>,
    planning: Planning<'p>,
}

impl<'p> Hypothesis<'p> {
    pub(super) fn new(
        manager: &'p ContextWindowManager,
        frame: &'p Frame<'p>,
        pools: &'p Pools<'p>,
        asked: &BTreeSet<Key>,
        demanded: Vec<ItemId>,
    ) -> Result<Self, Error> {
        let most = frame.largest_budget();
        let most_added = manager.most_added(pools.first.places() > 0)?;
        // Where something may be added, what comes in after the goal may take its place.
        let alone = asked.len() == 1 && most_added == Some(0);
        let goal = asked.first().and_then(|key| match key {
            Key::Item(unit) => Some(*unit).filter(|unit| alone && pools.first.is_a_goal(*unit)),
            Key::Demanded(_) => None,
        });
        let is_asked = asked.iter().any(|key| matches!(key, Key::Demanded(_)));
        let scope = Scope { most: u64::try_from(frame.total(most).max(0)).unwrap_or(u64::MAX), goal };
        let view = |pool: &'p Pool<'p>| View { pool, planning: manager.planning(pool).traced(scope) };
        let mut ranks = vec![0; pools.first.documents().len()];
        for (document, rank) in pools.first.documents().iter().zip(0..) {
            ranks[document.at] = rank;
        }
        Ok(Self {
            frame,
            first: view(&pools.first),
            anew: pools.anew.as_ref().map(view),
            most_added,
            most,
            minimum: pools.first.minimum().into_iter().map(|(unit, ..)| Key::Item(unit)).collect(),
            demanded: if is_asked { demanded } else { Vec::new() },
            ranks,
        })
    }

    fn pool(&self) -> &'p Pool<'p> {
        self.first.pool
    }

    /// A piece in which nothing is.
    pub(super) fn nothing(&self) -> Piece<'p> {
        Piece::empty(self.pool())
    }

    /// What is in at every budget.
    pub(super) fn minimum(&self) -> &BTreeSet<Key> {
        &self.minimum
    }

    /// The ids of what a key stands for: of an exchange, those of its messages.
    pub(super) fn ids(&self, key: Key) -> Vec<ItemId> {
        let pool = self.pool();
        match key {
            Key::Demanded(nth) => self.demanded.get(nth as usize).cloned().into_iter().collect(),
            Key::Item(Unit::Document(at)) => vec![pool.request().rag[at as usize].id.clone()],
            Key::Item(Unit::Note(at)) => vec![pool.log().notes()[at as usize].item.id.clone()],
            Key::Item(unit) => {
                pool.members(unit).into_iter().map(|position| pool.log().message_id(position)).collect()
            }
        }
    }

    /// What it costs, counted no further than to the largest budget.
    pub(super) fn tokens(&self, key: Key) -> Result<Option<TokenCount>, Error> {
        let most = u64::try_from(self.frame.total(self.most).max(0)).unwrap_or(u64::MAX);
        self.unit(key).map(|unit| self.first.planning.cost(unit, most)).transpose()
    }

    /// Why it can never be sent as it is, if that is so.
    pub(super) fn dead(&self, key: Key) -> Result<Option<ExcludedReason>, Error> {
        let Some(unit) = self.unit(key) else { return Ok(None) };
        Ok(match self.pool().fate(unit)? {
            Fate::Out(reason) => Some(reason),
            Fate::Lives | Fate::Asks(_) => None,
        })
    }

    fn unit(&self, key: Key) -> Option<Unit> {
        match key {
            Key::Item(Unit::Document(at)) => Some(Unit::Document(self.ranks[at as usize])),
            Key::Item(unit) => Some(unit),
            Key::Demanded(_) => None,
        }
    }

    /// What is in at this budget, and at which larger ones.
    pub(super) fn above(&self, budget: u64) -> Result<Piece<'p>, Error> {
        self.at(budget, |planning, decided| {
            let total = planning.reach_up(decided, self.frame.total(self.most));
            (budget, self.highest_with(total, budget))
        })
    }

    /// What is in at this budget, and at which smaller ones.
    pub(super) fn below(&self, budget: u64) -> Result<Piece<'p>, Error> {
        self.at(budget, |planning, decided| {
            let total = planning.reach_down(decided, self.frame.total(1));
            (self.lowest_with(total, budget), budget)
        })
    }

    fn at(
        &self,
        budget: u64,
        reach: impl Fn(&Planning<'_>, &Decided<'_>) -> (u64, u64),
    ) -> Result<Piece<'p>, Error> {
        let (gave_up, mut piece) = self.by(&self.first, budget, &reach)?;
        if let (true, Some(anew)) = (gave_up, &self.anew) {
            let (_, other) = self.by(anew, budget, &reach)?;
            piece = Piece { from: piece.from.max(other.from), to: piece.to.min(other.to), ..other };
        }
        Ok(piece)
    }

    /// Says also whether the documents of the last prompt cannot stay.
    fn by(
        &self,
        View { pool, planning }: &View<'p>,
        budget: u64,
        reach: impl Fn(&Planning<'_>, &Decided<'_>) -> (u64, u64),
    ) -> Result<(bool, Piece<'p>), Error> {
        let mut decided = planning.decide(self.frame, budget, 0)?;
        let (mut from, mut to) = reach(planning, &decided);
        // What is left takes whatever may be added, at this budget and at those down to where it no longer does.
        let spare = self.most_added.map(|added| decided.left() - i128::from(added));
        let mut demanded = Vec::new();
        let whole = || planning.plan(&Frame { prompt_budget: budget, ..self.frame.clone() });
        if let Some(spare) = spare.filter(|spare| *spare >= 0) {
            from = from.max(self.lowest_with(self.frame.total(budget) - spare, budget));
            if !self.demanded.is_empty() {
                demanded = self.demanded_by(&whole()?.plan);
            }
        } else if !decided.is_minimal() || self.most_added.is_none() || !self.demanded.is_empty() {
            let attempt = whole()?;
            demanded = self.demanded_by(&attempt.plan);
            let minimal = attempt.decided.is_minimal();
            if attempt.decided.withholds() || !minimal && attempt.plan.total.n > budget {
                // What is withheld depends on every token there is.
                (from, to) = (budget, budget);
            } else if !minimal {
                from = from.max(attempt.plan.total.n);
            }
            decided = attempt.decided;
        }
        let Selection { kept, documents, gave_up_the_set, .. } = decided.chosen;
        let units = kept.into_keys().map(Key::Item).chain(demanded).collect();
        Ok((gave_up_the_set, Piece { from, to, units, documents, pool }))
    }

    /// What of the messages that are asked about a plan's target demands.
    fn demanded_by(&self, plan: &ContextPlan) -> Vec<Key> {
        let there: BTreeSet<&ItemId> =
            plan.included.iter().filter(|row| row.is_demanded()).map(|row| &row.id).collect();
        let asked = self.demanded.iter().zip(0..).filter(|(id, _)| there.contains(id));
        asked.map(|(_, nth)| Key::Demanded(nth)).collect()
    }

    /// The smallest budget that leaves at least so much.
    fn lowest_with(&self, total: i128, budget: u64) -> u64 {
        if self.frame.calibration.is_none() {
            return u64::try_from(total + i128::from(budget) - self.frame.total(budget)).unwrap_or(1).max(1);
        }
        let (mut low, mut high) = (1, budget);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.frame.total(middle) >= total { high = middle } else { low = middle + 1 }
        }
        high
    }

    /// The largest budget that leaves no more than so much.
    fn highest_with(&self, total: i128, budget: u64) -> u64 {
        if self.frame.calibration.is_none() {
            let highest = u64::try_from(total + i128::from(budget) - self.frame.total(budget));
            return highest.unwrap_or(u64::MAX).clamp(budget, self.most.max(budget));
        }
        let (mut low, mut high) = (budget, self.most.max(budget));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.frame.total(middle) <= total { low = middle } else { high = middle - 1 }
        }
        low
    }
}
