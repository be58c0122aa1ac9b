//! Eligibility of items, decided before they are counted.
//!
//! - Input: one item, or the messages of one exchange.
//! - Output: eligible, eligible with a question to the user, or excluded with the reason.
//! - Rules: T1, T2 (TTL), H1, H2 (broken exchanges).
//!
//! A TTL has three more effects, in other modules. An explicit `Ttl::Unlimited` makes a pin undroppable
//! (`candidates/pins.rs`). A limited TTL puts a note after the other notes (`assemble/included.rs`).
//! `Conversation::complete_turn` counts a TTL down.

use crate::{
    config::{Config, Repair, TtlPolicy},
    conversation::{Conversation, ExchangeIndex, Lifetime},
    error::Error,
    item::{ItemId, Ttl},
    plan::reason::{ExcludedReason, PolicyRule},
    planner::repair,
    provider::conform::TargetProfile,
};
use smallvec::SmallVec;

/// Eligibility of an item by its TTL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Eligibility {
    /// The item may be included.
    Eligible,
    /// Expired, but kept for one more turn. If the item is included, the plan asks the user about these ids.
    Asks(Vec<ItemId>),
    /// The item is excluded.
    Out(ExcludedReason),
}

/// The rules of eligibility for one conversation, with its policies.
#[derive(Clone, Copy)]
pub(crate) struct EligibilityRules<'a> {
    log: &'a Conversation,
    policy: TtlPolicy,
    repair: Repair,
    profile: TargetProfile,
}

impl<'a> EligibilityRules<'a> {
    pub(crate) fn new(log: &'a Conversation, config: &Config, profile: TargetProfile) -> Self {
        Self { log, policy: config.ttl_policy, repair: config.conversation.repair, profile }
    }

    pub(crate) fn log(&self) -> &'a Conversation {
        self.log
    }

    /// Returns the policy that excludes an exchange from every prompt. Returns `None` if it may be sent.
    ///
    /// # Errors
    ///
    /// Fails if a call has no result and the policy is to reject it (rule H2).
    pub(crate) fn refuse_exchange(&self, at: ExchangeIndex) -> Result<Option<PolicyRule>, Error> {
        repair::refused(self.log, self.log.turns().exchange(at), self.repair, &self.profile)
    }

    /// Checks if no item of the conversation has a TTL.
    pub(crate) fn is_idle(&self) -> bool {
        self.log.all_lifetimes().is_empty()
    }

    /// Checks a pinned note.
    pub(crate) fn note(&self, id: &ItemId) -> Eligibility {
        let lifetime = self.log.lifetime(id);
        lifetime.map_or(Eligibility::Eligible, |lifetime| self.eligibility(&[(id.clone(), lifetime)]))
    }

    /// Checks a document. Its TTL comes from the caller; the conversation knows if the user was asked about
    /// it.
    pub(crate) fn document(&self, id: &ItemId, ttl: Option<Ttl>) -> Eligibility {
        ttl.map_or(Eligibility::Eligible, |left| {
            let asked = self.log.is_asked_document(id);
            self.eligibility(&[(id.clone(), Lifetime { left, asked })])
        })
    }

    /// Checks messages that are kept or expire together. They last as long as the longest-lived member with a
    /// TTL. A pinned member without a TTL never expires.
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

    /// Returns the eligibility of items that are kept or expire together, by the TTLs of those that have one.
    fn eligibility(&self, votes: &[(ItemId, Lifetime)]) -> Eligibility {
        let alive = |lifetime: &Lifetime| lifetime.left != Ttl::NoneRemaining;
        // One living member keeps all of them.
        if votes.is_empty() || votes.iter().any(|(_, lifetime)| alive(lifetime)) {
            return Eligibility::Eligible;
        }
        let unasked = votes.iter().filter(|(_, lifetime)| !lifetime.asked);
        // Only the members that the user was not asked about yet are worth a question.
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
