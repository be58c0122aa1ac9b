//! The sessions of a file, as they are listed.

use crate::{args::Request, input, prepared::Prepared};
use anyhow::Result;
use context_window::{io::Session, report, tokens::TokenCount};
use serde::Serialize;

/// One of the sessions of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Its id, or its line number if it has none: what `--id` takes.
    pub(crate) id: String,
    pub(crate) model: Option<String>,
    /// None where it cannot be read: what is wrong, `--id` says.
    pub(crate) messages: Option<usize>,
    /// What all of its messages take, and how sure that is.
    tokens: Option<TokenCount>,
}

impl Listed {
    /// All sessions of the file that is asked about. Of one that cannot be read or planned, as much as is known.
    pub(crate) fn of(request: &Request) -> Result<Vec<Self>> {
        let file = input::sessions(&request.session)?;
        let ids: Vec<String> = file.ids().collect();
        let all = ids.into_iter().zip(file.sessions());
        Ok(all.map(|(id, session)| Self::one(id, session.ok(), request)).collect())
    }

    fn one(id: String, session: Option<Session>, request: &Request) -> Self {
        let Some(session) = session else { return Self { id, model: None, messages: None, tokens: None } };
        let named = request.terms.target.model.as_deref();
        let model = named.map(str::to_owned).or_else(|| session.model.clone());
        let messages = Some(session.log.messages().len());
        let prepared = Prepared::new(session, &request.terms, named).ok();
        let usage = prepared.and_then(|prepared| prepared.manager.usage(prepared.request()).ok());
        Self { id, model, messages, tokens: usage.map(|usage| usage.conversation_tokens) }
    }

    /// Its cells: id, model, messages, tokens.
    pub(crate) fn cells(&self) -> [String; 4] {
        let none = || "-".to_owned();
        let model = self.model.as_deref().map_or_else(none, report::brief);
        let messages = self.messages.map_or_else(none, |count| report::grouped(count as u64));
        [report::printable(&self.id), model, messages, self.tokens.map_or_else(none, report::tokens)]
    }
}
