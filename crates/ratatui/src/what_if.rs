//! Trials of a plan: another budget, changed pins, expired items, excluded documents. The conversation itself
//! does not change.

use super::RowExplanation;
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Error, ItemId, PlanRequest, Priority, RagItem,
    RequestLimits, Ttl, plan::Decision,
};
use context_window_report as report;
use std::collections::{BTreeMap, BTreeSet};

/// A trial: a set of changes to try. It is plain data: the application plans with it, and shows or discards
/// the result.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::WhatIf;
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_rag([(0.1, "hours", "Open from 9 to 18.")]);
/// let what_if = WhatIf::new().with_budget(Some(30)).with_excluded("hours", true);
/// let plan = what_if.plan(&manager, &request)?;
/// assert_eq!(plan.prompt_budget, 30);
/// assert!(plan.find("hours").is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIf {
    budget: Option<u64>,
    pub(super) pins: BTreeMap<ItemId, bool>,
    pub(super) expired: BTreeMap<ItemId, bool>,
    excluded: BTreeSet<ItemId>,
}

impl WhatIf {
    /// Creates a trial without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another prompt budget in tokens. `None` means the request's own budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<u64>) -> Self {
        self.budget = budget;
        self
    }

    /// Pins a message with high priority, unpins a message, removes a note, or keeps or drops a rule of the
    /// user.
    #[must_use]
    pub fn with_pin(mut self, id: impl Into<ItemId>, pinned: bool) -> Self {
        self.pins.insert(id.into(), pinned);
        self
    }

    /// Sets a message or note to expired, or gives it one more turn.
    #[must_use]
    pub fn with_expired(mut self, id: impl Into<ItemId>, expired: bool) -> Self {
        self.expired.insert(id.into(), expired);
        self
    }

    /// Excludes a document from the request, or includes it again.
    #[must_use]
    pub fn with_excluded(mut self, id: impl Into<ItemId>, excluded: bool) -> Self {
        let id = id.into();
        if excluded {
            self.excluded.insert(id);
        } else {
            self.excluded.remove(&id);
        }
        self
    }

    /// Returns the tried prompt budget in tokens. Returns `None` for the request's own budget.
    #[must_use]
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// Returns the items with a changed pin. The value is true if the item is pinned.
    #[must_use]
    pub fn pins(&self) -> &BTreeMap<ItemId, bool> {
        &self.pins
    }

    /// Returns the items with a changed TTL. The value is true if the item has expired.
    #[must_use]
    pub fn expired(&self) -> &BTreeMap<ItemId, bool> {
        &self.expired
    }

    /// Returns the excluded documents.
    #[must_use]
    pub fn excluded(&self) -> &BTreeSet<ItemId> {
        &self.excluded
    }

    /// Returns the items that the request no longer contains: excluded documents, then unpinned items, both
    /// sorted by id. The flag is true for a document. Unpinned messages are among them, although a plan still
    /// has a row for each.
    pub fn left_out(&self) -> impl Iterator<Item = (&ItemId, bool)> {
        let notes = self.pins.iter().filter(|(_, pinned)| !**pinned).map(|(id, _)| (id, false));
        self.excluded.iter().map(|id| (id, true)).chain(notes)
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.budget.is_some()) + self.items()
    }

    /// Returns true if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of changed items.
    pub(super) fn items(&self) -> usize {
        self.pins.len() + self.expired.len() + self.excluded.len()
    }

    /// Checks if two trials differ at most in their budgets.
    pub(super) fn same_items(&self, other: &Self) -> bool {
        (&self.pins, &self.expired, &self.excluded) == (&other.pins, &other.expired, &other.excluded)
    }

    /// Returns the limits of a request under these changes.
    #[must_use]
    pub fn limits(&self, mut limits: RequestLimits) -> RequestLimits {
        limits.prompt_budget = self.budget.or(limits.prompt_budget);
        limits
    }

    /// Applies the changes of items to a conversation: a copy to try them, or the original to keep them.
    /// Unknown ids are ignored.
    pub fn apply(&self, log: &mut Conversation) {
        for (id, pinned) in &self.pins {
            // A search for rules reads the whole conversation, so it is only for ids of nothing else.
            let is_item = log.has_note(id) || log.position_of_message(id.as_str()).is_some();
            let rule = if is_item { None } else { log.rule(id) };
            // An error means an unknown id, which is ignored.
            match (pinned, rule) {
                (true, Some(rule)) => drop(log.keep_rule(rule)),
                (true, None) => drop(log.pin_message(id, Priority::High)),
                (false, Some(_)) => drop(log.drop_rule(id)),
                (false, None) => drop(log.unpin(id)),
            }
        }
        for (id, expired) in &self.expired {
            // An expired item counts as asked. Otherwise the policy `ask` would include it with a question
            // instead of excluding it.
            let ttl = if *expired { Ttl::NoneRemaining } else { Ttl::turns(1) };
            let _ = log.restore_ttl(id.clone(), ttl, *expired);
        }
    }

    /// Returns true if the document stays in the request.
    #[must_use]
    pub fn keeps_document(&self, document: &RagItem) -> bool {
        !self.excluded.contains(document.id())
    }

    /// Calls `ask` with a request under these changes, and returns its result. For another budget, the last
    /// prompt counts as built under that budget too, as in explanations (sticky window, rule S5).
    pub fn apply_to_request<T>(
        &self,
        request: &PlanRequest<'_>,
        ask: impl FnOnce(&PlanRequest<'_>) -> T,
    ) -> T {
        if self.is_empty() {
            return ask(request);
        }
        // The changes apply to a copy. The caller's conversation stays as it is.
        let mut log = request.log.clone();
        let previous = request.previous.as_ref().or(log.anchor()).cloned();
        self.apply(&mut log);
        let mut tried = request.clone();
        (tried.log, tried.limits) = (&log, self.limits(request.limits));
        tried.rag.retain(|document| self.keeps_document(document));
        if let (Some(budget), Some(anchor)) = (self.budget, previous) {
            tried.previous = Some(anchor.with_prompt_budget(budget));
        }
        ask(&tried)
    }

    /// Plans a request under these changes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ContextWindowManager::build_plan`].
    pub fn plan(
        &self,
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
    ) -> Result<ContextPlan, Error> {
        self.apply_to_request(request, |request| manager.build_plan(request))
    }

    /// Explains a row of that plan, with the budgets that would change it, as text for an
    /// [`ItemDetail`](super::ItemDetail). This plans several times. For a long session, call it on another
    /// thread.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Explainer::explain`](context_window::analysis::Explainer::explain).
    pub fn explain(
        &self,
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
        row: Decision<'_>,
    ) -> Result<RowExplanation, Error> {
        self.apply_to_request(request, |request| {
            let of = row.qualified_id();
            let text = report::explanation(&manager.explainer(request).explain(&of)?).to_string();
            Ok(RowExplanation { item_id: of, text })
        })
    }
}
