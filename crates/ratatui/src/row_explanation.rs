//! Explanations of rows as text.

/// An explanation of a row as text, with the row's id ([`WhatIf::explain`](super::WhatIf::explain)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowExplanation {
    pub(super) item_id: String,
    pub(super) text: String,
}

impl RowExplanation {
    /// Returns the id of the row: [`Decision::qualified_id`](context_window::plan::Decision::qualified_id).
    #[must_use]
    pub fn item_id(&self) -> &str {
        &self.item_id
    }

    /// Returns the printable explanation. Its first line names the row.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
