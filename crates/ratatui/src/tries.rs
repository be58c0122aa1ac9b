//! A trial ([`WhatIf`]) in progress: budget steps, changes of items, and undo.

use super::{ItemTexts, NoticeAction, WhatIf, WhatIfEffect};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Error, ExcludedReason, IncludedReason, ItemKind,
    PlanRequest, Source,
    plan::{Decision, PolicyRule},
};
use context_window_report as report;
use std::fmt;

/// The outcome of a change that a user requested: a flag for a new plan, and a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    changed: bool,
    text: String,
}

impl Attempt {
    /// Returns true if the trial changed and needs a new plan.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changed
    }
}

/// Writes the change, or the reason for its refusal, as one printable line.
impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report::printable(&self.text))
    }
}

/// A trial that a user edits: its changes, the undo history, the session's budget, and the step size.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{ItemTexts, WhatIfState};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log =
///     Conversation::from([Message::user("Hi!"), Message::assistant("Hello."), Message::user("Refunds?")]);
/// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(400));
/// let plan = manager.build_plan(&request)?;
///
/// let mut state = WhatIfState::from_plan(&plan);
/// assert!(state.smaller()); // when `<` is pressed: 1 % of 400 less
/// assert_eq!(state.changes().budget(), Some(396));
/// let texts = ItemTexts::from_request(&request);
/// let attempt = state.toggle_pin(plan.find("m0").unwrap(), &texts);
/// assert_eq!(attempt.to_string(), "pinned m0 and its exchange");
/// let tried = state.changes().plan(&manager, &request)?; // the same request under these changes
/// assert_eq!(tried.reason("m0").unwrap().to_string(), "pinned");
/// assert!(state.undo() && state.undo() && state.changes().is_empty());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatIfState {
    changes: WhatIf,
    undo: Vec<WhatIf>,
    own: u64,
    largest: u64,
    /// The size of a budget step, in per mille of the session's own budget.
    step: u64,
}

/// Creates a state without a session budget. [`WhatIfState::set_base`] sets it.
impl Default for WhatIfState {
    fn default() -> Self {
        Self { changes: WhatIf::default(), undo: Vec::new(), own: 0, largest: 0, step: 10 }
    }
}

impl WhatIfState {
    /// Creates a state without changes, from a plan that was built without changes.
    #[must_use]
    pub fn from_plan(base: &ContextPlan) -> Self {
        let mut state = Self::default();
        state.set_base(base);
        state
    }

    /// Sets the session's own budget from a plan that was built without changes. Call it when that budget
    /// changes.
    pub fn set_base(&mut self, base: &ContextPlan) {
        self.own = base.prompt_budget;
        self.largest = base.limits.largest_budget().max(self.own);
    }

    /// Plans a request with and without the changes. Returns the plan with the changes, and their effect.
    /// Call it when the changes or the conversation differ.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ContextWindowManager::build_plan`].
    pub fn plan(
        &mut self,
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
    ) -> Result<(ContextPlan, WhatIfEffect), Error> {
        let base = manager.build_plan(request)?;
        self.set_base(&base);
        if self.changes.is_empty() {
            return Ok((base, WhatIfEffect::default()));
        }
        let plan = self.changes.plan(manager, request)?;
        let effect = WhatIfEffect::between(&base, &plan);
        Ok((plan, effect))
    }

    /// Returns the changes.
    #[must_use]
    pub fn changes(&self) -> &WhatIf {
        &self.changes
    }

