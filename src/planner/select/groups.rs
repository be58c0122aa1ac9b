//! Selection of documents that are sent together or not at all.
//!
//! - Input: a group, and an offer.
//! - Output: the members that fit, all or none, and the reasons of the others.
//! - Rules: S19.

use super::{
    Room, Selection, Selector, Walker,
    documents::{ExcludedDocument, Offer},
};
use crate::{
    config::Variants,
    error::Error,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::candidates::{Group, Rank, without_member},
};
use std::collections::BTreeSet;

impl<W: Walker> Selector<'_, W> {
    /// Takes all members of a group that no other item represents, each in its shortest form, if all of them
    /// fit. Returns the reasons of the members that are not taken.
    pub(super) fn decide_group(
        &self,
        group: &Group,
        is_stopped: bool,
        room: Room,
        offer: &mut Offer,
        chosen: &Selection<W>,
    ) -> Result<Vec<ExcludedDocument>, Error> {
        let is_open = |rank: &Rank| {
            !offer.taken.paid().contains_key(rank) && !chosen.reasons.left_documents.contains_key(rank)
        };
        // Members that left again have their reasons already: the conversation contains them.
        let members: BTreeSet<Rank> = group.members.iter().copied().filter(is_open).collect();
        let others = group.others.iter().copied().filter(is_open);
        let parts: BTreeSet<Rank> = members.iter().copied().chain(others).collect();
        let parts: Vec<Rank> = parts.into_iter().collect();
        let refuse = |reason: &ExcludedReason| members.iter().map(|rank| (*rank, reason.clone())).collect();
        if let Some(reason) = self.missing_part(group, offer) {
            return Ok(refuse(&reason));
        }
        let left = offer.left();
        let (rank, reason) = match self.take_together(&parts, true, is_stopped, room, offer, chosen)? {
            Ok(represented) => {
                // Some may have been too large alone.
                offer.forget(&parts);
                if self.config.rag.variants == Variants::Depth {
                    for rank in parts {
                        self.grow(rank, room, offer)?;
                    }
                }
                return Ok(represented.into_iter().filter(|(rank, _)| members.contains(rank)).collect());
            }
            Err(out) => out,
        };
        // The tokens left after the first members are not those that the group needs.
        if let ExcludedReason::Budget { limited_by, .. } = reason {
            let is_size = limited_by == LimitedBy::Size && parts.len() > 1;
            let limited_by = if is_size { LimitedBy::Group } else { limited_by };
            return Ok(refuse(&ExcludedReason::Budget { room: left, limited_by }));
        }
        let mut out: Vec<ExcludedDocument> = refuse(&without_member(self.costs.document_id(rank)));
        // The member itself is out for its own reason.
        out.iter_mut().filter(|(member, _)| *member == rank).for_each(|one| one.1 = reason.clone());
        Ok(out)
    }

    /// Returns the reason to exclude a group because another document that it needs cannot be sent with it.
    fn missing_part(&self, group: &Group, offer: &Offer) -> Option<ExcludedReason> {
        // Documents of the last prompt are decided before.
        let is_missing =
            |rank: &&Rank| self.costs.is_sticky(**rank) && !offer.taken.paid().contains_key(*rank);
        let missing = group.others.iter().find(is_missing)?;
        Some(without_member(self.costs.document_id(*missing)))
    }
}
