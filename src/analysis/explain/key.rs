//! What an answer can be about.

use crate::planner::candidates::CandidateId;

/// What may be in a prompt, by the same name at every budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A candidate that is no document.
    Item(CandidateId),
    /// A text that stays where it was sent, or that is sent again once it has left (rule S10), by its number
    /// among [`super::stays::Stays`].
    Stays(u32),
    /// A document by its position in the request. Its rank is no name: documents rank differently once those
    /// of the last prompt are given up (rule S5).
    Document(usize),
    /// A message that the provider requires (rule H5), by its position among those of the present plan. It
    /// follows from what else is in.
    RequiredByProvider(u32),
}
