//! The keys of everything that an explanation can be about.

use crate::planner::candidates::CandidateId;

/// The key of a possible part of a prompt. It is the same at every budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A candidate other than a document.
    Item(CandidateId),
    /// A text that stays where it was sent, or is sent again after it left (retained texts, rule S10). The
    /// number is that of [`super::stays::Stays`].
    Stays(u32),
    /// A document by its position in the request. Its rank cannot be the key, because documents rank
    /// differently once those of the last prompt are given up (sticky documents, rule S5).
    Document(usize),
    /// A message that the provider requires (placeholder messages, rule H5), by its position among those of
    /// the present plan. It follows from the other included items.
    RequiredByProvider(u32),
}
