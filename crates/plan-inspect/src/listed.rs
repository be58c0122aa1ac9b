//! The list of the sessions of a file or a store.

use crate::{
    args::Request,
    input::{self, Sessions},
    prepared::Prepared,
};
use anyhow::Result;
use context_window::tokens::{Certainty, TokenCount};
use context_window_formats::Session;
use context_window_report as report;
use context_window_store::SessionSummary;
use serde::Serialize;

/// A session in the list.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Listed {
    /// The id for `--id`: the session's id, or its line number if it has none.
    pub(crate) id: String,
    pub(crate) model: Option<String>,
    /// The number of messages. `None` if the session cannot be read; `--id` reports the error.
    pub(crate) messages: Option<usize>,
    /// The token count of its next prompt, as `plan` plans it, with its certainty. For a session in a store,
    /// the tokens of its newest prompt.
    tokens: Option<TokenCount>,
    /// The time of the last write. Only for a session in a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<String>,
    /// True if the session is archived. Only for a session in a store.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) archived: bool,
}

impl Listed {
    /// Lists all sessions of the requested file or store. If a session cannot be read or planned, the unknown
    /// fields are empty.
    pub(crate) fn from_request(request: &Request) -> Result<Vec<Self>> {
        let file = match input::sessions(&request.session, request.reading.options())? {
            Sessions::File(file) => file,
            Sessions::Store(mut store) => {
                return Ok(store.summaries()?.into_iter().map(Self::of_store).collect());
            }
        };
        let ids: Vec<String> = file.ids().collect();
        let all = ids.into_iter().zip(file.sessions());
        Ok(all.map(|(id, session)| Self::one(id, session.ok(), request)).collect())
    }

    /// Plans the next prompt of one session and describes it.
    fn one(id: String, session: Option<Session>, request: &Request) -> Self {
        let Some(session) = session else { return Self { id, ..Self::default() } };
        let named = request.terms.target.model.as_deref();
        let model = named.map(str::to_owned).or_else(|| session.model.clone());
        let messages = Some(session.log.messages().len());
        let prepared = Prepared::new(session, &request.terms, named).ok();
        let plan = prepared.and_then(|prepared| prepared.manager.build_plan(&prepared.request()).ok());
        let tokens = plan.map(|plan| plan.estimated_tokens_total);
        Self { id, model, messages, tokens, ..Self::default() }
    }

    fn of_store(summary: SessionSummary) -> Self {
        // The store does not record the certainty of its counts, so they are taken for estimates.
        let tokens = summary.tokens.map(|n| TokenCount { tokens: n, certainty: Certainty::Estimate });
        Self {
            id: summary.id,
            model: summary.model,
            messages: usize::try_from(summary.messages).ok(),
            tokens,
            updated: Some(summary.updated),
            archived: summary.archived,
        }
    }

    /// Returns the table cells: id, model, messages, tokens.
    pub(crate) fn cells(&self) -> [String; 4] {
        let none = || "-".to_owned();
        let model = self.model.as_deref().map_or_else(none, report::brief);
        let messages = self.messages.map_or_else(none, |count| report::grouped(count as u64));
        [report::printable(&self.id), model, messages, self.tokens.map_or_else(none, report::tokens)]
    }
}
