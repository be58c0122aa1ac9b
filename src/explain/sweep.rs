//! Every budget of a range, piece by piece: within a piece everything is decided alike, so one plan stands for all.

use crate::{
    anchor::Steady,
    assemble::Frame,
    candidates::{Pool, Scope, Unit},
    error::Error,
    expiry::Fate,
    item::ItemId,
    manager::ContextWindowManager,
    planning::{Decided, Planning},
    reason::ExcludedReason,
    request::PlanRequest,
    select::{Places, Selection},
    tokens::Weight,
};
use std::collections::{BTreeMap, BTreeSet};

/// What may be in a prompt: a unit, or a document by its place in the request. Documents rank differently once the set
/// of the last prompt is given up, and are the same documents.
pub(super) type Key = Unit;

/// A request under hypothetical budgets.
pub(super) struct Hypothesis<'p> {
    frame: &'p Frame<'p>,
    first: (Planning<'p>, &'p Pool<'p>),
    /// Without the documents of the last prompt (rule S5).
    anew: Option<(Planning<'p>, &'p Pool<'p>)>,
    /// By how much a prompt can come out larger than its parts, where that can be said (rules N3, H5).
    most_added: Option<u64>,
    /// The largest budget that is asked about.
    pub(super) most: u64,
    minimum: BTreeSet<Key>,
    /// By its place in the request, the rank of each document.
    ranks: Vec<u32>,
    ranks_anew: Vec<u32>,
}

/// The pools of a request: with the documents of the last prompt, and without.
pub(super) struct Pools<'r> {
    first: Pool<'r>,
    anew: Option<Pool<'r>>,
}

impl<'r> Pools<'r> {
    /// The documents that compete, by their ids; those that do only without the last prompt's set among them.
    pub(super) fn documents(&self) -> BTreeMap<&ItemId, Key> {
        let of = |pool: &'_ Pool<'r>| -> Vec<u32> {
            (0..pool.places()).map(|place| pool.documents()[pool.rank_at(place) as usize].at as u32).collect()
        };
        let anew = self.anew.iter().flat_map(of);
        let rag = &self.first.request().rag;
        // What competes in the first place counts more.
        anew.chain(of(&self.first)).map(|at| (&rag[at as usize].id, Unit::Document(at))).collect()
    }

    /// Whether there are documents of the last prompt, which some budget may not hold.
    pub(super) fn may_give_up(&self) -> bool {
        self.anew.is_some()
    }

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

/// By its place in the request, the rank of each document.
fn ranks(pool: &Pool<'_>) -> Vec<u32> {
    let mut ranks = vec![0; pool.documents().len()];
    for (document, rank) in pool.documents().iter().zip(0..) {
        ranks[document.at] = rank;
    }
    ranks
}

/// What is in the first sorted list and not in the second.
fn difference<'a>(here: &'a [Key], there: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut others = there.iter().peekable();
    here.iter().copied().filter(move |key| {
        while others.next_if(|other| *other < key).is_some() {}
        others.peek() != Some(&key)
    })
}

/// Budgets at which the same is in.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    /// What is in, documents apart, in order.
    units: Vec<Key>,
    /// By their places among those that compete.
    documents: Places,
    /// Whether the documents of the last prompt were given up.
    anew: bool,
}

impl<'p> Hypothesis<'p> {
    pub(super) fn new(
        manager: &'p ContextWindowManager,
        frame: &'p Frame<'p>,
        pools: &'p Pools<'p>,
        asked: &BTreeSet<Key>,
    ) -> Result<Self, Error> {
        let most = frame.largest_budget();
        let most_added = manager.most_added(pools.first.places() > 0)?;
        // Where something may be added, what comes in after the goal may take its place.
        let alone = asked.len() == 1 && most_added == Some(0);
        let goal = asked.first().copied().filter(|key| alone && pools.first.is_a_goal(*key));
        let scope = Scope { most: u64::try_from(frame.total(most).max(0)).unwrap_or(u64::MAX), goal };
        let planning = |pool: &'p Pool<'p>| (manager.planning(pool).traced(scope), pool);
        Ok(Self {
            frame,
            first: planning(&pools.first),
            anew: pools.anew.as_ref().map(planning),
            most_added,
            most,
            minimum: pools.first.minimum().into_iter().map(|(unit, ..)| unit).collect(),
            ranks: ranks(&pools.first),
            ranks_anew: pools.anew.as_ref().map(ranks).unwrap_or_default(),
        })
    }

