//! Every budget of a range, piece by piece: within a piece everything is decided alike, so one plan stands for all.

use crate::{
    anchor::Steady,
    assemble::Frame,
    candidates::{Pool, Unit},
    error::Error,
    expiry::Fate,
    item::ItemId,
    manager::ContextWindowManager,
    planning::{Decided, Planning},
    reason::ExcludedReason,
    request::PlanRequest,
    tokens::Weight,
};
use std::collections::BTreeSet;

/// What may be in a prompt: a unit, or a document by its place in the request. Documents rank differently once the set
/// of the last prompt is given up, and are the same documents.
pub(super) type Key = Unit;

/// A request under hypothetical budgets.
pub(super) struct Hypothesis<'p> {
    frame: &'p Frame<'p>,
    first: (Planning<'p>, &'p Pool<'p>),
    /// Without the documents of the last prompt (rule S5).
    anew: Option<(Planning<'p>, &'p Pool<'p>)>,
    /// Whether a prompt can come out larger than its parts (rules N3, H5).
    may_exceed: bool,
    /// The largest budget that is asked about.
    pub(super) most: u64,
    minimum: BTreeSet<Key>,
    /// By its place in the request, the rank of each document.
    ranks: Vec<u32>,
}

/// The pools of a request: with the documents of the last prompt, and without.
pub(super) struct Pools<'r> {
    first: Pool<'r>,
    anew: Option<Pool<'r>>,
}

impl<'r> Pools<'r> {
    /// What of the last prompt holds under the request's own limits is taken to hold under all others.
    pub(super) fn gather(
        manager: &'r ContextWindowManager,
        request: &'r PlanRequest<'r>,
        frame: &Frame<'_>,
    ) -> Result<Self, Error> {
        let steady = manager.steady(request, frame);
        let first = manager.pool(request, steady)?;
        let anew = first.steady_documents.map(|_| manager.pool(request, Steady { rag: &[], ..steady }));
        Ok(Self { anew: anew.transpose()?, first })
    }
}

/// Budgets at which the same is in.
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    /// In order.
    pub(super) keys: Vec<Key>,
}

impl<'p> Hypothesis<'p> {
    pub(super) fn new(manager: &'p ContextWindowManager, frame: &'p Frame<'p>, pools: &'p Pools<'p>) -> Self {
        let most = frame.largest_budget();
        let mut ranks = vec![0; pools.first.documents().len()];
        for (document, rank) in pools.first.documents().iter().zip(0..) {
            ranks[document.at] = rank;
        }
        let planning = |pool: &'p Pool<'p>| (manager.planning(pool).traced(frame, most), pool);
        Self {
            frame,
            first: planning(&pools.first),
            anew: pools.anew.as_ref().map(planning),
            may_exceed: manager.may_exceed(),
            most,
            minimum: pools.first.minimum().into_iter().map(|(unit, ..)| unit).collect(),
            ranks,
        }
    }

    fn pool(&self) -> &'p Pool<'p> {
        self.first.1
    }

    /// What is in at every budget.
    pub(super) fn minimum(&self) -> &BTreeSet<Key> {
        &self.minimum
    }

    /// The ids of what a key stands for: of an exchange, those of its messages.
    pub(super) fn ids(&self, key: Key) -> Vec<ItemId> {
        let pool = self.pool();
        match key {
            Unit::Document(at) => vec![pool.request().rag[at as usize].id.clone()],
            Unit::Note(at) => vec![pool.log().notes()[at as usize].item.id.clone()],
            _ => pool.members(key).into_iter().map(|position| pool.log().message_id(position)).collect(),
        }
    }

    /// What it costs, if that is no more than any budget.
    pub(super) fn tokens(&self, key: Key) -> Result<Option<u64>, Error> {
        let most = u64::try_from(self.frame.total(self.most).max(0)).unwrap_or(u64::MAX);
        Ok(match self.first.0.weigh(self.unit(key), most)? {
            Weight::Exactly(n) => Some(n),
            Weight::Over => None,
        })
    }

    /// Why it can never be sent as it is, if that is so.
    pub(super) fn dead(&self, key: Key) -> Result<Option<ExcludedReason>, Error> {
        Ok(match self.pool().fate(self.unit(key))? {
            Fate::Out(reason) => Some(reason),
            Fate::Lives | Fate::Asks(_) => None,
        })
    }

    fn unit(&self, key: Key) -> Unit {
        match key {
            Unit::Document(at) => Unit::Document(self.ranks[at as usize]),
            unit => unit,
        }
    }

    /// What is in at this budget, and at which budgets around it that is so.
    pub(super) fn at(&self, budget: u64) -> Result<Piece, Error> {
        let (decided, mut piece) = self.by(&self.first, budget)?;
        if let (true, Some(anew)) = (decided.chosen.gave_up_the_set, &self.anew) {
            let (_, other) = self.by(anew, budget)?;
            piece = Piece { from: piece.from.max(other.from), to: piece.to.min(other.to), keys: other.keys };
        }
        Ok(piece)
    }

    fn by(
        &self,
        (planning, pool): &(Planning<'p>, &'p Pool<'p>),
        budget: u64,
    ) -> Result<(Decided<'p>, Piece), Error> {
        let mut decided = planning.decide(self.frame, budget, 0)?;
        let (least, most) = (self.frame.total(1), self.frame.total(self.most));
        let (from, to) = planning.reach(&decided, least, most);
        let (mut from, mut to) = (self.lowest_with(from, budget), self.highest_with(to, budget));
        if self.may_exceed {
            let frame = Frame { prompt_budget: budget, ..self.frame.clone() };
            let attempt = planning.plan(&frame)?;
            let minimal = attempt.decided.is_minimal();
            if attempt.decided.withholds() || !minimal && attempt.plan.total.n > budget {
                // What is withheld depends on every token there is.
                (from, to) = (budget, budget);
            } else if !minimal {
                from = from.max(attempt.plan.total.n);
            }
            decided = attempt.decided;
        }
        let key = |unit: &Unit| match unit {
            Unit::Document(rank) => Unit::Document(pool.documents()[*rank as usize].at as u32),
            unit => *unit,
        };
        let mut keys: Vec<Key> = decided.chosen.kept.keys().map(key).collect();
        keys.sort_unstable();
        Ok((decided, Piece { from, to, keys }))
    }

    /// The smallest budget that leaves at least so much.
    fn lowest_with(&self, total: i128, budget: u64) -> u64 {
        let (mut low, mut high) = (1, budget);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.frame.total(middle) >= total { high = middle } else { low = middle + 1 }
        }
        high
    }

    /// The largest budget that leaves no more than so much.
    fn highest_with(&self, total: i128, budget: u64) -> u64 {
        let (mut low, mut high) = (budget, self.most.max(budget));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.frame.total(middle) <= total { low = middle } else { high = middle - 1 }
        }
        low
    }
}
