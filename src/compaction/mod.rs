//! Compaction: archives messages and never deletes them (rules C1 to C10). This module never calls a model.
//! It returns a job with a request for a summary, and accepts the summary. To call a model, use your own
//! client, or `Summariser` of the crate `context-window-genai`.
//!
//! [`Compactor`] does the work, [`CompactionRequest`] is the request for a summary, and a [`Compaction`] in
//! the log records the archived messages.
//!
//! An agent that compacts its own window calls [`Compactor::tools`]:
//!
//! ```
//! use context_window::{
//!     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
//!     ToolCall,
//!     compaction::{
//!         BlockedBy, CompactionKind, CompactionOutcome, CompactionState, Compactor, ContextCall,
//!         MessageRange,
//!     },
//! };
//!
//! # fn main() -> Result<(), context_window::Error> {
//! # let mut config = Config::default();
//! # config.compaction.retain.messages = Some(2);
//! # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), config)?;
//! let question = |at: u32| Message::user(format!("{at}? ").repeat(40));
//! let reply = |at: u32| Message::assistant(format!("{at}. ").repeat(40));
//! let mut log: Conversation = (0..6).flat_map(|at| [question(at), reply(at)]).collect();
//! let compactor: Compactor<'_> = manager.compactor();
//! let state = compactor.state(&PlanRequest::like_last(&log))?;
//! assert_ne!(state, CompactionState::Waiting(BlockedBy::OpenCall));
//!
//! let call = ToolCall::new("c1", "compact_context", r#"{"summary": "They counted."}"#);
//! log.push(Message::user("Go on."));
//! log.push(Message::assistant("").with_tool_calls([call.clone()]));
//! let answered = compactor.answer_call(&PlanRequest::like_last(&log), &call)?;
//! if let Some(ContextCall::Compact { answer, summary }) = answered {
//!     log.push(answer);
//!     match compactor.compact_for_agent(&mut log, &[], RequestLimits::new(), summary.as_deref())? {
//!         CompactionOutcome::Compacted(record) => {
//!             let archived: &[MessageRange] = &record.archived;
//!             assert_eq!((record.kind, archived[0].id.as_str()), (CompactionKind::Summary, "m0"));
//!         }
//!         blocked => panic!("{blocked:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use crate::{
    config::{CompactionOptions, CompactionStrategy, RulePolicy},
    conversation::{Conversation, Event, ProviderSummary},
    error::{Error, ErrorKind, Repr},
    item::ItemId,
    message::{Message, Tool},
    planner::{manager::ContextWindowManager, request::PlanRequest},
    provider::{conform::TurnPosition, model::RequestLimits},
    rag::RetrievedItems,
};

mod digest;
mod figures;
mod due;
mod rules;
mod instruction;
mod tools;
mod turn_costs;
mod retention;
mod slide;
mod material;
mod request;
mod on_demand;

pub use crate::conversation::{Compaction, CompactionKind, MessageRange};
use due::Initiator;
pub use due::{BlockedBy, CompactionState, Trigger};
pub use on_demand::OnDemandCompaction;
pub use request::CompactionRequest;
use retention::RetentionBoundary;
use rules::QuotedRules;
pub use tools::{CompactionOutcome, ContextCall};
use turn_costs::TurnCosts;

/// The compaction of conversations for one manager. It checks if a compaction is due, builds the request for
/// a summary, and applies the summary. Returned by [`ContextWindowManager::compactor`].
///
/// ```
/// # use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
/// # fn ask_a_model(_: &context_window::compaction::CompactionRequest) -> String {
/// #     "The user is called Ida.".into()
/// # }
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// # let question = "I am Ida. How long do refunds take, and what do I have to send you? ".repeat(20);
/// let mut log = Conversation::from([
///     Message::user(question),
///     Message::assistant("5 days, and nothing but your order number."),
///     Message::user("Thanks! Do you sell kettles?"),
///     Message::assistant("Yes, two of them: the Wren and the Finch."),
/// ]);
/// if let Some(job) = manager.compactor().now(&PlanRequest::like_last(&log))? {
///     let summary = ask_a_model(&job);
///     let record = manager.compactor().apply_summary(&mut log, &job, &summary)?;
///     assert!(record.freed() > 0); // tokens
/// }
/// assert_eq!(log.messages().len(), 4); // nothing is deleted
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Compactor<'m> {
    manager: &'m ContextWindowManager,
}

impl ContextWindowManager {
    /// Returns the compactor of this manager.
    #[must_use]
    pub fn compactor(&self) -> Compactor<'_> {
        Compactor { manager: self }
    }
}

