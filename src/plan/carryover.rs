//! The parts of a plan for the conversation and the next plan, not for a reader.

use super::{PromptSettings, ResultForm, SearchedRules, Sender, TraceIds, anchor::Anchor, labels::Labels};
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
    /// For each included row, the index of the prompt message that contains it.
    pub(crate) row_messages: Vec<usize>,
    /// The forms of tool results (rule S7).
    pub(crate) result_forms: Vec<ResultForm>,
    /// The user's rules that were found in the messages, and the last message in which they were looked for
    /// (rule R2).
    pub(crate) rules: SearchedRules,
    /// The labels of documents (rule S16).
    pub(crate) labels: Labels,
    /// The last message whose documents and state are no longer sent (retained texts, rule S10).
    pub(crate) released_through: Option<ItemId>,
    /// The account and end user that send the prompt, as hashes (rule K8).
    pub(crate) sender: Option<Sender>,
    /// True if documents and state stay at their places in this prompt (retained texts, rule S10).
    pub(crate) documents_stay: bool,
    /// True if new documents come directly before the reply instead of before their question.
    pub(crate) documents_come_last: bool,
    /// State that is retained from this prompt on, by row id. Each entry has the id that the request uses.
    pub(crate) new_state: BTreeMap<ItemId, NewState>,
    /// The ids of documents by row id, if another document uses the id as its row id.
    pub(crate) renamed: BTreeMap<ItemId, ItemId>,
    /// The ranks of the documents of this prompt, from 0, in prompt order.
    pub(crate) document_ranks: Vec<u32>,
    /// The id of the live question.
    pub(crate) live: Option<ItemId>,
    /// The start of the next prompt's window. Mostly it is the start of this one. If nothing is included by
    /// recency, it is the live question after a cut, or the earlier start if only pins are included.
    pub(crate) anchored_at: Option<ItemId>,
    /// The prompt before this one with its target, if it is remembered.
    pub(crate) before: Option<LastPrompt>,
    /// Items of the conversation whose TTL raised a question in this plan (rule T2).
    pub(crate) items_to_confirm: BTreeSet<ItemId>,
    /// Documents whose TTL raised a question in this plan (rule T2).
    pub(crate) documents_to_confirm: BTreeSet<ItemId>,
    /// The options for measuring the usage of the window.
    pub(crate) usage_options: UsageOptions,
    /// Number of compactions and rewinds of the conversation.
    pub(crate) archives: usize,
    /// Limits, tools and focus hint of the request. The log remembers them with the reply.
    pub(crate) settings: PromptSettings,
    /// Ids for `tracing`.
    pub(crate) trace: TraceIds,
}

/// The prompt before a plan's prompt, as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LastPrompt {
    pub(crate) anchor: Arc<Anchor>,
    /// True if the first of its items that is no longer at its position is a message of the log.
    pub(crate) changed_at_message: bool,
    /// The messages of its rows, if they are known.
    pub(crate) rows: Option<Arc<[Message]>>,
}

/// A state entry that a plan sends for the first time, in the form that the conversation remembers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewState {
    pub(crate) id: ItemId,
    /// The remembered text, if it differs from the sent one.
    pub(crate) text: Option<String>,
}
