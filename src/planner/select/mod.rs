//! Selection of the candidates that are included, for one budget.
//!
//! - Input: candidates by id, order and cost ([`CandidateIndex`], [`Costs`]), and the budgets of the
//!   sections.
//! - Output: a [`Selection`].
//! - Rules: S2 to S5, S8, S9, B6.
//!
//! Selection is greedy, in a fixed order: the minimum, then pins, then the conversation from its newest turn
//! back, then documents by rank. Pins are offered all tokens that the minimum leaves, up to their limit (S2).
//! Then the rest is divided, and each section is offered its own budget.
//!
//! Tokens that are still free are offered again in the same order, as long as that includes something (B6):
//! the rest of one section may be enough for an item of another one. An included candidate is never excluded
//! again.
//!
//! Two rules keep each prompt similar to the last one (S5). The window of the conversation starts at the same
//! message while it fits, and is cut to a low mark otherwise. Documents stay while the question is the same.
//!
//! No candidate here holds a text, so no decision can depend on one. A [`Walker`] receives every comparison.

use crate::{
    config::Config,
    conversation::TurnIndex,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, IncludedReason},
    planner::{
        budget::{Available, BudgetVariable, Budgets, SectionDemands},
        candidates::{CandidateId, CandidateIndex, Costs, Rank, TakenDocuments},
        rendering::ToolResultRendering,
    },
    provider::weight::Weight,
};
use std::collections::BTreeMap;

mod slots;
mod room;
mod walker;
mod included;
mod free;
mod pinned;
mod window;
mod documents;
mod dependents;
mod groups;
mod reasons;

pub(crate) use free::{merges_state, saved_by_merging};
pub(crate) use included::Included;
pub(crate) use room::Room;
pub(crate) use slots::SlotSet;
pub(crate) use walker::{OneBudget, Walk, Walker};

/// The selection for one budget.
pub(crate) struct Selection<W: Walker = OneBudget> {
    pub(crate) included: Included<W>,
    pub(crate) reasons: ExclusionReasons,
    pub(crate) window: Window,
    /// The oldest candidate of the window.
    pub(crate) window_start: Option<CandidateId>,
    /// The oldest turn that the walk has completed: everything from it on that can be sent is included. A
    /// later walk continues before it.
    walked_to: Option<TurnIndex>,
    /// Pins inside the window that the conversation does not pay for, because free tokens may include them.
    awaited_pins: Vec<CandidateId>,
    /// True if the conversation pays for pins of its window that do not fit their own budget, as for ordinary
    /// messages. Otherwise the window relies on free tokens to include them.
    pub(crate) pays_for_pins: bool,
    /// True if none of the documents kept from the last prompt fits, so that all documents must be ranked
    /// again.
    pub(crate) set_does_not_fit: bool,
    /// The included documents, with the facts that further ones depend on.
    pub(crate) taken: TakenDocuments,
    /// The largest offer to documents, in tokens, while none was included.
    pub(crate) offered_to_documents: u64,
    /// The most tokens of recalled messages.
    most_recalled: u64,
}

/// The section that pays for an included candidate, and the reason to include it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inclusion {
    pub(crate) section: Section,
    pub(crate) reason: IncludedReason,
}

impl Inclusion {
    /// A candidate that the walk through the conversation includes.
    pub(crate) const WALKED: Self = Self { section: Section::Conversation, reason: IncludedReason::Recent };

    /// A candidate that a pin includes.
    pub(crate) const PINNED: Self = Self { section: Section::SystemPinned, reason: IncludedReason::Pinned };

    /// A rule of the user.
    pub(crate) const RULE: Self = Self { section: Section::SystemPinned, reason: IncludedReason::Rule };
}

/// Reasons of excluded candidates.
#[derive(Debug, Default)]
pub(crate) struct ExclusionReasons {
    /// Examined messages and exchanges that can never be sent as they are.
    pub(crate) ineligible: BTreeMap<CandidateId, ExcludedReason>,
    /// Pins that did not fit.
    pub(crate) pins: BTreeMap<CandidateId, ExcludedReason>,
    /// Pins that did not fit before the sections were divided (rule S2).
    pins_first: BTreeMap<CandidateId, ExcludedReason>,
    /// Pins that did not fit, and are excluded together with the expired user message of their turn.
    pub(crate) fallen_pins: BTreeMap<CandidateId, ExcludedReason>,
    /// Excluded competing documents, ascending by rank.
    documents: Vec<(Rank, ExcludedReason)>,
    /// Documents that left because the conversation contains them (rule S9).
    left_documents: BTreeMap<Rank, ExcludedReason>,
    /// Documents that an earlier offer found in another text.
    contained_documents: BTreeMap<Rank, ExcludedReason>,
    /// The reason for everything older than the point at which the walk stopped.
    pub(crate) before_window: Option<ExcludedReason>,
}

