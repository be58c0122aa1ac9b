//! The job of a compaction (rules C3, C8): the request for a summary to send to a model, and the messages
//! that the summary replaces.

use super::{
    Trigger,
    digest::{self, Line},
    instruction,
    material::{Kind, Material, Piece},
    retention::RetentionBoundary,
    slide,
};
use crate::{
    config::{CompactionStrategy, RequestForm},
    conversation::{CompactionKind, Conversation, Event, MessageRange},
    error::{Error, Repr},
    item::{ItemId, PinnedItem, Ttl},
    message::{Message, Prompt, Role, Tool},
    plan::{Target, TraceIds},
    planner::{
        candidates::{sent_for, sent_to},
        manager::ContextWindowManager,
        request::PlanRequest,
    },
    provider::{model::RequestLimits, wording},
    text::plain::short,
    tokens::TokenCount,
    usage::{ContextEvent, ContextUsage},
};
/// Maximum number of times that a request is made smaller if it does not fit (rule C8).
const MAX_TRIES: u8 = 5;

/// An owned request for a summary. The log may grow while the model writes the summary.
///
/// It renders like a plan (`render::openai(&job)`). It contains only active messages, including earlier
/// summaries, and no documents or state. It ends with the instruction, which is never stored.
#[derive(Debug, Clone)]
pub struct CompactionRequest {
    manager: ContextWindowManager,
    prompt: Prompt,
    tokens: TokenCount,
    form: RequestForm,
    tries: u8,
    /// True if earlier summaries are sent as text, even those made by a provider.
    summaries_as_text: bool,
    /// Maximum tokens of the request.
    window: u64,
    material: Material,
    /// The trigger that caused the job.
    pub(super) why: Trigger,
    /// The configured strategy, with `provider` replaced by `summary`.
    strategy: CompactionStrategy,
    /// Maximum tokens of a summary, by the conversation's own context window.
    longest: u64,
    /// Maximum tokens of a digest, by the conversation's own context window.
    longest_digest: u64,
    /// The ids of the messages to archive.
    archives: Vec<ItemId>,
    /// The number of messages that a summary would replace. Another strategy may archive a different number.
    summarised: u64,
    /// The user message that stays before the summary.
    head: Option<ItemId>,
    /// The first message of the range.
    from: Option<ItemId>,
    /// The first message that stays after the summary.
    first: Option<ItemId>,
    /// The role of `first`.
    first_role: Option<Role>,
    /// The number of compactions, undos and rewinds of the log when the job was made.
    version: usize,
    /// The number of messages in the log when the job was made.
    length: u32,
    tools: Vec<Tool>,
    focus: Option<String>,
    limits: RequestLimits,
    /// The size of the full conversation and the limit of its context, in tokens.
    size: (u64, u64),
    pub(super) ids: TraceIds,
    pub(super) state: Vec<(ItemId, String)>,
    pub(super) timestamp: Option<String>,
}

impl CompactionRequest {
    /// Builds the job for a boundary. The request is rendered for the manager's own model.
    pub(super) fn new(
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
        kept: RetentionBoundary,
        why: Trigger,
    ) -> Result<Self, Error> {
        let log = request.log;
        let id = |position: Option<u32>| position.map(|position| log.message_id(position));
        let options = super::options(manager);
        let window = manager.context(request)?.window();
        let job = Self {
            manager: manager.clone(),
            prompt: Prompt::default(),
            tokens: TokenCount { tokens: 0, certainty: manager.counter().certainty() },
            form: manager.config().compaction.summary.form,
            tries: 0,
            summaries_as_text: false,
            window: u64::MAX,
            why,
            strategy: match options.strategy {
                CompactionStrategy::Provider => CompactionStrategy::Summary,
                own => own,
            },
            longest: super::longest_summary(&options, window),
            longest_digest: super::longest_digest(&options, window, super::count_pins(manager, log)?),
            archives: archived_ids(log, kept),
            summarised: archived_ids(log, kept).len() as u64,
            material: Material::from_request(manager, request, kept)?,
            head: id(kept.user_message),
            from: id(kept.from),
            first: id(kept.first),
            first_role: kept.first.map(|first| log.message(first).role()),
            version: log.archive_events(),
            length: log.turns().messages(),
            tools: request.tools.to_vec(),
            focus: request.focus.clone(),
            limits: request.limits,
            size: (0, 0),
            ids: TraceIds::default(),
            state: Vec::new(),
            timestamp: None,
        };
        let window = job.window_of(manager)?;
        let mut job = job.rendered_for(manager, window)?;
        // A strategy other than a summary takes its boundary from the thresholds, so it archives other
        // messages (rule C7).
        match job.strategy {
            CompactionStrategy::SlidingWindow => {
                let kept = slide::boundary(manager, request)?;
                job.archives = kept.map_or_else(Vec::new, |kept| archived_ids(log, kept));
            }
            CompactionStrategy::Fresh => job.archives = archived_ids(log, job.boundary_for_fresh_start(log)),
            CompactionStrategy::Summary | CompactionStrategy::Digest | CompactionStrategy::Provider => {}
        }
        Ok(job)
    }

