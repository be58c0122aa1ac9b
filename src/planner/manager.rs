//! Entry points of planning.
//!
//! - Input: a model, a counter, options; then one request at a time.
//! - Output: plans ([`ContextPlan`]), and the facts that the stages of planning share.
//! - Rules: B1, B2, C12, H5, N6, O1, O4, S5, S12, S20.

use crate::{
    config::{Config, DocumentFormat, Leave, Placement, ReasoningPolicy},
    conversation::Conversation,
    error::Error,
    message::{Message, Tool, WireFormat},
    plan::{
        ContextPlan, LedgerLine, Notice, NoticeCode, Overflow, Overhead, Remedy, TraceIds,
        anchor::{Anchor, Sticky, Target},
    },
    planner::{
        assemble::PlanContext,
        budget, editing, logged_body,
        request::PlanRequest,
        retained::{self, LateAdditions},
        telemetry,
    },
    provider::{conform::TurnPosition, meter::Meter, model::Model},
    text::plain::short,
    tokens::{Certainty, TokenCount, TokenCounter},
    usage::{Calibrator, TokenCalibration},
};

/// A planner of prompts for one model, with one counter and one configuration.
///
/// A manager is immutable, cheap to clone and `Send + Sync`. For another model, use another manager over the
/// same conversation.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// // `for_model("gpt-4o")` takes limits and tokenizer from the registry. From parts:
/// let (model, counter) = (Model::custom("in-house"), TokenCounter::chars_per_4());
/// let manager = ContextWindowManager::new(model, counter, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// assert_eq!(plan.messages().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ContextWindowManager {
    model: Model,
    meter: Meter,
    /// The same meter for documents as blocks without citations, and with them. `None` if the provider has no
    /// such blocks.
    native: Option<Box<[Meter; 2]>>,
    /// The options in use.
    config: Config,
    /// The options as the caller set them. A different model may have a provider that supports more of them
    /// (rule C12).
    requested: Config,
    config_name: String,
    /// Notices of edits that the options leave to the provider and that the planner makes instead (rule C12).
    edited_here: Vec<Notice>,
}

impl ContextWindowManager {
    /// Creates a manager for a model by name, with the default configuration.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the model's tokenizer is not part of this build.
    pub fn for_model(name: &str) -> Result<Self, Error> {
        Self::configured(Model::named(name)?, Config::default())
    }

    /// Creates a manager for a model, with the model's own tokenizer.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` if an option is out of range or the default tokenizer is not available.
    /// `ErrorKind::Count` if the model's own tokenizer is not part of this build.
    pub fn configured(model: Model, config: Config) -> Result<Self, Error> {
        let counter = match &model.tokenizer {
            Some(name) => TokenCounter::named(name)?,
            None => {
                TokenCounter::named(&config.default_model.tokenizer).map_err(Error::of_default_tokenizer)?
            }
        };
        let counter = if model.estimated { counter.into_estimate() } else { counter };
        Self::new(model, counter, config)
    }

    /// Creates a manager from its parts.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` if an option is out of range, `ErrorKind::Count` if the counter fails.
    pub fn new(model: Model, counter: TokenCounter, config: Config) -> Result<Self, Error> {
        config.validate()?;
        let counter = match config.tokens.cache_bytes {
            bytes if bytes > 0 && !counter.has_cache() => counter.with_cache(bytes),
            _ => counter,
        };
        let model = model.with_think_tags(config.conversation.think_tags);
        let meter = Meter::new(counter, &model, &config.rag.template)?;
        let native = (model.wire_format == WireFormat::Anthropic)
            .then(|| Box::new([false, true].map(|citations| meter.with_native_documents(citations))));
        let config_name = config_name(&config);
        // Both read the options as set: `replace_unsupported` below replaces those that the provider does not
        // support.
        let edited_here = editing::notices(&config, &model);
        let requested = config.clone();
        let mut config = config;
        editing::replace_unsupported(&mut config, &model);
        Ok(Self { model, meter, native, config, requested, config_name, edited_here })
    }

    /// Decides which items the prompt of this request includes within its budget, and gives a reason for
    /// each.
    ///
    /// The same request gives the same plan, byte for byte. The request is not changed.
    ///
    /// # Errors
    ///
    /// - `ErrorKind::Budget` if the limits leave no room for a prompt (rule B1)
    /// - `ErrorKind::Input` if an id is used twice (rule O5), a score is not a number (rule S8), or a call
    ///   without a result is to be rejected (rule H2)
    /// - `ErrorKind::Count` if the counter fails
    ///
    /// A minimum that does not fit is not an error: the plan reports an overflow (rule S6).
    pub fn build_plan(&self, request: &PlanRequest<'_>) -> Result<ContextPlan, Error> {
        let mut plan = self.plan(request)?;
        self.add_unanswered_notice(&mut plan, request)?;
        plan.carryover.trace = TraceIds { attempt: 1, ..request.trace_ids() };
        telemetry::plan(&plan);
        Ok(plan)
    }

