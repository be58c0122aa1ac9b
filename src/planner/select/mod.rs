//! Selection: which candidates are included.
//!
//! Selection is greedy, in a fixed order: what is required, then pins, then the conversation from its newest turn back,
//! then documents by rank. Pins are offered all that the minimum leaves, up to their limit (rule S2); only then is the rest
//! divided, and each section offered its own budget. What is still free is then offered once more
//! in the same order, as often as that lets something in (rule B6), because what one section left may be just what
//! another one misses. Nothing that came in goes out again.
//!
//! Two things keep prompts alike from one call to the next (rule S5): the window of the conversation starts where the last
//! one did while it fits, and is cut to a low mark when it does not; documents stay while the question is the same.
//!
//! Selection works on ids, order and costs: [`CandidateIndex`] and [`Costs`]. Neither holds a text, so no decision can
//! rest on one.
//!
//! Every comparison with a limit must be reported to the [`Observer`]: [`Selector::offer`] for one candidate,
//! [`slots::Filled::tell`] for lists, `walk`, `resume` and `shorter_results` for the window, `compared` for minimums. A
//! comparison that is not reported makes `explain` wrong. The observer never changes a decision.

use crate::{
    config::Config,
    conversation::TurnIndex,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, IncludedReason, LimitedBy},
    planner::{
        budget::{Available, Budgets, PinsTaken},
        candidates::{CandidateId, CandidateIndex, Costs, List, Slot},
        observer::{BudgetVariable, Constraint, Observer},
        rendering::ToolResultRendering,
    },
    provider::weight::Weight,
};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::{collections::BTreeMap, ops::Range};

mod tree;
mod slots;
mod trail;
mod pin_slots;
mod pin_fill;
mod walk_sums;
mod kept;
mod kept_before;
mod room;
mod trails;
mod laid_out;
mod pinned;
mod window;
mod documents;

use kept::Kept;
pub(crate) use kept::KeptCandidates;
pub(crate) use kept_before::KeptBefore;
use room::Room;
pub(crate) use room::{merges_state, saved_by_merging};
pub(crate) use slots::SlotSet;
use trails::Pins;
pub(crate) use trails::{SharedPins, Trails};
pub(crate) use tree::{Summary, Tree};

/// What was chosen, and why the rest was not.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// What is in, documents apart.
    pub(crate) kept: KeptCandidates,
    /// The documents that are in, by their slots among those that compete.
    pub(crate) documents: SlotSet,
    /// The pins that are in, by their slots: if all of them are notes, or if they are laid out for many
    /// budgets. With one budget they are among `kept` at once, with many in the end.
    pins: SlotSet,
    /// The number of offers to pins that are laid out, and of walks beside them.
    offers: usize,
    walks: usize,
    // Exclusion reasons are kept in five fields, by when they are known: `ineligible` and `fallen_pins` after the walk, the
    // two `dropped_` fields after each offer, `before_window` where the walk stops.
    /// Messages and exchanges that the walk examined and that can never be sent as they are.
    pub(crate) ineligible: BTreeMap<CandidateId, ExcludedReason>,
    /// Pins that did not fit.
    pub(crate) dropped_pins: BTreeMap<CandidateId, ExcludedReason>,
    /// Pins among them that are out with the user message of their turn, because that has expired.
    pub(crate) fallen_pins: BTreeMap<CandidateId, ExcludedReason>,
    /// Why each document that policy lets in is out.
    pub(crate) dropped_documents: IndexMap<CandidateId, ExcludedReason, FixedState>,
    /// Documents and notes that were passed over by slots: [`Selector::tell_why`] makes reasons of them.
    documents_passed_over: Vec<PassedOver>,
    notes_passed_over: Vec<PassedOver>,
    /// What became of pins when they were offered their part before everything else.
    first_offer: FirstOffer,
    /// Why everything older than the point where the walk stopped is out.
    pub(crate) before_window: Option<ExcludedReason>,
    /// The oldest candidate of the kept window.
    pub(crate) start: Option<CandidateId>,
    /// The oldest turn from which on everything that can be sent is in: a later walk goes on before it.
    walked_to: Option<TurnIndex>,
    /// What became of the last prompt's window.
    pub(crate) window: Window,
    /// Pins that the window counts on without paying for them.
    awaited: Vec<CandidateId>,
    /// None of the documents kept from the last prompt fits; they have to be ranked again.
    pub(crate) gave_up_the_set: bool,
    used: [u64; 3],
    /// The most that documents were offered while none was in; tokens.
    pub(crate) offered_to_documents: u64,
}

