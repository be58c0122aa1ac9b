//! Who answers: a model of a provider, or the built-in one that quotes.

pub mod offline;
pub mod remote;

use context_window::{
    ContextPlan, ItemKind, Message, RagItem, WireFormat, render,
    usage::{CacheLife, ReplyReport},
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
#[derive(Debug, Clone)]
pub enum Piece {
    Text(String),
    /// What the model thinks before it answers.
    Thought(String),
}

/// A whole reply: with what was thought, what it cost and why it ended.
pub type Reply = (Message, ReplyReport);

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
}

impl Prompt {
    pub fn from_plan(plan: &ContextPlan, question: String, mut documents: Vec<RagItem>) -> Self {
        let included = plan.included.iter().filter(|item| item.kind == ItemKind::Document);
        documents.retain(|document| included.clone().any(|item| item.id == *document.id()));
        // Anthropic caches up to marks only; elsewhere none is needed.
        let body = match plan.wire_format {
            WireFormat::Anthropic => render::anthropic(plan).with_breakpoints(CacheLife::FiveMinutes),
            other => render::body(plan, other),
        };
        Self {
            body: serde_json::to_value(body).expect("a body is plain data"),
            headers: plan.headers.clone(),
            wire_format: plan.wire_format,
            max_tokens: plan.limits.max_completion_tokens,
            question,
            documents,
        }
    }
}

impl Answerer {
    /// Answers a prompt; `say` hears the pieces as they come. An error is what the provider or the network says, and what to do
    /// about it; none has a key in it.
    pub async fn answer(&self, prompt: &Prompt, say: &(dyn Fn(Piece) + Sync)) -> Result<Reply, String> {
        match self {
            Self::Offline => Ok(offline::answer(prompt, say).await),
            Self::Remote(remote) => remote.answer(prompt, say).await,
        }
    }
}