/// The origin of the window of the conversation (rule S5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// As much of the conversation as fits: there is no last window to continue.
    Fresh,
    /// The window starts at the same message as the last one.
    Sticky,
    /// The last window no longer fitted, and was cut.
    Cut {
        /// The budget of the conversation in tokens.
        budget: u64,
        /// The low mark in tokens.
        low: u64,
    },
}

impl ExclusionReasons {
    /// Returns the reason of a competing document that is excluded.
    pub(crate) fn of_document(&self, rank: Rank) -> Option<&ExcludedReason> {
        let at = self.documents.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
        Some(&self.documents[at].1)
    }

    /// Returns the reason of a document that an earlier offer found in another text. Returns `None` if a
    /// document has left since, because the text may have been that document.
    fn of_contained_document(&self, rank: Rank) -> Option<&ExcludedReason> {
        if self.left_documents.is_empty() { self.contained_documents.get(&rank) } else { None }
    }

    /// Records the documents that other texts contain.
    fn add_contained_documents(&mut self, excluded: &[(Rank, ExcludedReason)]) {
        use ExcludedReason::{InWindow, NearDuplicate, Repeats};
        let is_contained = |reason: &ExcludedReason| {
            matches!(reason, InWindow { .. } | NearDuplicate { .. } | Repeats { .. })
        };
        let contained = excluded.iter().filter(|(_, reason)| is_contained(reason));
        self.contained_documents.extend(contained.cloned());
    }
}

impl<W: Walker> Selection<W> {
    pub(crate) fn new(index: &CandidateIndex<'_>) -> Self {
        Self {
            included: Included::new(index),
            reasons: ExclusionReasons::default(),
            window: Window::Fresh,
            window_start: None,
            walked_to: None,
            awaited_pins: Vec::new(),
            pays_for_pins: false,
            set_does_not_fit: false,
            taken: TakenDocuments::default(),
            offered_to_documents: 0,
            most_recalled: 0,
        }
    }

    /// Checks if a candidate other than a document is included.
    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.included.has(id)
    }

    /// Checks if a document is included, so that the wrapper around documents is sent.
    pub(crate) fn has_documents(&self) -> bool {
        !self.included.documents.is_empty()
    }
}

/// The rules of selection for one request, with the costs of one rendering of its tool results (rule S7).
pub(crate) struct Selector<'p, W> {
    pub(crate) index: &'p CandidateIndex<'p>,
    pub(crate) costs: Costs<'p>,
    pub(crate) demands: SectionDemands,
    pub(crate) config: &'p Config,
    pub(crate) walker: W,
}

