//! What-ifs: another budget, pins, expired items, documents left out. The conversation itself does not
//! change.

use super::RowExplanation;
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Error, ItemId, PlanRequest, Priority, RagItem,
    RequestLimits, Ttl, plan::Decision,
};
use context_window_report as report;
use std::collections::{BTreeMap, BTreeSet};

/// Changes that are tried. Plain data: the application plans with it, and shows or drops what comes of it.
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
    /// Nothing is tried.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another prompt budget in tokens; none for the request's own.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<u64>) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a message that is pinned (priority high) or unpinned, or a note that is removed.
    #[must_use]
    pub fn with_pin(mut self, id: impl Into<ItemId>, pinned: bool) -> Self {
        self.pins.insert(id.into(), pinned);
        self
    }

    /// Sets a message or note whose TTL ran out, or that has one turn left.
    #[must_use]
    pub fn with_expired(mut self, id: impl Into<ItemId>, expired: bool) -> Self {
        self.expired.insert(id.into(), expired);
        self
    }

    /// Sets a document that the request does not have, or has again.
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

    /// Returns the prompt budget that is tried, in tokens.
    #[must_use]
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// Items whose pin is changed: whether each is pinned.
    #[must_use]
    pub fn pins(&self) -> &BTreeMap<ItemId, bool> {
        &self.pins
    }

    /// Items whose TTL is changed: whether each has expired.
    #[must_use]
    pub fn expired(&self) -> &BTreeMap<ItemId, bool> {
        &self.expired
    }

    /// Documents that are left out.
    #[must_use]
    pub fn excluded(&self) -> &BTreeSet<ItemId> {
        &self.excluded
    }

    /// Items that the request no longer has, and whether each is a document: excluded documents and removed
    /// notes, in the order of their ids. Messages whose pin is taken away are among them; a plan still has a
    /// row for those.
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

    /// Changes of items.
    pub(super) fn items(&self) -> usize {
        self.pins.len() + self.expired.len() + self.excluded.len()
    }

    /// Returns true if another one differs in its budget only.
    pub(super) fn same_items(&self, other: &Self) -> bool {
        (&self.pins, &self.expired, &self.excluded) == (&other.pins, &other.expired, &other.excluded)
    }

    /// Returns the limits of a request under these changes.
    #[must_use]
    pub fn limits(&self, mut limits: RequestLimits) -> RequestLimits {
        limits.prompt_budget = self.budget.or(limits.prompt_budget);
        limits
    }

    /// Makes the changes of items in a conversation: a copy to try them, or the conversation itself to keep
    /// them. Ids that it does not have are passed over.
    pub fn apply(&self, log: &mut Conversation) {
        for (id, pinned) in &self.pins {
            if *pinned {
                let _ = log.pin_message(id, Priority::High);
            } else {
                log.unpin(id);
            }
        }
        for (id, expired) in &self.expired {
            // An item that is tried as expired is excluded under the policy `ask` too: its question counts as
            // asked.
            let ttl = if *expired { Ttl::NoneRemaining } else { Ttl::turns(1) };
            let _ = log.restore_ttl(id.clone(), ttl, *expired);
        }
    }

    /// Returns true if a document stays in the request.
    #[must_use]
    pub fn keeps_document(&self, document: &RagItem) -> bool {
        !self.excluded.contains(document.id())
    }

    /// Asks something about a request under these changes. Another budget is tried as if the last prompt had
    /// been made under it too, as explanations do (rule S5).
    pub fn apply_to_request<T>(
        &self,
        request: &PlanRequest<'_>,
        ask: impl FnOnce(&PlanRequest<'_>) -> T,
    ) -> T {
        if self.is_empty() {
            return ask(request);
        }
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

    /// Returns the plan of a request under these changes.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    pub fn plan(
        &self,
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
    ) -> Result<ContextPlan, Error> {
        self.apply_to_request(request, |request| manager.build_plan(request))
    }

    /// Explains a row of that plan, and the budgets that would change it, as text for an
    /// [`ItemDetail`](super::ItemDetail). It plans several times: for a long session call it on another
    /// thread.
    ///
    /// # Errors
    ///
    /// As [`Explainer::explain`](context_window::analysis::Explainer::explain).
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
