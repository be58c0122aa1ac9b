//! The anchor of a prompt, which lets the next prompt repeat its beginning (sticky window S5, cleared results
//! S7).

use super::{
    ResultForm, RetentionCost,
    labels::Labels,
    reasoning::{DropReason, DroppedReasoning},
};
use crate::{
    config::DocumentFormat,
    item::ItemId,
    message::WireFormat,
    provider::model::{BoundTo, Limits, Model, RequestLimits},
    standing_rule::StandingRule,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A record of the last prompt for the next plan: the start of its window, its documents, its target.
///
/// [`crate::Conversation::push_reply`] stores it in the conversation. A stateless caller keeps
/// [`crate::ContextPlan::anchor`] and passes it to [`crate::PlanRequest::with_previous`]. In a session file
/// it is the JSON object `previous`. A missing part counts as unchanged. Only the planner reads its parts.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter,
///     plan::Anchor,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let kept = serde_json::to_string(&plan.anchor())?; // in a cookie, a database, a file
/// let previous: Anchor = serde_json::from_str(&kept)?;
/// let next = manager.build_plan(&PlanRequest::new(&log).with_previous(previous))?;
/// assert!(next.repeated().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object, as written by --save-anchor")]
#[non_exhaustive]
pub struct Anchor {
    /// The model and provider of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    /// The limits of the prompt, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<RequestLimits>,
    /// The id of the live question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) live: Option<ItemId>,
    /// The first message of the window, which is the included end of the conversation.
    pub(crate) window_start: Option<ItemId>,
    /// The documents, in the order in which they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rag: Option<Vec<ItemId>>,
    /// The rank of each of these documents among them, if they were not sent in the order of their ranks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rag_ranks: Vec<u32>,
    /// The indices of the documents that were sent as one text with the document before them (rule S14).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rag_joined: Vec<u32>,
    /// The names of the forms of documents that were not sent whole, by index (rule S17).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rag_forms: Vec<(u32, Arc<str>)>,
    /// The format of the documents (rule S20).
    #[serde(skip_serializing_if = "is_text")]
    pub(crate) rag_format: DocumentFormat,
    /// True if documents of earlier prompts were released with this one, so that the next question may change
    /// the format.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) rag_released: bool,
    /// The message before which tool results were replaced by stubs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cleared_before: Option<ItemId>,
    /// The forms of tool results, in the order of the conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) result_forms: Vec<ResultForm>,
    /// The user's rules that were found in the messages (rule R2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<StandingRule>,
    /// The last message in which they were looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rules_through: Option<ItemId>,
    /// The labels of documents (rule S16).
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub(crate) labels: Labels,
    /// The last message whose documents and state are no longer sent. Those of all messages before it are not
    /// sent either (retained texts, rule S10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) released_through: Option<ItemId>,
    /// The sender, if the application names one (sender of a prompt, rule K8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender: Option<Sender>,
    /// A hash of the whole prompt without reasoning. Some providers accept the reasoning of its reply only
    /// after the same prompt (rule K1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<PromptHead>,
    /// The reasoning that was not sent, or that its provider was asked to leave out (rules K1 to K3).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost: Vec<DroppedReasoning>,
    /// The sent items in order. The next plan compares its own items with them to find the cached prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<Arc<[PromptPiece]>>,
}

/// One item of a sent prompt. Tool definitions are the first item, with the id `tools`. In JSON an item is an
/// array of its id, its hash and its tokens. For an item with reasoning, the hash without reasoning follows
/// after a colon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PieceForm", into = "PieceForm")]
pub(crate) struct PromptPiece {
    pub(crate) id: ItemId,
    /// A hash of the item as it was sent.
    pub(crate) hash: Arc<str>,
    /// A hash of the item without its reasoning, if it was sent with any.
    pub(crate) hash_without_reasoning: Option<Arc<str>>,
    pub(crate) tokens: u64,
}

/// The stored form of a [`PromptPiece`]: its id, its hashes, its tokens.
pub(crate) type PieceForm = (ItemId, Arc<str>, u64);

impl From<PieceForm> for PromptPiece {
    fn from((id, hashes, tokens): PieceForm) -> Self {
        // Hashes are hexadecimal, so a colon is never part of one.
        match hashes.split_once(':') {
            Some((hash, without)) => {
                let without = Some(without.into());
                Self { id, hash: hash.into(), hash_without_reasoning: without, tokens }
            }
            None => Self { id, hash: hashes, hash_without_reasoning: None, tokens },
        }
    }
}

impl From<PromptPiece> for PieceForm {
    fn from(piece: PromptPiece) -> Self {
        let PromptPiece { id, hash, hash_without_reasoning, tokens } = piece;
        let hashes = hash_without_reasoning.map(|without| format!("{hash}:{without}").into());
        (id, hashes.unwrap_or(hash), tokens)
    }
}

impl PromptPiece {
    /// Checks if both items are sent byte for byte the same.
    pub(crate) fn is_sent_as(&self, other: &Self) -> bool {
        // Prompts of one conversation share most hashes, so equal pointers save the comparison of bytes.
        self.id == other.id && (Arc::ptr_eq(&self.hash, &other.hash) || self.hash == other.hash)
    }

    /// Checks if both items are sent byte for byte the same, apart from reasoning.
    pub(crate) fn is_sent_as_bare(&self, other: &Self) -> bool {
        self.id == other.id && (Arc::ptr_eq(&self.hash, &other.hash) || self.bare() == other.bare())
    }

    /// Returns true if the item was sent with reasoning.
    pub(crate) fn has_reasoning(&self) -> bool {
        self.hash_without_reasoning.is_some()
    }

    /// Returns the item as it is sent without its reasoning.
    pub(crate) fn without_reasoning(&self) -> Self {
        let hash = Arc::clone(self.bare());
        Self { id: self.id.clone(), hash, hash_without_reasoning: None, tokens: self.tokens }
    }

    /// Returns the hash of the item without its reasoning.
    fn bare(&self) -> &Arc<str> {
        self.hash_without_reasoning.as_ref().unwrap_or(&self.hash)
    }
}

/// The items of a sent prompt, for stores. Only the newest prompt of a conversation keeps them.
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SentItems(Arc<[PromptPiece]>);

impl SentItems {
    /// Returns the number of items at the beginning that both prompts share.
    #[must_use]
    pub fn count_shared(&self, other: &Self) -> usize {
        self.0.iter().zip(&*other.0).take_while(|(own, other)| own == other).count()
    }

    /// Removes the first `count` items.
    ///
    /// # Panics
    ///
    /// If the prompt has fewer than `count` items.
    #[must_use]
    pub fn without_first(&self, count: usize) -> Self {
        Self(self.0[count..].into())
    }

    /// Returns the first `count` items of `last`, followed by these items. Returns `None` if `last` has fewer
    /// items.
    #[must_use]
    pub fn after_first(&self, count: usize, last: &Self) -> Option<Self> {
        Some(Self(last.0.get(..count)?.iter().chain(&*self.0).cloned().collect()))
    }

    /// Returns the number of these items that the other prompt contains unchanged.
    #[must_use]
    pub fn count_in(&self, other: &Self) -> usize {
        self.0.iter().filter(|piece| other.0.contains(piece)).count()
    }

    /// Returns the number of these items whose ids occur in the other prompt.
    #[must_use]
    pub fn count_ids_in(&self, other: &Self) -> usize {
        let ids: BTreeSet<&ItemId> = other.ids().collect();
        self.ids().filter(|id| ids.contains(id)).count()
    }

    /// Returns the ids of the items.
    pub fn ids(&self) -> impl Iterator<Item = &ItemId> {
        self.0.iter().map(|piece| &piece.id)
    }
}

/// A hash of the first items of a prompt, without their reasoning. A model that checks the prompt gets
/// reasoning only after items with the same hash (rule K1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with items and hash")]
pub(crate) struct PromptHead {
    /// Number of sent items. Tool definitions count as one.
    pub(crate) items: u64,
    /// A hash of these items (blake3, 32 hexadecimal digits).
    pub(crate) hash: String,
    /// The last message that was sent with its reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thought: Option<ItemId>,
}

impl PromptHead {
    /// Computes the head that covers a whole prompt.
    pub(crate) fn from_pieces(prompt: &[PromptPiece]) -> Self {
        let mut heads = PromptHeads::from_pieces(prompt);
        heads.at(prompt.len())
    }
}

/// An incremental computation of heads of one prompt, for growing numbers of items.
pub(crate) struct PromptHeads<'p> {
    prompt: &'p [PromptPiece],
    items: usize,
    hash: blake3::Hasher,
    thought: Option<&'p ItemId>,
}

