//! Tool results as one prompt sends them, and the choice between the last window and a new one.
//!
//! - Input: the rendering of the last prompt.
//! - Output: the results that are sent as stubs or clipped, and the position before which retained texts
//!   leave.
//! - Rules: S7, S10, S15.
//!
//! The conversation itself is not changed.

use crate::message::Message;
use std::collections::BTreeMap;

/// The form in which one prompt sends tool results, and the retained texts that it releases.
///
/// Every field only grows from one attempt to the next, so a request has few renderings.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a step of its own that a request may take")]
pub(crate) struct ToolResultRendering {
    /// Position before which results are sent as stubs.
    pub(crate) cleared_before: u32,
    /// True if this plan moved `cleared_before`.
    pub(crate) is_moved: bool,
    /// The clipped results of the open exchange, by position.
    pub(crate) clipped: BTreeMap<u32, Message>,
    /// Position before which retained documents and state are no longer sent (rule S10).
    pub(crate) released_before: u32,
    /// True if those texts leave with this plan.
    pub(crate) releases: bool,
    /// True if they leave because they do not fit. The window is then cut to its low mark too.
    pub(crate) cuts: bool,
    /// True if this plan chooses the window anew, so that recalled messages count as a demand (rule S15).
    pub(crate) counts_recalled: bool,
}

impl ToolResultRendering {
    /// Checks if results of the open exchange are sent without their middle.
    pub(crate) fn clips(&self) -> bool {
        !self.clipped.is_empty()
    }

    /// Returns the position before which retained texts leave with this plan for lack of tokens. Returns
    /// `None` if none do.
    pub(crate) fn left_before(&self) -> Option<u32> {
        (self.releases && self.cuts).then_some(self.released_before)
    }

    /// Checks if this rendering is a later attempt than `earlier` for the same request: it adds something and
    /// takes nothing back. Planning terminates because of this.
    pub(crate) fn follows(&self, earlier: &Self) -> bool {
        let steps = |one: &Self| (one.released_before, one.cleared_before, one.clips(), one.counts_recalled);
        let (now, then) = (steps(self), steps(earlier));
        now.0 >= then.0 && now.1 >= then.1 && now.2 >= then.2 && now.3 >= then.3 && now != then
    }
}
