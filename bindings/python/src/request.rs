//! The keyword arguments of a request.

use crate::{
    argument, document,
    error::{input, raised},
    json,
    log::SharedLog,
    recall::RequestRecall,
};
use context_window::{
    Conversation, PlanRequest, RequestLimits, RetrievedItems, Tool,
    plan::{Anchor, RemoteContext},
};
use context_window_formats::Session;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyDictMethods},
};
use std::sync::Arc;

/// The owned keyword arguments of a request, so that a plan can answer questions later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    tools: Arc<[Tool]>,
    documents: RetrievedItems,
    focus: Option<String>,
    state: Vec<(String, String)>,
    limits: RequestLimits,
    remote: Vec<RemoteContext>,
    pub(crate) previous: Option<Anchor>,
    account: Option<String>,
    end_user: Option<String>,
    excluded_messages: bool,
    recall: Option<RequestRecall>,
}

/// The account, the end user, and true if each excluded message gets a row of its own.
pub(crate) type Beside = (Option<String>, Option<String>, bool);

/// The names of the keyword arguments.
const NAMES: &str = "documents, tools, focus, state, prompt_budget, model_context_len, max_completion_tokens, \
    max_input, safety_buffer, unknown_limit, previous, account, end_user, excluded_messages, recall";

impl Asked {
    /// Parses the keyword arguments of a request about `log`. Raises a `TypeError` for an unknown name.
    pub(crate) fn from_arguments(arguments: Option<&Bound<'_, PyDict>>, log: &SharedLog) -> PyResult<Self> {
        let mut asked = Self::default();
        let mut limits = RequestLimits::new();
        for (name, value) in arguments.into_iter().flat_map(PyDictMethods::iter) {
            // None counts as absent, so that callers can pass optional values through.
            if value.is_none() {
                continue;
            }
            let name = name.extract::<String>()?;
            let tokens = || {
                value
                    .extract::<u64>()
                    .map_err(|_| input(format!("{name}: expected a number of tokens, 0 or more")))
            };
            let text = || argument::string(&value, &name);
            match name.as_str() {
                "documents" => asked.documents = document::items(&value)?,
                "tools" => asked.tools = tools(&value)?,
                "focus" => asked.focus = Some(text()?),
                "state" => {
                    let state = value
                        .cast::<PyDict>()
                        .map_err(|_| input("state: expected a dict of strings by their ids"))?;
                    let pairs = state.iter().map(|(id, text)| {
                        let texts = (id.extract(), text.extract());
                        let (Ok(id), Ok(text)) = texts else {
                            return Err(input("state: expected a dict of strings by their ids"));
                        };
                        Ok((id, text))
                    });
                    asked.state = pairs.collect::<PyResult<_>>()?;
                }
                "prompt_budget" => limits.prompt_budget = Some(tokens()?),
                "model_context_len" => limits = limits.with_model_context_len(tokens()?),
                "max_completion_tokens" => limits = limits.with_max_completion_tokens(tokens()?),
                "unknown_limit" => limits.unknown = value.extract()?,
                "max_input" => limits = limits.with_max_input(tokens()?),
                "safety_buffer" => limits = limits.with_safety_buffer(tokens()?),
                "previous" => {
                    let anchor: String = value.extract()?;
                    let read = serde_json::from_str(&anchor);
                    asked.previous = Some(
                        read.map_err(|error| input(format!("previous: {error}; expected Plan.anchor()")))?,
                    );
                }
                "account" => asked.account = Some(text()?),
                "end_user" => asked.end_user = Some(text()?),
                "excluded_messages" => asked.excluded_messages = value.extract()?,
                "recall" => asked.recall = RequestRecall::from_argument(&value, log)?,
                other => {
                    let detail =
                        format!("`{other}` is not an argument of a request; expected one of {NAMES}");
                    return Err(PyTypeError::new_err(detail));
                }
            }
        }
        asked.limits = limits;
        Ok(asked)
    }

    /// Creates the arguments from a session file, except for its conversation.
    pub(crate) fn of_session(session: &Session, (account, end_user, excluded_messages): Beside) -> Self {
        Self {
            tools: session.tools.clone().into(),
            documents: session.rag.clone(),
            focus: session.focus.clone(),
            state: session.state.iter().map(|(id, text)| (id.to_string(), text.clone())).collect(),
            limits: session.limits,
            remote: session.remote.clone(),
            previous: session.previous.clone(),
            account,
            end_user,
            excluded_messages,
            // The documents of the session have the recalled messages.
            recall: None,
        }
    }

    /// Returns the arguments that a session file does not contain.
    pub(crate) fn beside_a_session(&self) -> Beside {
        (self.account.clone(), self.end_user.clone(), self.excluded_messages)
    }

    /// Builds the request for a conversation.
    pub(crate) fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.completed(PlanRequest::new(log))
    }

    /// Builds a request for figures about a conversation. Without limits, tools and focus hint, it uses those
    /// of the last prompt.
    pub(crate) fn measured<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        // Any of the three makes it a request of its own.
        let is_alone = self.tools.is_empty() && self.limits == RequestLimits::new() && self.focus.is_none();
        self.completed(if is_alone { PlanRequest::like_last(log) } else { PlanRequest::new(log) })
    }

    fn completed<'a>(&'a self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        let mut request =
            request.with_tools(&self.tools).with_retrieved(self.documents.clone()).with_limits(self.limits);
        request = request.with_remote_context(self.remote.iter().cloned());
        if let Some(focus) = &self.focus {
            request = request.with_focus(focus);
        }
        for (id, text) in &self.state {
            request = request.with_state(id.as_str(), text);
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
        match &self.recall {
            Some(recall) => recall.for_request(request),
            None => request,
        }
    }

    /// Adds the recalled messages to the documents. Later questions about a plan then are about the same
    /// ones, although the index has more messages by then, and the plan does not keep the index.
    pub(crate) fn find_recalled(&mut self, log: &Conversation) {
        if let Some(recall) = self.recall.take() {
            let request = PlanRequest::new(log).with_retrieved(std::mem::take(&mut self.documents));
            self.documents = recall.for_request(request).rag;
        }
    }

    /// Sets another prompt budget in tokens.
    pub(crate) fn set_budget(&mut self, tokens: u64) {
        self.limits.prompt_budget = Some(tokens);
    }

    /// Returns the size of the documents and state entries in bytes.
    pub(crate) fn document_bytes(&self) -> usize {
        let state = self.state.iter().map(|(_, text)| text.len());
        self.documents.iter().map(|document| document.text.len()).chain(state).sum()
    }

    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub(crate) fn limits(&self) -> RequestLimits {
        self.limits
    }
}

/// Parses tools in any provider's format.
pub(crate) fn tools(given: &Bound<'_, PyAny>) -> PyResult<Arc<[Tool]>> {
    let json = json::dumps(given, "tools")?;
    Ok(context_window_formats::tools_from_json(&json).map_err(raised)?.into())
}
