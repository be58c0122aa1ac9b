//! The level of detail at which a model reads media.

/// The requested detail or resolution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The model's choice, or no request.
    #[default]
    Auto,
    Low,
    Medium,
    High,
    UltraHigh,
    /// The original size (`OpenAI`).
    Original,
}

impl Detail {
    /// Parses `OpenAI`'s `detail` or Gemini's `mediaResolution`.
    pub(super) fn from_text(text: Option<&str>) -> Self {
        let lower = text.unwrap_or_default().to_ascii_lowercase();
        match lower.strip_prefix("media_resolution_").unwrap_or(&lower) {
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "ultra_high" => Self::UltraHigh,
            "original" => Self::Original,
            _ => Self::Auto,
        }
    }
}
