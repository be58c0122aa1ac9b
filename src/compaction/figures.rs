//! Context window usage by everything that could be sent, without documents and state (rules U2, U4).

use crate::{
    error::Error,
    plan::Target,
    planner::{manager::ContextWindowManager, request::PlanRequest},
    provider::model::{Limits, RequestLimits},
    usage::{ContextStats, ContextUsage},
};
use std::borrow::Cow;

/// The input of the triggers.
pub(super) struct Figures {
    pub(super) usage: ContextUsage,
    pub(super) limits: Limits,
    /// The number of active messages.
    pub(super) messages: u64,
    /// The number of active turns.
    pub(super) turns: u64,
    /// True if a part of the conversation does not fit the prompt.
    pub(super) drops: bool,
}

impl ContextWindowManager {
    /// Returns the usage of the context window: the size of the full conversation, without documents and
    /// state (rule U2). Its `prompt_tokens` are those of a prompt without them.
    ///
    /// After [`crate::Conversation::push_reply`], pass [`PlanRequest::like_last`], which has the limits,
    /// tools and focus hint of the last sent prompt. Before a prompt, or if the next prompt has other
    /// settings, pass the request that you are going to plan.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn usage(&self, request: &PlanRequest<'_>) -> Result<ContextUsage, Error> {
        Ok(self.figures(&self.completed(request))?.usage)
    }

    /// Returns the statistics that an application shows for a conversation (rule U4). Pass the same request
    /// as for [`ContextWindowManager::usage`].
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn stats(&self, request: &PlanRequest<'_>) -> Result<ContextStats, Error> {
        let request = self.completed(request);
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

    /// Fills in the limits, tools and focus hint of the last prompt in a request made by
    /// [`PlanRequest::like_last`] (rule U2). Limits are filled in only if the request has none
    /// and the model is the same.
    pub(super) fn completed<'r, 'a>(&self, request: &'r PlanRequest<'a>) -> Cow<'r, PlanRequest<'a>> {
        if !request.is_like_last {
            return Cow::Borrowed(request);
        }
        let last = request.log.last_settings();
        let target = request.log.anchor().and_then(|anchor| anchor.target.as_ref());
        let same_model = target.is_some_and(|target| target.matches(&Target::from_model(self.model())));
        let has_own_limits = request.limits != RequestLimits::new();
        let tools = if request.tools.is_empty() { &*last.tools } else { request.tools };
        let limits = if has_own_limits || !same_model { request.limits } else { last.limits };
        let focus = request.focus.clone().or_else(|| last.focus.clone());
        Cow::Owned(PlanRequest { tools, focus, limits, ..request.clone() })
    }

    /// Returns the figures of a request without documents and state, as for a first prompt.
    pub(super) fn figures(&self, request: &PlanRequest<'_>) -> Result<Figures, Error> {
        let bare = super::bare(request);
        let context = self.context(&bare)?;
        // No sticky window, so that the figures depend on earlier prompts by the form of results only.
        let plan = self.plan_from(&bare, &context, Self::sent_forms(&bare))?;
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