    /// Returns the tried prompt budget in tokens, or the session's own if no other is tried.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.changes.budget().unwrap_or(self.own)
    }

    /// Returns the session's own prompt budget in tokens.
    #[must_use]
    pub fn own_budget(&self) -> u64 {
        self.own
    }

    /// Returns the largest prompt budget that the model allows, in tokens.
    #[must_use]
    pub fn largest_budget(&self) -> u64 {
        self.largest
    }

    /// Returns the size of a budget step, in per mille of the session's own budget: 1, 10 or 100.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Multiplies the step size by ten, up to 100 per mille.
    pub fn larger_steps(&mut self) {
        self.step = (self.step * 10).min(100);
    }

    /// Divides the step size by ten, down to 1 per mille.
    pub fn smaller_steps(&mut self) {
        self.step = (self.step / 10).max(1);
    }

    /// Raises the budget by a step, up to the model's limit. Returns true if the trial changed.
    pub fn larger(&mut self) -> bool {
        let most = self.largest.max(self.own);
        self.set_budget(self.budget().saturating_add(self.tokens_of_a_step()).min(most))
    }

    /// Lowers the budget by a step, down to 1 token. Returns true if the trial changed.
    pub fn smaller(&mut self) -> bool {
        self.set_budget(self.budget().saturating_sub(self.tokens_of_a_step()))
    }

    fn tokens_of_a_step(&self) -> u64 {
        (self.own.saturating_mul(self.step) / 1_000).max(1)
    }

    /// Sets the prompt budget in tokens, at least 1. Returns true if the trial changed.
    pub fn set_budget(&mut self, budget: u64) -> bool {
        // The session's own budget counts as no change, so that a trial can become empty again.
        let budget = Some(budget.max(1)).filter(|budget| *budget != self.own);
        self.set_changes(self.changes.clone().with_budget(budget))
    }

    /// Resets the prompt budget to the session's own. Returns true if the trial changed.
    pub fn reset_budget(&mut self) -> bool {
        self.set_changes(self.changes.clone().with_budget(None))
    }

    /// Replaces all changes. [`WhatIfState::undo`] reverts this. Returns true if the changes differ.
    pub fn set_changes(&mut self, changes: WhatIf) -> bool {
        if changes == self.changes {
            return false;
        }
        // Successive budget steps are undone together.
        let sliding = self.undo.last().is_some_and(|last| last.same_items(&changes))
            && self.changes.same_items(&changes);
        let before = std::mem::replace(&mut self.changes, changes);
        if !sliding {
            self.undo.push(before);
        }
        true
    }

    /// Reverts the last change. Returns false if there is none.
    pub fn undo(&mut self) -> bool {
        let last = self.undo.pop();
        let is_there = last.is_some();
        self.changes = last.unwrap_or_else(|| std::mem::take(&mut self.changes));
        is_there
    }

    /// Returns the number of changes that can be undone.
    #[must_use]
    pub fn undos(&self) -> usize {
        self.undo.len()
    }

    /// Pins or unpins an item, or keeps or drops a rule of the user. For a run, its newest message is pinned.
    /// A second call reverts the first one.
    pub fn toggle_pin(&mut self, row: Decision<'_>, texts: &ItemTexts<'_>) -> Attempt {
        let id = row.id().clone();
        if row.is_document() {
            return refused(format!("{id} is a document: documents cannot be pinned"));
        }
        if *row.kind() == ItemKind::Rule {
            return self.toggle_rule(row);
        }
        let is_pin = texts.log().is_some_and(|log| log.is_pinned(id.as_str()));
        let pinned = match row {
            Decision::Included(item) => item.source == Source::Pinned || is_pin,
            Decision::Excluded(_) => is_pin,
        };
        let is_message = texts.message(id.as_str()).is_some();
        if !is_message && !pinned {
            return refused(format!("{id} is not a message or note: it cannot be pinned"));
        }
        let text = match (pinned, row) {
            (true, _) if !is_message => {
                format!("unpinned {id}: an unpinned note is removed until you undo this")
            }
            (false, Decision::Excluded(row)) if row.count > 1 => {
                format!("pinned {id} (newest of {}-{id})", report::brief(row.id.as_str()))
            }
            (true, _) => format!("unpinned {id}"),
            (false, _) => format!("pinned {id} and its exchange"),
        };
        let mut changes = self.changes.clone();
        // Removing the entry instead of adding its opposite keeps the number of changes exact.
        if changes.pins.remove(&id).is_none() {
            changes.pins.insert(id, !pinned);
        }
        Attempt { changed: self.set_changes(changes), text }
    }

    /// Drops a rule of the user, or keeps one that waits for the user. A second call reverts the first one.
    fn toggle_rule(&mut self, row: Decision<'_>) -> Attempt {
        let id = row.id().clone();
        let unconfirmed = ExcludedReason::Policy(PolicyRule::Unconfirmed);
        let waits = matches!(row, Decision::Excluded(item) if item.reason == unconfirmed);
        let mut changes = self.changes.clone();
        let text = match changes.pins.remove(&id) {
            Some(_) => format!("{id} is as it was"),
            None => {
                changes.pins.insert(id.clone(), waits);
                let done = if waits { "kept" } else { "dropped" };
                format!("{done} the standing rule {id}")
            }
        };
        Attempt { changed: self.set_changes(changes), text }
    }

    /// Sets an item to expired, or gives an expired item one turn. A second call reverts the first one, even
    /// if the item is part of a run by then.
    pub fn toggle_expired(&mut self, row: Decision<'_>, texts: &ItemTexts<'_>) -> Attempt {
        // An item that expired may now be inside a run, whose row has another id.
        let turned = self.changes.expired.keys().find(|id| texts.represents(row, id.as_str()));
        let id = turned.unwrap_or(row.id()).clone();
        let is_pin = texts.log().is_some_and(|log| log.is_pinned(id.as_str()));
        if row.is_document() || texts.message(id.as_str()).is_none() && !is_pin {
            return refused(format!("{id} is not a message or note: it has no TTL"));
        }
        let expired = match row {
            Decision::Included(_) => false,
            Decision::Excluded(item) => matches!(item.reason, ExcludedReason::TtlExpired { .. }),
        };
        let text = match (self.changes.expired.contains_key(&id), expired) {
            (true, _) => format!("TTL of {id} restored"),
            (false, true) => {
                format!("{id} set to 1 turn left; the rest of its exchange may still be expired")
            }
            (false, false) => format!("{id} set to expired"),
        };
        let mut changes = self.changes.clone();
        if changes.expired.remove(&id).is_none() {
            changes.expired.insert(id, !expired);
        }
        Attempt { changed: self.set_changes(changes), text }
    }

    /// Excludes an item. A document is removed from the request, and a message or note expires. An excluded
    /// item returns with [`WhatIfState::undo`], a message also with [`WhatIfState::toggle_expired`].
    pub fn exclude(&mut self, row: Decision<'_>, texts: &ItemTexts<'_>) -> Attempt {
        let id = row.id().clone();
        if row.is_document() {
            let text = format!("{id} left out");
            return Attempt { changed: self.set_changes(self.changes.clone().with_excluded(id, true)), text };
        }
        match row {
            Decision::Included(item) if item.reason == IncludedReason::Required => {
                refused(format!("{id} is required: it cannot be excluded"))
            }
            Decision::Included(_) => self.toggle_expired(row, texts),
            Decision::Excluded(_) => refused(format!("{id} is already excluded")),
        }
    }

    /// Restores an item to the request, by its index in [`WhatIf::left_out`].
    pub fn bring_back(&mut self, nth: u32) -> Attempt {
        let mut changes = self.changes.clone();
        let Some((id, document)) = self.changes.left_out().nth(nth as usize) else {
            return refused("there is no left-out item at this position".into());
        };
        if document {
            changes = changes.with_excluded(id.clone(), false);
        } else {
            changes.pins.remove(id);
        }
        let text = format!("{id} is in the request again");
        Attempt { changed: self.set_changes(changes), text }
    }

    /// Tries the action of a notice. Returns true if the trial changed.
    pub fn try_action(&mut self, action: &NoticeAction, log: &Conversation) -> bool {
        let (changes, id) = (self.changes.clone(), action.id().clone());
        let is_note = log.has_note(&id);
        self.set_changes(match action {
            NoticeAction::Drop { .. } if is_note => changes.with_pin(id, false),
            NoticeAction::Drop { .. } => changes.with_expired(id, true),
            NoticeAction::DropRule { .. } => changes.with_pin(id, false),
            NoticeAction::KeepRule { .. } => changes.with_pin(id, true),
            NoticeAction::RePin { .. } if !is_note => changes.with_pin(id, true),
            NoticeAction::RePin { .. } | NoticeAction::Keep { .. } => changes.with_expired(id, false),
        })
    }
}

fn refused(text: String) -> Attempt {
    Attempt { changed: false, text }
}
