//! What the screen is about: a session, what it is planned with, and what it is compared with.

use crate::{
    args::{self, Tui},
    input,
    message_text::call,
    prepared::Prepared,
};
use anyhow::{Result, bail};
use context_window::{
    Conversation, ItemId, Message, Part, config::LoadedConfig, conversation::HistoryRow, io::Session,
    widgets::ItemTexts,
};
use std::borrow::Cow;

#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The session's id, or its file.
    pub(crate) name: String,
    /// Where it was read from.
    pub(crate) source: args::Request,
    pub(crate) prepared: Prepared,
    pub(crate) config: LoadedConfig,
    pub(crate) against: Option<Prepared>,
    /// Whether what is out is counted in full.
    pub(crate) exact: bool,
    /// The rows of the log view.
    pub(crate) rows: Vec<LogRow>,
    /// How many prompts there were, the next one among them.
    pub(crate) prompts: usize,
    /// Columns of the ids in the log view.
    pub(crate) longest_id: usize,
}

/// One row of the log view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogRow {
    /// A message by its position, and whether it is archived.
    Message { position: usize, id: ItemId, archived: bool },
    /// A compaction by its number.
    Compaction(u32),
    /// A rewind.
    Rewound(ItemId),
}

impl Subject {
    pub(crate) fn read(args: &Tui) -> Result<Self> {
        let path = &args.request.session;
        if args.follow && path.as_os_str() == "-" {
            bail!("--follow: standard input is read once; expected a file that grows");
        }
        let prepared = Prepared::read(&args.request)?;
        let config = args.request.terms.options.config()?.clone();
        let against = match &args.against {
            Some(path) => {
                let session = input::sessions(path)?.session(
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
            rows: Vec::new(),
            prompts: 0,
            longest_id: 0,
        };
        Ok(subject.indexed())
    }

    /// This one with another conversation.
    pub(crate) fn with_log(&self, log: Conversation) -> Self {
        let prepared = self.prepared.with_log(log);
        Self { prepared, ..self.clone() }.indexed()
    }

    /// With what is known of its conversation.
    fn indexed(mut self) -> Self {
        self.rows = rows(&self.prepared.session.log);
        let ids = self.rows.iter().filter_map(|row| match row {
            LogRow::Message { id, .. } => Some(id.as_str().chars().take(16).count()),
            _ => None,
        });
        self.longest_id = ids.max().unwrap_or(2);
        self.prompts = self.prepared.manager.explainer(&self.prepared.request()).replay().prompts();
        self
    }

    pub(crate) fn session(&self) -> &Session {
        &self.prepared.session
    }

    /// What items say, as far as the session knows it.
    pub(crate) fn item_texts(&self) -> ItemTexts<'_> {
        let session = self.session();
        let texts =
            ItemTexts::new().with_log(&session.log).with_documents(&session.rag).with_state(&session.state);
        match &session.focus {
            Some(focus) => texts.with_focus(focus),
            None => texts,
        }
    }

    /// Whether any text in a row of the log view, its id among them, is like that.
    pub(crate) fn any_text(&self, row: &LogRow, is_like_that: impl Fn(&str) -> bool) -> bool {
        if let LogRow::Message { position, id, .. } = row {
            let message = &self.session().log.messages()[*position];
            if is_like_that(id.as_str()) {
                return true;
            }
            // Most messages are one text: a search through all of them makes no list of each.
            if message.parts().is_empty() && message.tool_calls().is_empty() {
                return is_like_that(message.text());
            }
        }
        self.texts(row).iter().any(|text| is_like_that(text))
    }

    /// The texts in a row of the log view: the message's text and each call.
    pub(crate) fn texts<'a>(&'a self, row: &'a LogRow) -> Vec<Cow<'a, str>> {
        let log = &self.session().log;
        match row {
            LogRow::Message { position, .. } => {
                let message = &log.messages()[*position];
                let parts = message.parts().iter().filter_map(|part| match part {
                    Part::Text(text) => Some(&**text),
                    _ => None,
                });
                let said = [message.text()].into_iter().chain(parts).map(Cow::Borrowed);
                said.chain(message.tool_calls().iter().map(|one| Cow::Owned(call(one)))).collect()
            }
            LogRow::Compaction(number) => {
                let record = log.compaction(*number);
                record.and_then(|record| record.summary.as_deref()).map(Cow::Borrowed).into_iter().collect()
            }
            LogRow::Rewound(id) => vec![Cow::Borrowed(id.as_str())],
        }
    }

    pub(crate) fn message(&self, id: &str) -> Option<&Message> {
        self.item_texts().message(id)
    }
}

fn rows(log: &Conversation) -> Vec<LogRow> {
    let mut position = 0;
    let row = |row: HistoryRow<'_>| match row {
        HistoryRow::Message { id, archived, .. } => {
            position += 1;
            Some(LogRow::Message { position: position - 1, id, archived: archived.is_some() })
        }
        HistoryRow::Compaction(record) => Some(LogRow::Compaction(record.number)),
        HistoryRow::Rewound(id) => Some(LogRow::Rewound(id.clone())),
        _ => None,
    };
    log.display().filter_map(row).collect()
}
