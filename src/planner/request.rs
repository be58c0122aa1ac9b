//! The input of one plan.
//!
//! - Input: a conversation, and the parts that belong to this prompt only: tools, documents, focus hint,
//!   state, limits.
//! - Output: a [`PlanRequest`] for the planner.
//! - Rules: B2, B8, S1, S5, S8, K8, N6, O2.
//!
//! Parts that last across turns are in the conversation.

use crate::{
    conversation::Conversation,
    item::ItemId,
    message::Tool,
    plan::{
        PromptSettings, RemoteContext, SearchedRules, TraceIds,
        anchor::{Anchor, Sender},
        labels::Labels,
    },
    provider::{header, meter::Meter, model::RequestLimits},
    rag::{RagItem, RetrievedItems},
    usage::TokenCalibration,
};
use std::sync::{Arc, OnceLock};

/// One request to the planner: a conversation, and the parts that belong to this prompt only.
///
/// An empty request is valid and gives an empty plan.
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest, RagItem, RequestLimits};
///
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log)
///     .with_rag([RagItem::new("refunds", 0.92, "Refunds take 5 days.")])
///     .with_focus("refunds")
///     .with_state("clock", "Monday, 9:00")
///     .with_limits(RequestLimits::new().with_max_completion_tokens(1_000));
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub struct PlanRequest<'a> {
    #[doc(hidden)]
    pub log: &'a Conversation,
    #[doc(hidden)]
    pub tools: &'a [Tool],
    #[doc(hidden)]
    pub rag: RetrievedItems,
    #[doc(hidden)]
    pub focus: Option<String>,
    #[doc(hidden)]
    pub state: Vec<(ItemId, String)>,
    #[doc(hidden)]
    pub limits: RequestLimits,
    #[doc(hidden)]
    pub previous: Option<Anchor>,
    pub(crate) remote: Vec<RemoteContext>,
    pub(crate) sender: Option<Sender>,
    pub(crate) calibration: Option<TokenCalibration>,
    pub(crate) counts_excluded: bool,
    pub(crate) lists_excluded: bool,
    #[doc(hidden)]
    pub wants_structured_output: bool,
    pub(crate) conversation_id: Option<String>,
    pub(crate) prompt_id: Option<String>,
    /// The user's rules that were found in the messages since the last prompt, once they are asked for.
    pub(crate) found_rules: OnceLock<SearchedRules>,
    /// True if unset settings are taken from the last prompt.
    pub(crate) is_like_last: bool,
}

/// The name of the list of recalled messages.
const RECALL: &str = "recall";

impl<'a> PlanRequest<'a> {
    /// Creates a request for a conversation, with no tools, documents, state or limits.
    #[must_use]
    pub fn new(log: &'a Conversation) -> Self {
        Self {
            log,
            tools: &[],
            rag: RetrievedItems::default(),
            focus: None,
            state: Vec::new(),
            limits: RequestLimits::new(),
            previous: None,
            remote: Vec::new(),
            sender: None,
            calibration: None,
            counts_excluded: false,
            lists_excluded: false,
            wants_structured_output: false,
            conversation_id: None,
            prompt_id: None,
            found_rules: OnceLock::new(),
            is_like_last: false,
        }
    }

