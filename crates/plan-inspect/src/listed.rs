//! The sessions of a file or a store, as they are listed.

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

/// One of the sessions of a file or a store.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Listed {
    /// Its id, or its line number if it has none: what `--id` takes.
    pub(crate) id: String,
    pub(crate) model: Option<String>,
    /// None where it cannot be read: what is wrong, `--id` says.
    pub(crate) messages: Option<usize>,
    /// The tokens of its next prompt as `plan` plans it, and how sure that is; of a store, those of its
    /// newest prompt.
    tokens: Option<TokenCount>,
    /// Of a store: when it was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<String>,
    /// Of a store: whether it was put away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) archived: bool,
}

impl Listed {
    /// All sessions of the file or store that is asked about. Of one that cannot be read or planned, as much
    /// as is known.
    pub(crate) fn of(request: &Request) -> Result<Vec<Self>> {
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
        // Whatever it was counted with.
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

    /// Its cells: id, model, messages, tokens.
    pub(crate) fn cells(&self) -> [String; 4] {
        let none = || "-".to_owned();
        let model = self.model.as_deref().map_or_else(none, report::brief);
        let messages = self.messages.map_or_else(none, |count| report::grouped(count as u64));
        [report::printable(&self.id), model, messages, self.tokens.map_or_else(none, report::tokens)]
    }
}