impl<W: Walker> Selector<'_, W> {
    /// Divides the available tokens among the sections, and includes the pins that come first (rules S2, B4,
    /// B5). If the minimum exceeds the available tokens, includes the minimum alone (rule S6). `adjust`
    /// changes the demands of the sections.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn divide(
        &self,
        available: Available,
        adjust: fn(SectionDemands) -> SectionDemands,
    ) -> Result<(Budgets, Selection<W>), Error> {
        let demands = adjust(self.demands);
        let report = |amount, least| self.walker.compared(BudgetVariable::Free, amount, least);
        if demands.overflow(&available, report) {
            return Ok((demands.only_minimums(available, self.config), self.minimum()?));
        }
        let (chosen, pins) = self.pins_first(&available)?;
        let merges = saved_by_merging(self.index, &available, &chosen) > 0;
        Ok((demands.divide(available, pins, merges, self.config, report), chosen))
    }

    /// Returns a selection of the minimum alone, which its sections pay for.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn minimum(&self) -> Result<Selection<W>, Error> {
        let mut chosen = Selection::new(self.index);
        for (id, section, reason) in self.index.minimum() {
            chosen.included.keep(id, Inclusion { section, reason }, self.costs.whole(id)?);
        }
        Ok(chosen)
    }

    /// Includes the minimum, and then the pins that are tried before the remaining tokens are divided among
    /// the sections (rule S2). Returns the selection, and the tokens of those pins.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn pins_first(&self, available: &Available) -> Result<(Selection<W>, u64), Error> {
        let mut chosen = self.minimum()?;
        let before = chosen.included.used_by(Section::SystemPinned);
        self.offer_to_pins(self.room_for_pins(available, &chosen)?, &mut chosen)?;
        // Later offers replace the reasons of pins, and the report needs those of the first offer too.
        chosen.reasons.pins_first = std::mem::take(&mut chosen.reasons.pins);
        let tokens = chosen.included.used_by(Section::SystemPinned) - before;
        Ok((chosen, tokens))
    }

    /// Completes a selection of the minimum and the first pins: adds further pins, the window and documents.
    /// Returns another rendering if that is to be tried instead.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn select(
        &self,
        budgets: &Budgets,
        chosen: &mut Selection<W>,
    ) -> Result<Option<ToolResultRendering>, Error> {
        match self.begin(budgets, chosen)? {
            Some(other) => Ok(Some(other)),
            None => self.complete(budgets, chosen),
        }
    }

    /// Continues a selection of the minimum and the first pins: adds further pins and the window.
    ///
    /// Offers pins their section's budget. Then includes the last prompt's window if it fits, or else as much
    /// of the conversation as fits. Returns a rendering with shorter tool results if that is to be tried
    /// instead (rule S7): those of the open exchange if the minimum does not fit, old ones if the window does
    /// not fit.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    fn begin(
        &self,
        budgets: &Budgets,
        chosen: &mut Selection<W>,
    ) -> Result<Option<ToolResultRendering>, Error> {
        if budgets.overflow {
            return self.shorter_minimum(budgets);
        }
        self.offer_to_pins(within(budgets, Section::SystemPinned, chosen), chosen)?;
        let Some(start) = self.index.window_start else {
            self.include_window(within(budgets, Section::Conversation, chosen), chosen)?;
            return Ok(None);
        };
        // An earlier rendering found that the window does not fit, and recalled messages leave it even less.
        if self.costs.rendering().counts_recalled {
            self.cut_window(budgets, chosen)?;
            return Ok(None);
        }
        // Pins of the last window that did not fit their own budget may fit into free tokens. If all of them
        // do, the conversation does not pay for them, and the window starts where the last one did.
        if self.resume(start, self.room_for_resuming(budgets, chosen), chosen)? {
            return Ok(None);
        }
        let shorter = self.shorter_old_results(start, budgets)?.or_else(|| self.counting_recalled());
        if shorter.is_none() {
            self.cut_window(budgets, chosen)?;
        }
        Ok(shorter)
    }

    /// Completes a selection that has its window: includes documents, then offers the free tokens (rule B6).
    /// If the window relies on pins that do not fit, selects again with a window that pays for them. Returns
    /// a rendering to be tried instead if that window is cut.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    fn complete(
        &self,
        budgets: &Budgets,
        chosen: &mut Selection<W>,
    ) -> Result<Option<ToolResultRendering>, Error> {
        if budgets.overflow {
            return Ok(None);
        }
        self.fill(budgets, chosen)?;
        let start = self.index.window_start.filter(|_| !chosen.set_does_not_fit);
        let Some(start) = start else { return Ok(None) };
        if !self.lacks_awaited_pins(chosen)? {
            return Ok(None);
        }
        // Everything after the first pins depends on the window, so the selection starts again from there.
        *chosen = self.pins_first(&budgets.available)?.0;
        chosen.pays_for_pins = true;
        self.offer_to_pins(within(budgets, Section::SystemPinned, chosen), chosen)?;
        if !self.resume(start, self.room_for_resuming(budgets, chosen), chosen)? {
            let counting = self.counting_recalled();
            if counting.is_some() {
                return Ok(counting);
            }
            self.cut_window(budgets, chosen)?;
        }
        self.fill(budgets, chosen)?;
        Ok(None)
    }

    /// Returns a rendering in which recalled messages count as a demand. Returns `None` if there are none, or
    /// if they count already (rule S15).
    fn counting_recalled(&self) -> Option<ToolResultRendering> {
        let rendering = self.costs.rendering();
        let is_new = !rendering.counts_recalled && self.index.has_recalled;
        is_new.then(|| ToolResultRendering { counts_recalled: true, ..rendering.clone() })
    }

    /// Offers documents their section's budget. Then offers all free tokens to pins, window and documents, as
    /// long as that includes something.
    fn fill(&self, budgets: &Budgets, chosen: &mut Selection<W>) -> Result<(), Error> {
        chosen.most_recalled = budgets.available.recall_share(self.config.rag.recall_share);
        self.offer_budget_to_documents(budgets, chosen)?;
        let mut available = budgets.available;
        // Terminates: each further pass includes an item, lets a document leave for good, gives one a fuller
        // form, or gives up the reserve once.
        loop {
            let state = |chosen: &Selection<W>| {
                (chosen.included.count(), chosen.reasons.left_documents.len(), chosen.taken.grown())
            };
            let before = state(chosen);
            self.offer_to_pins(self.free(Section::SystemPinned, &available, chosen), chosen)?;
            self.include_window(self.free(Section::Conversation, &available, chosen), chosen)?;
            // The conversation may have grown onto the text of a document.
            self.drop_repeats(chosen);
            let room = self.free_for_documents(budgets, &available, chosen);
            self.offer_to_documents(room, budgets.full_document_share(), chosen)?;
            if chosen.set_does_not_fit {
                return Ok(());
            }
            if state(chosen) == before {
                // Tokens reserved for the wrapper around documents are offered once if no document is
                // included.
                let has_block = !available.reserves_block || chosen.has_documents();
                if has_block && self.offer_the_rest(budgets, &available, chosen)? {
                    return Ok(());
                }
                available.reserves_block = false;
            }
        }
    }

    /// Offers the tokens that nothing else can use: to rules of the user, if a pin is left out, then to
    /// fuller forms of documents, then to dependents. Returns false if tokens became free, before dependents
    /// are offered any.
    fn offer_the_rest(
        &self,
        budgets: &Budgets,
        available: &Available,
        chosen: &mut Selection<W>,
    ) -> Result<bool, Error> {
        self.offer_to_rules(self.free(Section::SystemPinned, available, chosen), chosen)?;
        let (used, share) = (chosen.included.used(), budgets.full_document_share());
        self.grow_documents(self.free_for_documents(budgets, available, chosen), share, chosen)?;
        // A whole text that continues another one may be smaller than a form of its own.
        if chosen.included.used() < used {
            return Ok(false);
        }
        self.offer_to_dependents(self.free_for_documents(budgets, available, chosen), share, chosen)?;
        Ok(true)
    }

    /// Checks if the window relies on a pin that is excluded.
    fn lacks_awaited_pins(&self, chosen: &mut Selection<W>) -> Result<bool, Error> {
        Ok(self.walker.lacks_awaited_pins(self, chosen)?
            || chosen.awaited_pins.iter().any(|pin| !chosen.has(*pin)))
    }

    /// Returns a rendering with shorter tool results for a minimum that does not fit: without retained texts,
    /// then clipped.
    fn shorter_minimum(&self, budgets: &Budgets) -> Result<Option<ToolResultRendering>, Error> {
        match self.costs.releasing_everything() {
            Some(released) => Ok(Some(released)),
            // The length of a clipped result depends on the exact budget. With many budgets, an overflow is
            // therefore reported for the minimum only (E1).
            None if self.costs.largest_budget().is_some() => Ok(None),
            None => self.costs.clipped(budgets.minimum, budgets.minimum_budget()),
        }
    }

    /// Returns a rendering with shorter tool results if the last prompt's window from `start` on does not
    /// fit: without retained texts of earlier turns, then with old results cleared.
    fn shorter_old_results(
        &self,
        start: CandidateId,
        budgets: &Budgets,
    ) -> Result<Option<ToolResultRendering>, Error> {
        if let Some(released) = self.costs.releasing_earlier_turns() {
            return Ok(Some(released));
        }
        let budget = self.budget_for_resuming(budgets).0;
        let room = Room::new(budget, BudgetVariable::Conversation);
        self.costs.cleared_further(start, budget, |left| match u64::try_from(left) {
            Ok(left) => self.walker.fits(room, left),
            Err(_) => self.walker.too_large(room, u64::try_from(-left).unwrap_or(u64::MAX)),
        })
    }

    /// Compares the cost of a candidate with its offer, and reports the difference to the walker.
    fn offer(&self, id: CandidateId, left: u64, room: Room) -> Result<Weight, Error> {
        self.compare(left, room, |limit| self.costs.weigh(id, limit))
    }

    /// Compares the cost that `count` returns with an offer, and reports the difference to the walker.
    /// `count` counts up to its argument.
    fn compare(
        &self,
        left: u64,
        room: Room,
        count: impl FnOnce(u64) -> Result<Weight, Error>,
    ) -> Result<Weight, Error> {
        // An explanation counts further than `left`, to learn by how much a candidate is too large.
        Ok(match count(self.walker.count_to(room, left))? {
            Weight::Exactly(n) if n <= left => {
                self.walker.fits(room, left - n);
                Weight::Exactly(n)
            }
            Weight::Exactly(n) => {
                self.walker.too_large(room, n - left);
                Weight::Over
            }
            Weight::Over => Weight::Over,
        })
    }
}

/// Returns the room that is left of a section's own budget.
fn within<W: Walker>(budgets: &Budgets, section: Section, chosen: &Selection<W>) -> Room {
    let left = left_of(budgets.budget(section), section, chosen);
    Room::new(left, BudgetVariable::budget(section))
}

/// Returns the rest of a budget after the tokens that a section already uses.
fn left_of<W: Walker>(budget: u64, section: Section, chosen: &Selection<W>) -> u64 {
    budget.saturating_sub(chosen.included.used_by(section))
}