/// Pins that did not fit when they came before everything else (rule S2).
#[derive(Debug, Default)]
struct FirstOffer {
    dropped: BTreeMap<CandidateId, ExcludedReason>,
    notes_passed_over: Vec<PassedOver>,
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

/// A selection up to its window.
pub(crate) struct Begun(Selection);

/// Whether tool results are to be sent shorter (rule S7).
#[expect(clippy::large_enum_variant, reason = "there is one a plan")]
pub(crate) enum Shorter {
    /// No; and where there was a window, the selection with what becomes of it.
    No(Option<Begun>),
    /// In this way.
    Yes(ToolResultRendering),
}

impl Selection {
    /// Nothing is in.
    fn begin(index: &CandidateIndex<'_>) -> Self {
        Self { kept: KeptCandidates::new(index), ..Self::default() }
    }

    fn keep(&mut self, id: CandidateId, section: Section, reason: IncludedReason, tokens: u64) {
        let kept = Kept { section, reason };
        if self.kept.insert(id, kept) {
            let used = &mut self.used[section as usize];
            *used = used.saturating_add(tokens);
        }
    }

    /// Lets in what a walk found, none of which is in.
    fn keep_walked(&mut self, ids: &[(CandidateId, u64)]) {
        self.kept.extend(ids.iter().map(|(id, _)| *id));
        self.pay_for_the_walk(ids.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens)));
    }

    fn pay_for_the_walk(&mut self, tokens: u64) {
        let used = &mut self.used[Section::Conversation as usize];
        *used = used.saturating_add(tokens);
    }

    fn keep_document(&mut self, slot: Slot, tokens: u64) {
        if self.documents.insert(slot) {
            self.pay_for_documents(tokens);
        }
    }

    fn pay_for_pins(&mut self, tokens: u64) {
        let used = &mut self.used[Section::SystemPinned as usize];
        *used = used.saturating_add(tokens);
    }

    fn pay_for_documents(&mut self, tokens: u64) {
        let used = &mut self.used[Section::Rag as usize];
        *used = used.saturating_add(tokens);
    }

    /// What everything costs that is in, without what surrounds it.
    pub(crate) fn used(&self) -> i128 {
        self.used.iter().map(|used| i128::from(*used)).sum()
    }

    /// How many candidates are in.
    fn len(&self) -> usize {
        self.kept.len() + self.documents.len() + self.pins.len()
    }

    /// Whether a candidate other than a document is included.
    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.kept.has(id)
    }

    /// Whether a document is in, so that the block around them is sent.
    pub(crate) fn has_documents(&self) -> bool {
        !self.documents.is_empty()
    }
}

/// Slots of a list of which none came in, and what was left when they were met.
#[derive(Debug)]
struct PassedOver {
    slots: Range<u32>,
    left: u64,
    /// Why the first is out, and why those after it are.
    first: LimitedBy,
    others: LimitedBy,
}

impl PassedOver {
    fn all(passed_over: Vec<(Range<u32>, u64)>, first: LimitedBy, others: LimitedBy) -> Vec<Self> {
        passed_over.into_iter().map(|(slots, left)| Self { slots, left, first, others }).collect()
    }

    /// The slots that did not come in later, with their reasons.
    fn reasons<'s>(&'s self, set: &'s SlotSet) -> impl Iterator<Item = (Slot, ExcludedReason)> + 's {
        let out = self.slots.clone().map(Slot::new).filter(|slot| !set.has(*slot));
        out.map(|slot| {
            let limited_by = if slot.number() == self.slots.start { self.first } else { self.others };
            (slot, ExcludedReason::Budget { room: self.left, limited_by })
        })
    }
}

/// Decides which candidates are included, by ids, order and costs.
pub(crate) struct Selector<'s, O> {
    pub(crate) index: &'s CandidateIndex<'s>,
    pub(crate) costs: &'s Costs<'s>,
    pub(crate) config: &'s Config,
    pub(crate) observer: &'s O,
    pub(crate) trails: &'s Trails,
    /// True if pinned messages may be laid out: many budgets are asked about, and not for reasons.
    pub(crate) lays_out_pins: bool,
}