impl Compactor<'_> {
    /// Returns the state of compaction: due now, or the reason why not (rule C2). Documents and state of the
    /// request do not count. After a reply, pass [`PlanRequest::like_last`], which has the limits, tools and
    /// focus hint of the last sent prompt.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`], except limits that leave no tokens: these give
    /// [`BlockedBy::NoRoom`].
    pub fn state(&self, request: &PlanRequest<'_>) -> Result<CompactionState, Error> {
        let request = self.manager.completed(request);
        Ok(self.decide(&request, None, Initiator::Automatic)?.0)
    }

    /// Returns a job if a compaction is due (rules C2, C3), or `None`. A job is an owned request for a
    /// summary. Pass the model's response to [`Compactor::apply_summary`], or compact without a model by
    /// [`Compactor::compact_without_model`].
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn due(&self, request: &PlanRequest<'_>) -> Result<Option<CompactionRequest>, Error> {
        self.job(&self.manager.completed(request), None, Initiator::Automatic)
    }

    /// Returns a job for a compaction that the user or the application requests. Ignores triggers,
    /// `min_messages` and stalled attempts. Every other condition of rule C2 still applies.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn now(&self, request: &PlanRequest<'_>) -> Result<Option<CompactionRequest>, Error> {
        self.job(&self.manager.completed(request), None, Initiator::Asked)
    }

    /// Returns a job for a range of messages chosen by the caller, both ends included. The range is extended
    /// to whole exchanges, and earlier messages stay before the summary. Returns `None` if a condition of
    /// rule C2 blocks the compaction. [`Compactor::state`] returns such a condition, but also those that
    /// block automatic compactions only.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` for unknown ids, `ErrorKind::Input` for archived ones, and the errors of
    /// [`ContextWindowManager::build_plan`].
    pub fn range(
        &self,
        request: &PlanRequest<'_>,
        from: Option<&ItemId>,
        to: Option<&ItemId>,
    ) -> Result<Option<CompactionRequest>, Error> {
        let request = self.manager.completed(request);
        let kept = RetentionBoundary::by_hand(request.log, from, to)?;
        self.job(&request, Some(kept), Initiator::Asked)
    }

    /// Returns a job if nothing blocks it. Without a range, the options determine the archived messages.
    fn job(
        self,
        request: &PlanRequest<'_>,
        kept: Option<RetentionBoundary>,
        initiator: Initiator,
    ) -> Result<Option<CompactionRequest>, Error> {
        let (_, job) = self.decide(request, kept, initiator)?;
        if let Some(job) = &job {
            job.trace();
        }
        Ok(job)
    }

    /// Returns the state, and a job exactly if the state is `Due`. A job always archives messages, so a loop
    /// that compacts while the state is due ends.
    fn decide(
        self,
        request: &PlanRequest<'_>,
        kept: Option<RetentionBoundary>,
        initiator: Initiator,
    ) -> Result<(CompactionState, Option<CompactionRequest>), Error> {
        let (condition, figures) = self.condition(request, initiator)?;
        let (state, job) = match (condition, &figures) {
            (CompactionState::Due(why), Some(figures)) => match self.build_job(request, kept, initiator, why)
            {
                // A prompt budget of the request replaces its other limits in the check above, but not in the
                // summary request, for which they may leave no tokens.
                Err(error) if error.kind() == ErrorKind::Budget => {
                    (CompactionState::Waiting(BlockedBy::NoRoom), None)
                }
                job => match job? {
                    Some(job) => (condition, Some(job.measured(figures.usage, request.trace_ids()))),
                    None => (CompactionState::Waiting(BlockedBy::NothingToArchive), None),
                },
            },
            _ => (condition, None),
        };
        self.trace_check(request, state, figures.as_ref());
        Ok((state, job))
    }

    /// Builds the job. Returns `None` if it would archive nothing.
    fn build_job(
        self,
        request: &PlanRequest<'_>,
        kept: Option<RetentionBoundary>,
        initiator: Initiator,
        why: Trigger,
    ) -> Result<Option<CompactionRequest>, Error> {
        let bare = bare(request);
        let by_hand = kept.is_some();
        let kept = match kept {
            Some(kept) => Some(kept),
            None => {
                let turn_costs = TurnCosts::from_request(self.manager, &bare)?;
                RetentionBoundary::by_options(&turn_costs, &options(self.manager), initiator)
            }
        };
        let Some(kept) = kept.filter(|kept| kept.has_messages_to_archive(request.log)) else {
            return Ok(None);
        };
        let job = CompactionRequest::new(self.manager, &bare, kept, why)?;
        // The configured strategy may archive nothing although a summary would, and moving the boundary to a
        // whole exchange may leave nothing to archive.
        let archives = by_hand || job.messages_archived() > 0 && job.current_boundary(request.log).is_ok();
        Ok(archives.then_some(job))
    }

    /// Applies a summary, which the user may have edited. The messages that it replaces are archived and stay
    /// in the log. Messages that arrived after the job are kept.
    ///
    /// # Errors
    ///
    /// - `ErrorKind::NoSummary` if the summary is empty or only a tool call.
    /// - `Budget` if the job has no request, because an earlier summary does not fit it (rule C8).
    /// - `Stale` if the conversation was compacted or rewound in the meantime.
    /// - `NotSmaller` if the context would not be smaller.
    /// - `NothingToCompact` if no message is left to archive.
    /// - `Busy` while a reply is received or the log is played back (rule C5).
    /// - The errors of [`ContextWindowManager::build_plan`].
    ///
    /// After an error, only the number of failures in a row changes (rule C5).
    pub fn apply_summary(
        &self,
        log: &mut Conversation,
        job: &CompactionRequest,
        summary: &str,
    ) -> Result<Compaction, Error> {
        let applied = job
            .check_request()
            .and_then(|()| summary_text(summary))
            .and_then(|summary| self.archive_by(log, job, CompactionKind::Summary, Some(summary.to_owned())));
        record_failure(log, applied)
    }

    /// Applies the response of a provider to [`CompactionRequest::on_demand`] (rule C11). The messages are
    /// archived and stay in the log. For other providers, the record also contains a text: the visible part
    /// of the provider's summary, or a digest.
    ///
    /// # Errors
    ///
    /// The errors of [`Compactor::apply_summary`] except `NotSmaller`, because the size of an opaque summary
    /// is unknown. After an error, only the number of failures in a row changes (rule C5).
    pub fn apply_provider_summary(
        &self,
        log: &mut Conversation,
        job: &CompactionRequest,
        made: ProviderSummary,
    ) -> Result<Compaction, Error> {
        let applied = made.text().map_or_else(|| job.digest(), Ok).and_then(|text| {
            job.check(log)?;
            let kept = job.current_boundary(log)?;
            self.archive(log, job, &kept, Replacement::by_provider(text, made))
        });
        record_failure(log, applied)
    }

    /// Compacts without a model (rules C2, C6, C7). Uses the configured strategy, or a digest if that needs a
    /// model. If the digest does not make the context smaller, uses a sliding window.
    ///
    /// # Errors
    ///
    /// - `ErrorKind::NotSmaller` or `NothingToCompact` if the context does not become smaller.
    /// - `Stale` if the conversation was compacted or rewound in the meantime.
    /// - `Busy` while a reply is received or the log is played back.
    ///
    /// After an error, only the number of failures in a row changes (rule C5).
    pub fn compact_without_model(
        &self,
        log: &mut Conversation,
        job: &CompactionRequest,
    ) -> Result<Compaction, Error> {
        let applied = match job.strategy() {
            CompactionStrategy::Summary | CompactionStrategy::Digest | CompactionStrategy::Provider => {
                let digest = job.digest()?;
                match self.archive_by(log, job, CompactionKind::Digest, Some(digest)) {
                    // The figures of the failed digest help more than the error that nothing can be archived.
                    Err(error) if error.is_not_smaller() => match self.slide(log, job) {
                        Err(slid) if slid.kind() == ErrorKind::NothingToCompact => Err(error),
                        slid => slid,
                    },
                    applied => applied,
                }
            }
            CompactionStrategy::SlidingWindow => self.slide(log, job),
            CompactionStrategy::Fresh => self.start_fresh(log, job),
        };
        record_failure(log, applied)
    }

    /// Compacts without a model if a compaction is due. Returns `None` if it is not due. Empty tools, and
    /// limits without a value, are replaced by those of the last sent prompt.
    ///
    /// # Errors
    ///
    /// The errors of [`Compactor::compact_without_model`] and [`ContextWindowManager::build_plan`].
    pub fn compact_if_due(
        &self,
        log: &mut Conversation,
        tools: &[Tool],
        limits: RequestLimits,
    ) -> Result<Option<Compaction>, Error> {
        let request = PlanRequest::like_last(log).with_tools(tools).with_limits(limits);
        // No model is called, so no event of a summary request is recorded.
        match self.decide(&self.manager.completed(&request), None, Initiator::Automatic)?.1 {
            Some(job) => self.compact_without_model(log, &job).map(Some),
            None => Ok(None),
        }
    }

    /// Archives the whole conversation (rule U4) except messages that wait for an answer and later ones.
    fn start_fresh(self, log: &mut Conversation, job: &CompactionRequest) -> Result<Compaction, Error> {
        job.check(log)?;
        self.archive(
            log,
            job,
            &job.boundary_for_fresh_start(log),
            Replacement::nothing(CompactionKind::Fresh),
        )
    }

    /// Drops messages by the sliding window (rule C7). The boundary is computed from the thresholds, not
    /// taken from the job, and earlier summaries stay.
    fn slide(self, log: &mut Conversation, job: &CompactionRequest) -> Result<Compaction, Error> {
        job.check(log)?;
        let request = job.request(log);
        let kept = slide::boundary(self.manager, &request)?.filter(|kept| kept.has_messages_to_archive(log));
        let kept = kept.ok_or_else(|| Error::new(Repr::NothingToCompact))?;
        let mut replacement = Replacement::nothing(CompactionKind::SlidingWindow);
        replacement.summary = slide::carried(log, &kept);
        self.archive(log, job, &kept, replacement)
    }

    /// Archives with a summary that was already extracted from a response; [`Compactor::apply_summary`]
    /// extracts it first.
    #[doc(hidden)]
    pub fn archive_by(
        self,
        log: &mut Conversation,
        job: &CompactionRequest,
        kind: CompactionKind,
        summary: Option<String>,
    ) -> Result<Compaction, Error> {
        job.check(log)?;
        let kept = job.current_boundary(log)?;
        let replacement = Replacement { summary, ..Replacement::nothing(kind) };
        let keeps_rules = self.manager.config().compaction.rules != RulePolicy::Off;
        let answer =
            replacement.summary.as_deref().filter(|_| kind == CompactionKind::Summary && keeps_rules);
        let Some((summary, quoted)) = answer.map(QuotedRules::split_from) else {
            return self.archive(log, job, &kept, replacement);
        };
        let summary = Some(summary_text(summary)?.to_owned());
        self.archive(log, job, &kept, Replacement { summary, quoted, ..replacement })
    }

    /// Archives all messages except the kept ones. Fails if the context would not become smaller.
    fn archive(
        self,
        log: &mut Conversation,
        job: &CompactionRequest,
        kept: &RetentionBoundary,
        replacement: Replacement,
    ) -> Result<Compaction, Error> {
        let Replacement { kind, summary, by_provider, quoted } = replacement;
        let mut record = log.compaction_record(kind, kept.user_message, kept.from, kept.first);
        record.summary = summary;
        let is_opaque = by_provider.is_some();
        record.provider_summary = by_provider;
        record.state.clone_from(&job.state);
        record.timestamp.clone_from(&job.timestamp);
        record.tokens_before = TurnCosts::from_request(self.manager, &job.request(log))?.total();
        // Tried on a copy first: the log itself stays unchanged after an error.
        let mut next = log.clone();
        next.record(Event::Compacted(Box::new(record.clone())));
        record.rules = rules::of_archived_messages(self.manager, &job.request(log), &next, &quoted);
        let known = job.request(log).known_rules(self.manager.config().compaction.rules);
        let replaced = quoted.replaced(&known);
        if !record.rules.is_empty() || !replaced.is_empty() {
            next = log.clone();
            record_with_rules(&mut next, &record, &replaced);
        }
        record.tokens_after = TurnCosts::from_request(self.manager, &job.request(&next))?.total();
        if record.tokens_after >= record.tokens_before && !is_opaque {
            let (before, after) = (record.tokens_before, record.tokens_after);
            return Err(Error::new(Repr::NotSmaller { before, after }));
        }
        let figures = self.manager.figures(&job.request(&next))?;
        record.progress = self.trigger(&figures).is_none();
        record.limit = figures.usage.limit;
        record.left_out = rules::left_out(self.manager, &job.request(&next))?;
        record.trace(job.why.text(), &job.ids);
        record_with_rules(log, &record, &replaced);
        Ok(record)
    }
}