impl<'p> PromptHeads<'p> {
    pub(crate) fn from_pieces(prompt: &'p [PromptPiece]) -> Self {
        Self { prompt, items: 0, hash: blake3::Hasher::new(), thought: None }
    }

    /// Computes the head of the first `items` items. `items` must not be smaller than in the call before.
    /// Each call continues the hash of the last one, so all heads together take one pass over the prompt.
    pub(crate) fn at(&mut self, items: usize) -> PromptHead {
        for piece in &self.prompt[self.items.min(items)..items] {
            // Lengths come first. Otherwise ids and hashes that join to the same bytes would have the same
            // head.
            for text in [piece.id.as_str(), &**piece.bare()] {
                self.hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
            }
            // A head names the last message with reasoning among its items.
            self.thought = Some(&piece.id).filter(|_| piece.has_reasoning()).or(self.thought);
        }
        self.items = items;
        let hash = self.hash.finalize().to_hex()[..32].into();
        PromptHead { items: items as u64, hash, thought: self.thought.cloned() }
    }
}

/// The sender of a prompt. Reasoning may be bound to the account at its provider, or to the end user that a
/// request names (rule K8). The names are kept as hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object with account or end_user")]
pub(crate) struct Sender {
    /// The hash of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// The hash of the end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_user: Option<String>,
}