impl<O: Observer> Selector<'_, O> {
    /// Required first, then pins, window and documents: within the budgets, then with what is free (rule B6).
    ///
    /// `begun` is what of it was found on the way to the budgets. Says what is in; [`Selector::tell_why`] says why the rest is
    /// out.
    ///
    /// # Errors
    ///
    /// Whatever counting the candidates runs into.
    pub(crate) fn choose(&self, budgets: &Budgets, begun: Option<Begun>) -> Result<Selection, Error> {
        // Pins of the last window that did not fit their own budget may fit into what is free: where all of
        // them do, they need not be paid for by the conversation, and the window is as sticky as the last one was.
        let begun = match begun {
            Some(begun) => begun,
            None => self.begin(Pins::Awaited, budgets)?,
        };
        let mut chosen = self.go_on(begun, budgets)?;
        let waits = self.waits_in_vain(&mut chosen)? || chosen.awaited.iter().any(|pin| !chosen.has(*pin));
        if waits && !chosen.gave_up_the_set {
            chosen = self.go_on(self.begin(Pins::Paid, budgets)?, budgets)?;
        }
        // The pins of many budgets are not let in one by one: each budget lets in about those of the one
        // before it.
        if self.costs.most().is_some() && !chosen.pins.is_empty() {
            chosen.kept.keep_pins(self.pins_by_slots(), chosen.pins.clone());
        }
        Ok(chosen)
    }

    /// The minimum, and where it fits the pins and the window.
    fn begin(&self, pins: Pins, budgets: &Budgets) -> Result<Begun, Error> {
        let mut chosen = self.required_and_pinned(budgets)?;
        if !budgets.overflow {
            self.keep_window(pins, budgets, &mut chosen)?;
        }
        Ok(Begun(chosen))
    }

    /// Documents, and then what is free once more.
    fn go_on(&self, Begun(mut chosen): Begun, budgets: &Budgets) -> Result<Selection, Error> {
        if budgets.overflow {
            self.give_up(&mut chosen);
            return Ok(chosen);
        }
        self.take_documents_within(budgets, &mut chosen)?;
        let mut available = budgets.available;
        loop {
            let before = chosen.len();
            self.take_pins(self.free(Section::SystemPinned, &available, &chosen), &mut chosen)?;
            let room = self.free(Section::Conversation, &available, &chosen);
            match chosen.window {
                Window::Fresh => self.walk(room, LimitedBy::Window, None, &mut chosen)?,
                // What pins brought in meanwhile may have opened the way to something, within the mark.
                Window::Cut { low, .. } => self.cut(room, low, &mut chosen)?,
                Window::Sticky => {}
            }
            let room = self.free(Section::Rag, &available, &chosen);
            let room = self.for_a_question(room, &budgets.available, &chosen);
            self.take_documents(room, budgets.full_document_share(), &mut chosen)?;
            if chosen.gave_up_the_set {
                return Ok(chosen);
            }
            if chosen.len() == before {
                // Tokens reserved for the document wrapper are offered once more if no document is included. The loop
                // ends when a pass adds nothing.
                let released = available.reserves_block && !chosen.has_documents();
                available.reserves_block = false;
                if !released {
                    return Ok(chosen);
                }
            }
        }
    }

    /// Why everything else is out, and where the window starts.
    ///
    /// # Errors
    ///
    /// Whatever counting the candidates runs into.
    pub(crate) fn tell_why(&self, chosen: &mut Selection, budgets: &Budgets) -> Result<(), Error> {
        for passed_over in std::mem::take(&mut chosen.documents_passed_over) {
            for (slot, reason) in passed_over.reasons(&chosen.documents) {
                chosen.dropped_documents.insert(self.costs.id_at(List::Documents, slot), reason);
            }
        }
        let passed_over = std::mem::take(&mut chosen.notes_passed_over);
        let last: Vec<_> = self.dropped_notes(&passed_over, chosen).collect();
        chosen.dropped_pins.extend(last);
        // A pin is out because no offer was large enough: the largest one says why.
        let FirstOffer { mut dropped, notes_passed_over } = std::mem::take(&mut chosen.first_offer);
        dropped.extend(self.dropped_notes(&notes_passed_over, chosen));
        for (pin, reason) in &mut chosen.dropped_pins {
            if let Some(first) = dropped.remove(pin).filter(|first| first.room() >= reason.room()) {
                *reason = first;
            }
        }
        if !chosen.gave_up_the_set {
            self.survey(chosen)?;
        }
        if budgets.overflow {
            chosen.ineligible.clear();
        } else {
            self.let_pins_fall(chosen)?;
        }
        Ok(())
    }

    /// Tool results shorter than they are, where that is to be tried (rule S7): those of the open exchange when the minimum
    /// does not fit, old ones when the last prompt's window no longer does.
    ///
    /// # Errors
    ///
    /// Whatever counting the candidates runs into.
    pub(crate) fn shorter_results(&self, budgets: &Budgets) -> Result<Shorter, Error> {
        let shorter =
            |rendering: Option<ToolResultRendering>| rendering.map_or(Shorter::No(None), Shorter::Yes);
        if budgets.overflow {
            let released = self.costs.releasing_everything();
            return match released {
                Some(released) => Ok(Shorter::Yes(released)),
                // How much is clipped depends on the exact budget. When solving for many budgets an overflow is therefore
                // reported with the minimum only (rule E1).
                None if self.costs.most().is_some() => Ok(Shorter::No(None)),
                None => self.costs.clipped(budgets.minimum, budgets.for_the_minimum()).map(shorter),
            };
        }
        let Some(start) = self.index.window_start else { return Ok(Shorter::No(None)) };
        let mut chosen = self.required_and_pinned(budgets)?;
        let (budget, variable) = self.for_the_window(budgets);
        let left = left_of(budget, Section::Conversation, &chosen);
        if self.resume(start, left, variable, Pins::Awaited, &mut chosen)? {
            return Ok(Shorter::No(Some(Begun(chosen))));
        }
        if let Some(released) = self.costs.releasing_earlier_turns() {
            return Ok(Shorter::Yes(released));
        }
        let conversation = Constraint::of(BudgetVariable::Conversation);
        let cleared = self.costs.cleared_further(start, budget, |left| match u64::try_from(left) {
            Ok(left) => self.observer.fits(conversation, left),
            Err(_) => self.observer.too_large(conversation, u64::try_from(-left).unwrap_or(u64::MAX)),
        });
        Ok(match cleared? {
            Some(cleared) => Shorter::Yes(cleared),
            None => {
                self.cut_window(budgets, &mut chosen)?;
                Shorter::No(Some(Begun(chosen)))
            }
        })
    }

    /// What a candidate costs, if that is no more than what it is offered. The observer hears how far it is from that.
    fn offer(&self, id: CandidateId, left: u64, constraint: Constraint) -> Result<Weight, Error> {
        let count_to = self.observer.count_to(constraint, left);
        Ok(match self.costs.weigh(id, count_to)? {
            Weight::Exactly(n) if n <= left => {
                self.observer.fits(constraint, left - n);
                Weight::Exactly(n)
            }
            Weight::Exactly(n) => {
                self.observer.too_large(constraint, n - left);
                Weight::Over
            }
            Weight::Over => Weight::Over,
        })
    }

    /// The last prompt's window while it fits its budget, cut to the low mark when it does not (rule S5); without one,
    /// as much as fits (rule S4).
    fn keep_window(&self, pins: Pins, budgets: &Budgets, chosen: &mut Selection) -> Result<(), Error> {
        let Some(start) = self.index.window_start else {
            let room = within(budgets, Section::Conversation, chosen);
            return self.walk(room, LimitedBy::Window, None, chosen);
        };
        let (most, variable) = self.for_the_window(budgets);
        let left = left_of(most, Section::Conversation, chosen);
        if self.resume(start, left, variable, pins, chosen)? {
            return Ok(());
        }
        self.cut_window(budgets, chosen)
    }

    /// The window that no longer fits, cut to its low mark.
    fn cut_window(&self, budgets: &Budgets, chosen: &mut Selection) -> Result<(), Error> {
        let room = within(budgets, Section::Conversation, chosen);
        let (budget, low) = (budgets.of(Section::Conversation), budgets.low_mark(self.config));
        self.cut(room, low, chosen)?;
        chosen.window = Window::Cut { budget, low };
        Ok(())
    }

    /// What a window may take that is to stay as it is: its budget, or where documents leave it in this plan its low mark,
    /// because the prompt is another one from there on anyway (rules S5, S10).
    fn for_the_window(&self, budgets: &Budgets) -> (u64, BudgetVariable) {
        if self.costs.rendering().cuts {
            (budgets.low_mark(self.config), BudgetVariable::LowMark)
        } else {
            (budgets.of(Section::Conversation), BudgetVariable::Conversation)
        }
    }

    /// The walk of rule S4 with the low mark as its limit, and no further back than where the window started. The newest
    /// turn before the live one is kept beyond the mark, where it fits: a prompt of the question alone answers nothing.
    fn cut(&self, room: Room, low: u64, chosen: &mut Selection) -> Result<(), Error> {
        let left = left_of(low, Section::Conversation, chosen);
        let newest = self.newest_answered(room, left, chosen)?;
        let room = room.at_most(newest.unwrap_or(left), BudgetVariable::LowMark);
        self.walk(room, LimitedBy::StickyWindow, self.index.window_start, chosen)
    }

    /// The minimum, and where it fits the pins: those that come before everything else, then those that fit their
    /// section's budget.
    fn required_and_pinned(&self, budgets: &Budgets) -> Result<Selection, Error> {
        if budgets.overflow {
            return self.required();
        }
        let known = self.trails.pinned_first.take().filter(|(tokens, _)| *tokens == budgets.available.tokens);
        let mut chosen = match known {
            Some((_, chosen)) => chosen,
            None => {
                let mut chosen = self.required()?;
                self.take_pins_first(&budgets.available, &mut chosen)?;
                chosen
            }
        };
        let room = within(budgets, Section::SystemPinned, &chosen);
        self.take_pins(room, &mut chosen)?;
        Ok(chosen)
    }

    fn required(&self) -> Result<Selection, Error> {
        let mut chosen = Selection::begin(self.index);
        for (id, section, reason) in self.index.minimum() {
            chosen.keep(id, section, reason, self.costs.whole(id)?);
        }
        Ok(chosen)
    }

    /// What pins take of all that the minimum leaves, before the sections divide the rest (rule S2).
    ///
    /// # Errors
    ///
    /// Whatever counting the candidates runs into.
    pub(crate) fn pins_first(&self, available: &Available) -> Result<PinsTaken, Error> {
        let mut chosen = self.required()?;
        let before = chosen.used[Section::SystemPinned as usize];
        self.take_pins_first(available, &mut chosen)?;
        let tokens = chosen.used[Section::SystemPinned as usize] - before;
        let taken = PinsTaken { tokens, merges: saved_by_merging(self.index, available, &chosen) > 0 };
        self.trails.pinned_first.replace(Some((available.tokens, chosen)));
        Ok(taken)
    }

    fn take_pins_first(&self, available: &Available, chosen: &mut Selection) -> Result<(), Error> {
        self.take_pins(self.for_pins(available, chosen)?, chosen)?;
        chosen.first_offer = FirstOffer {
            dropped: std::mem::take(&mut chosen.dropped_pins),
            notes_passed_over: std::mem::take(&mut chosen.notes_passed_over),
        };
        Ok(())
    }

    /// The reasons of notes that were passed over.
    fn dropped_notes<'a>(
        &'a self,
        passed_over: &'a [PassedOver],
        chosen: &'a Selection,
    ) -> impl Iterator<Item = (CandidateId, ExcludedReason)> + 'a {
        let reasons = passed_over.iter().flat_map(|one| one.reasons(&chosen.pins));
        reasons.map(|(slot, reason)| (self.costs.id_at(List::Notes, slot), reason))
    }

    /// The minimum exceeds the budget: everything else is excluded unexamined.
    fn give_up(&self, chosen: &mut Selection) {
        let reason = ExcludedReason::Budget { room: 0, limited_by: LimitedBy::Overflow };
        for pin in &self.index.pins {
            if !chosen.has(pin.id) {
                chosen.dropped_pins.insert(pin.id, reason.clone());
            }
        }
        for (rank, document) in self.index.documents() {
            if document.out.is_none() {
                chosen.dropped_documents.insert(CandidateId::Document(rank), reason.clone());
            }
        }
        chosen.before_window = Some(reason);
    }
}

/// What is left of a section's own budget.
fn within(budgets: &Budgets, section: Section, chosen: &Selection) -> Room {
    let left = left_of(budgets.of(section), section, chosen);
    Room::of(left, BudgetVariable::budget(section))
}

fn left_of(budget: u64, section: Section, chosen: &Selection) -> u64 {
    budget.saturating_sub(chosen.used[section as usize])
}

#[cfg(test)]
pub(crate) use tree::tests::visited;