/// Records a compaction, and drops the user's rules that its summary reports as replaced.
fn record_with_rules(log: &mut Conversation, record: &Compaction, replaced: &[ItemId]) {
    log.record(Event::Compacted(Box::new(record.clone())));
    for id in replaced {
        log.record(Event::RuleDropped(id.clone()));
    }
}

/// The replacement of archived messages in the prompt.
struct Replacement {
    kind: CompactionKind,
    summary: Option<String>,
    by_provider: Option<ProviderSummary>,
    /// The user's rules that the model quotes beside its summary.
    quoted: QuotedRules,
}

impl Replacement {
    fn nothing(kind: CompactionKind) -> Self {
        Self { kind, summary: None, by_provider: None, quoted: QuotedRules::default() }
    }

    fn by_provider(text: String, made: ProviderSummary) -> Self {
        let nothing = Self::nothing(CompactionKind::Summary);
        Self { summary: Some(text), by_provider: Some(made), ..nothing }
    }
}

/// Minimum number of tokens of a useful summary.
const MIN_SUMMARY_TOKENS: u64 = 50;

/// Returns the maximum tokens of a summary for a window of `window` tokens (rule C4): the option's value, but
/// at most an eighth of the window, or [`MIN_SUMMARY_TOKENS`] if that is more. So kept messages have room.
fn longest_summary(options: &CompactionOptions, window: u64) -> u64 {
    options.summary.max_tokens.min((window / 8).max(MIN_SUMMARY_TOKENS))
}

