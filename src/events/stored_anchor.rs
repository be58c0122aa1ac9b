//! The anchor of a prompt as stored on disk: its JSON, independent of the names of the fields of [`Anchor`].
//! The parts of an anchor have the same JSON as in a session file.

use crate::{
    config::DocumentFormat,
    item::ItemId,
    plan::{
        DropReason, DroppedReasoning, ResultForm,
        anchor::{Anchor, PromptHead, PromptPiece, Sender, Target, is_text},
        labels::Labels,
    },
    provider::model::RequestLimits,
    standing_rule::StandingRule,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An [`Anchor`] as stored on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredAnchor {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<RequestLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<ItemId>,
    window_start: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rag: Option<Vec<ItemId>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rag_ranks: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rag_joined: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rag_forms: Vec<(u32, Arc<str>)>,
    #[serde(skip_serializing_if = "is_text")]
    rag_format: DocumentFormat,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rag_released: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_before: Option<ItemId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    result_forms: Vec<ResultForm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<StandingRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_through: Option<ItemId>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_through: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Sender>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<PromptHead>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<(ItemId, DropReason)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Arc<[PromptPiece]>>,
}

impl From<Anchor> for StoredAnchor {
    fn from(anchor: Anchor) -> Self {
        // Both conversions name every field, so that a new field cannot be forgotten.
        let Anchor {
            target,
            limits,
            live,
            window_start,
            rag,
            rag_ranks,
            rag_joined,
            rag_forms,
            rag_format,
            rag_released,
            cleared_before,
            result_forms,
            rules,
            rules_through,
            labels,
            released_through,
            sender,
            head,
            lost,
            prompt,
        } = anchor;
        let lost = lost.into_iter().map(|DroppedReasoning { id, why }| (id, why)).collect();
        Self {
            target,
            limits,
            live,
            window_start,
            rag,
            rag_ranks,
            rag_joined,
            rag_forms,
            rag_format,
            rag_released,
            cleared_before,
            result_forms,
            rules,
            rules_through,
            labels,
            released_through,
            sender,
            head,
            lost,
            prompt,
        }
    }
}

impl From<StoredAnchor> for Anchor {
    fn from(stored: StoredAnchor) -> Self {
        let StoredAnchor {
            target,
            limits,
            live,
            window_start,
            rag,
            rag_ranks,
            rag_joined,
            rag_forms,
            rag_format,
            rag_released,
            cleared_before,
            result_forms,
            rules,
            rules_through,
            labels,
            released_through,
            sender,
            head,
            lost,
            prompt,
        } = stored;
        let lost = lost.into_iter().map(|(id, why)| DroppedReasoning { id, why }).collect();
        Self {
            target,
            limits,
            live,
            window_start,
            rag,
            rag_ranks,
            rag_joined,
            rag_forms,
            rag_format,
            rag_released,
            cleared_before,
            result_forms,
            rules,
            rules_through,
            labels,
            released_through,
            sender,
            head,
            lost,
            prompt,
        }
    }
}