impl Sender {
    /// Returns the first 16 hexadecimal digits of the blake3 hash of a name.
    pub(crate) fn hash(name: &str) -> String {
        blake3::hash(name.as_bytes()).to_hex()[..16].into()
    }

    /// Checks if both may be the same sender, as far as reasoning is bound to the sender. A missing name
    /// matches any name.
    pub(crate) fn may_be_same(&self, other: &Self, bound_to: &[BoundTo]) -> bool {
        let same =
            |own: &Option<String>, other: &Option<String>| own.is_none() || other.is_none() || own == other;
        // A model that binds reasoning to nothing accepts any sender.
        bound_to.iter().all(|to| match to {
            BoundTo::Account => same(&self.account, &other.account),
            BoundTo::EndUser => same(&self.end_user, &other.end_user),
        })
    }
}

/// The model, provider and wire format of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with model and provider")]
pub(crate) struct Target {
    /// The name of the model.
    pub(crate) model: String,
    /// The provider that serves the model.
    pub(crate) provider: String,
    /// The wire format of its requests; `None` matches any.
    #[serde(default, alias = "framing", skip_serializing_if = "Option::is_none")]
    pub(crate) wire_format: Option<WireFormat>,
}

impl Target {
    /// Creates a target from the names of a model and of its provider.
    #[must_use]
    pub(crate) fn new(model: impl Into<String>, provider: impl Into<String>) -> Self {
        Self { model: model.into(), provider: provider.into(), wire_format: None }
    }

    /// Sets the wire format.
    #[must_use]
    pub(crate) fn with_wire_format(mut self, wire_format: WireFormat) -> Self {
        self.wire_format = Some(wire_format);
        self
    }

    pub(crate) fn from_model(model: &Model) -> Self {
        Self::new(&model.name, &model.provider).with_wire_format(model.wire_format)
    }

    /// Checks if both are the same target. A missing wire format matches any.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        let same_form = self.wire_format.is_none()
            || other.wire_format.is_none()
            || self.wire_format == other.wire_format;
        self.model == other.model && self.provider == other.provider && same_form
    }
}

/// Documents, state and rules of the user that are sent again, because their earlier texts are no longer in
/// the prompt, and the places that these texts left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SentAgain {
    /// Ids of documents.
    pub(crate) documents: BTreeSet<ItemId>,
    /// Ids of state entries.
    pub(crate) state: BTreeSet<ItemId>,
    /// Ids of rules of the user whose messages have left the prompt (rule R1).
    pub(crate) rules: BTreeSet<ItemId>,
    /// Position before which retained texts left for lack of tokens, so that none comes back beside its copy
    /// (rule S10).
    pub(crate) left_before: u32,
    /// Positions of texts that are sent again, and of their older copies, so that no pin brings one back
    /// beside the new one. All retained texts at such a position leave.
    pub(crate) left_places: BTreeSet<u32>,
}

