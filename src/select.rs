//! Who comes in. Selection sees handles, order and weights only, never text and never a tokenizer.

use crate::{
    budget::Budgets,
    candidates::{Pool, Scale, Unit},
    config::RagOptions,
    error::Error,
    item::Section,
    reason::{ExcludedReason, HeldBy, IncludedReason},
};
use std::collections::BTreeMap;

mod pinned;
mod purse;
mod rag;
mod window;

pub(crate) use purse::{Purse, merges_state};

/// What was chosen, and why the rest was not.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) kept: BTreeMap<Unit, Kept>,
    /// Messages and exchanges that the walk examined and that can never come in as they are.
    pub(crate) dead: BTreeMap<Unit, ExcludedReason>,
    /// Pins that got no room.
    pub(crate) fallen: BTreeMap<Unit, ExcludedReason>,
    /// Why each document that policy lets in is out.
    pub(crate) passed_over: BTreeMap<Unit, ExcludedReason>,
    /// Why everything behind the point where the walk stopped is out.
    pub(crate) behind: Option<ExcludedReason>,
    /// The oldest unit of the kept window.
    pub(crate) start: Option<Unit>,
    used: [u64; 3],
}

/// A unit that is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) section: Section,
    pub(crate) reason: IncludedReason,
    pub(crate) tokens: u64,
}

impl Selection {
    fn keep(&mut self, unit: Unit, section: Section, reason: IncludedReason, tokens: u64) {
        let kept = Kept { section, reason, tokens };
        if self.kept.insert(unit, kept).is_none() {
            let used = &mut self.used[section as usize];
            *used = used.saturating_add(tokens);
        }
    }

    pub(crate) fn has(&self, unit: Unit) -> bool {
        self.kept.contains_key(&unit)
    }

    /// Whether a document is in, so that the block around them is sent.
    pub(crate) fn has_documents(&self) -> bool {
        self.kept.range(Unit::Document(0)..).next().is_some()
    }
}

/// Required first, then pins, window and documents: within the budgets, then with what is left over (rule B6).
///
/// # Errors
///
/// Whatever weighing the candidates runs into.
pub(crate) fn choose(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    budgets: &Budgets,
    mut purse: Purse,
    rules: &RagOptions,
) -> Result<Selection, Error> {
    let mut chosen = minimum(pool, scale)?;
    if budgets.overflow {
        give_up(pool, &mut chosen);
        return Ok(chosen);
    }
    let within = |section: Section, chosen: &Selection| {
        let budget = budgets.pots[section as usize].budget;
        purse::Room::of(budget.saturating_sub(chosen.used[section as usize]))
    };
    pinned::take(pool, scale, within(Section::SystemPinned, &chosen), &mut chosen)?;
    window::take(scale, within(Section::Conversation, &chosen), &mut chosen)?;
    rag::take(pool, scale, within(Section::Rag, &chosen), rules, &mut chosen)?;
    loop {
        let before = chosen.kept.len();
        let room = purse.room(Section::SystemPinned, pool, scale, &chosen);
        pinned::take(pool, scale, room, &mut chosen)?;
        let room = purse.room(Section::Conversation, pool, scale, &chosen);
        window::take(scale, room, &mut chosen)?;
        let room = purse.room(Section::Rag, pool, scale, &chosen);
        rag::take(pool, scale, room, rules, &mut chosen)?;
        // A reserve that no document needs is offered once more; when nothing moves any longer, this is it.
        if chosen.kept.len() == before && !purse.release_block(&chosen) {
            return Ok(chosen);
        }
    }
}

/// What is in whatever happens: required items and undroppable pins (rules S1, S2, S6).
fn minimum(pool: &Pool<'_>, scale: &Scale<'_>) -> Result<Selection, Error> {
    let mut chosen = Selection::default();
    for (unit, section, reason) in pool.minimum() {
        chosen.keep(unit, section, reason, scale.whole(unit)?);
    }
    chosen.start = window::start_of_the_required(scale, &chosen)?;
    Ok(chosen)
}

/// The minimum alone is too much: nothing else is even looked at.
fn give_up(pool: &Pool<'_>, chosen: &mut Selection) {
    let reason = ExcludedReason::Budget { room: 0, held_by: HeldBy::Overflow };
    for pin in &pool.pins {
        if !chosen.has(pin.unit) {
            chosen.fallen.insert(pin.unit, reason.clone());
        }
    }
    for (rank, document) in pool.documents().iter().enumerate() {
        if document.out.is_none() {
            let unit = Unit::Document(rank as u32);
            chosen.passed_over.insert(unit, reason.clone());
        }
    }
    chosen.behind = Some(reason);
}
