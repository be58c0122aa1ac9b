//! Sessions that are lived again: every k-th prompt is planned and answered, and due compactions are made.

use crate::{error::Error, result::TurnSums};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, ItemId, Message, Model, PlanRequest, RequestLimits,
    Role, Tool, conversation::Event, usage::CostTerms,
};

/// A planner in an application: its limits and tools, and the number of prompts from one that is planned to
/// the next.
pub(crate) struct Application<'a> {
    pub(crate) manager: &'a ContextWindowManager,
    pub(crate) model: &'a Model,
    pub(crate) limits: RequestLimits,
    pub(crate) tools: &'a [Tool],
    /// 0 plans no prompt before the question.
    pub(crate) every: usize,
    pub(crate) terms: CostTerms<'a>,
}

/// A session up to now.
#[derive(Default)]
pub(crate) struct Lived {
    pub(crate) log: Conversation,
    pub(crate) sums: TurnSums,
    prompts: usize,
}

impl Lived {
    /// Adds an event of the recorded session. Prompts and compactions are those of this application, so
    /// recorded ones are left out.
    pub(crate) fn record(&mut self, event: &Event) {
        let is_own = matches!(
            event,
            Event::Sent { .. }
                | Event::SentWith { .. }
                | Event::PromptSettings { .. }
                | Event::Compacted(_)
                | Event::CompactionUndone { .. }
                | Event::LevelCrossed { .. }
                | Event::TurnCompleted { .. }
        );
        if !is_own {
            self.log.record(event.clone());
        }
    }

    /// Adds a message of the recorded session. Before a reply, plans its prompt if its turn has come.
    pub(crate) fn push(&mut self, message: &Message, application: &Application<'_>) -> Result<(), Error> {
        // A conversation that begins with a reply has no prompt before it.
        if message.role() != Role::Assistant || self.log.messages().is_empty() {
            self.log.push(message.clone());
            return Ok(());
        }
        self.prompts += 1;
        if application.every == 0 || !self.prompts.is_multiple_of(application.every) {
            self.log.push(message.clone());
            return Ok(());
        }
        let plan = application.plan(&self.log)?;
        self.sums.add(&application.sums(&plan));
        // The recorded reply is committed in place of a model's, so the window continues as in the
        // application.
        self.log.push_reply(&plan, message.clone(), None);
        self.sums.compactions += u64::from(application.compact_if_due(&mut self.log)?);
        Ok(())
    }
}

impl Application<'_> {
    pub(crate) fn request<'l>(&'l self, log: &'l Conversation) -> PlanRequest<'l> {
        PlanRequest::new(log).with_tools(self.tools).with_limits(self.limits)
    }

    fn plan(&self, log: &Conversation) -> Result<ContextPlan, Error> {
        let place = || format!("message {}", log.messages().len());
        self.manager.build_plan(&self.request(log)).map_err(|error| Error::plan(place(), error))
    }

    /// Returns the sums of one prompt.
    pub(crate) fn sums(&self, plan: &ContextPlan) -> TurnSums {
        let tokens = plan.estimated_tokens_total.tokens;
        let repeated = plan.repeated();
        let kept = repeated.as_ref().map_or(0, |prefix| prefix.tokens);
        TurnSums {
            prompts: 1,
            tokens,
            budget: plan.prompt_budget,
            overflows: u64::from(plan.overflow_tokens() > 0),
            kept,
            before: repeated.as_ref().map_or(0, |prefix| prefix.of),
            after: repeated.as_ref().map_or(0, |_| tokens),
            cost: self.model.input_cost(tokens, kept, self.terms).map(|cost| cost.billionths),
            compactions: 0,
        }
    }

    /// Compacts without a model if a compaction is due. Returns true if it archived messages.
    pub(crate) fn compact_if_due(&self, log: &mut Conversation) -> Result<bool, Error> {
        let compacted = self.manager.compactor().compact_if_due(log, self.tools, self.limits);
        Self::is_compacted(compacted.map(|record| record.is_some()))
    }

    /// Compacts without a model now. Returns true if it archived messages.
    pub(crate) fn compact_now(&self, log: &mut Conversation) -> Result<bool, Error> {
        let compactor = self.manager.compactor();
        let job = compactor.now(&self.request(log)).map_err(|error| Error::plan("a compaction", error))?;
        let Some(job) = job else { return Ok(false) };
        Self::is_compacted(compactor.compact_without_model(log, &job).map(|_| true))
    }

    /// Treats a compaction that would free nothing as none.
    fn is_compacted(compacted: Result<bool, context_window::Error>) -> Result<bool, Error> {
        match compacted {
            // The application would go on with the whole conversation.
            Err(error) if error.kind().is_compaction() => Ok(false),
            compacted => compacted.map_err(|error| Error::plan("a compaction", error)),
        }
    }
}

/// Returns an id that no message or note of a conversation has. The default id of a message is its position,
/// which a recorded message may have as its own id.
pub(crate) fn free_id(log: &Conversation, name: &str) -> ItemId {
    let is_taken =
        |id: &str| log.position_of_message(id).is_some() || log.notes().any(|note| note.id().as_str() == id);
    let mut id = name.to_owned();
    while is_taken(&id) {
        id.push('+');
    }
    id.into()
}