    /// Returns this job for another model that writes the summary. The request is rendered in that model's
    /// wire format and fits its context window.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn for_summariser(&self, manager: &ContextWindowManager) -> Result<Self, Error> {
        let mut job = self.clone();
        // The limits belong to the conversation's model; they are restored below for the size of the
        // conversation.
        job.limits = RequestLimits::new();
        let window = job.window_of(manager)?;
        let made = job.rendered_for(manager, window)?;
        let job = Self { limits: self.limits, ..made };
        job.trace();
        Ok(job)
    }

    /// Returns this job with half the tokens, for a retry after the provider rejected the request as too
    /// long. Returns `None` after five attempts, or if nothing more can be left out.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    pub fn smaller(&self) -> Result<Option<Self>, Error> {
        let half = self.tokens.tokens / 2;
        if self.tries >= MAX_TRIES || half == 0 {
            return Ok(None);
        }
        let mut job = self.clone();
        // Only a transcript can be cut to any size.
        (job.form, job.tries) = (RequestForm::Transcript, self.tries + 1);
        let job = job.rendered_for(&self.manager, half)?;
        let says_something = !job.prompt.messages.is_empty();
        let job = (says_something && job.tokens.tokens < self.tokens.tokens).then_some(job);
        if let Some(job) = &job {
            job.trace();
        }
        Ok(job)
    }

    /// Adds a state entry of the host to the summary message: its plan, open files, loaded skills (rule C9).
    #[must_use]
    pub fn with_state(mut self, id: impl Into<ItemId>, text: impl Into<String>) -> Self {
        self.state.push((id.into(), text.into()));
        self
    }

    /// Sets the time for the record, because the library has no clock.
    #[must_use]
    pub fn with_timestamp(mut self, timestamp: impl Into<String>) -> Self {
        self.timestamp = Some(timestamp.into());
        self
    }

    /// Returns the messages to send, ending with the instruction. Empty if the summariser's window is too
    /// small for the earlier summaries and a part of the conversation. Then use
    /// [`CompactionRequest::for_summariser`] or [`super::Compactor::compact_without_model`] (rule C8).
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.prompt.messages
    }

    /// Returns the declared tools, as in earlier prompts. A transcript declares none.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.prompt.tools
    }

    /// Returns the token count of the request.
    #[must_use]
    pub fn tokens(&self) -> TokenCount {
        self.tokens
    }

    /// Returns the form of the request.
    #[must_use]
    pub fn form(&self) -> RequestForm {
        self.form
    }

    /// Returns the maximum tokens to request for the response.
    #[must_use]
    pub fn max_tokens(&self) -> u64 {
        self.longest_by(&self.manager)
    }

    fn longest_by(&self, manager: &ContextWindowManager) -> u64 {
        manager.config().compaction.summary.max_tokens.min(self.longest)
    }

    /// Returns the trigger of the job, or [`Trigger::Asked`].
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        self.why
    }

    /// Returns the configured strategy. Only `summary` calls a model.
    #[must_use]
    pub fn strategy(&self) -> CompactionStrategy {
        self.strategy
    }

    /// Returns the ids of the messages that the strategy archives, in order. Later messages may move the end
    /// of the range.
    #[must_use]
    pub fn archived_ids(&self) -> &[ItemId] {
        &self.archives
    }

    /// Returns the name of the model that the request is made for.
    #[must_use]
    pub fn model(&self) -> &str {
        self.manager.model_name()
    }

    /// Returns the number of messages to archive.
    #[must_use]
    pub fn messages_archived(&self) -> u64 {
        self.archives.len() as u64
    }

    /// Returns the event for a user interface (rule C10).
    #[must_use]
    pub fn event(&self) -> ContextEvent {
        let (conversation_tokens, limit) = self.size;
        ContextEvent::SummaryRequested {
            messages: self.messages_archived(),
            conversation_tokens,
            limit,
            request_tokens: self.tokens.tokens,
            max_tokens: self.max_tokens(),
        }
    }

    /// Adds the figures that led to the job, and the ids for `tracing`.
    pub(super) fn measured(mut self, usage: ContextUsage, ids: TraceIds) -> Self {
        self.size = (usage.conversation_tokens.tokens, usage.limit);
        self.ids = ids;
        self
    }

    /// Records one event of `tracing` for a summary request, with target `context_window::tokens`. Does
    /// nothing for a strategy without a model.
    pub(super) fn trace(&self) {
        if self.strategy != CompactionStrategy::Summary {
            return;
        }
        let (conversation_tokens, limit) = self.size;
        tracing::info!(
            target: "context_window::tokens",
            conversation = self.ids.conversation.as_deref(),
            prompt = self.ids.prompt.as_deref(),
            model = self.model(),
            why = self.why.text(),
            attempt = u32::from(self.tries) + 1,
            messages = self.messages_archived(),
            conversation_tokens,
            limit,
            request_tokens = self.tokens.tokens,
            window = self.window,
            max_tokens = self.max_tokens(),
            "summary requested",
        );
    }

    /// Returns the first message that stays after the summary, or `None` if none stays.
    #[must_use]
    pub fn first_active(&self) -> Option<&ItemId> {
        self.first.as_ref()
    }

    /// Returns the user message that stays before the summary, or `None` if none does.
    #[must_use]
    pub fn head(&self) -> Option<&ItemId> {
        self.head.as_ref()
    }

    /// Builds a summary without a model (rule C6). Equal messages give an equal digest.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub fn digest(&self) -> Result<String, Error> {
        let archived = self.material.pieces.iter().filter(|piece| piece.is == Kind::Archived);
        let messages: Vec<&Message> = archived.map(|piece| &piece.logged).collect();
        digest::text(&self.material.earlier(), &messages, self.longest_digest, self.manager.counter())
    }

    /// Returns this job with every earlier summary as text, even one made by a provider. For clients that
    /// send text only.
    ///
    /// # Errors
    ///
    /// The errors of [`ContextWindowManager::build_plan`].
    #[doc(hidden)]
    pub fn with_summaries_as_text(&self) -> Result<Self, Error> {
        if !self.material.pieces.iter().any(Piece::is_by_provider) {
            return Ok(self.clone());
        }
        Self { summaries_as_text: true, ..self.clone() }.rendered_for(&self.manager, self.window)
    }

    /// Checks that the job has a request, if it replaces an earlier summary. A new summary made without that
    /// earlier one would lose its content (rule C8).
    pub(super) fn check_request(&self) -> Result<(), Error> {
        if self.prompt.messages.is_empty() && self.material.folds_summary() {
            return Err(Error::new(Repr::NoRequest { model: self.model().into(), window: self.window }));
        }
        Ok(())
    }

    /// Checks that the log is idle and in the state for which the job was made. Fails with `ErrorKind::Busy`
    /// or `ErrorKind::Stale` otherwise (rule C5).
    #[doc(hidden)]
    pub fn check(&self, log: &Conversation) -> Result<(), Error> {
        if log.is_responding() || log.is_played_back() {
            return Err(Error::new(Repr::Busy));
        }
        let known = [&self.head, &self.from, &self.first].into_iter().flatten();
        let is_missing = known.into_iter().any(|id| log.position_of(id).is_none());
        if log.archive_events() != self.version || log.turns().messages() < self.length || is_missing {
            return Err(Error::new(Repr::StaleSummary));
        }
        Ok(())
    }

    /// Returns the boundary in the current log. Later messages are kept, and no exchange is split.
    pub(super) fn current_boundary(&self, log: &Conversation) -> Result<RetentionBoundary, Error> {
        let position = |id: &Option<ItemId>| id.as_ref().and_then(|id| log.position_of(id));
        // A result that arrived after the job keeps its call out of the archive.
        let first = log.align_to_exchange(position(&self.first).unwrap_or(self.length));
        let head = position(&self.head).filter(|head| *head < first);
        let first = (first < log.turns().messages()).then_some(first);
        let kept = RetentionBoundary { user_message: head, from: position(&self.from), first };
        if !kept.has_messages_to_archive(log) {
            return Err(Error::new(Repr::NothingToCompact));
        }
        // If the boundary moved far back, the summary would mostly repeat messages that stay in the prompt.
        let archived = log
            .compaction_record(CompactionKind::Summary, kept.user_message, kept.from, kept.first)
            .messages_archived;
        if archived < self.summarised / 2 {
            return Err(Error::new(Repr::StaleSummary));
        }
        Ok(kept)
    }

    /// Returns the boundary of a fresh start. It keeps the messages that wait for an answer, and later ones.
    pub(super) fn boundary_for_fresh_start(&self, log: &Conversation) -> RetentionBoundary {
        let spoke = log.messages().iter().rposition(|message| message.role() == Role::Assistant);
        let waits = spoke.map_or(0, |at| at as u32 + 1);
        let first = log.align_to_exchange(waits.max(log.turns().leading()).min(self.length));
        RetentionBoundary {
            user_message: None,
            from: None,
            first: (first < log.turns().messages()).then_some(first),
        }
    }

    /// Returns a plan request for the log with the settings stored in the job.
    pub(super) fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        PlanRequest {
            focus: self.focus.clone(),
            limits: self.limits,
            ..PlanRequest::new(log).with_tools(&self.tools)
        }
    }

    /// Returns the maximum tokens of a request to this summariser.
    fn window_of(&self, manager: &ContextWindowManager) -> Result<u64, Error> {
        let log = Conversation::new();
        // The response needs a part of the window too.
        let answer = self.longest_by(manager);
        // The prompt budget limits normal prompts only; a summary request may need to be larger.
        let limits = RequestLimits { prompt_budget: None, ..self.limits };
        let limits =
            limits.with_max_completion_tokens(answer.min(limits.max_completion_tokens.unwrap_or(u64::MAX)));
        Ok(manager.context(&PlanRequest::new(&log).with_limits(limits))?.prompt_budget)
    }

    /// Renders the request within `window` tokens: the messages as sent if the options require it and they
    /// fit, otherwise a transcript.
    fn rendered_for(mut self, manager: &ContextWindowManager, window: u64) -> Result<Self, Error> {
        self.manager = manager.clone();
        self.window = window;
        if self.form == RequestForm::Conversation {
            if let Some((prompt, tokens)) = self.conversation()? {
                (self.prompt, self.tokens) = (prompt, tokens);
                return Ok(self);
            }
            self.form = RequestForm::Transcript;
        }
        let nothing = (Prompt::default(), TokenCount { tokens: 0, certainty: self.tokens.certainty });
        (self.prompt, self.tokens) = self.transcript()?.unwrap_or(nothing);
        Ok(self)
    }

    /// Returns the request in the form `conversation`: system texts, tools and messages, followed by the
    /// instruction. They are sent exactly as before, so that the cached prefix is used. Returns `None` if the
    /// request does not fit the window.
    fn conversation(&self) -> Result<Option<(Prompt, TokenCount)>, Error> {
        self.as_sent(Some(Message::user(self.instruction())))
    }

    /// Returns system texts, tools and messages as sent before, followed by `last`. Returns `None` if they do
    /// not fit the window.
    pub(super) fn as_sent(&self, last: Option<Message>) -> Result<Option<(Prompt, TokenCount)>, Error> {
        let parts = &self.material;
        let target = Target::from_model(self.manager.model());
        // A temporary log goes through the normal planner, so that the request has the same bytes as an
        // earlier prompt.
        let mut log = Conversation::new();
        for (at, text) in parts.system.iter().enumerate() {
            log.push_system(format!("system-{at}"), text.text());
        }
        for (at, note) in parts.notes.iter().enumerate() {
            log.pin(PinnedItem::new(format!("note-{at}"), note.text()).with_ttl(Ttl::Unlimited));
        }
        for piece in &parts.pieces {
            let position = log.turns().messages();
            if !piece.state.is_empty() {
                log.record(Event::SentWith {
                    question: None,
                    documents: Vec::new(),
                    state: piece.state.clone(),
                });
            }
            log.push(self.message_of(piece, &target).without_id());
            if !piece.documents.is_empty() {
                log.remember_documents(log.message_id(position), piece.documents.iter().cloned())?;
            }
        }
        log.extend(last);
        let request = PlanRequest {
            focus: self.focus.clone(),
            ..PlanRequest::new(&log)
                .with_tools(&self.tools)
                .with_limits(RequestLimits::prompt_budget(self.window))
        };
        let plan = self.manager.plan(&request)?;
        let fits = plan.overflow.is_none() && !plan.drops_conversation();
        Ok(fits.then(|| (plan.carryover.prompt.clone(), plan.estimated_tokens_total)))
    }

    /// Returns the message of a piece in the form that this summariser reads.
    fn message_of(&self, piece: &Piece, target: &Target) -> Message {
        match &piece.is {
            Kind::Summary(summary) if self.summaries_as_text => sent_for(&summary.record, None),
            Kind::Summary(summary) => sent_to(target, &summary.record),
            _ => piece.message.clone(),
        }
    }

    /// Builds a transcript of the earlier summaries, whole, and as many of the newest messages as fit the
    /// window. Returns `None` if the summaries do not fit, or no message fits.
    fn transcript(&self) -> Result<Option<(Prompt, TokenCount)>, Error> {
        let lines: Vec<Line> = self.material.pieces.iter().flat_map(Piece::lines).collect();
        let instruction = self.instruction();
        let counter = self.manager.counter();
        let mut limit =
            self.window.saturating_sub(counter.count(&instruction)?.tokens.saturating_add(OVERHEAD_TOKENS));
        // The exact overhead of delimiters and joined texts is known only after a count, so the limit is
        // corrected step by step.
        for _ in 0..MAX_TRIES {
            let Some(text) = digest::newest(&lines, limit, counter)? else { break };
            let message = Message::user(format!("{}\n\n{instruction}", wording::transcript(&text)));
            let log = Conversation::from([message]);
            let plan = self
                .manager
                .plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(self.window)))?;
            let over = plan.overflow_tokens();
            if over == 0 {
                return Ok(Some((plan.carryover.prompt.clone(), plan.estimated_tokens_total)));
            }
            limit = limit.saturating_sub(over);
        }
        Ok(None)
    }

    /// Returns the manager of the model that the request is made for.
    pub(super) fn made_with(&self) -> &ContextWindowManager {
        &self.manager
    }

    /// Returns the role of the last compacted message.
    pub(super) fn last_role(&self) -> Option<Role> {
        Some(self.material.pieces.last()?.message.role())
    }

    /// Checks that the kept messages can follow the provider's items. Fails if they begin with instructions,
    /// or with the role of the last compacted message.
    pub(super) fn check_boundary(&self) -> Result<(), Error> {
        let (Some(kept), Some(last)) = (self.first_role, self.material.pieces.last()) else { return Ok(()) };
        let same = (kept == Role::Assistant) == (last.message.role() == Role::Assistant);
        if !(kept.instructs() || same) {
            return Ok(());
        }
        let id = self.first.clone().unwrap_or_else(|| ItemId::from(""));
        let detail = "is the first kept message and cannot follow the provider's compaction; keep fewer or more messages, from the beginning of a turn";
        Err(Error::input(format!("message `{}`", short(id.as_str())), detail))
    }

    fn instruction(&self) -> String {
        let options = &self.manager.config().compaction.summary;
        let rules = self.manager.config().compaction.rules;
        instruction::text(&options.instruction, self.max_tokens(), rules)
    }
}

/// Returns the ids of the messages that a boundary archives, in order.
fn archived_ids(log: &Conversation, kept: RetentionBoundary) -> Vec<ItemId> {
    let runs =
        log.compaction_record(CompactionKind::Summary, kept.user_message, kept.from, kept.first).archived;
    let run = |run: MessageRange| {
        let first = log.position_of(&run.id).unwrap_or_default();
        (first..).take(usize::try_from(run.count).unwrap_or(usize::MAX)).map(|at| log.message_id(at))
    };
    runs.into_iter().flat_map(run).collect()
}

/// Initial estimate of the tokens for the delimiters around a transcript and the overhead of its message.
const OVERHEAD_TOKENS: u64 = 40;

impl AsRef<Prompt> for CompactionRequest {
    fn as_ref(&self) -> &Prompt {
        &self.prompt
    }
}
