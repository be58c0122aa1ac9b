//! TTL and policy → in, ask or out (rules T1, T2). One item at a time, decided before it is weighed.
//!
//! A TTL has three more effects, which are not here. An explicit `Ttl::Unlimited` makes a pin undroppable
//! (`candidates/pins.rs`). A limited TTL puts a note after the other notes (`assemble/included.rs`). The
//! countdown is in `Conversation::complete_turn`.

use crate::{
    config::TtlPolicy,
    conversation::{Conversation, Lifetime},
    item::{ItemId, Ttl},
    plan::reason::ExcludedReason,
};
use smallvec::SmallVec;

/// The fate of an item by its TTL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Eligibility {
    /// It may come in.
    Eligible,
    /// Expired, but kept for one more turn; if it is kept, the plan asks about these ids.
    Asks(Vec<ItemId>),
    /// It is out.
    Out(ExcludedReason),
}

/// Applies one policy to the lifetimes of one conversation.
pub(crate) struct Expiry<'a> {
    log: &'a Conversation,
    policy: TtlPolicy,
}

impl<'a> Expiry<'a> {
    pub(crate) fn new(log: &'a Conversation, policy: TtlPolicy) -> Self {
        Self { log, policy }
    }

    /// Checks if nothing in the conversation has a lifetime.
    pub(crate) fn is_idle(&self) -> bool {
        self.log.all_lifetimes().is_empty()
    }

    /// Checks a pinned note.
    pub(crate) fn note(&self, id: &ItemId) -> Eligibility {
        let lifetime = self.log.lifetime(id);
        lifetime.map_or(Eligibility::Eligible, |lifetime| self.eligibility(&[(id.clone(), lifetime)]))
    }

    /// Checks a document, whose TTL is the caller's; the conversation knows if it was asked about.
    pub(crate) fn document(&self, id: &ItemId, ttl: Option<Ttl>) -> Eligibility {
        ttl.map_or(Eligibility::Eligible, |left| {
            let asked = self.log.is_asked_document(id);
            self.eligibility(&[(id.clone(), Lifetime { left, asked })])
        })
    }

    /// Checks messages that live and leave together: as long as the longest-lived member that has a TTL; a
    /// pinned member without one never expires.
    pub(crate) fn messages(&self, members: &[u32]) -> Eligibility {
        if self.is_idle() {
            return Eligibility::Eligible;
        }
        let mut votes = SmallVec::<[(ItemId, Lifetime); 2]>::new();
        for position in members {
            let id = self.log.message_id(*position);
            match self.log.lifetime(&id) {
                Some(lifetime) => votes.push((id, lifetime)),
                None if self.log.pin_priorities().contains_key(position) => return Eligibility::Eligible,
                None => {}
            }
        }
        self.eligibility(&votes)
    }

    fn eligibility(&self, votes: &[(ItemId, Lifetime)]) -> Eligibility {
        let alive = |lifetime: &Lifetime| lifetime.left != Ttl::NoneRemaining;
        if votes.is_empty() || votes.iter().any(|(_, lifetime)| alive(lifetime)) {
            return Eligibility::Eligible;
        }
        let unasked = votes.iter().filter(|(_, lifetime)| !lifetime.asked);
        let unasked: Vec<ItemId> = unasked.map(|(id, _)| id.clone()).collect();
        match self.policy {
            TtlPolicy::Unlimited => Eligibility::Eligible,
            TtlPolicy::Automatic => Eligibility::Out(ExcludedReason::TtlExpired { asked: false }),
            TtlPolicy::Ask if unasked.is_empty() => {
                Eligibility::Out(ExcludedReason::TtlExpired { asked: true })
            }
            TtlPolicy::Ask => Eligibility::Asks(unasked),
        }
    }
}