impl SentAgain {
    /// Adds these ids. Returns true if any of them is new. If none is, nothing changes.
    pub(crate) fn insert(&mut self, more: Self) -> bool {
        let before = self.len();
        self.documents.extend(more.documents);
        self.state.extend(more.state);
        self.rules.extend(more.rules);
        let is_new = self.len() > before;
        if is_new {
            self.left_before = self.left_before.max(more.left_before);
            self.left_places.extend(more.left_places);
        }
        is_new
    }

    fn len(&self) -> usize {
        self.documents.len() + self.state.len() + self.rules.len()
    }
}

/// The parts of an anchor that are valid for the next prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sticky<'a> {
    pub(crate) window_start: Option<&'a ItemId>,
    /// The documents that stay while the live question is the same.
    pub(crate) rag: StickyDocuments<'a>,
    pub(crate) cleared_before: Option<&'a ItemId>,
    /// The last prompt, which decides on the form of the results in it (rule S7); `None` if there was none.
    pub(crate) last: Option<&'a Anchor>,
    /// The reason why the window is not continued; `None` if it is continued, or if there was no window.
    pub(crate) lost: Option<&'static str>,
    /// The last message whose documents and state are no longer sent (retained texts, rule S10).
    pub(crate) released_through: Option<&'a ItemId>,
    /// True if the live question is that of the last prompt.
    pub(crate) question_sent: bool,
    /// The cost of documents and state of earlier questions (rule S11).
    pub(crate) retention_cost: Option<RetentionCost>,
    /// True if the model checks the prompt before its reasoning.
    pub(crate) checks: bool,
}

impl Anchor {
    /// Returns the name of the model of the prompt, if the anchor has it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.model.as_str())
    }

    /// Returns the limits of the prompt, in tokens, if the anchor has them.
    #[must_use]
    pub fn limits(&self) -> Option<RequestLimits> {
        self.limits
    }

    /// Sets the recorded prompt budget, in tokens. The next prompt keeps the window only under the recorded
    /// limits (sticky window, rule S5), so this lets you try another budget and keep the window. An anchor
    /// without limits stays unchanged.
    #[must_use]
    pub fn with_prompt_budget(mut self, tokens: u64) -> Self {
        if let Some(limits) = &mut self.limits {
            limits.prompt_budget = Some(tokens);
        }
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub fn sent_items(&self) -> Option<SentItems> {
        self.prompt.clone().map(SentItems)
    }

    #[doc(hidden)]
    pub fn set_sent_items(&mut self, items: Option<SentItems>) {
        self.prompt = items.map(|items| items.0);
    }

    /// Removes the user's rules that were found in messages.
    #[doc(hidden)]
    #[must_use]
    pub fn without_rules(mut self) -> Self {
        self.rules.clear();
        self.rules_through = None;
        self
    }

    /// Removes the parts that only the newest prompt of a conversation keeps.
    #[doc(hidden)]
    pub fn forget_details(&mut self) {
        self.prompt = None;
        self.lost.clear();
        self.rules.clear();
        self.labels.forget_documents();
    }

    /// Returns the anchor as if these messages had been sent without their reasoning, because their provider
    /// left it out (rule K7).
    pub(crate) fn without_reasoning_of(mut self, dropped: &BTreeMap<ItemId, DropReason>) -> Self {
        if dropped.is_empty() {
            return self;
        }
        let bare = |piece: &PromptPiece| {
            if dropped.contains_key(&piece.id) { piece.without_reasoning() } else { piece.clone() }
        };
        if let Some(prompt) = &self.prompt {
            let prompt: Arc<[PromptPiece]> = prompt.iter().map(bare).collect();
            // The head names the last message with reasoning, so it changes too.
            self.head = self.head.map(|_| PromptHead::from_pieces(&prompt));
            self.prompt = Some(prompt);
        }
        // The provider's reason replaces the planned one.
        self.lost.retain(|lost| !dropped.contains_key(&lost.id));
        self.lost
            .extend(dropped.iter().map(|(id, why)| DroppedReasoning { id: id.clone(), why: why.clone() }));
        self
    }

    /// Returns the parts that are valid for the next prompt. The window and the documents are valid only for
    /// the same target and the same limits. The boundary of cleared results is always valid.
    pub(crate) fn sticky(
        &self,
        model: &Model,
        limits: Limits,
        prompt_budget: u64,
        live: Option<&ItemId>,
    ) -> Sticky<'_> {
        // These parts stay valid if the target or the limits changed.
        let lasting = Sticky {
            cleared_before: self.cleared_before.as_ref(),
            last: Some(self),
            released_through: self.released_through.as_ref(),
            question_sent: live.is_some() && self.live.as_ref() == live,
            checks: model.thinking.is_some(),
            ..Sticky::default()
        };
        let same_target =
            self.target.as_ref().is_none_or(|target| target.matches(&Target::from_model(model)));
        let same_limits = self.limits.is_none_or(|then| same_limits(then, limits, prompt_budget));
        if !same_target || !same_limits {
            let lost = if same_target {
                "it was made under other limits"
            } else {
                "it was made for another model or wire format"
            };
            let lost = self.window_start.as_ref().map(|_| lost);
            return Sticky { lost, ..lasting };
        }
        // Documents stay only while the live question is the same (sticky documents, rule S5).
        let rag = self
            .rag
            .as_deref()
            .filter(|_| live.is_some() && (self.live.is_none() || self.live.as_ref() == live));
        let ids = rag.unwrap_or_default();
        let rag =
            StickyDocuments { ids, ranks: &self.rag_ranks, joined: &self.rag_joined, forms: &self.rag_forms };
        Sticky { window_start: self.window_start.as_ref(), rag, ..lasting }
    }
}

