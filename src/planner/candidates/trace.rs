//! What a decision rests on: at which other budget it would be made differently. Only plans that are explained keep it.

use crate::item::Section;

/// The numbers that grow with the prompt budget and that weights are compared with. None of them ever falls when the
/// budget grows (rule B5), and a decision in which all of them stay on their side stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// What `system_pinned` was given.
    SystemPinned,
    /// What `conversation` was given.
    Conversation,
    /// What `rag` was given.
    Rag,
    /// The low mark of the conversation's budget (rule S5).
    LowMark,
    /// What the documents' share holds, and no more than their budget (rule S5).
    Share,
    /// What is left over, which grows as the total does (rule B6).
    LeftOver,
}

impl Quantity {
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Self; 6] =
        [Self::SystemPinned, Self::Conversation, Self::Rag, Self::LowMark, Self::Share, Self::LeftOver];

    /// The budget of a section.
    pub(crate) fn budget(section: Section) -> Self {
        match section {
            Section::SystemPinned => Self::SystemPinned,
            Section::Conversation => Self::Conversation,
            Section::Rag => Self::Rag,
        }
    }
}

/// What a room is part of; tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis {
    pub(crate) of: Quantity,
    /// How much more the quantity leaves than the room shows, because something fixed (a cap) is less.
    pub(crate) hidden: u64,
    /// By how much the room may grow before something fixed stops it.
    pub(crate) spare: u64,
    /// Another quantity that leaves so much more than the room shows, and would bind if it fell.
    pub(crate) also: Option<(Quantity, u64)>,
}

impl Basis {
    pub(crate) fn of(of: Quantity) -> Self {
        Self { of, hidden: 0, spare: u64::MAX, also: None }
    }
}

/// How far each quantity may move before some decision is made differently; tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trace {
    /// The growth at which something changes.
    pub(crate) grows: [u64; 6],
    /// The fall at which something changes.
    pub(crate) falls: [u64; 6],
}

impl Default for Trace {
    fn default() -> Self {
        Self { grows: [u64::MAX; 6], falls: [u64::MAX; 6] }
    }
}

impl Trace {
    /// Something larger than its room by `by` tokens was left out.
    pub(crate) fn over(&mut self, basis: Basis, by: u64) {
        if by <= basis.spare {
            let grows = &mut self.grows[basis.of as usize];
            *grows = by.min(*grows);
        }
    }

    /// Something was let in that leaves `left` of its room.
    pub(crate) fn fits(&mut self, basis: Basis, left: u64) {
        let also = basis.also.map(|(quantity, more)| (quantity, left.saturating_add(more)));
        for (quantity, left) in
            [Some((basis.of, left.saturating_add(basis.hidden))), also].into_iter().flatten()
        {
            let falls = &mut self.falls[quantity as usize];
            *falls = left.saturating_add(1).min(*falls);
        }
    }

    /// The total was compared with a number, and reaches it or not.
    pub(crate) fn compared(&mut self, total: u64, least: u64) {
        let basis = Basis::of(Quantity::LeftOver);
        match total.checked_sub(least) {
            Some(left) => self.fits(basis, left),
            None => self.over(basis, least - total),
        }
    }
}
