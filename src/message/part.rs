//! Pieces of a message whose content is a list.

use super::WireFormat;
use crate::media::PartMedia;
use serde::{Deserialize, Serialize};

/// A piece of a message whose content is a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image by its address (or data URL), and the detail asked for.
    Image {
        /// Address or data URL; it is sent, never counted as text.
        url: String,
        /// `low`, `high` or `auto`; none reads as `auto`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// A part of a type this library does not know, kept as the JSON it came as (rule H6).
    Opaque {
        /// The wire format it came in: no other one knows it.
        #[serde(alias = "framing")]
        wire_format: WireFormat,
        /// The whole part as JSON.
        json: String,
    },
}

impl Part {
    /// Measures the media of the part. Returns `None` if it has none.
    pub(super) fn measure(&self) -> Option<PartMedia> {
        match self {
            Self::Text(_) => None,
            Self::Image { url, detail } => Some(PartMedia::from_url(url, detail.as_deref())),
            Self::Opaque { json, .. } => PartMedia::from_json(json),
        }
    }

    /// The JSON of a part of an unknown type.
    pub(crate) fn opaque(&self) -> Option<serde_json::Value> {
        match self {
            Self::Opaque { json, .. } => crate::text::size::tree(json),
            Self::Text(_) | Self::Image { .. } => None,
        }
    }
}
