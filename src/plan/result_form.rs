//! The forms in which large tool results are sent (offloading, rule S7).

use crate::item::ItemId;
use serde::{Deserialize, Serialize};

/// The form of tool results from one message on, up to the next form. A result keeps the form of its first
/// prompt, so that the prompts after it repeat it byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultForm {
    /// The first message with this form; `None` for the first message of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<ItemId>,
    /// The limits of offloading; `None` if results are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offload: Option<Offload>,
}

/// The limits of offloading, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offload {
    /// A longer result is offloaded.
    pub(crate) above: u64,
    /// The beginning and end of an offloaded result, together.
    pub(crate) keep: u64,
}
