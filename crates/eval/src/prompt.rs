//! The prompt of a question as it is sent, by the planner or by a baseline.

use crate::{
    baseline::Selected,
    counted::{Counted, joined},
    question::{Evidence, Question},
    result::QuestionResult,
    words::{self, SentWords, Words},
};
use context_window::{ContextPlan, ItemId, ItemKind, Message, RagItem, RetrievedItems};
use std::collections::{BTreeMap, BTreeSet};

/// The content of a prompt, to find evidence in it.
pub(crate) struct SentPrompt {
    tokens: u64,
    budget: u64,
    overflow: u64,
    /// The words that are sent for each message.
    messages: BTreeMap<ItemId, Words>,
    /// The documents that are sent whole.
    documents: BTreeSet<ItemId>,
    /// The words that recalled documents have of each message, by its position.
    recalled: BTreeMap<u32, Vec<Words>>,
    words: SentWords,
}

impl SentPrompt {
    /// Creates the prompt of a plan for a request with these documents.
    pub(crate) fn from_plan(plan: &ContextPlan, given: &RetrievedItems) -> Self {
        let (documents, messages): (Vec<_>, Vec<_>) =
            plan.included.iter().partition(|row| row.kind == ItemKind::Document);
        let messages = messages.into_iter().map(|row| (row.id.clone(), Words::new(&joined(&row.body))));
        Self {
            tokens: plan.estimated_tokens_total.tokens,
            budget: plan.prompt_budget,
            overflow: plan.overflow_tokens(),
            messages: messages.collect(),
            // A shorter form may lack the evidence, so it counts only by its words.
            documents: documents
                .iter()
                .filter(|row| row.form().is_none())
                .map(|row| row.id.clone())
                .collect(),
            recalled: recalled_words(plan, given),
            words: SentWords::new(plan.messages().iter().flat_map(Message::texts)),
        }
    }

    /// Creates the prompt that a baseline selected.
    pub(crate) fn from_selected(selected: &Selected<'_>, budget: u64) -> Self {
        // The question is last. It is no message of the session, but may have the id of one.
        let session = &selected.items[..selected.items.len().saturating_sub(1)];
        let (documents, messages): (Vec<&Counted>, Vec<&Counted>) =
            session.iter().partition(|item| item.role.is_none());
        Self {
            tokens: selected.tokens,
            budget,
            overflow: selected.tokens.saturating_sub(budget),
            messages: messages.into_iter().map(|item| (item.id.clone(), Words::new(&item.text))).collect(),
            documents: documents.into_iter().map(|item| item.id.clone()).collect(),
            recalled: BTreeMap::new(),
            words: SentWords::new(selected.items.iter().map(|item| item.text.as_str())),
        }
    }

    /// Checks if a piece of evidence is in the prompt: under its own id, or as a text of any item.
    pub(crate) fn contains(&self, evidence: &Evidence) -> bool {
        // A message may be sent as a stub, so its id alone proves nothing.
        let own = self.messages.get(&evidence.id).filter(|_| !evidence.is_document);
        let mut recalled = evidence.position.and_then(|at| self.recalled.get(&at)).into_iter().flatten();
        evidence.is_document && self.documents.contains(&evidence.id)
            || recalled.any(|sent| words::contains(sent, &evidence.words))
            || own.is_some_and(|sent| words::contains(sent, &evidence.words))
            || self.words.contains(&evidence.words)
    }

    /// Returns the tokens of the prompt.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Looks for the evidence of a question.
    pub(crate) fn result(&self, at: usize, question: &Question, cost: Option<u64>) -> QuestionResult {
        // In the order of the case, so that results can be compared line by line.
        let missing = question.evidence.iter().filter(|evidence| !self.contains(evidence));
        QuestionResult {
            question: at,
            kind: question.kind.clone(),
            evidence: question.evidence.len() as u64,
            missing: missing.map(|evidence| evidence.id.to_string()).collect(),
            tokens: self.tokens,
            budget: self.budget,
            overflow: self.overflow,
            cost,
        }
    }
}