    /// Plans the same request with a smaller budget, after a provider refused a plan as too long
    /// ([`crate::usage::is_context_overflow`]).
    ///
    /// The budget is three quarters of the tokens that were sent. If the minimum of the prompt is more than
    /// that, but less than the refused prompt, the budget is the minimum. Once this plan is answered, the
    /// messages that it leaves out make the next compaction due.
    ///
    /// If the provider refused even the minimum, the plan overflows and lists remedies (rule S6). A larger
    /// budget is not among them, because the provider has refused it.
    ///
    /// # Errors
    ///
    /// Same as [`ContextWindowManager::build_plan`].
    pub fn plan_after_overflow(
        &self,
        request: &PlanRequest<'_>,
        refused: &ContextPlan,
    ) -> Result<ContextPlan, Error> {
        // A plan that overflowed was larger than its budget, so the smaller of both is reduced. The division
        // comes first, because the product could exceed 64 bits.
        let sent = refused.estimated_tokens_total.tokens.min(refused.prompt_budget);
        let mut smaller = request.clone();
        smaller.limits.prompt_budget = Some((sent / 4 * 3).max(1));
        let mut plan = self.plan(&smaller)?;
        if let Some(minimum) = plan.overflow.as_ref().and_then(Overflow::sufficient_budget) {
            if minimum < refused.estimated_tokens_total.tokens {
                smaller.limits.prompt_budget = Some(minimum);
                plan = self.plan(&smaller)?;
            } else if let Some(overflow) = &mut plan.overflow {
                overflow.remedies.retain(|remedy| !matches!(remedy, Remedy::RaiseBudget { .. }));
            }
        }
        // At least 2, even if the refused plan carries no attempt number.
        let attempt = refused.carryover.trace.attempt.saturating_add(1).max(2);
        plan.carryover.trace = TraceIds {
            attempt,
            refused_tokens: Some(refused.estimated_tokens_total.tokens),
            ..request.trace_ids()
        };
        telemetry::plan(&plan);
        Ok(plan)
    }

    /// Plans like `build_plan`, without a telemetry event. For explanations and comparisons.
    pub(crate) fn plan(&self, request: &PlanRequest<'_>) -> Result<ContextPlan, Error> {
        let context = self.context(request)?; // limits, prompt budget, overhead: B1-B3, N6
        let sticky = self.sticky(request, &context); // the part of the last prompt to continue: S5
        self.plan_from(request, &context, sticky)
    }

    /// Checks if the model verifies reasoning and this request has some, so that a plan may have to leave
    /// some of it out.
    pub(crate) fn may_lose_reasoning(&self, request: &PlanRequest<'_>) -> bool {
        self.model.thinking.is_some()
            && self.config.conversation.reasoning == ReasoningPolicy::Keep
            && request.log.messages().iter().any(|message| !message.reasoning().is_empty())
    }

    /// Returns the policy for reasoning of earlier replies.
    pub(crate) fn reasoning_policy(&self) -> ReasoningPolicy {
        self.config.conversation.reasoning
    }

