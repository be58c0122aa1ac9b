//! How full the window is, of everything that could be sent but documents and state (rules U2, U4).

use crate::{
    error::Error,
    plan::{Target, anchor::Sticky},
    planner::{manager::ContextWindowManager, request::PlanRequest},
    provider::model::{Limits, RequestLimits},
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
    /// Returns how full the window is: the size of the full conversation, without documents and state (rule
    /// U2). `prompt_tokens` is that of a prompt without them.
    ///
    /// After [`crate::Conversation::push_reply`] pass `&log`: limits, tools and focus hint are those of the
    /// prompt that was sent. Before it, or if the next prompt has others, pass the request that is going to
    /// be planned.
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    pub fn usage<'a>(&self, of: impl Into<PlanRequest<'a>>) -> Result<ContextUsage, Error> {
        Ok(self.figures(&self.completed(of.into()))?.usage)
    }

    /// Returns what an application shows of a conversation (rule U4); `&log` stands for the last prompt, as
    /// in [`ContextWindowManager::usage`].
    ///
    /// # Errors
    ///
    /// As [`ContextWindowManager::build_plan`].
    pub fn stats<'a>(&self, of: impl Into<PlanRequest<'a>>) -> Result<ContextStats, Error> {
        let request = self.completed(of.into());
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

    /// Completes a request that was made of a conversation alone with limits, tools and focus hint of the
    /// last prompt (rule U2). Limits are those of one model: another one has its own.
    pub(super) fn completed<'a>(&self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        if !request.like_the_last {
            return request;
        }
        let last = request.log.last_settings();
        let target = request.log.anchor().and_then(|anchor| anchor.target.as_ref());
        let same_model = target.is_some_and(|target| target.is(&Target::of(self.model())));
        let has_own_limits = request.limits != RequestLimits::new();
        let tools = if request.tools.is_empty() { &*last.tools } else { request.tools };
        let limits = if has_own_limits || !same_model { request.limits } else { last.limits };
        let focus = request.focus.or_else(|| last.focus.clone());
        PlanRequest { tools, focus, limits, ..request }
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
