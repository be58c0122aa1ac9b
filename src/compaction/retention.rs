//! The boundary between archived and kept messages (rule C4). The newest whole turns are kept, and always the
//! live question.

use super::{
    due::Initiator,
    turn_costs::{Turn, TurnCosts},
};
use crate::{
    config::CompactionOptions, conversation::Conversation, error::Error, item::ItemId,
    plan::reason::ExcludedReason, text::plain::short,
};
use std::ops::Range;

/// The boundary between archived and kept messages, as positions in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetentionBoundary {
    /// The live question, if it stays before the summary.
    pub(super) head: Option<u32>,
    /// The first archived message. `None` if the range begins with the conversation.
    pub(super) from: Option<u32>,
    /// The first kept message. `None` if no message is kept.
    pub(super) first: Option<u32>,
}

/// The remaining limits for kept messages: tokens, messages and turns.
#[derive(Debug, Clone, Copy)]
struct Room {
    tokens: u64,
    messages: u64,
    turns: u64,
}

impl Room {
    /// Returns the smallest of the set limits. Tokens are limited further, so that the context with a summary
    /// of maximum length stays within `compaction.target`.
    fn from_options(turn_costs: &TurnCosts<'_>, options: &CompactionOptions) -> Self {
        let capacity = turn_costs.window;
        let share = |of: u64, percent: u16| {
            u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
        };
        let target = |of: Option<u64>| of.map_or(u64::MAX, |of| share(of, options.target));
        let summary = super::longest_summary(options, capacity);
        // These tokens remain in the prompt in addition to the kept turns.
        let beside = turn_costs.fixed.saturating_add(turn_costs.pinned).saturating_add(summary);
        let under_target = share(capacity, options.target).min(target(options.tokens)).saturating_sub(beside);
        let retain = &options.retain;
        let of_capacity = retain.capacity.map_or(u64::MAX, |percent| share(capacity, percent));
        let tokens = retain.tokens.unwrap_or(u64::MAX).min(of_capacity).min(under_target);
        let of_active = retain.active.map_or(u64::MAX, |percent| share(turn_costs.messages(), percent));
        Self {
            tokens,
            messages: retain.messages.unwrap_or(u64::MAX).min(of_active).min(target(options.messages)),
            turns: target(options.turns),
        }
    }

    /// Subtracts the cost of a turn or exchange if it fits. Returns true if it fits.
    fn take(&mut self, tokens: u64, messages: u64) -> bool {
        let fits = tokens <= self.tokens && messages <= self.messages;
        if fits {
            self.tokens -= tokens;
            self.messages -= messages;
        }
        fits
    }

    /// Subtracts the cost of required messages, even if they do not fit.
    fn charge(&mut self, tokens: u64, messages: u64) {
        self.tokens = self.tokens.saturating_sub(tokens);
        self.messages = self.messages.saturating_sub(messages);
    }
}

impl RetentionBoundary {
    /// Finds the boundary by `compaction.retain`. If this would archive nothing, keeps only the current turn.
    /// If that archives nothing either and the compaction is automatic, keeps only the required part of the
    /// current turn. Returns `None` if no message can be archived.
    pub(super) fn by_options(
        turn_costs: &TurnCosts<'_>,
        options: &CompactionOptions,
        initiator: Initiator,
    ) -> Option<Self> {
        let kept = Self::within(turn_costs, Room::from_options(turn_costs, options))?;
        let nothing = |kept: &Self| !kept.archives_anything(turn_costs.log);
        if !nothing(&kept) {
            return Some(kept);
        }
        let live = turn_costs.turns.last()?.first();
        let live = Self { head: None, from: None, first: live };
        let least = if nothing(&live) && initiator == Initiator::Automatic {
            Self::within(turn_costs, Room { tokens: 0, messages: 0, turns: 0 })?
        } else {
            live
        };
        (!nothing(&least)).then_some(least)
    }

    /// Finds the boundary that keeps the newest whole turns within the limits. The current turn is divided if
    /// it does not fit.
    fn within(turn_costs: &TurnCosts<'_>, mut room: Room) -> Option<Self> {
        let (live, earlier) = turn_costs.turns.split_last()?;
        // A question without any reply is always kept, even if it exceeds the limits.
        let waits = live.exchanges.is_empty();
        if waits {
            room.charge(live.tokens(), live.messages());
        }
        let whole = waits || room.take(live.tokens(), live.messages());
        if !whole {
            return Some(Self::inside(turn_costs, live, room));
        }
        let mut first = live.first();
        room.turns = room.turns.saturating_sub(1);
        for turn in earlier.iter().rev() {
            if room.turns == 0 || !room.take(turn.tokens(), turn.messages()) {
                break;
            }
            room.turns -= 1;
            first = turn.first().or(first);
        }
        Some(Self { head: None, from: None, first }.aligned(turn_costs.log))
    }

