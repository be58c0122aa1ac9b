//! Sessions with questions, read from JSON.

use crate::{
    counted::joined,
    error::Error,
    question::{Evidence, Question},
    words::Words,
};
use context_window::{
    Conversation, ItemId, Role,
    conversation::{Entry, Event},
};
use context_window_formats::Session;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A session with questions, each with the ids of its evidence.
#[derive(Debug, Clone)]
pub struct EvalCase {
    id: String,
    session: Session,
    questions: Vec<Question>,
}

/// The keys of a session that hold questions.
#[derive(Deserialize)]
struct WireCase {
    /// The published sets `LongMemEval` and `QMSum` have the key `qa`.
    #[serde(alias = "qa")]
    questions: Option<Vec<WireQuestion>>,
    /// The question of a retrieval set. Its evidence is marked in the documents.
    query: Option<String>,
    #[serde(alias = "rag")]
    passages: Option<WireDocuments>,
}

/// The documents of a session: one list, or an object of several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an array of documents, or an object with an array for each list")]
enum WireDocuments {
    One(Vec<WireDocument>),
    Several(BTreeMap<String, Vec<WireDocument>>),
}

impl WireDocuments {
    /// Returns the ids of the documents that are evidence.
    fn into_gold(self) -> impl Iterator<Item = serde_json::Value> {
        let lists = match self {
            Self::One(list) => vec![list],
            Self::Several(lists) => lists.into_values().collect(),
        };
        lists.into_iter().flatten().filter(|document| document.gold).map(|document| document.id)
    }
}

#[derive(Deserialize)]
struct WireQuestion {
    #[serde(alias = "question")]
    text: String,
    /// Null if the answer is not in the session.
    evidence: Option<Vec<String>>,
    kind: Option<String>,
    /// The id of the message after which the question is asked. By default, the last one.
    after: Option<String>,
    /// The same, except that a value that is not an id means the end. `LongMemEval` has a date here, and all
    /// of its sessions are before that date.
    asked: Option<String>,
}

#[derive(Deserialize)]
struct WireDocument {
    id: serde_json::Value,
    #[serde(default)]
    gold: bool,
}

impl EvalCase {
    /// Reads a session with questions from a JSON object: a session with the key `questions` or `qa`, or a
    /// `query` whose documents mark the evidence as `gold`, in one list or in several.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` if the session cannot be read, if it has no questions, or if evidence is
    /// neither a message nor a document of it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let session = Session::from_json(json)?;
        let id = session.id.clone().unwrap_or_else(|| "1".into());
        let wire: WireCase = serde_json::from_str(json)
            .map_err(|error| Error::input(format!("session `{id}`"), error.to_string()))?;
        let mut case = Self { id, session, questions: Vec::new() };
        // Both belong to the prompts of another application, with another policy.
        case.session.previous = None;
        case.session.log = without_prompts(&case.session.log);
        // Listed questions come first: a session may have a query of its own besides.
        let listed = wire.questions.filter(|listed| !listed.is_empty());
        match (listed, wire.query) {
            (Some(listed), _) => {
                for (at, question) in listed.into_iter().enumerate() {
                    let question = case.listed_question(at, question)?;
                    case.questions.push(question);
                }
            }
            (None, Some(query)) => {
                let gold = wire.passages.into_iter().flat_map(WireDocuments::into_gold);
                let question = case.marked_question(query, gold)?;
                case.questions.push(question);
            }
            (None, None) => {
                let detail =
                    "no questions; expected `questions`, `qa`, or `query` with documents that are `gold`";
                return Err(Error::input(format!("session `{}`", case.id), detail));
            }
        }
        Ok(case)
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the session, without its recorded prompts and compactions.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the questions. A question without evidence is asked too, and only its tokens are counted.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Returns the question of an entry of `questions`.
    fn listed_question(&self, at: usize, wire: WireQuestion) -> Result<Question, Error> {
        let place = |key: &str| format!("session `{}`, questions[{at}].{key}", self.id);
        if wire.text.trim().is_empty() {
            return Err(Error::input(place("text"), "is empty; expected a question"));
        }
        let messages = self.session.log.messages().len();
        let position = |id: &str| self.session.log.position_of_message(id);
        let asked = match &wire.after {
            Some(id) => Some(position(id).ok_or_else(|| {
                Error::input(
                    place("after"),
                    format!("no message has the id `{id}`; expected one of the session"),
                )
            })?),
            None => wire.asked.as_deref().and_then(position),
        };
        let mut evidence = Vec::new();
        for (nth, id) in wire.evidence.unwrap_or_default().into_iter().enumerate() {
            match self.evidence(&id) {
                Some(found) if found.words.is_empty() => {} // Nothing can be lost of an empty text.
                Some(found) => evidence.push(found),
                None => {
                    let place = place(&format!("evidence[{nth}]"));
                    let detail =
                        format!("no message or document has the id `{id}`; expected one of the session");
                    return Err(Error::input(place, detail));
                }
            }
        }
        Ok(Question {
            text: wire.text,
            kind: wire.kind,
            messages_before: asked.map_or(messages, |position| position + 1),
            is_in_session: false,
            evidence,
        })
    }

