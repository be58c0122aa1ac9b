//! How closely a model is asked to look.

/// The detail or resolution that a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The model decides, or nothing is said.
    #[default]
    Auto,
    Low,
    Medium,
    High,
    UltraHigh,
    /// As it is (`OpenAI`).
    Original,
}

impl Detail {
    /// From `OpenAI`'s `detail` or Gemini's `mediaResolution`.
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