    /// Finds the boundary inside the current turn. Keeps its question before the summary, and the newest
    /// exchanges that fit. Exchanges that the model still works on are always kept.
    fn inside(turn_costs: &TurnCosts<'_>, live: &Turn, mut room: Room) -> Self {
        if let Some(head) = &live.head {
            room.charge(head.tokens, head.messages);
        }
        let mut first = None;
        for part in live.exchanges.iter().rev() {
            let fits = room.take(part.tokens, part.messages);
            if fits || part.open {
                first = Some(part.at);
            }
            // A required exchange may exceed the limits; then no limit is left for others.
            if !fits {
                break;
            }
        }
        // If the answer is archived, the question must be archived too, or the model would answer it again.
        let answered = live.exchanges.iter().all(|part| !part.open);
        if first.is_none() && answered {
            return Self { head: None, from: None, first: None };
        }
        Self { head: live.head.as_ref().map(|head| head.at), from: None, first }.aligned(turn_costs.log)
    }

    /// Moves the boundary back so that it splits no exchange, and no turn except the live one.
    fn aligned(mut self, log: &Conversation) -> Self {
        let Some(mut first) = self.first else { return self };
        // Each of the two moves may require the other one again; the boundary only moves back, so the loop
        // ends.
        loop {
            let before = first;
            first = log.unparted(first);
            if self.head.is_none_or(|head| head >= first) {
                first = log.turns().start_of(first);
            }
            if first == before {
                break;
            }
        }
        self.first = Some(first);
        self.head = self.head.filter(|head| *head < first);
        self
    }

    /// Returns the boundary for a range chosen by the caller, extended to whole exchanges. Fails if an id is
    /// unknown or archived, or if the range is empty.
    pub(super) fn by_hand(
        log: &Conversation,
        from: Option<&ItemId>,
        to: Option<&ItemId>,
    ) -> Result<Self, Error> {
        let position = |id: &ItemId| {
            let position = log.position(id)?;
            match log.archive_index().archived(position) {
                None => Ok(position),
                Some(by) => {
                    let why = ExcludedReason::from(by);
                    let detail =
                        format!("is {why}; expected an active message (plan-inspect history lists them)");
                    Err(Error::input(format!("message `{}`", short(id.as_str())), detail))
                }
            }
        };
        let start = from.map(position).transpose()?;
        let end = to.map(position).transpose()?.map(|last| last + 1);
        let messages = log.turns().messages();
        // Leading system messages always stay.
        let leading = log.turns().leading();
        let (mut from, mut first) = (start.unwrap_or(leading).max(leading), end.unwrap_or(messages));
        if from >= first {
            let detail = "is after the end of the range; expected an earlier start, or a later end";
            return Err(Error::input(format!("message `{}`", short(log.message_id(from).as_str())), detail));
        }
        // Extends the range to whole exchanges. Both directions in one pass, because extending either end may
        // reach another exchange.
        let spans: Vec<Range<u32>> = log.active_spans().collect();
        loop {
            let before = (from, first);
            for span in spans.iter().chain(spans.iter().rev()) {
                if span.start < first && span.end > from {
                    (from, first) = (from.min(span.start), first.max(span.end));
                }
            }
            if (from, first) == before {
                break;
            }
        }
        let first = log.active_from(first).unwrap_or(messages);
        // The live question is never replaced by a summary.
        let head = log.live_question().filter(|live| (from..first).contains(live));
        Ok(Self { head, from: start.map(|_| from), first: (first < messages).then_some(first) })
    }

    /// Returns true if the boundary archives at least one active message.
    pub(super) fn archives_anything(&self, log: &Conversation) -> bool {
        let from = self.from.unwrap_or_else(|| log.turns().leading());
        let first = self.first.unwrap_or_else(|| log.turns().messages());
        let apart = log.apart(self.head);
        (from..first)
            .any(|position| !apart.contains(&position) && log.archive_index().archived(position).is_none())
    }
}