    fn pool(&self) -> &'p Pool<'p> {
        self.first.1
    }

    /// Whether there are documents of the last prompt, which some budget may not hold.
    pub(super) fn may_give_up(&self) -> bool {
        self.anew.is_some()
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

    /// What is in at this budget, and at which larger ones.
    pub(super) fn above(&self, budget: u64) -> Result<Piece, Error> {
        self.at(budget, |planning, decided| {
            let total = planning.reach_up(decided, self.frame.total(self.most));
            (budget, self.highest_with(total, budget))
        })
    }

    /// What is in at this budget, and at which smaller ones.
    pub(super) fn below(&self, budget: u64) -> Result<Piece, Error> {
        self.at(budget, |planning, decided| {
            let total = planning.reach_down(decided, self.frame.total(1));
            (self.lowest_with(total, budget), budget)
        })
    }

    fn at(
        &self,
        budget: u64,
        reach: impl Fn(&Planning<'_>, &Decided<'_>) -> (u64, u64),
    ) -> Result<Piece, Error> {
        let (gave_up, mut piece) = self.by(&self.first.0, budget, &reach)?;
        if let (true, Some((anew, _))) = (gave_up, &self.anew) {
            let (_, other) = self.by(anew, budget, &reach)?;
            piece =
                Piece { from: piece.from.max(other.from), to: piece.to.min(other.to), anew: true, ..other };
        }
        Ok(piece)
    }

    /// Says also whether the documents of the last prompt cannot stay.
    fn by(
        &self,
        planning: &Planning<'p>,
        budget: u64,
        reach: impl Fn(&Planning<'_>, &Decided<'_>) -> (u64, u64),
    ) -> Result<(bool, Piece), Error> {
        let mut decided = planning.decide(self.frame, budget, 0)?;
        let (mut from, mut to) = reach(planning, &decided);
        // What is left takes whatever may be added, at this budget and at those down to where it no longer does.
        let spare = self.most_added.map(|added| decided.left() - i128::from(added));
        if let Some(spare) = spare.filter(|spare| *spare >= 0) {
            from = from.max(self.lowest_with(self.frame.total(budget) - spare, budget));
        } else if !decided.is_minimal() || self.most_added.is_none() {
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
        let Selection { kept, documents, gave_up_the_set, .. } = decided.chosen;
        let units = kept.into_keys().collect();
        Ok((gave_up_the_set, Piece { from, to, units, documents, anew: false }))
    }

    /// What is in here and not there.
    pub(super) fn without(&self, here: &Piece, there: &Piece) -> Vec<Key> {
        let mut keys: Vec<Key> = difference(&here.units, &there.units).collect();
        if here.anew == there.anew {
            let places = here.documents.without(&there.documents);
            keys.extend(places.map(|place| self.document(here, place)));
        } else {
            let others: BTreeSet<Key> = self.documents(there).collect();
            keys.extend(self.documents(here).filter(|key| !others.contains(key)));
        }
        keys
    }

    pub(super) fn has(&self, piece: &Piece, key: Key) -> bool {
        let Unit::Document(at) = key else { return piece.units.binary_search(&key).is_ok() };
        let (ranks, pool) = self.ranked(piece);
        pool.place_of(ranks[at as usize]).is_some_and(|place| piece.documents.has(place))
    }

    fn documents<'k>(&'k self, piece: &'k Piece) -> impl Iterator<Item = Key> + 'k {
        piece.documents.iter().map(|place| self.document(piece, place))
    }

    fn document(&self, piece: &Piece, place: u32) -> Key {
        let (_, pool) = self.ranked(piece);
        Unit::Document(pool.documents()[pool.rank_at(place) as usize].at as u32)
    }

    /// By the places of the documents in the request, their ranks, as the piece has them.
    fn ranked(&self, piece: &Piece) -> (&[u32], &'p Pool<'p>) {
        match &self.anew {
            Some((_, pool)) if piece.anew => (&self.ranks_anew, pool),
            _ => (&self.ranks, self.first.1),
        }
    }

    /// The smallest budget that leaves at least so much.
    fn lowest_with(&self, total: i128, budget: u64) -> u64 {
        if self.frame.margin.is_none() {
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
        if self.frame.margin.is_none() {
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
