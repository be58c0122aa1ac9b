//! The subject of the screen: a session, its manager and options, and the session to compare it with.

use crate::{
    args::{self, Tui},
    input,
    prepared::Prepared,
};
use anyhow::{Result, bail};
use context_window::{Conversation, Message, config::LoadedConfig};
use context_window_formats::Session;
use context_window_ratatui::ItemTexts;

/// The session on the screen and everything needed to plan it.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The id of the session, or the name of its file.
    pub(crate) name: String,
    /// The arguments that it was read with.
    pub(crate) source: args::Request,
    pub(crate) prepared: Prepared,
    pub(crate) config: LoadedConfig,
    /// The session of `--against`.
    pub(crate) against: Option<Prepared>,
    /// True if excluded items are counted in full.
    pub(crate) exact: bool,
    /// The number of prompts, including the next one.
    pub(crate) prompts: usize,
}

impl Subject {
    /// Reads the session and the session of `--against`.
    pub(crate) fn read(args: &Tui) -> Result<Self> {
        let path = &args.request.session;
        if args.follow && path.as_os_str() == "-" {
            bail!("--follow: standard input is read once; expected a growing file");
        }
        let prepared = Prepared::read(&args.request)?;
        let config = args.request.terms.options.config()?.clone();
        let against = match &args.against {
            Some(path) => {
                let session = input::sessions(path, args.request.reading.options())?.session(
                    // An id chosen from a list is one of the session's own file, not of the other file.
                    args.against_id.as_deref().or(args.request.id.as_deref().filter(|_| !args.picked)),
                )?;
                let model = args.request.terms.target.model.as_deref();
                Some(Prepared::new(session, &args.request.terms, model)?)
            }
            None => None,
        };
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = prepared.session.id.clone().or(file).unwrap_or_else(|| "session".into());
        let source = args.request.clone();
        let subject = Self {
            name,
            source,
            exact: args.certainty.in_full(prepared.bytes()),
            prepared,
            config,
            against,
            prompts: 0,
        };
        Ok(subject.indexed())
    }

    /// Returns the subject with another conversation.
    pub(crate) fn with_log(&self, log: Conversation) -> Self {
        let prepared = self.prepared.with_log(log);
        Self { prepared, ..self.clone() }.indexed()
    }

    /// Counts the prompts of the conversation.
    fn indexed(mut self) -> Self {
        self.prompts = self.prepared.manager.explainer(&self.prepared.request()).count_prompts();
        self
    }

    pub(crate) fn session(&self) -> &Session {
        &self.prepared.session
    }

    /// Returns the texts of the items, as far as the session contains them.
    pub(crate) fn item_texts(&self) -> ItemTexts<'_> {
        let session = self.session();
        let texts =
            ItemTexts::new().with_log(&session.log).with_documents(&session.rag).with_state(&session.state);
        match &session.focus {
            Some(focus) => texts.with_focus(focus),
            None => texts,
        }
    }

    pub(crate) fn message(&self, id: &str) -> Option<&Message> {
        self.item_texts().message(id)
    }
}
