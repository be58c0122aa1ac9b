//! The source of answers: a model of a provider, or the built-in one that quotes documents.

pub mod offline;
pub mod remote;

use context_window::{
    ContextPlan, ItemId, ItemKind, Message, RagItem, WireFormat, render,
    usage::{CacheLife, ReplyReport},
};
use remote::Remote;
use std::collections::BTreeMap;

/// The source of answers.
#[derive(Debug, Clone)]
pub enum Answerer {
    /// Quotes the passages of the prompt with the most words in common with the question. Needs no model and
    /// no network.
    Offline,
    /// Asks a model.
    Remote(Remote),
}

/// A streamed part of a reply.
#[derive(Debug, Clone)]
pub enum Piece {
    Text(String),
    /// Reasoning before the answer.
    Thought(String),
}

/// A complete reply, with its reasoning, usage and stop reason.
pub type Reply = (Message, ReplyReport);

/// A request: the plan in its provider's format, and the data that the offline answerer reads from it.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub body: serde_json::Value,
    pub headers: Vec<(String, String)>,
    pub wire_format: WireFormat,
    /// The maximum length of the reply, in tokens.
    pub max_tokens: u64,
    pub question: String,
    /// The documents that the plan includes.
    pub documents: Vec<RagItem>,
    /// Their labels.
    pub labels: BTreeMap<ItemId, u32>,
}

impl Prompt {
    pub fn from_plan(plan: &ContextPlan, question: String, documents: &[RagItem]) -> Self {
        let included = plan.included.iter().filter(|item| item.kind == ItemKind::Document);
        let documents = included
            .filter_map(|item| documents.iter().find(|document| item.id == *document.id()))
            .cloned()
            .collect();
        // Anthropic caches only up to marks; other providers need none.
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
            labels: plan.citations().labels().map(|(label, id)| (id.clone(), label)).collect(),
        }
    }
}

impl Answerer {
    /// Answers a prompt and passes the parts to `say` as they arrive. Returns an error with the message of
    /// the provider or network, and advice. No error contains a key.
    pub async fn answer(&self, prompt: &Prompt, say: &(dyn Fn(Piece) + Sync)) -> Result<Reply, String> {
        match self {
            Self::Offline => Ok(offline::answer(prompt, say).await),
            Self::Remote(remote) => remote.answer(prompt, say).await,
        }
    }
}