    /// Returns the place of documents for this model (rule O1). Never returns [`Placement::Auto`].
    pub(crate) fn placement(&self) -> Placement {
        match self.config.rag.placement {
            // A model that checks its reasoning needs the prompt before it unchanged, so documents stay in
            // place.
            Placement::Auto if self.model.thinking.is_some() => Placement::WithQuestion,
            Placement::Auto => Placement::BeforeQuestion,
            set => set,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn counter(&self) -> &TokenCounter {
        self.meter.counter()
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the meter of a request: documents are counted in the format in which they are sent (rule S20).
    pub(crate) fn document_meter(&self, request: &PlanRequest<'_>, sticky: Sticky<'_>) -> &Meter {
        match (&self.native, self.document_format(request, sticky)) {
            (Some(native), DocumentFormat::Native) => {
                &native[usize::from(retained::enables_citations(request.log))]
            }
            _ => &self.meter,
        }
    }

    /// Returns the format of all documents of a prompt. While those of earlier prompts stay, it does too.
    fn document_format(&self, request: &PlanRequest<'_>, sticky: Sticky<'_>) -> DocumentFormat {
        let wanted = self.config.rag.format;
        let Some(last) = sticky.last.filter(|last| last.rag_format != wanted) else { return wanted };
        let retains = self.placement() == Placement::WithQuestion
            && retained::has_documents(request.log, sticky.released_through);
        // The documents of the same question are sent again as they were.
        let are_same = sticky.question_sent && last.rag.as_ref().is_some_and(|sent| !sent.is_empty());
        if are_same || retains && (sticky.question_sent || !last.rag_released) {
            return last.rag_format;
        }
        wanted
    }

    /// Returns the meter of documents without any of earlier prompts.
    pub(crate) fn new_document_meter(&self) -> &Meter {
        match (&self.native, self.config.rag.format) {
            (Some(native), DocumentFormat::Native) => &native[1],
            _ => &self.meter,
        }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    #[doc(hidden)]
    #[must_use]
    pub fn model_name(&self) -> &str {
        &self.model.name
    }

    /// Returns the options by which it plans: the model supports all of them.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the options as the caller set them.
    #[doc(hidden)]
    #[must_use]
    pub fn requested_config(&self) -> &Config {
        &self.requested
    }

    /// Creates a manager with other options, for the same model and counter.
    pub(crate) fn with_config(&self, config: Config) -> Result<Self, Error> {
        Self::new(self.model.clone(), self.meter.counter().clone(), config)
    }

    /// Checks if another manager plans for the same model and counts with the same counter.
    pub(crate) fn is_for_the_target_of(&self, other: &Self) -> bool {
        let (own, its) = (self.meter.counter(), other.meter.counter());
        self.model == other.model && own.name() == its.name() && own.certainty() == its.certainty()
    }

    /// Returns the maximum number of tokens by which a prompt can exceed the sum of its parts: those of the
    /// placeholder messages that the target may demand (rule H5).
    ///
    /// Returns `None` if there is no such bound: the demand depends on the messages, or pieces are counted as
    /// one text (rule N3). Most counters count documents that way.
    pub(crate) fn most_added(&self, documents: bool) -> Result<Option<u64>, Error> {
        let joins = self.meter.is_rendered() || documents && !self.meter.block_adds_up();
        let demanded = self.meter.profile().possible_placeholders().filter(|_| !joins);
        let Some(demanded) = demanded else { return Ok(None) };
        let cost =
            |message: &Message| Ok(self.meter.message(message, TurnPosition::Live, u64::MAX)?.in_full());
        demanded.iter().map(cost).sum::<Result<u64, Error>>().map(Some)
    }

    /// Builds the facts that are known before anything is selected: limits, budget, and the tokens that every
    /// prompt takes.
    pub(crate) fn context(&self, request: &PlanRequest<'_>) -> Result<PlanContext<'_>, Error> {
        let requested = request.limits;
        let (limits, limits_source) = self.model.limits(requested, &self.config);
        let (prompt_budget, budget_source) = budget::prompt_budget(limits, requested)?;
        let calibrator = self.calibrator(request, limits_source.most_reported(limits)); // N6
        let mut context = PlanContext {
            editing: None,
            notices: self
                .edited_here
                .iter()
                .cloned()
                .chain(logged_body::notices(request, limits))
                .chain(self.documents_as_text(request))
                .collect(),
            states_context: requested.stated.applied(requested, limits).model_context_len.is_some(),
            model: &self.model,
            config: self.config_name.clone(),
            limits,
            limits_source,
            prompt_budget,
            budget_source,
            overhead: self.overhead(self.late(request).in_head(request.tools))?, // S12
            calibration: self.calibration(request, calibrator),
            implausible: calibrator.implausible,
            placement: self.placement(),
            order: self.config.rag.order,
            usage: self.config.usage,
        };
        context.editing = editing::requested_edits(&self.config, &context); // C12
        Ok(context)
    }

    /// Returns the notice of documents that are sent as text, because the provider has no blocks for them.
    fn documents_as_text(&self, request: &PlanRequest<'_>) -> Option<Notice> {
        let asked = self.config.rag.format == DocumentFormat::Native && !request.rag.is_empty();
        (asked && self.native.is_none()).then(|| Notice {
            code: NoticeCode::DocumentsAsText,
            ids: Vec::new(),
            text: format!(
                "documents are sent as text: the provider of {} has no blocks for them (rag.format)",
                short(&self.model.name)
            ),
        })
    }

    /// Returns the number of tokens at which the provider compacts by itself. Returns `None` if it does not
    /// (rule C12).
    pub(crate) fn provider_compacts_at(&self, context: &PlanContext<'_>) -> Option<u64> {
        editing::provider_compacts_at(&self.config, context)
    }

    /// Learns a calibration from the provider's usage reports on earlier prompts.
    fn calibrator(&self, request: &PlanRequest<'_>, window: u64) -> Calibrator {
        let target = Target::from_model(&self.model);
        Calibrator::learn(
            &request.log.reports(&target, self.meter.counter().name(), Calibrator::REPORTS),
            window,
        )
    }

    /// Returns the calibration from counted tokens to the provider's tokens.
    ///
    /// Returns `None` unless something is estimated: by the counter, or for media that are still in the
    /// conversation.
    fn calibration(&self, request: &PlanRequest<'_>, calibrator: Calibrator) -> Option<TokenCalibration> {
        let options = self.config.tokens;
        let learnt = calibrator.calibration.filter(|_| options.calibrate);
        let set = Some(TokenCalibration::per_mille(options.calibration_per_mille))
            .filter(|_| options.calibration_per_mille != 1_000);
        let estimates = self.meter.counter().certainty() == Certainty::Estimate;
        // The most specific source wins: the request, then usage reports, then the options.
        let calibration = request.calibration.or(learnt).or(set);
        calibration.filter(|_| estimates || self.estimates_media(request.log))
    }

    /// Checks if an active message contains media whose tokens are estimates.
    fn estimates_media(&self, log: &Conversation) -> bool {
        // Linear in the active messages.
        let active = log.archive_index().active_in(0..log.turns().messages()).into_iter().flatten();
        active.map(|position| log.message(position)).any(|message| self.meter.estimates_media(message))
    }

    /// Returns the part of the last prompt to continue (sticky window and documents, rule S5). Empty if no
    /// last prompt is known.
    pub(crate) fn sticky<'r>(&self, request: &'r PlanRequest<'_>, context: &PlanContext<'_>) -> Sticky<'r> {
        let anchor = request.last_anchor();
        let live = request.log.live_question().map(|position| request.log.message_id(position));
        let sticky = |anchor: &'r Anchor| {
            let sticky = anchor.sticky(&self.model, context.limits, context.prompt_budget, live.as_ref());
            // Retained texts leave by their cost only if documents stay and the options weigh them (S11).
            let weighs =
                self.placement() == Placement::WithQuestion && self.config.rag.leave == Leave::Weighed;
            let retention_cost =
                weighs.then(|| retained::retention_cost(request, anchor, &self.model)).flatten();
            Sticky { retention_cost, ..sticky }
        };
        anchor.map(sticky).unwrap_or_default()
    }

    /// Returns the last prompt without the parts that the next one continues. Offloaded results keep their
    /// form even where nothing else is continued (rule S7).
    pub(crate) fn sent_forms<'r>(request: &'r PlanRequest<'_>) -> Sticky<'r> {
        Sticky { last: request.last_anchor(), ..Sticky::default() }
    }

    /// Finds the system texts and tools that are sent at the end of the prompt (late additions, S12).
    fn late<'r>(&self, request: &'r PlanRequest<'r>) -> LateAdditions<'r> {
        let retains = self.placement() == Placement::WithQuestion;
        LateAdditions::new(request, &Target::from_model(&self.model), self.meter.profile(), retains)
    }

    /// Counts the overhead of every prompt: tools, template and reply priming.
    fn overhead(&self, tools: &[Tool]) -> Result<Vec<LedgerLine>, Error> {
        let line = |what, count: TokenCount| LedgerLine {
            what,
            tokens: i64::try_from(count.tokens).unwrap_or(i64::MAX),
            certainty: count.certainty,
        };
        // A chat template renders the prompt as a whole, so the tokens of its parts are estimates.
        let certainty = if self.meter.is_rendered() { Certainty::Estimate } else { Certainty::Exact };
        let of_template = |n| TokenCount { tokens: n, certainty };
        Ok(vec![
            line(Overhead::Tools, self.meter.declared(tools)?.count),
            line(Overhead::Template, of_template(self.meter.start())),
            line(Overhead::ReplyPriming, of_template(self.meter.priming())),
        ])
    }
}

/// Options that change no plan: the preset that values came from, and the size of the token cache.
const WITHOUT_EFFECT: [&str; 2] = ["preset", "tokens.cache_bytes"];

/// Returns the name of a configuration: `default`, or the first 16 hex digits of a hash over the options that
/// differ from their defaults (rule O4).
///
/// The hash covers lines of TOML in the order of their keys. An option that a later version adds changes no
/// name.
fn config_name(config: &Config) -> String {
    let default = Config::default().settings();
    let mut own = config.settings();
    own.retain(|key, value| !WITHOUT_EFFECT.contains(&key.as_str()) && default.get(key) != Some(value));
    if own.is_empty() {
        return "default".into();
    }
    let lines: Vec<String> = own.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    blake3::hash(lines.concat().as_bytes()).to_hex()[..16].into()
}
