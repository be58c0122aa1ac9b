//! The parts of a message whose content is a list.

use super::WireFormat;
use crate::media::PartMedia;
use serde::{Deserialize, Serialize};

/// A part of a message whose content is a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image by its address (or data URL), with the requested detail.
    Image {
        /// The address or data URL. It is sent, but never counted as text.
        url: String,
        /// `low`, `high` or `auto`. `None` means `auto`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// A part of an unknown type, kept as its original JSON (rule H6).
    Opaque {
        /// The wire format of the JSON. The part is not sent in any other format.
        #[serde(alias = "framing")]
        wire_format: WireFormat,
        /// The whole part as JSON.
        json: String,
    },
}

impl Part {
    /// Measures the media of the part. Returns `None` if it has no media.
    pub(super) fn measure(&self) -> Option<PartMedia> {
        match self {
            Self::Text(_) => None,
            Self::Image { url, detail } => Some(PartMedia::from_url(url, detail.as_deref())),
            Self::Opaque { json, .. } => PartMedia::from_json(json),
        }
    }

    /// Returns the JSON of a part of an unknown type, or `None` for other parts.
    pub(crate) fn opaque(&self) -> Option<serde_json::Value> {
        match self {
            Self::Opaque { json, .. } => crate::text::size::tree(json),
            Self::Text(_) | Self::Image { .. } => None,
        }
    }
}
