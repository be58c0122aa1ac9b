//! Presets for common applications: the files in `config/presets/`.

/// The name and the TOML text of each preset.
const PRESETS: [(&str, &str); 8] = [
    ("agent", include_str!("../../config/presets/agent.toml")),
    ("append-only", include_str!("../../config/presets/append-only.toml")),
    ("chat", include_str!("../../config/presets/chat.toml")),
    ("dropping", include_str!("../../config/presets/dropping.toml")),
    ("lights", include_str!("../../config/presets/lights.toml")),
    ("rag", include_str!("../../config/presets/rag.toml")),
    ("summary-only", include_str!("../../config/presets/summary-only.toml")),
    ("summary-tail", include_str!("../../config/presets/summary-tail.toml")),
];

/// Returns the names of all presets.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// Returns the TOML text of a preset, or `None` if no preset has this name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
