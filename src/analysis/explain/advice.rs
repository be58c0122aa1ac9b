//! Advice about a nearly full prompt, confirmed by planning again with the proposed change (advice, rule E6).

use crate::{
    analysis::Explainer,
    config::{Config, ReasoningPolicy, ToolResults},
    error::Error,
    item::Section,
    plan::{ContextPlan, Kind, NoticeCode},
    planner::request::PlanRequest,
    text::plain::per_cent,
};

/// The percentage of the budget from which on a prompt counts as nearly full.
const NEARLY_FULL: u64 = 60;

/// The percentage of the prompt from which on a kind of content is worth advice.
const LARGE_SHARE: u64 = 40;

/// A confirmed change with its effect in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The proposed change.
    pub change: AdvisedChange,
    /// Tokens in the present prompt: those of the kind that the change affects, or of the whole prompt for a
    /// compaction.
    pub before: u64,
    /// The same count in the prompt that is planned with the change. It is at least a tenth smaller.
    pub after: u64,
}

/// A change to the options or to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvisedChange {
    /// `conversation.tool_results = "clear"`. The tokens are those of tool results.
    ClearResults {
        /// Number of results that are sent as stubs with this change.
        results: u64,
    },
    /// `rag.max_items`. The tokens are those of documents.
    LimitDocuments {
        /// The value of the option, in documents.
        max_items: u64,
    },
    /// `conversation.reasoning = "drop"`. The tokens are those of reasoning.
    DropReasoning,
    /// A compaction without a model, by [`Compactor::now`](crate::compaction::Compactor::now) and
    /// [`Compactor::compact_without_model`](crate::compaction::Compactor::compact_without_model). The tokens
    /// are those of the whole prompt.
    Compact {
        /// Number of messages that the compaction archives.
        messages: u64,
    },
}

impl Explainer<'_> {
    /// Returns a change that makes a nearly full prompt smaller. It removes at least a tenth of the kind of
    /// content that fills most of the prompt, confirmed by planning with this change alone. `plan` must be
    /// the plan of this request.
    ///
    /// Returns `None` if the prompt uses less than 60 % of its budget, if no kind takes 40 % of the prompt,
    /// or if no change helps.
    ///
    /// A compaction has to count the whole conversation, so this takes longer than planning.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`](crate::ContextWindowManager::build_plan).
    ///
    /// ```
    /// use context_window::{
    ///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits,
    ///     TokenCounter,
    /// };
    /// use context_window::analysis::AdvisedChange;
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// let manager =
    ///     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
    /// let mut log = Conversation::from([
    ///     Message::user("Where is my parcel? ".repeat(40)),
    ///     Message::assistant("In Bremen."),
    /// ]);
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
            // If clearing does not help, a compaction may: it archives messages together with their results.
            Kind::ToolResults(_) => match self.with_results_cleared(*tokens)? {
                None => self.with_compaction(plan)?,
                cleared => cleared,
            },
            Kind::Documents(_) => self.with_fewer_documents(plan, *tokens)?,
            Kind::Reasoning => match self.with_options(|config| {
                config.conversation.reasoning = ReasoningPolicy::Drop;
            })? {
                Some(changed) => to_advice(AdvisedChange::DropReasoning, *tokens, tokens_of(&changed, kind)),
                None => None,
            },
            Kind::User | Kind::Assistant => self.with_compaction(plan)?,
            _ => None,
        };
        Ok(advice)
    }

    fn with_results_cleared(&self, before: u64) -> Result<Option<Advice>, Error> {
        // With these options, the provider clears results by itself, or large ones are not in the prompt.
        if matches!(
            self.manager.requested_config().conversation.tool_results,
            ToolResults::Provider | ToolResults::Offload
        ) {
            return Ok(None);
        }
        let changed = self.with_options(|config| config.conversation.tool_results = ToolResults::Clear)?;
        Ok(changed.and_then(|changed| {
            let results = changed.notices.iter().find(|notice| notice.code == NoticeCode::ResultsCleared)?;
            let change = AdvisedChange::ClearResults { results: results.ids.len() as u64 };
            to_advice(change, before, tokens_of(&changed, &Kind::ToolResults(String::new())))
        }))
    }

    /// Returns the advice to include half as many documents, if that saves enough.
    fn with_fewer_documents(&self, plan: &ContextPlan, before: u64) -> Result<Option<Advice>, Error> {
        let max_items = plan.section(Section::Rag).included / 2;
        if max_items == 0 {
            return Ok(None);
        }
        let changed = self.with_options(|config| config.rag.max_items = Some(max_items))?;
        Ok(changed.and_then(|changed| {
            let after = tokens_of(&changed, &Kind::Documents(String::new()));
            to_advice(AdvisedChange::LimitDocuments { max_items }, before, after)
        }))
    }

    /// Returns the plan with other options. Returns `None` if the options stay the same, or if the prompt
    /// overflows.
    fn with_options(&self, change: impl FnOnce(&mut Config)) -> Result<Option<ContextPlan>, Error> {
        let asked = self.manager.requested_config();
        let mut config = asked.clone();
        change(&mut config);
        if config == *asked {
            return Ok(None);
        }
        let plan = self.manager.with_config(config)?.plan(self.request)?;
        Ok(Some(plan).filter(|plan| plan.overflow.is_none()))
    }

    /// Returns the advice to compact, confirmed by a compaction without a model. A summary by a model frees
    /// about as many tokens, or more.
    fn with_compaction(&self, plan: &ContextPlan) -> Result<Option<Advice>, Error> {
        let compactor = self.manager.compactor();
        let Some(job) = compactor.now(self.request)? else { return Ok(None) };
        // The compaction works on a copy, because advice must not change the log of the request.
        let mut log = self.request.log.clone();
        let Ok(record) = compactor.compact_without_model(&mut log, &job) else {
            return Ok(None); // nothing makes the context smaller
        };
        let compacted = PlanRequest { log: &log, ..self.request.clone() };
        let after = self.manager.plan(&compacted)?;
        let change = AdvisedChange::Compact { messages: record.messages_archived };
        Ok(to_advice(change, plan.estimated_tokens_total.tokens, after.estimated_tokens_total.tokens)
            .filter(|_| after.overflow.is_none()))
    }
}

/// Returns the tokens of a kind in a plan. All tools count together, and so do all sources.
fn tokens_of(plan: &ContextPlan, kind: &Kind) -> u64 {
    let groups = plan.composition(0).by_group();
    groups.kinds.iter().filter(|(one, _)| one == kind).map(|(_, tokens)| tokens).sum()
}

/// Returns the change as advice if it saves at least a tenth of the tokens.
fn to_advice(change: AdvisedChange, before: u64, after: u64) -> Option<Advice> {
    let worth_it = after <= before.saturating_sub(before.div_ceil(10));
    worth_it.then_some(Advice { change, before, after })
}
