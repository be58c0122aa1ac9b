//! The forms of a document.

/// A form of a document: its whole text, or a shorter one (rule S17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Form(usize);

impl Form {
    /// The whole text.
    pub(crate) const WHOLE: Self = Self(0);

    /// Returns the forms of the variants, in their order.
    pub(super) fn variants() -> impl Iterator<Item = Self> {
        (1..).map(Self)
    }

    /// Returns the index of the variant. Returns `None` for the whole text.
    pub(super) fn variant(self) -> Option<usize> {
        self.0.checked_sub(1)
    }

    /// Returns true for the whole text.
    pub(crate) fn is_whole(self) -> bool {
        self == Self::WHOLE
    }
}
