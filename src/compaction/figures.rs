//! How full the window is, of everything that could be sent but documents and state (rules U2, U4).

use crate::{
    error::Error,
    plan::anchor::Sticky,
    planner::{manager::ContextWindowManager, request::PlanRequest},
    provider::model::Limits,
    usage::{ContextStats, ContextUsage},
};

/// What triggers read.
pub(super) struct Figures {
    pub(super) usage: ContextUsage,
    pub(super) limits: Limits,
    pub(super) messages: u64,
    pub(super) turns: u64,
    /// Whether some of the conversation does not fit the prompt.
    pub(super) drops: bool,
}

impl ContextWindowManager {
    /// How full the window is: the size of the full conversation, without documents and state (rule U2). `prompt_tokens` is that
    /// of a prompt without them.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    pub fn usage<'a>(&self, of: impl Into<PlanRequest<'a>>) -> Result<ContextUsage, Error> {
        Ok(self.figures(&of.into())?.usage)
    }

    /// What an application shows of a conversation (rule U4).
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    pub fn stats<'a>(&self, of: impl Into<PlanRequest<'a>>) -> Result<ContextStats, Error> {
        let request = of.into();
        let Figures { usage, messages, turns, .. } = self.figures(&request)?;
        let log = request.log;
        Ok(ContextStats {
            usage,
            messages: log.messages().len() as u64,
            active: messages,
            turns,
            archived: log.archived_messages(),
            compactions: log.compactions().count() as u64,
            billed: log.billed(),
        })
    }

    /// The figures of a request without documents and state, as if no prompt had been sent before it.
    pub(super) fn figures(&self, request: &PlanRequest<'_>) -> Result<Figures, Error> {
        let bare = super::bare(request);
        let context = self.context(&bare)?;
        let plan = self.plan_from(&bare, &context, Sticky::default())?;
        let log = request.log;
        Ok(Figures {
            usage: plan.usage,
            limits: plan.limits,
            messages: log.active_messages(),
            turns: log.active_turns(),
            drops: plan.drops_conversation(),
        })
    }
}
