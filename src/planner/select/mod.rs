//! Who comes in. Selection sees handles, order and weights only, never text and never a tokenizer.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, HeldBy, IncludedReason},
    planner::{
        budget::Budgets,
        candidates::{Pool, Quantity, Results, Scale, Unit},
    },
};
use std::collections::BTreeMap;

mod places;
mod purse;
mod pinned;
mod rag;
mod window;

pub(crate) use places::Places;
pub(crate) use purse::{Purse, merges_state};

/// What was chosen, and why the rest was not.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// What is in, documents apart.
    pub(crate) kept: BTreeMap<Unit, Kept>,
    /// The documents that are in, by their places among those that compete.
    pub(crate) documents: Places,
    /// The notes that are in, by their places among the pins: only where all pins are notes.
    notes: Places,
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
    /// The oldest turn from which on everything that lives is in: a later walk goes on before it.
    walked_to: Option<u32>,
    /// What became of the last prompt's window.
    pub(crate) window: Window,
    /// Pins that the window counts on without paying for them.
    awaited: Vec<Unit>,
    /// Nothing of the documents that were to stay can come in: they have to be chosen anew.
    pub(crate) gave_up_the_set: bool,
    used: [u64; 3],
}

/// How the window was found (rule S5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Window {
    /// No window before it, or none that still holds: as much as fits.
    #[default]
    Fresh,
    /// It starts where the last one did.
    Sticky,
    /// It no longer fitted, and was cut to so many tokens.
    Cut {
        /// What the conversation's budget held.
        budget: u64,
        /// The low mark in tokens.
        low: u64,
    },
}

/// A unit that is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) section: Section,
    pub(crate) reason: IncludedReason,
}

impl Selection {
    fn keep(&mut self, unit: Unit, section: Section, reason: IncludedReason, tokens: u64) {
        let kept = Kept { section, reason };
        if self.kept.insert(unit, kept).is_none() {
            let used = &mut self.used[section as usize];
            *used = used.saturating_add(tokens);
        }
    }

    /// The same for many, none of which is in.
    fn keep_all(&mut self, mut units: Vec<(Unit, u64)>, section: Section, reason: IncludedReason) {
        let used = &mut self.used[section as usize];
        *used = units.iter().fold(*used, |sum, (_, tokens)| sum.saturating_add(*tokens));
        units.sort_unstable();
        let mut kept: BTreeMap<Unit, Kept> =
            units.into_iter().map(|(unit, _)| (unit, Kept { section, reason })).collect();
        self.kept.append(&mut kept);
    }

    fn keep_document(&mut self, place: u32, tokens: u64) {
        if self.documents.insert(place) {
            self.pay_for_documents(tokens);
        }
    }

    fn pay_for_documents(&mut self, tokens: u64) {
        let used = &mut self.used[Section::Rag as usize];
        *used = used.saturating_add(tokens);
    }

    /// What everything costs that is in, without what surrounds it.
    pub(crate) fn used(&self) -> i128 {
        self.used.iter().map(|used| i128::from(*used)).sum()
    }

    /// How many units are in.
    fn len(&self) -> usize {
        self.kept.len() + self.documents.len()
    }

    /// Whether a unit is in that is no document.
    pub(crate) fn has(&self, unit: Unit) -> bool {
        self.kept.contains_key(&unit)
    }

