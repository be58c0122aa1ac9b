//! A lookup of the texts of a plan's items.

use super::WhatIf;
use context_window::{
    Conversation, ItemId, ItemKind, Message, PinnedItem, PlanRequest, RagItem, plan::Decision,
};
use context_window_report as report;
use indexmap::IndexMap;
use std::borrow::Cow;

/// A lookup of item texts. A plan contains the texts of included items. The texts of excluded items come from
/// the conversation and the documents of the request. Without them, widgets show only the texts in the plan,
/// and filters match a run only by its first and last id.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::ItemTexts;
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let documents = [RagItem::new("hours", 0.1, "We are open from 9 to 18, and on Saturdays from 9 to 13.")];
/// let limits = RequestLimits::prompt_budget(20);
/// let request = PlanRequest::new(&log).with_rag(documents.clone()).with_limits(limits);
/// let plan = manager.build_plan(&request)?;
/// let hours = plan.find("hours").unwrap();
/// assert_eq!(ItemTexts::new().text(hours), None); // it is out
/// let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
/// assert!(texts.text(hours).unwrap().starts_with("We are open"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ItemTexts<'a> {
    log: Option<&'a Conversation>,
    documents: &'a [RagItem],
    state: &'a [(ItemId, String)],
    focus: Option<&'a str>,
    changes: Option<&'a WhatIf>,
    index: Option<&'a TextIndex<'a>>,
}

/// Documents and notes by id, for callers that look up many of them.
#[derive(Debug, Default)]
pub(super) struct TextIndex<'a> {
    documents: IndexMap<&'a str, &'a RagItem>,
    notes: IndexMap<&'a str, &'a PinnedItem>,
}

impl<'a> ItemTexts<'a> {
    /// Creates a lookup without any texts beyond those in the plan.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a lookup of all texts of this request.
    #[must_use]
    pub fn from_request(request: &'a PlanRequest<'_>) -> Self {
        Self {
            log: Some(request.log),
            documents: &request.rag,
            state: &request.state,
            focus: request.focus.as_deref(),
            changes: None,
            index: None,
        }
    }

    /// Sets the conversation: its messages, notes, system texts and summaries.
    #[must_use]
    pub fn with_log(mut self, log: &'a Conversation) -> Self {
        self.log = Some(log);
        self
    }

    /// Sets the retrieved documents, in any order. If several have the same id, the first one counts.
    #[must_use]
    pub fn with_documents(mut self, documents: &'a [RagItem]) -> Self {
        self.documents = documents;
        self
    }

    /// Sets the state entries with their ids.
    #[must_use]
    pub fn with_state(mut self, state: &'a [(ItemId, String)]) -> Self {
        self.state = state;
        self
    }

    /// Sets the focus hint.
    #[must_use]
    pub fn with_focus(mut self, focus: &'a str) -> Self {
        self.focus = Some(focus);
        self
    }

    /// Sets the changes of a trial. Items that they remove from the request keep a row in lists.
    #[must_use]
    pub fn with_changes(mut self, changes: &'a WhatIf) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Returns the items that the trial removes from the request. The flag is true for a document.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&'a ItemId, bool)> {
        self.changes.into_iter().flat_map(WhatIf::left_out)
    }

