//! Advice about a prompt that is nearly full, tried by planning again before it is given (rule E6).

use crate::{
    analysis::Explainer,
    config::{Config, ReasoningPolicy, ToolResults},
    error::Error,
    item::Section,
    plan::{ContextPlan, Kind, NoticeCode},
    planner::request::PlanRequest,
    text::plain::per_cent,
};

/// From this percentage of the budget on a prompt is nearly full.
const NEARLY_FULL: u64 = 60;

/// From this percentage of the prompt on a kind is worth advice.
const LARGE_SHARE: u64 = 40;

/// A change that was tried, and its effect in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The change.
    pub change: AdvisedChange,
    /// Tokens in the present prompt: of the kind that the change is about, or of the whole prompt for a
    /// compaction.
    pub before: u64,
    /// Tokens of the same in the prompt that is planned with the change: at least a tenth less.
    pub after: u64,
}

/// A change of the options or of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvisedChange {
    /// `conversation.tool_results = "clear"`; the tokens are those of tool results.
    ClearResults {
        /// Number of results that are then sent as stubs.
        results: u64,
    },
    /// `rag.max_items`; the tokens are those of documents.
    LimitDocuments {
        /// Value of the option.
        max_items: u64,
    },
    /// `conversation.reasoning = "drop"`; the tokens are those of reasoning.
    DropReasoning,
    /// A compaction without a model, by [`Compactor::now`](crate::compaction::Compactor::now) and
    /// [`Compactor::compact_without_model`](crate::compaction::Compactor::compact_without_model); the tokens
    /// are those of the whole prompt.
    Compact {
        /// Number of messages that it archives.
        messages: u64,
    },
}

impl Explainer<'_> {
    /// Returns a change that takes at least a tenth off the kind that fills most of a nearly full prompt,
    /// confirmed by planning with that change and nothing else. `plan` is the plan of this request. Returns
    /// `None` if the prompt is less than 60 % of its budget, no kind takes 40 % of it, or no change helps.
    ///
    /// A compaction counts the conversation in full, so this takes longer than the plan.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`](crate::ContextWindowManager::build_plan).
    ///
    /// ```
    /// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter};
    /// use context_window::analysis::AdvisedChange;
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
    /// let mut log = Conversation::from([Message::user("Where is my parcel? ".repeat(40)), Message::assistant("In Bremen.")]);
    /// log.push(Message::user("When will it be here?"));
    /// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(300));
    /// let plan = manager.build_plan(&request)?;
    /// let advice = manager.explainer(&request).advice(&plan)?.expect("a compaction helps");
    /// assert_eq!(advice.change, AdvisedChange::Compact { messages: 2 });
    /// assert!(advice.after < advice.before); // tokens of the prompt
    /// # Ok(())
    /// # }
    /// ```
    pub fn advice(&self, plan: &ContextPlan) -> Result<Option<Advice>, Error> {
        let groups = plan.composition(0).by_group();
        let Some((kind, tokens)) = groups.kinds.first() else { return Ok(None) };
        if per_cent(plan.estimated_tokens_total.tokens, plan.prompt_budget) < NEARLY_FULL
            || per_cent(*tokens, groups.total) < LARGE_SHARE
        {
            return Ok(None);
        }
        let advice = match kind {
            Kind::ToolResults(_) => match self.with_results_cleared(*tokens)? {
                None => self.with_compaction(plan)?,
                cleared => cleared,
            },
            Kind::Documents(_) => self.with_fewer_documents(plan, *tokens)?,
            Kind::Reasoning => match self.with_options(|config| {
                config.conversation.reasoning = ReasoningPolicy::Drop;
            })? {
                Some(changed) => found(AdvisedChange::DropReasoning, *tokens, tokens_of(&changed, kind)),
                None => None,
            },
            Kind::User | Kind::Assistant => self.with_compaction(plan)?,
            _ => None,
        };
        Ok(advice)
    }

    fn with_results_cleared(&self, before: u64) -> Result<Option<Advice>, Error> {
        // The provider clears by itself then.
        if self.manager.asked_config().conversation.tool_results == ToolResults::Provider {
            return Ok(None);
        }
        let changed = self.with_options(|config| config.conversation.tool_results = ToolResults::Clear)?;
        Ok(changed.and_then(|changed| {
            let results = changed.notices.iter().find(|notice| notice.code == NoticeCode::ResultsCleared)?;
            let change = AdvisedChange::ClearResults { results: results.ids.len() as u64 };
            found(change, before, tokens_of(&changed, &Kind::ToolResults(String::new())))
        }))
    }

    /// Half of the documents.
    fn with_fewer_documents(&self, plan: &ContextPlan, before: u64) -> Result<Option<Advice>, Error> {
        let max_items = plan.section(Section::Rag).included / 2;
        if max_items == 0 {
            return Ok(None);
        }
        let changed = self.with_options(|config| config.rag.max_items = Some(max_items))?;
        Ok(changed.and_then(|changed| {
            let after = tokens_of(&changed, &Kind::Documents(String::new()));
            found(AdvisedChange::LimitDocuments { max_items }, before, after)
        }))
    }

    /// Sets the plan with other options; none if these are the same, or the prompt does not fit with them.
    fn with_options(&self, change: impl FnOnce(&mut Config)) -> Result<Option<ContextPlan>, Error> {
        let asked = self.manager.asked_config();
        let mut config = asked.clone();
        change(&mut config);
        if config == *asked {
            return Ok(None);
        }
        let plan = self.manager.with_config(config)?.plan(self.request)?;
        Ok(Some(plan).filter(|plan| plan.overflow.is_none()))
    }

    /// Returns the advice to compact, from the plan after a compaction without a model: a summary by a model
    /// frees about as much or more.
    fn with_compaction(&self, plan: &ContextPlan) -> Result<Option<Advice>, Error> {
        let compactor = self.manager.compactor();
        let Some(job) = compactor.now(self.request)? else { return Ok(None) };
        let mut log = self.request.log.clone();
        let Ok(record) = compactor.compact_without_model(&mut log, &job) else {
            return Ok(None); // nothing makes the context smaller
        };
        let compacted = PlanRequest { log: &log, ..self.request.clone() };
        let after = self.manager.plan(&compacted)?;
        let change = AdvisedChange::Compact { messages: record.messages_archived };
        Ok(found(change, plan.estimated_tokens_total.tokens, after.estimated_tokens_total.tokens)
            .filter(|_| after.overflow.is_none()))
    }
}

/// Tokens of a kind, without the names of tools and sources.
fn tokens_of(plan: &ContextPlan, kind: &Kind) -> u64 {
    let groups = plan.composition(0).by_group();
    groups.kinds.iter().filter(|(one, _)| one == kind).map(|(_, tokens)| tokens).sum()
}

/// Returns a change that is worth it.
fn found(change: AdvisedChange, before: u64, after: u64) -> Option<Advice> {
    let worth_it = after <= before.saturating_sub(before.div_ceil(10));
    worth_it.then_some(Advice { change, before, after })
}