    /// Whether a document is in, so that the block around them is sent.
    pub(crate) fn has_documents(&self) -> bool {
        !self.documents.is_empty()
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
    purse: Purse,
    config: &Config,
) -> Result<Selection, Error> {
    // Pins of the last window that found no room in their own budget may find it in what is left over: where all of
    // them do, they need not be paid for by the conversation, and the window is as steady as the last one was.
    let chosen = choose_with(window::Pins::Awaited, pool, scale, budgets, purse, config)?;
    if chosen.awaited.iter().any(|pin| !chosen.has(*pin)) && !chosen.gave_up_the_set {
        return choose_with(window::Pins::Paid, pool, scale, budgets, purse, config);
    }
    Ok(chosen)
}

fn choose_with(
    pins: window::Pins,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    budgets: &Budgets,
    mut purse: Purse,
    config: &Config,
) -> Result<Selection, Error> {
    let mut chosen = required_and_pinned(pool, scale, budgets)?;
    if budgets.overflow {
        give_up(pool, scale, &mut chosen)?;
        return Ok(chosen);
    }
    chosen.window = keep_window(pins, pool, scale, budgets, config, &mut chosen)?;
    let budget = budgets.of(Section::Rag);
    rag::take_within(pool, scale, budget, share(budgets), &config.rag, &mut chosen)?;
    loop {
        let before = chosen.len();
        let room = purse.room(Section::SystemPinned, pool, scale, &chosen);
        pinned::take(pool, scale, room, &mut chosen)?;
        let left = purse.room(Section::Conversation, pool, scale, &chosen);
        match chosen.window {
            Window::Fresh => window::take(scale, left, HeldBy::Window, None, &mut chosen)?,
            // What pins brought in meanwhile may have opened the way to something, within the mark.
            Window::Cut { low, .. } => cut(pool, scale, left, low, &mut chosen)?,
            Window::Sticky => {}
        }
        let room = purse.room(Section::Rag, pool, scale, &chosen);
        rag::take(pool, scale, room, &config.rag, &mut chosen)?;
        if chosen.gave_up_the_set {
            return Ok(chosen);
        }
        // A reserve that no document needs is offered once more; when nothing moves any longer, this is it.
        if chosen.len() == before && !purse.release_block(&chosen) {
            if !scale.is_traced() {
                window::survey(scale, &mut chosen)?;
            }
            return Ok(chosen);
        }
    }
}

/// Tool results shorter than they are, where that is to be tried (rule S7): those of the open exchange when the minimum
/// does not fit, old ones when the last prompt's window no longer does.
///
/// # Errors
///
/// Whatever weighing the candidates runs into.
pub(crate) fn shorter_results(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    budgets: &Budgets,
) -> Result<Option<Results>, Error> {
    if budgets.overflow {
        return scale.clipped(budgets.least, budgets.for_minimum);
    }
    let Some(start) = pool.window_start else { return Ok(None) };
    let mut chosen = required_and_pinned(pool, scale, budgets)?;
    let budget = budgets.of(Section::Conversation);
    let room = left_of(budget, Section::Conversation, &chosen);
    if window::resume(scale, start, room, window::Pins::Awaited, &mut chosen)? {
        return Ok(None);
    }
    scale.cleared_further(start, budget)
}

/// What is left of a section's own budget.
fn within(budgets: &Budgets, section: Section, chosen: &Selection) -> purse::Room {
    let left = left_of(budgets.of(section), section, chosen);
    purse::Room::of(left, Quantity::budget(section))
}

fn left_of(budget: u64, section: Section, chosen: &Selection) -> u64 {
    budget.saturating_sub(chosen.used[section as usize])
}

/// The last prompt's window while it fits its budget, cut to the low mark when it does not (rule S5); without one,
/// as much as fits (rule S4).
fn keep_window(
    pins: window::Pins,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    budgets: &Budgets,
    config: &Config,
    chosen: &mut Selection,
) -> Result<Window, Error> {
    let Some(start) = pool.window_start else {
        let room = within(budgets, Section::Conversation, chosen);
        window::take(scale, room, HeldBy::Window, None, chosen)?;
        return Ok(Window::Fresh);
    };
    let budget = budgets.of(Section::Conversation);
    let left = left_of(budget, Section::Conversation, chosen);
    if window::resume(scale, start, left, pins, chosen)? {
        return Ok(Window::Sticky);
    }
    let low = low_mark(budget, config);
    cut(pool, scale, within(budgets, Section::Conversation, chosen), low, chosen)?;
    Ok(Window::Cut { budget, low })
}

/// The walk of rule S4 with the low mark as its limit, and no further back than where the window started.
fn cut(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: purse::Room,
    low: u64,
    chosen: &mut Selection,
) -> Result<(), Error> {
    let room = room.at_most(left_of(low, Section::Conversation, chosen), Quantity::LowMark);
    window::take(scale, room, HeldBy::StickyWindow, pool.window_start, chosen)
}

/// The low mark of the conversation's budget.
pub(crate) fn low_mark(budget: u64, config: &Config) -> u64 {
    per_mille(budget, config.conversation.low_mark)
}

/// What the documents' share holds, and no more than their budget.
pub(crate) fn share(budgets: &Budgets) -> u64 {
    let pot = budgets.pots[Section::Rag as usize];
    per_mille(budgets.total, pot.share).min(pot.budget)
}

fn per_mille(of: u64, part: u16) -> u64 {
    let part = u128::from(of) * u128::from(part) / 1000;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The minimum, and where it fits the pins that fit their budget.
fn required_and_pinned(pool: &Pool<'_>, scale: &Scale<'_>, budgets: &Budgets) -> Result<Selection, Error> {
    let mut chosen = minimum(pool, scale)?;
    if !budgets.overflow {
        let room = within(budgets, Section::SystemPinned, &chosen);
        pinned::take(pool, scale, room, &mut chosen)?;
    }
    Ok(chosen)
}

/// What is in whatever happens: required items and undroppable pins (rules S1, S2, S6).
fn minimum(pool: &Pool<'_>, scale: &Scale<'_>) -> Result<Selection, Error> {
    let mut chosen = Selection::default();
    for (unit, section, reason) in pool.minimum() {
        chosen.keep(unit, section, reason, scale.whole(unit)?);
    }
    Ok(chosen)
}

/// The minimum alone is too much: nothing else is even looked at.
fn give_up(pool: &Pool<'_>, scale: &Scale<'_>, chosen: &mut Selection) -> Result<(), Error> {
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
    window::survey(scale, chosen)?;
    chosen.dead.clear();
    Ok(())
}
