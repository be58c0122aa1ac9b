//! The state of a conversation's compaction: due, waiting or stopped (rules C2, C5).

use super::{Compactor, figures::Figures};
use crate::{
    config::CompactionOptions,
    conversation::Conversation,
    error::{Error, ErrorKind},
    message::Role,
    planner::request::PlanRequest,
    provider::model::Limits,
    usage::reaches,
};
use serde::Serialize;

/// Number of stalled attempts in a row after which no compaction is due (rule C5).
const MAX_STALLED: usize = 3;

/// The state of a compaction: due, or the reason why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionState {
    /// A compaction is due because of this trigger, and there are messages to archive.
    Due(Trigger),
    /// No trigger fires.
    NotDue,
    /// A trigger may fire, but this condition blocks the compaction.
    Waiting(BlockedBy),
    /// No compaction is due, because the last attempts stalled: after each of them a trigger still fired, or
    /// the summary failed. The next successful compaction or user message ends this state (rule C5).
    Stopped {
        /// The number of stalled attempts.
        attempts: u32,
    },
}

impl CompactionState {
    /// Returns the name in JSON and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Due(_) => "due",
            Self::NotDue => "not_due",
            Self::Waiting(_) => "waiting",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Returns the option that triggers the compaction or the condition that blocks it. Returns `None` if no
    /// trigger fires.
    fn why(self) -> Option<&'static str> {
        match self {
            Self::Due(trigger) => Some(trigger.text()),
            Self::Waiting(blocked_by) => Some(blocked_by.text()),
            Self::Stopped { .. } => Some("stalled attempts"),
            Self::NotDue => None,
        }
    }
}

/// The trigger of a compaction (rule C2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// `compaction.percent`.
    Percent,
    /// `compaction.tokens`.
    Tokens,
    /// `compaction.remaining`.
    Remaining,
    /// `compaction.messages`.
    Messages,
    /// `compaction.turns`.
    Turns,
    /// `compaction.on_drop`.
    OnDrop,
    /// A user or an application requested it.
    Asked,
}

impl Trigger {
    /// Returns the name of its option.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Percent => "compaction.percent",
            Self::Tokens => "compaction.tokens",
            Self::Remaining => "compaction.remaining",
            Self::Messages => "compaction.messages",
            Self::Turns => "compaction.turns",
            Self::OnDrop => "compaction.on_drop",
            Self::Asked => "requested",
        }
    }
}

impl BlockedBy {
    /// Returns a description of the condition.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Disabled => "compaction.enabled is false",
            Self::UnknownLimit => "the context window of the model is unknown",
            Self::NoRoom => "the limits leave no tokens for a prompt",
            Self::NothingToArchive => "every active message must be kept",
            Self::TooShort => "fewer active messages than compaction.min_messages",
            Self::Empty => "there are no messages",
            Self::JustCompacted => "no new message since the last compaction",
            Self::NoReply => "no reply and no usage report since the last compaction",
            Self::Responding => "a reply is being received",
            Self::OpenCall => "a tool call is pending",
            Self::Playback => "the log is being played back",
            Self::Provider => "the provider compacts by itself (compaction.strategy)",
        }
    }
}

/// A condition that blocks a compaction (rule C2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockedBy {
    /// `compaction.enabled` is false.
    Disabled,
    /// The context window of the model is unknown.
    UnknownLimit,
    /// The limits leave no tokens for a prompt: reply and safety buffer need the whole window.
    NoRoom,
    /// A trigger fires, but no message may be archived. All are part of the live question or of the
    /// current tool call.
    NothingToArchive,
    /// There are fewer active messages than `compaction.min_messages`.
    TooShort,
    /// The conversation has no active messages.
    Empty,
    /// The log ends with a compaction.
    JustCompacted,
    /// Neither a reply nor a usage report has arrived since the last compaction.
    NoReply,
    /// A reply is being received.
    Responding,
    /// A tool call has no result yet.
    OpenCall,
    /// The log is being played back.
    Playback,
    /// The provider compacts on its own (rule C12).
    Provider,
}

/// The cause of a compaction: the triggers, or an explicit request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Initiator {
    Automatic,
    Asked,
}

