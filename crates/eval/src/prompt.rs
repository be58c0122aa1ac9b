//! The prompt of a question as it is sent, by the planner or by a baseline.

use crate::{
    baseline::Selected,
    counted::{Counted, joined},
    question::{Evidence, Question},
    result::QuestionResult,
    words::{self, SentWords, Words},
};
use context_window::{ContextPlan, ItemId, ItemKind, Message};
use std::collections::{BTreeMap, BTreeSet};

/// The content of a prompt, to find evidence in it.
pub(crate) struct SentPrompt {
    tokens: u64,
    budget: u64,
    overflow: u64,
    /// The words that are sent for each message.
    messages: BTreeMap<ItemId, Words>,
    /// The documents, which are sent whole or not at all.
    documents: BTreeSet<ItemId>,
    /// True if messages are sent as documents, with the ids of the messages.
    has_turns_as_documents: bool,
    words: SentWords,
}

impl SentPrompt {
    pub(crate) fn from_plan(plan: &ContextPlan, has_turns_as_documents: bool) -> Self {
        let (documents, messages): (Vec<_>, Vec<_>) =
            plan.included.iter().partition(|row| row.kind == ItemKind::Document);
        let messages = messages.into_iter().map(|row| (row.id.clone(), Words::new(&joined(&row.body))));
        Self {
            tokens: plan.estimated_tokens_total.tokens,
            budget: plan.prompt_budget,
            overflow: plan.overflow_tokens(),
            messages: messages.collect(),
            documents: documents.into_iter().map(|row| row.id.clone()).collect(),
            has_turns_as_documents,
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
            has_turns_as_documents: false,
            words: SentWords::new(selected.items.iter().map(|item| item.text.as_str())),
        }
    }

    /// Checks if a piece of evidence is in the prompt: under its own id, or as a text of any item.
    pub(crate) fn contains(&self, evidence: &Evidence) -> bool {
        let is_document = evidence.is_document || self.has_turns_as_documents;
        // A message may be sent as a stub, so its id alone proves nothing.
        let own = self.messages.get(&evidence.id).filter(|_| !evidence.is_document);
        is_document && self.documents.contains(&evidence.id)
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

#[cfg(test)]
mod tests {
    use super::*;
    use context_window::Role;

    #[test]
    fn question_does_not_hide_the_message_with_its_id() {
        let item = |text: &str| Counted {
            id: ItemId::from("m0"),
            role: Some(Role::User),
            tokens: 3,
            text: text.to_owned(),
        };
        let (message, question) = (item("In the shed."), item("Where is the key?"));
        let evidence =
            Evidence { id: message.id.clone(), is_document: false, words: Words::new(&message.text) };
        let sent = |items| SentPrompt::from_selected(&Selected { items, tokens: 6 }, 10);
        assert!(sent(vec![&message, &question]).contains(&evidence));
        assert!(!sent(vec![&question]).contains(&evidence));
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
        let evidence = Evidence { id: whole.id.clone(), is_document: false, words: Words::new(&whole.text) };
        let sent = |items| SentPrompt::from_selected(&Selected { items, tokens: 6 }, 10);
        assert!(sent(vec![&whole, &question]).contains(&evidence));
        assert!(!sent(vec![&stub, &question]).contains(&evidence));
    }
}