/// The documents of the last prompt that stay while the live question is the same (rule S5).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StickyDocuments<'a> {
    /// The ids in the order in which they were sent.
    ids: &'a [ItemId],
    ranks: &'a [u32],
    joined: &'a [u32],
    forms: &'a [(u32, Arc<str>)],
}

/// One document of the last prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentDocument<'a> {
    /// Its rank among the documents of that prompt.
    pub(crate) rank: usize,
    /// Its place among them.
    pub(crate) place: u32,
    /// True if it was sent as one text with the document before it.
    pub(crate) joined: bool,
    /// The name of its form; `None` for the whole text.
    pub(crate) form: Option<&'a str>,
}

/// Checks if documents were sent as text, the default.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(crate) fn is_text(format: &DocumentFormat) -> bool {
    *format == DocumentFormat::Text
}

impl<'a> StickyDocuments<'a> {
    /// Checks if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the ids in the order in which they were sent.
    pub(crate) fn ids(&self) -> &'a [ItemId] {
        self.ids
    }

    /// Returns the documents by id. The first place counts if an id is listed twice.
    pub(crate) fn places(&self) -> BTreeMap<&'a ItemId, SentDocument<'a>> {
        let joined: BTreeSet<u32> = self.joined.iter().copied().collect();
        let forms: BTreeMap<u32, &'a str> =
            self.forms.iter().rev().map(|(at, name)| (*at, &**name)).collect();
        let sent = |(at, id): (usize, &'a ItemId)| {
            let place = at as u32;
            // A damaged list of ranks is not used.
            let rank = self.ranks.get(at).map_or(at, |rank| *rank as usize);
            let form = forms.get(&place).copied();
            (id, SentDocument { rank, place, joined: joined.contains(&place), form })
        };
        self.ids.iter().enumerate().map(sent).rev().collect()
    }
}

/// Checks if both limits are the same. A limit that the anchor does not have counts as unchanged.
fn same_limits(then: RequestLimits, now: Limits, prompt_budget: u64) -> bool {
    let same = |then: Option<u64>, now: Option<u64>| then.is_none() || then == now;
    same(then.model_context_len, Some(now.model_context_len))
        && same(then.max_input, now.max_input)
        && same(then.max_completion_tokens, Some(now.max_completion_tokens))
        && same(then.safety_buffer, Some(now.safety_buffer))
        && same(then.prompt_budget, Some(prompt_budget))
}
