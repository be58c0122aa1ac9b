//! A compaction made by a provider: opaque items that only this provider can read. They are sent back
//! unchanged.
//!
//! Sources, read 2026-11-23: Anthropic, compaction on demand and by threshold (`compaction` blocks);
//! `OpenAI`, `/responses/compact` and `context_management` (`compaction` items); xAI, context compaction (an
//! item with `encrypted_content`).

use crate::{error::Error, message::WireFormat, text::plain::short};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The type name of a compaction block or item.
pub const TYPE: &str = "compaction";

/// A provider's replacement for the messages that it compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderSummary {
    /// The provider that made the compaction. No other provider can read it.
    pub provider: String,
    /// The wire format of the items.
    pub wire_format: WireFormat,
    /// The JSON of each item, in order, unchanged.
    pub items: Vec<String>,
}

impl ProviderSummary {
    /// Reads a compaction from a response. The response answers a compaction request (Anthropic `compaction`,
    /// `OpenAI` and xAI `/responses/compact`), or a normal request that made the provider compact on its own.
    /// The result holds the blocks or items of type `compaction`, and for `/responses/compact` all returned
    /// items. The response is any value that serialises as its JSON, such as a `serde_json::Value`.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` if the response contains no compaction. The history does not change, and the error
    /// names the stop reason of the reply.
    pub fn from_json(provider: impl Into<String>, response: &impl Serialize) -> Result<Self, Error> {
        let response = &serde_json::to_value(response)
            .map_err(|error| Error::input("the response", error.to_string()))?;
        let list = |key: &str| response.get(key).and_then(Value::as_array);
        let (wire_format, entries) = match (list("content"), list("output")) {
            (Some(blocks), _) => (WireFormat::Anthropic, blocks),
            (None, Some(items)) => (WireFormat::OpenAiResponses, items),
            (None, None) => {
                return Err(none("has no array `content` or `output`; expected a response of the provider"));
            }
        };
        let made = |entry: &&Value| entry["type"] == TYPE && !is_failed(entry);
        let items: Vec<&Value> = match wire_format {
            // `/responses/compact` returns the whole next window; the order and every item of it matter.
            WireFormat::OpenAiResponses if response["object"] == "response.compaction" => {
                entries.iter().collect()
            }
            _ => entries.iter().filter(made).collect(),
        };
        if !items.iter().any(made) {
            let why = response["stop_reason"].as_str().or_else(|| response["status"].as_str());
            let why = short(why.unwrap_or("nothing"));
            return Err(none(&format!("contains no compaction; its stop reason is `{why}`")));
        }
        let items = items.into_iter().map(Value::to_string).collect();
        Ok(Self { provider: provider.into(), wire_format, items })
    }

    /// Reads one block or item of a history. Returns `None` for another type, and for a failed compaction
    /// (its content is null).
    #[doc(hidden)]
    #[must_use]
    pub fn from_block(provider: &str, wire_format: WireFormat, json: &str) -> Option<Self> {
        let block: Value = serde_json::from_str(json).ok()?;
        let is_one = block["type"] == TYPE && !is_failed(&block);
        is_one.then(|| Self { provider: provider.into(), wire_format, items: vec![json.to_owned()] })
    }

    /// Returns the plain text of the compaction, or `None` if the provider does not expose it (only Anthropic
    /// does).
    #[doc(hidden)]
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let block: Value = serde_json::from_str(self.items.last()?).ok()?;
        let text = block.get("content")?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Returns true for a failed compaction. Anthropic marks it by null content; an item of `OpenAI` has
/// `encrypted_content` instead.
fn is_failed(entry: &Value) -> bool {
    entry.get("content").is_none_or(Value::is_null)
        && entry.get("encrypted_content").is_none_or(Value::is_null)
}

fn none(detail: &str) -> Error {
    Error::input("the response", format!("{detail}; the conversation is unchanged"))
}