/// Returns the words that included documents have of each message that they quote. The parts of a message are
/// joined, because evidence may be cut into several.
fn recalled_words(plan: &ContextPlan, given: &RetrievedItems) -> BTreeMap<u32, Vec<Words>> {
    let included: BTreeSet<&ItemId> =
        plan.included.iter().filter(|row| row.kind == ItemKind::Document).map(|row| &row.id).collect();
    let mut quotes: Vec<&RagItem> =
        given.iter().filter(|item| item.messages.is_some() && included.contains(item.id())).collect();
    quotes.sort_by_key(|item| item.span.as_ref().map(|span| (span.start, span.end)));
    let mut words: BTreeMap<u32, Vec<Words>> = BTreeMap::new();
    for stretch in quotes.chunk_by(|one, next| {
        let end = one.span.as_ref().map(|span| span.end);
        end.is_some() && end == next.span.as_ref().map(|span| span.start)
    }) {
        let text: String = stretch.iter().map(|item| item.text()).collect();
        let text = Words::new(&text);
        for position in stretch.iter().filter_map(|item| item.messages.clone()).flatten() {
            words.entry(position).or_default().push(text.clone());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window::{
        Config, ContextWindowManager, Conversation, Model, PlanRequest, RequestLimits, Role, TokenCounter,
    };

    #[test]
    fn question_does_not_hide_the_message_with_its_id() {
        let item = |text: &str| Counted {
            id: ItemId::from("m0"),
            role: Some(Role::User),
            tokens: 3,
            text: text.to_owned(),
        };
        let (message, question) = (item("In the shed."), item("Where is the key?"));
        let evidence = Evidence {
            id: message.id.clone(),
            position: Some(0),
            is_document: false,
            words: Words::new(&message.text),
        };
        let sent = |items| SentPrompt::from_selected(&Selected { items, tokens: 6 }, 10);
        assert!(sent(vec![&message, &question]).contains(&evidence));
        assert!(!sent(vec![&question]).contains(&evidence));
    }

    #[test]
    fn shorter_form_is_evidence_only_by_its_words() {
        let counter = TokenCounter::chars_per_4();
        let manager = ContextWindowManager::new(Model::custom("test"), counter, Config::default()).unwrap();
        let log = Conversation::from([Message::user("Where is the key?")]);
        let text = "The key is in the shed behind the old house. ".repeat(9);
        let item = |summary: &str| RagItem::new("d", 1.0, &*text).with_variant("summary", summary);
        let contains = |summary: &str, evidence: &str| {
            let limits = RequestLimits::prompt_budget(80);
            let request = PlanRequest::new(&log).with_rag([item(summary)]).with_limits(limits);
            let plan = manager.build_plan(&request).unwrap();
            assert_eq!(plan.included[0].form(), Some("summary"));
            let words = Words::new(evidence);
            let evidence = Evidence { id: ItemId::from("d"), position: None, is_document: true, words };
            SentPrompt::from_plan(&plan, &request.rag).contains(&evidence)
        };
        let sentence = "The key is in the shed behind the old house.";
        assert!(contains(sentence, sentence));
        assert!(!contains("A text about keys.", sentence));
    }

    #[test]
    fn message_that_is_sent_as_a_stub_is_no_evidence() {
        let item = |text: &str| Counted {
            id: ItemId::from("m0"),
            role: Some(Role::Tool),
            tokens: 3,
            text: text.to_owned(),
        };
        let (whole, stub, question) = (item("In the shed."), item("[cleared]"), item("Where is the key?"));
        let evidence = Evidence {
            id: whole.id.clone(),
            position: Some(0),
            is_document: false,
            words: Words::new(&whole.text),
        };
        let sent = |items| SentPrompt::from_selected(&Selected { items, tokens: 6 }, 10);
        assert!(sent(vec![&whole, &question]).contains(&evidence));
        assert!(!sent(vec![&stub, &question]).contains(&evidence));
    }
}
