//! Ready-made options for common applications: the files in `config/presets/`.

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

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The TOML text of one.
pub(super) fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
