//! What one prompt leaves behind for the next, so that the next can repeat its beginning (rules S5, S7).

use crate::{
    item::ItemId,
    message::WireFormat,
    provider::model::{Limits, Model, RequestLimits},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where the last prompt's window started, which documents it held, and what it was made for.
///
/// [`crate::Conversation::push_reply`] remembers it; a stateless caller keeps [`crate::ContextPlan::anchor`] and hands
/// it back with [`crate::PlanRequest::with_previous`]. As JSON it is the `previous` of a session file. What is missing
/// counts as unchanged.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter, plan::Anchor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
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
#[serde(default, expecting = "an object, as --save-anchor writes it")]
#[non_exhaustive]
pub struct Anchor {
    /// The model and provider it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The limits it was made under, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RequestLimits>,
    /// The live question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<ItemId>,
    /// The first message of the oldest exchange that was kept by recency.
    pub window_start: Option<ItemId>,
    /// The documents, in the order in which they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rag: Option<Vec<ItemId>>,
    /// Tool results before this message were sent as stubs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared_before: Option<ItemId>,
    /// What was sent, in its order: the next plan compares with it to find the cached prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<[PromptPiece]>>,
}

/// One item of a prompt: its id, a hash of what was sent for it, and its tokens. Tool definitions are the first one, with
/// the id `tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPiece(pub ItemId, pub String, pub u64);

/// The model, provider and wire format a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with model and provider")]
#[non_exhaustive]
pub struct Target {
    /// The model's name.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// The wire format it is spoken to in; none counts as the same.
    #[serde(default, alias = "framing", skip_serializing_if = "Option::is_none")]
    pub wire_format: Option<WireFormat>,
}

impl Target {
    /// A model by its name, and who serves it.
    #[must_use]
    pub fn new(model: impl Into<String>, provider: impl Into<String>) -> Self {
        Self { model: model.into(), provider: provider.into(), wire_format: None }
    }

    /// Sets the wire format.
    #[must_use]
    pub fn with_wire_format(mut self, wire_format: WireFormat) -> Self {
        self.wire_format = Some(wire_format);
        self
    }

    pub(crate) fn of(model: &Model) -> Self {
        Self::new(&model.name, &model.provider).with_wire_format(model.wire_format)
    }

    /// Whether both are one target. A wire format that is not set matches any.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_form = self.wire_format.is_none()
            || other.wire_format.is_none()
            || self.wire_format == other.wire_format;
        self.model == other.model && self.provider == other.provider && same_form
    }
}

/// What of an anchor still holds for the next prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sticky<'a> {
    pub(crate) window_start: Option<&'a ItemId>,
    /// The documents that stay, while the live question is the same.
    pub(crate) rag: &'a [ItemId],
    pub(crate) cleared_before: Option<&'a ItemId>,
    /// Why the window is not continued, where there was one.
    pub(crate) lost: Option<&'static str>,
}

impl Anchor {
    /// The window and the documents hold for the same target under the same limits; the boundary of cleared results
    /// holds in any case.
    pub(crate) fn sticky(
        &self,
        model: &Model,
        limits: Limits,
        prompt_budget: u64,
        live: Option<&ItemId>,
    ) -> Sticky<'_> {
        let cleared_before = self.cleared_before.as_ref();
        let same_target = self.target.as_ref().is_none_or(|target| target.is(&Target::of(model)));
        let same_limits = self.limits.is_none_or(|then| same_limits(then, limits, prompt_budget));
        if !same_target || !same_limits {
            let lost = if same_target {
                "it was made under other limits"
            } else {
                "it was made for another model or wire format"
            };
            let lost = self.window_start.as_ref().map(|_| lost);
            return Sticky { cleared_before, lost, ..Sticky::default() };
        }
        let rag = self
            .rag
            .as_deref()
            .filter(|_| live.is_some() && (self.live.is_none() || self.live.as_ref() == live));
        Sticky {
            window_start: self.window_start.as_ref(),
            rag: rag.unwrap_or_default(),
            cleared_before,
            lost: None,
        }
    }
}

/// What was not written down counts as unchanged.
fn same_limits(then: RequestLimits, now: Limits, prompt_budget: u64) -> bool {
    let same = |then: Option<u64>, now: Option<u64>| then.is_none() || then == now;
    same(then.context_len, Some(now.context_len))
        && same(then.max_input, now.max_input)
        && same(then.max_completion, Some(now.max_completion))
        && same(then.safety_buffer, Some(now.safety_buffer))
        && same(then.prompt_budget, Some(prompt_budget))
}
