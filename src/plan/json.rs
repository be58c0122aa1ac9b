//! The JSON form of a plan. Its types only serialize, and its `version` names the format.

use crate::{
    item::{ItemId, ItemKind, Priority, Section, Source, Ttl},
    message::{Role, WireFormat},
    plan::{
        BudgetSource, ContextEditing, ContextPlan, ExcludedItem, LedgerLine, Notice, Overflow, PlannedItem,
        ReasoningReport, Remedy, RetentionCost, SectionUse, ShorterForm,
        prefix::Prefix,
        reason::{IncludedReason, Numbers},
    },
    provider::model::LimitsSource,
    rag::ListRank,
    tokens::Certainty,
    usage::{ContextUsage, Level, TokenCalibration},
};
use serde::Serialize;

const VERSION: u32 = 2;

impl ContextPlan {
    /// Returns the plan as one indented JSON object (`version` 2). It contains no text of the prompt, only a
    /// hash of each included row.
    #[must_use]
    pub fn to_json(&self) -> String {
        written(self, true)
    }

    /// Returns the same object as [`ContextPlan::to_json`] on one line, for a table column or a line of a
    /// log.
    #[must_use]
    pub fn to_json_line(&self) -> String {
        written(self, false)
    }

    /// Returns a hash of the whole plan: blake3 over its compact JSON without this field, as 64 hexadecimal
    /// digits. Each call computes it. Equal plans have equal fingerprints on any machine (determinism, rule
    /// O3).
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self)
    }
}

fn written(plan: &ContextPlan, indented: bool) -> String {
    let wire = Wire { fingerprint: Some(fingerprint(plan)), ..Wire::new(plan) };
    let text = if indented { serde_json::to_string_pretty(&wire) } else { serde_json::to_string(&wire) };
    // Plain data with string keys cannot fail to serialize, so the default is never used.
    text.unwrap_or_default()
}

fn fingerprint(plan: &ContextPlan) -> String {
    // `Wire::new` leaves the fingerprint out, so the hash does not depend on itself.
    let canonical = serde_json::to_vec(&Wire::new(plan)).unwrap_or_default();
    blake3::hash(&canonical).to_hex().to_string()
}

#[derive(Serialize)]
struct Wire<'a> {
    version: u32,
    target: Target<'a>,
    tokenizer: &'a str,
    config: &'a str,
    limits_source: LimitsSource,
    model_context_len: u64,
    max_completion_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_input: Option<u64>,
    safety_buffer: u64,
    prompt_budget: u64,
    budget_source: BudgetSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_calibration: Option<TokenCalibration>,
    overhead: &'a [LedgerLine],
    sections: Sections,
    included: Vec<Included<'a>>,
    excluded: Vec<Excluded<'a>>,
    estimated_tokens_total: u64,
    certainty: Certainty,
    overflow_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<WireOverflow<'a>>,
    window_start: Option<&'a ItemId>,
    /// The beginning that this prompt shares with the previous one; `null` without a previous prompt.
    prefix: Option<Prefix>,
    /// Earlier reasoning, sent or dropped; omitted if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts: Option<&'a ReasoningReport>,
    /// The cost of retained documents; omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    upkeep: Option<&'a RetentionCost>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    headers: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    context_editing: Option<&'a ContextEditing>,
    notices: &'a [Notice],
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl<'a> Wire<'a> {
    fn new(plan: &'a ContextPlan) -> Self {
        let ContextPlan { limits, .. } = plan;
        // The pattern relies on the order of `Section::ALL`.
        let [system_pinned, conversation, rag] =
            Section::ALL.map(|section| SectionBudget::new(plan.section(section)));
        Self {
            version: VERSION,
            target: Target { model: &plan.model, provider: &plan.provider, wire_format: plan.wire_format },
            tokenizer: &plan.tokenizer,
            config: &plan.config,
            limits_source: plan.limits_source,
            model_context_len: limits.model_context_len,
            max_completion_tokens: limits.max_completion_tokens,
            max_input: limits.max_input,
            safety_buffer: limits.safety_buffer,
            prompt_budget: plan.prompt_budget,
            budget_source: plan.budget_source,
            token_calibration: plan.calibration,
            overhead: &plan.overhead,
            sections: Sections { system_pinned, conversation, rag },
            included: plan.included.iter().map(Included::new).collect(),
            excluded: plan.excluded.iter().map(Excluded::new).collect(),
            estimated_tokens_total: plan.estimated_tokens_total.tokens,
            certainty: plan.estimated_tokens_total.certainty,
            overflow_tokens: plan.overflow_tokens(),
            overflow: plan.overflow.as_ref().map(WireOverflow::new),
            window_start: plan.window_start.as_ref(),
            prefix: plan.repeated(),
            thoughts: Some(&plan.thoughts).filter(|thoughts| **thoughts != ReasoningReport::default()),
            headers: &plan.headers,
            context_editing: plan.context_editing.as_ref(),
            upkeep: plan.upkeep.as_ref(),
            notices: &plan.notices,
            usage: Usage::new(&plan.usage),
            fingerprint: None,
        }
    }
}

#[derive(Serialize)]
struct Target<'a> {
    model: &'a str,
    provider: &'a str,
    wire_format: WireFormat,
}

