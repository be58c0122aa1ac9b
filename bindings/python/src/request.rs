//! The keyword arguments of a request.

use crate::{
    argument, document,
    error::{input, raised},
    json,
    log::SharedLog,
    recall::RequestRecall,
};
use context_window::{Conversation, PlanRequest, RequestLimits, Tool};
use context_window_bindings::KeptRequest;
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
    pub(crate) kept: KeptRequest,
    recall: Option<RequestRecall>,
}

/// The account, the end user, and true if each excluded message gets a row of its own.
pub(crate) type Beside = (Option<String>, Option<String>, bool);

/// The names of the keyword arguments.
const NAMES: &str = "documents, tools, focus, state, prompt_budget, model_context_len, max_completion_tokens, \
    max_input, safety_buffer, unknown_limit, previous, account, end_user, structured_output, \
    excluded_messages, recall";

impl Asked {
    /// Parses the keyword arguments of a request about `log`. Raises a `TypeError` for an unknown name.
    pub(crate) fn from_arguments(arguments: Option<&Bound<'_, PyDict>>, log: &SharedLog) -> PyResult<Self> {
        let (mut kept, mut found) = (KeptRequest::default(), None);
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
                "documents" => kept.documents = document::items(&value)?,
                "tools" => kept.tools = tools(&value)?,
                "focus" => kept.focus = Some(text()?),
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
                    kept.state = pairs.collect::<PyResult<_>>()?;
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
                    kept.previous = Some(
                        read.map_err(|error| input(format!("previous: {error}; expected Plan.anchor()")))?,
                    );
                }
                "account" => kept.account = Some(text()?),
                "end_user" => kept.end_user = Some(text()?),
                "structured_output" => kept.structured_output = value.extract()?,
                "excluded_messages" => kept.excluded_messages = value.extract()?,
                "recall" => found = RequestRecall::from_argument(&value, log)?,
                other => {
                    let detail =
                        format!("`{other}` is not an argument of a request; expected one of {NAMES}");
                    return Err(PyTypeError::new_err(detail));
                }
            }
        }
        kept.limits = limits;
        Ok(Self { kept, recall: found })
    }

    /// Creates the arguments from a session file, except for its conversation. The documents of the session
    /// have the recalled messages.
    pub(crate) fn of_session(session: &Session, (account, end_user, excluded_messages): Beside) -> Self {
        let kept = KeptRequest::from_session(session);
        Self { kept: KeptRequest { account, end_user, excluded_messages, ..kept }, recall: None }
    }

    /// Returns the arguments that a session file does not contain.
    pub(crate) fn beside_a_session(&self) -> Beside {
        (self.kept.account.clone(), self.kept.end_user.clone(), self.kept.excluded_messages)
    }

    /// Builds the request for a conversation.
    pub(crate) fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.with_recall(self.kept.request(log))
    }

    /// Builds a request for figures about a conversation.
    pub(crate) fn measured<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.with_recall(self.kept.measured(log))
    }

    fn with_recall<'a>(&self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        match &self.recall {
            Some(recall) => recall.for_request(request),
            None => request,
        }
    }

    /// Adds the recalled messages to the documents. Later questions about a plan then are about the same
    /// ones, although the index has more messages by then, and the plan does not keep the index.
    pub(crate) fn find_recalled(&mut self, log: &Conversation) {
        if let Some(recall) = self.recall.take() {
            let request = PlanRequest::new(log).with_retrieved(std::mem::take(&mut self.kept.documents));
            self.kept.documents = recall.for_request(request).rag;
        }
    }

    /// Returns the size of the documents and state entries in bytes.
    pub(crate) fn document_bytes(&self) -> usize {
        let state = self.kept.state.iter().map(|(_, text)| text.len());
        self.kept.documents.iter().map(|document| document.text.len()).chain(state).sum()
    }
}

/// Parses tools in any provider's format.
pub(crate) fn tools(given: &Bound<'_, PyAny>) -> PyResult<Arc<[Tool]>> {
    let json = json::dumps(given, "tools")?;
    Ok(context_window_formats::tools_from_json(&json).map_err(raised)?.into())
}