impl Compactor<'_> {
    /// Returns the state by the triggers and conditions of rule C2, and the figures if they were computed.
    /// `Due` does not guarantee that any message can be archived.
    pub(super) fn condition(
        self,
        request: &PlanRequest<'_>,
        initiator: Initiator,
    ) -> Result<(CompactionState, Option<Figures>), Error> {
        let waiting = |blocked_by| Ok((CompactionState::Waiting(blocked_by), None));
        let options = super::options(self.manager);
        // The checks run from cheap to expensive; counting the conversation comes last.
        if let Some(blocked_by) = blocked_by(request.log, &options, initiator) {
            return waiting(blocked_by);
        }
        let (limits, _) = self.manager.model().limits(request.limits, self.manager.config());
        if limits.model_context_len == 0 || request.limits.is_unknown() {
            return waiting(BlockedBy::UnknownLimit);
        }
        let context = match self.manager.context(request) {
            Err(error) if error.kind() == ErrorKind::Budget => return waiting(BlockedBy::NoRoom),
            context => context?,
        };
        if context.limits.capacity() == 0 {
            return waiting(BlockedBy::NoRoom);
        }
        if initiator == Initiator::Automatic && self.manager.provider_compacts_at(&context).is_some() {
            return waiting(BlockedBy::Provider);
        }
        let figures = self.manager.figures(request)?;
        if initiator == Initiator::Asked {
            return Ok((CompactionState::Due(Trigger::Asked), Some(figures)));
        }
        let attempts = stalled_attempts(request.log).max(request.log.failures() as usize);
        let state = match self.trigger(&figures) {
            None => CompactionState::NotDue,
            Some(_) if attempts >= MAX_STALLED => CompactionState::Stopped { attempts: attempts as u32 },
            Some(trigger) => CompactionState::Due(trigger),
        };
        Ok((state, Some(figures)))
    }

    /// Records one event of `tracing` for a check, with target `context_window::tokens`.
    pub(super) fn trace_check(
        self,
        request: &PlanRequest<'_>,
        state: CompactionState,
        figures: Option<&Figures>,
    ) {
        let usage = figures.map(|figures| figures.usage);
        tracing::info!(
            target: "context_window::tokens",
            conversation = request.conversation_id.as_deref(),
            prompt = request.prompt_id.as_deref(),
            model = self.manager.model_name(),
            state = state.name(),
            why = state.why(),
            conversation_tokens = usage.map(|usage| usage.conversation_tokens.tokens),
            reported = usage.map(|usage| usage.reported),
            limit = usage.map(|usage| usage.limit),
            percent = usage.map(|usage| usage.percent),
            level = usage.map(|usage| usage.level.name()),
            messages = figures.map(|figures| figures.messages),
            turns = figures.map(|figures| figures.turns),
            drops = figures.map(|figures| figures.drops),
            "compaction check",
        );
    }

    /// Returns the first trigger that fires, or `None`.
    pub(super) fn trigger(self, figures: &Figures) -> Option<Trigger> {
        let options = super::options(self.manager);
        let Figures { usage, limits, messages, turns, drops } = figures;
        fires(&options, usage.conversation_tokens.tokens, limits, *messages, *turns)
            .or((options.on_drop && *drops).then_some(Trigger::OnDrop))
    }
}

/// Returns the first size trigger that fires, or `None`. A value equal to its limit fires, unless `strict` is
/// set.
pub(super) fn fires(
    options: &CompactionOptions,
    conversation_tokens: u64,
    limits: &Limits,
    messages: u64,
    turns: u64,
) -> Option<Trigger> {
    let over = |value: u64, limit: u64| if options.strict { value > limit } else { value >= limit };
    let base = options.base.tokens(limits);
    // 128 bits, because 100 times a 64-bit count overflows.
    let percent = options.percent > 0
        && if options.strict {
            u128::from(conversation_tokens) * 100 > u128::from(base) * u128::from(options.percent)
        } else {
            reaches(conversation_tokens, base, options.percent)
        };
    let left = limits.capacity().saturating_sub(conversation_tokens);
    let remaining =
        options.remaining.is_some_and(|most| if options.strict { left < most } else { left <= most });
    [
        (percent, Trigger::Percent),
        (options.tokens.is_some_and(|most| over(conversation_tokens, most)), Trigger::Tokens),
        (remaining, Trigger::Remaining),
        (options.messages.is_some_and(|most| over(messages, most)), Trigger::Messages),
        (options.turns.is_some_and(|most| over(turns, most)), Trigger::Turns),
    ]
    .into_iter()
    .find_map(|(fires, trigger)| fires.then_some(trigger))
}

/// Returns the condition that blocks a compaction regardless of triggers, or `None`.
fn blocked_by(log: &Conversation, options: &CompactionOptions, initiator: Initiator) -> Option<BlockedBy> {
    let active = log.active_messages();
    [
        (initiator == Initiator::Automatic && !options.enabled, BlockedBy::Disabled),
        (log.is_played_back(), BlockedBy::Playback),
        (log.is_responding(), BlockedBy::Responding),
        (active == 0, BlockedBy::Empty),
        (log.ends_with_compaction(), BlockedBy::JustCompacted),
        (log.open_calls().next().is_some(), BlockedBy::OpenCall),
        (!has_news(log), BlockedBy::NoReply),
        (initiator == Initiator::Automatic && active < options.min_messages, BlockedBy::TooShort),
    ]
    .into_iter()
    .find_map(|(is_blocked, blocked_by)| is_blocked.then_some(blocked_by))
}

/// Returns true if a reply or a usage report is newer than the last compaction, or if there was no
/// compaction.
fn has_news(log: &Conversation) -> bool {
    let Some((before, _)) = log.newest_compaction() else { return true };
    let spoke = log.messages()[before as usize..].iter().any(|message| message.role() == Role::Assistant);
    spoke || log.has_sent_since_compaction()
}

/// Returns the number of newest compactions in a row after which a trigger still fired. A new user message
/// restarts the count.
fn stalled_attempts(log: &Conversation) -> usize {
    let asked = log.last_user_message();
    log.records()
        .rev()
        .take_while(|(before, record)| !record.progress && asked.is_none_or(|asked| *before > asked))
        .count()
}
