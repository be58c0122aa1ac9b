//! The changes that resolve an overflow (rule S6), each confirmed by planning again.

use crate::{
    analysis::Explainer,
    error::Error,
    item::{ItemId, ItemKind},
    plan::{ContextPlan, PlannedItem, Remedy},
    planner::request::PlanRequest,
    provider::model::Limits,
    tokens::TokenCount,
};

/// A change that makes an overflowing request fit, confirmed by planning with it.
///
/// It holds the figures of that plan, but not the plan itself. In that plan a shortened text is cut at an
/// arbitrary point, and no existing request has the changed limits or pins. Make the change, then plan the
/// changed request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConfirmedRemedy {
    /// The change.
    pub remedy: Remedy,
    /// The token count of the prompt with the change.
    pub estimated_tokens_total: TokenCount,
    /// The prompt budget with the change, in tokens.
    pub prompt_budget: u64,
    /// The limits in use with the change.
    pub limits: Limits,
}

impl ConfirmedRemedy {
    /// Returns the change with the figures of its plan, or `None` if that plan still overflows.
    fn confirmed(remedy: Remedy, plan: &ContextPlan) -> Option<Self> {
        let ContextPlan { estimated_tokens_total: total, prompt_budget, limits, .. } = *plan;
        plan.overflow.is_none().then_some(Self {
            remedy,
            estimated_tokens_total: total,
            prompt_budget,
            limits,
        })
    }
}

/// The most tokens beyond the proposed number that a text may lose, because its tokens also depend on the
/// joins with its neighbours (joins, rule N3).
const JOINS: u64 = 8;

impl Explainer<'_> {
    /// Returns the changes that make an overflowing request fit, each confirmed by planning with that change
    /// alone. The list is empty if the request fits.
    ///
    /// # Errors
    ///
    /// Any error of planning.
    pub fn remedies(&self) -> Result<Vec<ConfirmedRemedy>, Error> {
        let ContextPlan { overflow: Some(overflow), included, .. } = self.manager.plan(self.request)? else {
            return Ok(Vec::new());
        };
        let mut confirmed = Vec::new();
        for remedy in overflow.remedies {
            let plan = self.with_remedy(&remedy, &included)?;
            confirmed.extend(plan.and_then(|plan| ConfirmedRemedy::confirmed(remedy, &plan)));
        }
        Ok(confirmed)
    }

    /// Returns the plan with one change made, or `None` if the change cannot be made.
    fn with_remedy(&self, remedy: &Remedy, rows: &[PlannedItem]) -> Result<Option<ContextPlan>, Error> {
        let Self { manager, request } = *self;
        let mut changed = request.clone();
        match remedy {
            Remedy::RaiseBudget { to } => changed.limits.prompt_budget = Some(*to),
            Remedy::LowerCompletion { to } => changed.limits.max_completion_tokens = Some(*to),
            Remedy::Unpin { id } => {
                let mut log = request.log.clone();
                log.unpin(id.clone());
                return manager.plan(&PlanRequest { log: &log, ..changed }).map(Some);
            }
            Remedy::Shorten { id, by } => return self.with_less(id, *by, rows),
        }
        // Planned as if the last prompt had been made under the changed limits (sticky window, rule S5).
        let sticky = manager.sticky(request, &manager.context(request)?);
        manager.plan_from(&changed, &manager.context(&changed)?, sticky).map(Some)
    }

    /// Returns the plan with the text of an item cut at its end. Returns `None` if no text has the id, or if
    /// it has too few tokens.
    fn with_less(&self, id: &ItemId, by: u64, rows: &[PlannedItem]) -> Result<Option<ContextPlan>, Error> {
        let Self { manager, request } = *self;
        let state = request.state.iter().position(|(name, _)| name == id);
        let is_focus = rows.iter().any(|row| row.id == *id && row.kind == ItemKind::FocusHint);
        let text = match state {
            Some(at) => request.state[at].1.clone(),
            None if is_focus => request.focus.clone().unwrap_or_default(),
            None => match request.log.text_of(id) {
                Some(text) => text.to_owned(),
                None => return Ok(None),
            },
        };
        let tokens = manager.counter().count(&text)?.tokens;
        let mut plan = None;
        // Each round cuts one token more, because joins may make a cut text larger than its own count.
        for more in 0..=JOINS {
            let Some(left) = tokens.checked_sub(by.saturating_add(more)) else { break };
            let (cut, _) = manager.counter().prefix_within(&text, left)?;
            let mut changed = request.clone();
            let mut log = request.log.clone();
            match state {
                Some(at) => cut.clone_into(&mut changed.state[at].1),
                None if is_focus => changed.focus = Some(cut.to_owned()),
                None => log.replace_text(id, cut),
            }
            let tried = manager.plan(&PlanRequest { log: &log, ..changed })?;
            let fits = tried.overflow.is_none();
            plan = Some(tried);
            if fits {
                break;
            }
        }
        Ok(plan)
    }
}