/// Returns the maximum tokens of a digest for a window of `window` tokens with pins of `pins` tokens (rule
/// C6): the option's value, but at most half of what the pins leave of the window, or [`MIN_SUMMARY_TOKENS`]
/// if that is more.
fn longest_digest(options: &CompactionOptions, window: u64, pins: u64) -> u64 {
    options.digest_max_tokens.min((window.saturating_sub(pins) / 2).max(MIN_SUMMARY_TOKENS))
}

/// Returns the tokens of all pins: notes and pinned messages.
fn count_pins(manager: &ContextWindowManager, log: &Conversation) -> Result<u64, Error> {
    let notes = log.note_entries().iter().map(|(_, note)| &note.message);
    // A pinned message whose text is not loaded is not sent either: a rewind removed it.
    let messages = log.pin_priorities().keys().map(|position| log.message(*position));
    let messages = messages.filter(|message| message.is_loaded());
    let count = |message: &Message| {
        let counted = manager.meter().message(message, TurnPosition::Past, u64::MAX)?;
        Ok::<_, Error>(counted.in_full())
    };
    notes.chain(messages).try_fold(0u64, |sum, message| Ok(sum.saturating_add(count(message)?)))
}

/// Returns the compaction options for the manager's model, including its overrides (rule C2).
fn options(manager: &ContextWindowManager) -> CompactionOptions {
    manager.config().compaction.of_model(manager.model_name())
}

