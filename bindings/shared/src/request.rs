//! A request that is kept, so that a plan can answer questions later.

use context_window::{
    Conversation, PlanRequest, RequestLimits, RetrievedItems, Tool,
    plan::{Anchor, RemoteContext},
};
use context_window_formats::Session;
use std::sync::Arc;

/// The parts of a request beside its conversation.
#[derive(Debug, Clone, Default)]
pub struct KeptRequest {
    /// The declared tools.
    pub tools: Arc<[Tool]>,
    /// The retrieved documents.
    pub documents: RetrievedItems,
    /// The focus hint.
    pub focus: Option<String>,
    /// The state entries: id and text.
    pub state: Vec<(String, String)>,
    /// The limits in tokens.
    pub limits: RequestLimits,
    /// Context that the provider adds.
    pub remote: Vec<RemoteContext>,
    /// True if the reply has to follow a JSON schema.
    pub structured_output: bool,
    /// The record of the last prompt.
    pub previous: Option<Anchor>,
    /// The account.
    pub account: Option<String>,
    /// The end user.
    pub end_user: Option<String>,
    /// True for a row for each excluded message.
    pub excluded_messages: bool,
}

impl KeptRequest {
    /// Copies the request of a session. A session has no account, no end user and no choice of rows.
    #[must_use]
    pub fn from_session(session: &Session) -> Self {
        Self {
            tools: session.tools.clone().into(),
            documents: session.rag.clone(),
            focus: session.focus.clone(),
            state: session.state.iter().map(|(id, text)| (id.to_string(), text.clone())).collect(),
            limits: session.limits,
            remote: session.remote.clone(),
            structured_output: session.structured_output,
            previous: session.previous.clone(),
            ..Self::default()
        }
    }

    /// Builds the request for a conversation.
    #[must_use]
    pub fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.completed(PlanRequest::new(log))
    }

    /// Builds a request for figures about a conversation. Without limits, tools and focus hint, it uses those
    /// of the last prompt.
    #[must_use]
    pub fn measured<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        // Any of the three makes it a request of its own.
        let is_alone = self.tools.is_empty() && self.limits == RequestLimits::new() && self.focus.is_none();
        self.completed(if is_alone { PlanRequest::like_last(log) } else { PlanRequest::new(log) })
    }

    fn completed<'a>(&'a self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        let mut request =
            request.with_tools(&self.tools).with_retrieved(self.documents.clone()).with_limits(self.limits);
        request = request.with_remote_context(self.remote.iter().cloned());
        // Absent parts stay unset, because a request of the last prompt has them already.
        if let Some(focus) = &self.focus {
            request = request.with_focus(focus);
        }
        for (id, text) in &self.state {
            request = request.with_state(id.as_str(), text);
        }
        if self.structured_output {
            request = request.with_structured_output();
        }
        if let Some(anchor) = &self.previous {
            request = request.with_previous(anchor.clone());
        }
        if let Some(account) = &self.account {
            request = request.with_account(account);
        }
        if let Some(end_user) = &self.end_user {
            request = request.with_end_user(end_user);
        }
        if self.excluded_messages {
            request = request.with_excluded_messages();
        }
        request
    }

    /// Completes the record of a plan of this request, so that the same plan can be made again: `budget` is
    /// the one that the plan chose, if it chose its own. The anchor is that of the log, which drops it when
    /// another prompt is sent.
    pub fn remember(&mut self, log: &Conversation, budget: Option<u64>) {
        // An explanation with another budget would be about another plan.
        self.limits.prompt_budget = budget.or(self.limits.prompt_budget);
        // The log has another one once the next prompt is sent.
        if self.previous.is_none() {
            self.previous = log.anchor().cloned();
        }
    }
}
