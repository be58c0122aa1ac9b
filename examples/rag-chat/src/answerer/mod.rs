//! Who answers: a model of a provider, or the built-in one that quotes.

pub mod offline;
pub mod remote;

use context_window::{
    ContextPlan, Message, RagItem, WireFormat,
    message::Reasoning,
    usage::{ReplyReport, is_context_overflow, is_reasoning_refusal},
};
use remote::Remote;

/// Who answers.
#[derive(Debug, Clone)]
pub enum Answerer {
    /// Quotes the passages of the prompt that have most in common with the question. No model, no network.
    Offline,
    /// Asks a model.
    Remote(Remote),
}

/// A piece of a reply on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// What the model thinks before it answers.
    Thought(String),
}

/// A whole reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: String,
    pub reasoning: Vec<Reasoning>,
    pub report: ReplyReport,
}

impl Reply {
    /// As the conversation keeps it.
    pub fn into_message(self) -> (Message, ReplyReport) {
        let message = Message::assistant(self.text);
        (self.reasoning.into_iter().fold(message, Message::with_reasoning), self.report)
    }
}

/// Why there is no whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For the user: what happened, and what to do.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The provider says that the prompt is too long.
    TooLong,
    /// It does not take the model's own thoughts back.
    Thoughts,
    /// Anything else.
    Other,
}

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let kind = if is_context_overflow(&text) {
            FailureKind::TooLong
        } else if is_reasoning_refusal(&text) {
            FailureKind::Thoughts
        } else {
            FailureKind::Other
        };
        Self { kind, text }
    }
}

/// What is sent: a plan as its provider takes it, and what the offline answerer reads of it.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub body: serde_json::Value,
    pub headers: Vec<(String, String)>,
    pub wire_format: WireFormat,
    /// The longest reply, in tokens.
    pub max_tokens: u64,
    pub question: String,
    /// The documents that the plan includes.
    pub documents: Vec<RagItem>,
    /// Words in the prompt's own count of tokens, for the offline answerer's report.
    pub tokens: u64,
}

impl Prompt {
    pub fn of(plan: &ContextPlan, question: &str, documents: &[RagItem]) -> Self {
        let is_in = |document: &&RagItem| {
            plan.included
                .iter()
                .any(|item| item.kind == context_window::ItemKind::Document && item.id == *document.id())
        };
        Self {
            body: remote::body(plan),
            headers: plan.headers.clone(),
            wire_format: plan.wire_format,
            max_tokens: plan.limits.max_completion,
            question: question.to_owned(),
            documents: documents.iter().filter(is_in).cloned().collect(),
            tokens: plan.counted(),
        }
    }
}

impl Answerer {
    /// Answers a prompt; `say` hears the pieces as they come.
    pub async fn answer(&self, prompt: &Prompt, say: &(dyn Fn(Piece) + Sync)) -> Result<Reply, Failure> {
        match self {
            Self::Offline => Ok(offline::answer(prompt, say).await),
            Self::Remote(remote) => remote.answer(prompt, say).await,
        }
    }
}