    /// Returns the conversation, if there is one.
    #[must_use]
    pub fn log(&self) -> Option<&'a Conversation> {
        self.log
    }

    /// Returns the document with this id.
    #[must_use]
    pub fn document(&self, id: &str) -> Option<&'a RagItem> {
        match self.index {
            Some(index) => index.documents.get(id).copied(),
            None => self.documents.iter().find(|item| item.id().as_str() == id),
        }
    }

    /// Builds the index for [`ItemTexts::with_index`]. If several entries have the same id, the first one
    /// counts.
    pub(super) fn index(&self) -> TextIndex<'a> {
        // Later entries overwrite earlier ones, so reverse order lets the first one win.
        let documents = self.documents.iter().rev().map(|item| (item.id().as_str(), item));
        let notes = self.log.into_iter().flat_map(Conversation::notes).map(|note| (note.id().as_str(), note));
        let mut notes: Vec<_> = notes.collect();
        notes.reverse();
        TextIndex { documents: documents.collect(), notes: notes.into_iter().collect() }
    }

    /// Uses an index of these texts for documents and notes. Each lookup then takes O(1) instead of a linear
    /// search.
    pub(super) fn with_index<'i>(self, index: &'i TextIndex<'i>) -> ItemTexts<'i>
    where
        'a: 'i,
    {
        ItemTexts { index: Some(index), ..self }
    }

    /// Returns the message with this id.
    #[must_use]
    pub fn message(&self, id: &str) -> Option<&'a Message> {
        let log = self.log?;
        log.position_of(&id.into()).map(|at| log.message(at))
    }

    /// Returns the full text of a row, as in the conversation. For a run, returns the text of its last
    /// message. The text is not made printable; widgets do that. Returns `None` if the text is unknown.
    #[must_use]
    pub fn text<'t>(&self, row: Decision<'t>) -> Option<Cow<'t, str>>
    where
        'a: 't,
    {
        let body = match row {
            Decision::Included(item) => Some(&item.body),
            Decision::Excluded(_) => None,
        };
        // The conversation has the full text. The prompt may contain a tool result without its middle.
        self.request_text(row).or_else(|| body.map(|body| Cow::Owned(report::message_lines(body).join("\n"))))
    }

    /// Returns the first line that is not blank, as one printable line.
    #[must_use]
    pub fn first_line(&self, row: Decision<'_>) -> Option<String> {
        /// The maximum number of characters that are read. No screen line is longer.
        const READ: usize = 400;
        let text = self.text(row)?;
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        let start: String = line.trim_start().chars().take(READ).collect();
        Some(report::printable(&start.split_whitespace().collect::<Vec<_>>().join(" ")))
    }

    /// Checks if a row is the message with this id, or a run that contains it.
    #[must_use]
    pub fn represents(&self, row: Decision<'_>, id: &str) -> bool {
        if row.is_document() || row.id().as_str() == id {
            return !row.is_document();
        }
        let (Decision::Excluded(run), Some(log)) = (row, self.log) else { return false };
        let position = |id: &ItemId| log.position_of(id);
        let ends = (position(&run.id), position(row.id()), position(&id.into()));
        let (Some(first), Some(last), Some(at)) = ends else { return false };
        // A run covers consecutive positions of the log.
        (first..=last).contains(&at)
    }

    /// Checks if any text of a row satisfies a predicate. For a run, checks the texts of all its messages.
    pub(super) fn any_text(&self, row: Decision<'_>, is_like_that: impl Fn(&str) -> bool) -> bool {
        let message_matches = |message: &Message| {
            // Most messages are a single text. This path avoids allocating a list of lines for each of them.
            if message.parts().is_empty() && message.tool_calls().is_empty() {
                return is_like_that(message.text());
            }
            report::message_lines(message).iter().any(|line| is_like_that(line))
        };
        if let (Decision::Excluded(run), Some(log)) = (row, self.log)
            && matches!(run.kind, ItemKind::Message)
        {
            let last = run.last_id.as_ref().unwrap_or(&run.id);
            if let (Some(first), Some(last)) = (log.position_of(&run.id), log.position_of(last)) {
                return (first..=last).any(|at| message_matches(log.message(at)));
            }
        }
        match (row.kind(), self.message(row.id().as_str())) {
            (ItemKind::Message, Some(message)) => message_matches(message),
            _ => self.text(row).is_some_and(|text| is_like_that(&text)),
        }
    }

    /// Returns the text of a row from the request or the conversation.
    fn request_text<'t>(&self, row: Decision<'t>) -> Option<Cow<'t, str>>
    where
        'a: 't,
    {
        let id = row.id();
        match row.kind() {
            ItemKind::Document => {
                let form = if let Decision::Included(item) = row { item.form() } else { None };
                self.document(id.as_str()).map(|item| item.form_text(form).into())
            }
            ItemKind::Summary { compaction } => {
                self.log?.compaction(*compaction)?.summary.as_deref().map(Cow::Borrowed)
            }
            ItemKind::State => {
                self.state.iter().find(|(name, _)| name == id).map(|(_, text)| text.as_str().into())
            }
            ItemKind::FocusHint => self.focus.map(Cow::Borrowed),
            ItemKind::Note => self.note(id),
            ItemKind::Rule => Some(self.log?.rule(id)?.text().to_owned().into()),
            _ => {
                let message =
                    self.message(id.as_str()).map(|message| report::message_lines(message).join("\n").into());
                message.or_else(|| self.system_text(id)).or_else(|| self.note(id))
            }
        }
    }

    fn note(&self, id: &ItemId) -> Option<Cow<'a, str>> {
        let note = match self.index {
            Some(index) => index.notes.get(id.as_str()).copied(),
            None => self.log?.notes().find(|note| note.id() == id),
        };
        note.map(|note| note.text().into())
    }

    fn system_text(&self, id: &ItemId) -> Option<Cow<'a, str>> {
        self.log?.system().iter().find(|text| text.id() == Some(id)).map(|text| text.text().into())
    }
}