    /// Creates a request like the last prompt, to read the usage of a conversation or to compact it.
    ///
    /// [`crate::ContextWindowManager::usage`], [`crate::ContextWindowManager::stats`] and the compactor fill
    /// in the settings that you leave unset. They take tools, focus hint, and limits for the same model from
    /// the prompt that [`Conversation::push_reply`] committed last. A plan uses only the settings of the
    /// request itself.
    ///
    /// ```
    /// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, RequestLimits};
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// # #[cfg(feature = "openai")] {
    /// let manager = ContextWindowManager::for_model("gpt-4o")?;
    /// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
    /// let limits = RequestLimits::new().with_model_context_len(8_000);
    /// let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits))?;
    /// log.push_reply(&plan, Message::assistant("5 days."), None);
    ///
    /// let usage = manager.usage(&PlanRequest::like_last(&log))?;
    /// assert_eq!(usage.model_context_len, 8_000);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn like_last(log: &'a Conversation) -> Self {
        Self { is_like_last: true, ..Self::new(log) }
    }

    /// Sets the tools that the prompt declares.
    #[must_use]
    pub fn with_tools(mut self, tools: &'a [Tool]) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the retrieved documents, in any order.
    #[must_use]
    pub fn with_rag<I>(mut self, items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<RagItem>,
    {
        self.rag = items.into_iter().collect();
        self
    }

    /// Adds the documents of one retriever, in any order. Several lists are fused by their ranks, because
    /// scores of different retrievers cannot be compared (rule S8).
    ///
    /// ```
    /// use context_window::{Conversation, Message, PlanRequest};
    ///
    /// let log = Conversation::from([Message::user("How long do refunds take?")]);
    /// let request = PlanRequest::new(&log)
    ///     .with_rag_list("words", [(12.3, "refunds", "Refunds take 5 days."), (4.0, "hours", "9 to 18.")])
    ///     .with_rag_list("meaning", [(0.92, "refunds", "Refunds take 5 days.")]);
    /// ```
    #[must_use]
    pub fn with_rag_list<I>(mut self, name: impl Into<Arc<str>>, items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<RagItem>,
    {
        self.rag = self.rag.with_list(name, items);
        self
    }

    /// Adds earlier messages of the conversation that the question needs, as the list `recall`. Each is a
    /// document with [`RagItem::with_messages`] (rule S15). The crate `context-window-recall` finds them. Add
    /// them after the documents, because [`PlanRequest::with_rag`] replaces all of them.
    ///
    /// ```
    /// use context_window::{Conversation, Message, PlanRequest, RagItem};
    ///
    /// let log = Conversation::from([
    ///     Message::user("My cat is called Fig."),
    ///     Message::assistant("A fine name."),
    ///     Message::user("Who sleeps on my sofa, then?"),
    /// ]);
    /// let hit = RagItem::new("recall:m0", 7.5, "user: My cat is called Fig.\n").with_messages(0..1);
    /// let request = PlanRequest::new(&log).with_recall([hit]);
    /// ```
    #[must_use]
    pub fn with_recall(self, items: impl IntoIterator<Item = RagItem>) -> Self {
        self.with_rag_list(RECALL, items)
    }

    /// Returns the retrieved documents with their lists.
    #[must_use]
    pub fn retrieved(&self) -> &RetrievedItems {
        &self.rag
    }

    /// Sets the retrieved documents with their lists.
    #[must_use]
    pub fn with_retrieved(mut self, items: RetrievedItems) -> Self {
        self.rag = items;
        self
    }

    /// States that the reply has to follow a JSON schema. Anthropic refuses that together with citations, so
    /// `build_plan` rejects a request with documents that the model could cite (rule S20).
    #[must_use]
    pub fn with_structured_output(mut self) -> Self {
        self.wants_structured_output = true;
        self
    }

    /// Sets a hint at the topic of this prompt. It is required, and counts as `system_pinned` (rule S1).
    #[must_use]
    pub fn with_focus(mut self, hint: impl Into<String>) -> Self {
        self.focus = Some(hint.into());
        self
    }

    /// Adds a volatile state entry, such as the time or the open files. It is required, counts as
    /// `system_pinned`, and is sent last (rule O1).
    #[must_use]
    #[doc(alias = "SysInfo")]
    #[doc(alias = "sysinfo")]
    pub fn with_state(mut self, id: impl Into<ItemId>, text: impl Into<String>) -> Self {
        self.state.push((id.into(), text.into()));
        self
    }

    /// Sets the anchor of the last prompt, in place of the one that the conversation remembers (sticky
    /// window, S5).
    ///
    /// Use this if you store [`crate::ContextPlan::anchor`] yourself.
    #[must_use]
    pub fn with_previous(mut self, anchor: Anchor) -> Self {
        self.previous = Some(anchor);
        self.found_rules = OnceLock::new();
        self
    }

    /// Names context that the provider adds to the request by itself. The plan reports that it is not counted
    /// (rule B8).
    #[must_use]
    pub fn with_remote_context(mut self, remote: impl IntoIterator<Item = RemoteContext>) -> Self {
        self.remote = remote.into_iter().collect();
        self
    }

    /// Returns the context that the provider adds by itself.
    #[must_use]
    pub fn remote_context(&self) -> &[RemoteContext] {
        &self.remote
    }

    /// Sets the token calibration of an estimating counter, in place of the one learned from the
    /// conversation's usage reports (rule N6).
    #[must_use]
    pub fn with_calibration(mut self, calibration: TokenCalibration) -> Self {
        self.calibration = Some(calibration);
        self
    }

    /// Counts excluded items in full as well, even if that is slow. Without this, their rows carry bounds
    /// (rules N4, N5).
    #[must_use]
    pub fn with_excluded_counts(mut self) -> Self {
        self.counts_excluded = true;
        self
    }

    /// Gives each excluded message its own row, for views that list every message.
    ///
    /// Otherwise neighbouring messages with the same reason share a row (rule O2). Nothing else changes, but
    /// the plan has a different fingerprint.
    #[must_use]
    pub fn with_excluded_messages(mut self) -> Self {
        self.lists_excluded = true;
        self
    }

    /// Sets the application's ids of the conversation and of this prompt, for `tracing` events (plans,
    /// replies, checks and compactions). They change no plan.
    #[must_use]
    pub fn with_trace_ids(mut self, conversation: impl Into<String>, prompt: impl Into<String>) -> Self {
        self.conversation_id = Some(conversation.into());
        self.prompt_id = Some(prompt.into());
        self
    }

    /// Sets the provider account that sends this prompt, by any name that stays the same for the account.
    ///
    /// The plan keeps only a hash of it. Some models refuse reasoning that was made for another account (rule
    /// K8).
    #[must_use]
    pub fn with_account(mut self, account: &str) -> Self {
        self.sender.get_or_insert_default().account = Some(Sender::hash(account));
        self
    }

    /// Sets the end user that the request names to the provider. The plan keeps only a hash (rule K8).
    #[must_use]
    pub fn with_end_user(mut self, end_user: &str) -> Self {
        self.sender.get_or_insert_default().end_user = Some(Sender::hash(end_user));
        self
    }

    /// Returns the anchor of the last prompt: the given one, else that of the conversation.
    pub(crate) fn last_anchor(&self) -> Option<&Anchor> {
        self.previous.as_ref().or(self.log.anchor())
    }

    /// Returns the labels that documents had in earlier prompts (rule S16): those of the last one, and those
    /// in texts that are retained without it.
    pub(crate) fn labels(&self) -> Labels {
        let [given, kept] = [self.previous.as_ref(), self.log.anchor()]
            .map(|anchor| anchor.map(|anchor| anchor.labels.clone()).unwrap_or_default());
        let last = kept.last();
        let mut labels = if given.is_empty() { kept } else { given };
        labels.raise_to(Some(last));
        let retained = self.log.sent_with().all_documents().flat_map(|(_, sent)| sent);
        labels.raise_to(retained.flat_map(|sent| header::labels_in(&sent.text)).max());
        labels
    }

    /// Returns the ids for `tracing` events.
    pub(crate) fn trace_ids(&self) -> TraceIds {
        let (conversation, prompt) = (self.conversation_id.clone(), self.prompt_id.clone());
        TraceIds { conversation, prompt, ..TraceIds::default() }
    }

    /// Returns limits, tools and focus hint. A blank hint counts as no hint.
    pub(crate) fn settings(&self, meter: &Meter) -> PromptSettings {
        let focus = self.focus.clone().filter(|focus| !focus.trim().is_empty());
        PromptSettings { limits: self.limits, tools: meter.shared_tools(self.tools), focus }
    }

    /// Sets the limits of this request. Unset limits come from the model (rule B2).
    #[must_use]
    pub fn with_limits(mut self, limits: RequestLimits) -> Self {
        self.limits = limits;
        self
    }
}
