//! The parts of a plan that are for the conversation and the next plan, not for a reader.

use super::{PromptSettings, Sender, TraceIds, anchor::Anchor};
use crate::{
    config::UsageOptions,
    item::ItemId,
    message::{Message, Prompt},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The parts of a plan that rendering, the conversation and the next plan need.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Carryover {
    pub(crate) prompt: Prompt,
    /// For each included row, the message of the prompt that it is part of.
    pub(crate) row_messages: Vec<usize>,
    /// The last message whose documents and state are no longer sent (rule S10).
    pub(crate) released_through: Option<ItemId>,
    /// The account and end user that send the prompt, as hashes (rule K8).
    pub(crate) sender: Option<Sender>,
    /// True if documents and state are retained at their places in this prompt (rule S10).
    pub(crate) documents_stay: bool,
    /// True if new documents come right before the reply instead of before their question.
    pub(crate) documents_come_last: bool,
    /// State that is retained from this prompt on, by its rows: with the ids that the request uses.
    pub(crate) new_state: BTreeMap<ItemId, NewState>,
    /// The ids of documents by their rows, if another document uses the id as its row.
    pub(crate) renamed: BTreeMap<ItemId, ItemId>,
    /// The live question.
    pub(crate) live: Option<ItemId>,
    /// The start of the next prompt's window: the start of this one, or, if nothing is included by recency (a
    /// cut left the bare question, or the window is included by pins alone), the question or the start
    /// before.
    pub(crate) anchored: Option<ItemId>,
    /// The prompt before this one with its target, if it is remembered.
    pub(crate) before: Option<LastPrompt>,
    /// Items of the conversation that the plan asks about (rule T2).
    pub(crate) asked: BTreeSet<ItemId>,
    /// Documents that the plan asks about (rule T2).
    pub(crate) asked_documents: BTreeSet<ItemId>,
    /// The options by which the usage of the window is measured.
    pub(crate) usage_options: UsageOptions,
    /// The number of compactions and rewinds of the conversation.
    pub(crate) archives: usize,
    /// Limits, tools and focus hint of the request: the log remembers them with the reply.
    pub(crate) settings: PromptSettings,
    /// Ids for `tracing`.
    pub(crate) trace: TraceIds,
}

/// The prompt before a plan's, as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LastPrompt {
    pub(crate) anchor: Arc<Anchor>,
    /// True if the first item of it that is not at its position any more is a message of the log.
    pub(crate) parts_at_a_message: bool,
    /// The messages of its rows, if they are known.
    pub(crate) rows: Option<Arc<[Message]>>,
}

/// A state entry that a plan sends for the first time, as the conversation remembers it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewState {
    pub(crate) id: ItemId,
    /// The text that is remembered, if that is not the one that is sent.
    pub(crate) text: Option<String>,
}