    /// Returns the question of a retrieval set, with the documents that are marked as its evidence.
    fn marked_question(
        &self,
        text: String,
        gold: impl Iterator<Item = serde_json::Value>,
    ) -> Result<Question, Error> {
        if text.trim().is_empty() {
            let place = format!("session `{}`, query", self.id);
            return Err(Error::input(place, "is empty; expected a question"));
        }
        let mut evidence: Vec<Evidence> = Vec::new();
        for id in gold {
            let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            // Several lists may mark the same document.
            if evidence.iter().any(|known| known.id == id.as_str()) {
                continue;
            }
            let found = self.document(&id).ok_or_else(|| {
                Error::input(format!("session `{}`", self.id), format!("document `{id}` has no text"))
            })?;
            evidence.push(found);
        }
        let messages = self.session.log.messages();
        // The reader of sessions adds the query as the last user message.
        let is_in_session =
            messages.last().is_some_and(|last| last.role() == Role::User && last.text() == text);
        Ok(Question { text, kind: None, messages_before: messages.len(), is_in_session, evidence })
    }

    /// Returns the evidence with this id: a message, else a document.
    fn evidence(&self, id: &str) -> Option<Evidence> {
        let Some(position) = self.session.log.position_of_message(id) else { return self.document(id) };
        let message = &self.session.log.messages()[position];
        let evidence = Evidence::new(id, false, &joined(message));
        Some(Evidence { position: u32::try_from(position).ok(), ..evidence })
    }

    /// Returns the document with this id as evidence. Returns `None` if there is none.
    fn document(&self, id: &str) -> Option<Evidence> {
        let document = self.session.rag.iter().find(|document| document.id().as_str() == id)?;
        Some(Evidence::new(id, true, document.text()))
    }
}

/// Copies a log without the prompts and compactions of the application that recorded it.
fn without_prompts(log: &Conversation) -> Conversation {
    let mut copy = Conversation::default();
    for entry in log.entries() {
        match entry {
            Entry::Event(
                Event::Sent { .. }
                | Event::SentWith { .. }
                | Event::PromptSettings { .. }
                | Event::Compacted(_)
                | Event::CompactionUndone { .. }
                | Event::LevelCrossed { .. }
                | Event::TurnCompleted { .. },
            ) => {}
            Entry::Event(event) => copy.record(event.clone()),
            Entry::Message(message) => {
                copy.push(message.clone());
            }
        }
    }
    copy
}

impl Evidence {
    fn new(id: &str, is_document: bool, text: &str) -> Self {
        Self { id: ItemId::from(id), position: None, is_document, words: Words::new(text) }
    }
}