/// Counts a failed compaction in the log: after several failures in a row, none is due (rule C5). Errors that
/// only report a changed or busy log do not count.
fn record_failure(log: &mut Conversation, applied: Result<Compaction, Error>) -> Result<Compaction, Error> {
    if applied.as_ref().is_err_and(|error| !error.is_outdated()) {
        log.compaction_failed();
    }
    applied
}

/// Returns a copy of the request without documents, state and last prompt, on which the size of the full
/// conversation does not depend.
fn bare<'a>(request: &PlanRequest<'a>) -> PlanRequest<'a> {
    PlanRequest {
        rag: RetrievedItems::default(),
        state: Vec::new(),
        previous: None,
        found_rules: std::sync::OnceLock::new(),
        ..request.clone()
    }
}

/// Extracts the summary from a response, without reasoning text. Fails with `ErrorKind::NoSummary` if the
/// rest is empty or a tool call.
#[doc(hidden)]
pub fn summary_text(answer: &str) -> Result<&str, Error> {
    let mut text = answer.trim();
    for (open, close) in
        // Some models write their reasoning into the text of the response.
        [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<analysis>", "</analysis>")]
    {
        if text.starts_with(open) {
            text = text.split_once(close).map_or("", |(_, rest)| rest.trim());
        }
    }
    let calls = ["<tool_call>", "<function_calls>", "<invoke", "[TOOL_CALLS]", "<|tool"];
    // A summary may begin with a quoted call; only a text that also ends like a call is one.
    let ends = text.ends_with(['>', ']', '}']);
    let is_call = ends && calls.iter().any(|call| text.starts_with(call));
    if text.is_empty() || is_call {
        let found = if text.is_empty() { "nothing" } else { "a tool call" };
        return Err(Error::new(Repr::NoSummary { found }));
    }
    Ok(text)
}
