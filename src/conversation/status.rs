//! Status of a conversation: usage level, billed tokens, and the flags for a running reply or playback.

use super::{Conversation, Event};
use crate::{
    plan::{ContextPlan, anchor::Target},
    tokens::{Certainty, TokenCount},
    usage::{Committed, ContextEvent, ContextUsage, Level, ReportedUsage, StopReason, Usage},
};

impl Conversation {
    /// Records window usage figures (`ContextWindowManager::usage`). Returns the events for a user interface:
    /// the figures, and a second event if the level changed since the last call (rule U3). The log remembers
    /// the level.
    pub fn observe_usage(&mut self, usage: ContextUsage) -> Vec<ContextEvent> {
        let mut events = vec![ContextEvent::Usage(usage)];
        let (from, to) = (self.level, usage.level);
        if from != to {
            self.record(Event::LevelCrossed { level: to });
            events.push(ContextEvent::LevelCrossed { from, to });
        }
        events
    }

    /// Returns the window usage figures right after a reply, computed from a plausible report as
    /// `ContextWindowManager::usage` does. Returns `None` if the log was compacted or rewound after the plan.
    pub(super) fn figures_after(&self, plan: &ContextPlan, usage: Usage) -> Option<ContextUsage> {
        // A report on a prompt from before a compaction still counts the messages that were archived.
        if plan.carryover.archives != self.archive_events {
            return None;
        }
        let size = usage.context_size().saturating_sub(plan.usage.volatile_tokens);
        let tokens = TokenCount {
            tokens: size.saturating_add(plan.usage.dropped_tokens),
            certainty: Certainty::Estimate,
        };
        let of_levels = plan.limits_source.of_levels(plan.limits);
        Some(plan.usage.with_conversation_tokens(tokens, &of_levels, plan.carryover.usage_options))
    }

    /// Returns an event if a report on a plan is implausible (rule N6), or `None` if it is plausible. The
    /// previous report is the reference, so call this before the new report is recorded.
    pub(super) fn doubted(&self, plan: &ContextPlan, usage: Usage) -> Option<ContextEvent> {
        let target = Target::new(&plan.model, &plan.provider).with_wire_format(plan.wire_format);
        let before = self.reports(&target, &plan.tokenizer, 1).pop();
        let report = ReportedUsage::new(plan.counted(), usage);
        let is_believed = report.is_believed(before, plan.limits_source.most_reported(plan.limits));
        let ReportedUsage { counted, reported } = report;
        (!is_believed).then_some(ContextEvent::ReportNotBelieved { reported, counted })
    }

    /// Records one event of `tracing` for a reply, with target `context_window::tokens`. It holds the stop
    /// reason and the usage report.
    pub(super) fn trace_reply(
        &self,
        plan: &ContextPlan,
        stop: Option<StopReason>,
        usage: Option<Usage>,
        committed: &Committed,
    ) {
        let has = |wanted: fn(&ContextEvent) -> bool| committed.events.iter().any(wanted);
        let figures = committed.events.iter().find_map(|event| match event {
            ContextEvent::Usage(figures) => Some(*figures),
            _ => None,
        });
        tracing::info!(
            target: "context_window::tokens",
            conversation = plan.carryover.trace.conversation.as_deref(),
            prompt = plan.carryover.trace.prompt.as_deref(),
            attempt = plan.carryover.trace.attempt,
            reply = committed.id.as_str(),
            stop = stop.map(StopReason::name),
            max_completion = plan.limits.max_completion_tokens,
            counted = plan.counted(),
            input = usage.map(|usage| usage.input),
            cache_read = usage.map(|usage| usage.cache_read),
            cache_write = usage.map(|usage| usage.cache_write),
            output = usage.map(|usage| usage.output),
            believed = usage.map(|_| !has(|event| matches!(event, ContextEvent::ReportNotBelieved { .. }))),
            conversation_tokens = figures.map(|figures| figures.conversation_tokens.tokens),
            limit = figures.map(|figures| figures.limit),
            percent = figures.map(|figures| figures.percent),
            level = self.level.name(),
            "reply",
        );
    }

    /// Returns the usage level at the last observation.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Marks that a reply is being received. Nothing is compacted until [`Conversation::push_reply`], or
    /// until you set it to false (rule C2).
    pub fn set_responding(&mut self, is: bool) {
        self.responding = is;
    }

    /// Marks that the log is being played back. Nothing is compacted meanwhile (rule C2).
    pub fn set_playback(&mut self, is: bool) {
        self.playback = is;
    }

    /// Records that a summary failed or was cancelled. After three failures in a row, no compaction is due
    /// until one succeeds or the user sends a message (rule C5).
    pub fn compaction_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Returns the tokens that the provider billed for all replies together.
    #[must_use]
    pub fn billed(&self) -> Usage {
        self.billed
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn is_responding(&self) -> bool {
        self.responding
    }

    pub(crate) fn is_played_back(&self) -> bool {
        self.playback
    }
}