#[derive(Serialize)]
struct Sections {
    system_pinned: SectionBudget,
    conversation: SectionBudget,
    rag: SectionBudget,
}

#[derive(Serialize)]
struct SectionBudget {
    share: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap: Option<u64>,
    budget: u64,
    used: u64,
    included: u64,
    excluded: u64,
}

impl SectionBudget {
    fn new(section: SectionUse) -> Self {
        let SectionUse { share, cap, budget, used, included, excluded, .. } = section;
        Self { share, cap, budget, used, included, excluded }
    }
}

#[derive(Serialize)]
struct Included<'a> {
    id: &'a ItemId,
    #[serde(flatten)]
    kind: &'a ItemKind,
    source: Source,
    section: Section,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    priority: Priority,
    ttl: Option<Ttl>,
    reason: IncludedReason,
    token_estimate: u64,
    certainty: Certainty,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ranks: &'a [ListRank],
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<&'a ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<[&'a ItemId; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<Form<'a>>,
    hash: String,
}

/// The form of a document that is not sent whole, with the reason why the next fuller one is not sent.
#[derive(Serialize)]
struct Form<'a> {
    name: &'a str,
    reason: &'static str,
    #[serde(flatten)]
    numbers: Numbers<'a>,
}

impl<'a> Form<'a> {
    fn new(form: &'a ShorterForm) -> Self {
        Self { name: &form.name, reason: form.fuller.name(), numbers: Numbers::new(&form.fuller) }
    }
}

impl<'a> Included<'a> {
    fn new(item: &'a PlannedItem) -> Self {
        Self {
            id: &item.id,
            kind: &item.kind,
            source: item.source,
            section: item.section,
            role: item.role,
            priority: item.priority,
            ttl: item.ttl,
            reason: item.reason,
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty,
            ranks: item.ranks(),
            continues: item.continues(),
            messages: item.quoted_messages(),
            label: item.label(),
            form: item.shorter_form().map(Form::new),
            hash: item.hash(),
        }
    }
}

#[derive(Serialize)]
struct Excluded<'a> {
    id: &'a ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_id: Option<&'a ItemId>,
    count: u64,
    #[serde(flatten)]
    kind: &'a ItemKind,
    source: Option<Source>,
    section: Section,
    priority: Option<Priority>,
    ttl: Option<Ttl>,
    reason: &'static str,
    token_estimate: u64,
    certainty: Certainty,
    #[serde(flatten)]
    numbers: Numbers<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ranks: &'a [ListRank],
}

impl<'a> Excluded<'a> {
    fn new(item: &'a ExcludedItem) -> Self {
        Self {
            id: &item.id,
            last_id: item.last_id.as_ref(),
            count: item.count,
            kind: &item.kind,
            source: item.source,
            section: item.section,
            priority: item.priority,
            ttl: item.ttl,
            reason: item.reason.name(),
            token_estimate: item.token_estimate.tokens,
            certainty: item.token_estimate.certainty,
            numbers: Numbers::new(&item.reason),
            ranks: item.ranks(),
        }
    }
}

#[derive(Serialize)]
struct WireOverflow<'a> {
    minimum: &'a [ItemId],
    conflict: &'a [ItemId],
    remedies: Vec<WireRemedy<'a>>,
}

impl<'a> WireOverflow<'a> {
    fn new(overflow: &'a Overflow) -> Self {
        Self {
            minimum: &overflow.minimum,
            conflict: &overflow.conflict,
            remedies: overflow.remedies.iter().map(WireRemedy::new).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WireRemedy<'a> {
    RaiseBudget { to: u64 },
    LowerCompletion { to: u64 },
    Unpin { id: &'a ItemId },
    Shorten { id: &'a ItemId, by: u64 },
}

impl<'a> WireRemedy<'a> {
    fn new(remedy: &'a Remedy) -> Self {
        match remedy {
            Remedy::RaiseBudget { to } => Self::RaiseBudget { to: *to },
            Remedy::LowerCompletion { to } => Self::LowerCompletion { to: *to },
            Remedy::Unpin { id } => Self::Unpin { id },
            Remedy::Shorten { id, by } => Self::Shorten { id, by: *by },
        }
    }
}

#[derive(Serialize)]
struct Usage {
    prompt: PromptUse,
    /// Tokens of the whole conversation, without documents and state.
    conversation_tokens: u64,
    certainty: Certainty,
    reported: bool,
    limit: u64,
    percent: u64,
    level: Level,
    compactions: u64,
}

impl Usage {
    fn new(usage: &ContextUsage) -> Self {
        let ContextUsage {
            conversation_tokens,
            reported,
            limit,
            percent,
            level,
            prompt_tokens,
            budget,
            compactions,
            ..
        } = *usage;
        let prompt = PromptUse { tokens: prompt_tokens, budget };
        Self {
            prompt,
            conversation_tokens: conversation_tokens.tokens,
            certainty: conversation_tokens.certainty,
            reported,
            limit,
            percent,
            level,
            compactions,
        }
    }
}

/// Tokens of the prompt, and its budget.
#[derive(Serialize)]
struct PromptUse {
    tokens: u64,
    budget: u64,
}
