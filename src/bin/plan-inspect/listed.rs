//! The sessions of a file, as they are listed.

use crate::{args::Request, input, prepared::Prepared};
use anyhow::Result;
use context_window::report;
use serde::Serialize;

/// One of the sessions of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Its id, or its line number if it has none: what `--id` takes.
    pub(crate) id: String,
    pub(crate) model: Option<String>,
    pub(crate) messages: usize,
    /// What all of its messages take, as reports say it.
    tokens: String,
}

impl Listed {
    /// All sessions of the file that is asked about. One that cannot be planned has no tokens.
    pub(crate) fn of(request: &Request) -> Result<Vec<Self>> {
        let file = input::sessions(&request.session)?;
        let ids: Vec<String> = file.ids().collect();
        let mut listed = Vec::new();
        for (id, session) in ids.into_iter().zip(file.sessions()) {
            let session = session?;
            let model = request.terms.target.model.clone().or_else(|| session.model.clone());
            let messages = session.log.messages().len();
            let named = request.terms.target.model.as_deref();
            let usage = Prepared::new(session, &request.terms, named)
                .and_then(|prepared| Ok(prepared.manager.usage(prepared.request())?));
            let tokens = usage.map_or_else(|_| "-".into(), |usage| report::tokens(usage.conversation_tokens));
            listed.push(Self { id, model, messages, tokens });
        }
        Ok(listed)
    }

    /// Its cells: id, model, messages, tokens.
    pub(crate) fn cells(&self) -> [String; 4] {
        let model = self.model.as_deref().map_or_else(|| "-".into(), report::brief);
        [report::printable(&self.id), model, report::grouped(self.messages as u64), self.tokens.clone()]
    }
}
