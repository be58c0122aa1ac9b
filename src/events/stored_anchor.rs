//! The anchor of a prompt as stored on disk: its JSON, independent of the names of the crate's types.

use crate::{
    item::ItemId,
    message::WireFormat,
    plan::{
        DropReason, DroppedReasoning, PrefixCause,
        anchor::{Anchor, PromptHead, PromptPiece, Sender, Target},
    },
    provider::model::RequestLimits,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An [`Anchor`] as stored on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredAnchor {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<StoredTarget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<RequestLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<ItemId>,
    window_start: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rag: Option<Vec<ItemId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_before: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_through: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<StoredSender>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<StoredHead>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<(ItemId, StoredLoss)>,
    /// Id, hash and token count of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Vec<(ItemId, Arc<str>, u64)>>,
}

/// A [`Sender`] as stored on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredSender {
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_user: Option<String>,
}

/// A [`PromptHead`] as stored on disk: the number of items, and one hash over them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredHead {
    items: u64,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thought: Option<ItemId>,
}

/// The reason why reasoning was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredLoss {
    PrefixChanged { at: ItemId, cause: PrefixCause },
    ChainBroken,
    Uncovered,
    Unreadable { model: String },
    OtherSender,
    Dropped,
    DroppedByProvider { reason: String },
}

/// A [`Target`] as stored on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredTarget {
    model: String,
    provider: String,
    // `framing` is the name of earlier versions.
    #[serde(default, alias = "framing", skip_serializing_if = "Option::is_none")]
    wire_format: Option<WireFormat>,
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
            cleared_before,
            released_through,
            sender,
            head,
            lost,
            prompt,
        } = anchor;
        let sender = sender.map(|Sender { account, end_user }| StoredSender { account, end_user });
        let target = target.map(|Target { model, provider, wire_format }| StoredTarget {
            model,
            provider,
            wire_format,
        });
        let piece = |piece: &PromptPiece| piece.clone().into();
        let prompt = prompt.map(|prompt| prompt.iter().map(piece).collect());
        let head = head.map(|PromptHead { items, hash, thought }| StoredHead { items, hash, thought });
        let lost = lost.into_iter().map(|DroppedReasoning { id, why }| (id, why.into())).collect();
        Self {
            target,
            limits,
            live,
            window_start,
            rag,
            cleared_before,
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
            cleared_before,
            released_through,
            sender,
            head,
            lost,
            prompt,
        } = stored;
        let sender = sender.map(|StoredSender { account, end_user }| Sender { account, end_user });
        let target = target.map(|StoredTarget { model, provider, wire_format }| Target {
            model,
            provider,
            wire_format,
        });
        let prompt = prompt.map(|prompt| prompt.into_iter().map(PromptPiece::from).collect());
        let head = head.map(|StoredHead { items, hash, thought }| PromptHead { items, hash, thought });
        let lost = lost.into_iter().map(|(id, why)| DroppedReasoning { id, why: why.into() }).collect();
        Self {
            target,
            limits,
            live,
            window_start,
            rag,
            cleared_before,
            released_through,
            sender,
            head,
            lost,
            prompt,
        }
    }
}

impl From<DropReason> for StoredLoss {
    fn from(why: DropReason) -> Self {
        match why {
            DropReason::PrefixChanged { at, cause } => Self::PrefixChanged { at, cause },
            DropReason::ChainBroken => Self::ChainBroken,
            DropReason::Uncovered => Self::Uncovered,
            DropReason::Unreadable { model } => Self::Unreadable { model },
            DropReason::OtherSender => Self::OtherSender,
            DropReason::Dropped => Self::Dropped,
            DropReason::DroppedByProvider { reason } => Self::DroppedByProvider { reason },
        }
    }
}

impl From<StoredLoss> for DropReason {
    fn from(why: StoredLoss) -> Self {
        match why {
            StoredLoss::PrefixChanged { at, cause } => Self::PrefixChanged { at, cause },
            StoredLoss::ChainBroken => Self::ChainBroken,
            StoredLoss::Uncovered => Self::Uncovered,
            StoredLoss::Unreadable { model } => Self::Unreadable { model },
            StoredLoss::OtherSender => Self::OtherSender,
            StoredLoss::Dropped => Self::Dropped,
            StoredLoss::DroppedByProvider { reason } => Self::DroppedByProvider { reason },
        }
    }
}
