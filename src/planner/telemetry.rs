//! Events of `tracing` for plans, with the target `context_window::tokens`.
//!
//! - Input: a plan that an application requested.
//! - Output: one event with limits, tokens and counts by section, and the ids that the application gave.
//! - Rules: none. An event never contains a text of the prompt.

use crate::{item::Section, plan::ContextPlan};

/// Records a plan that an application requested.
pub(crate) fn plan(plan: &ContextPlan) {
    let [system_pinned, conversation, rag] = Section::ALL.map(|section| plan.section(section));
    let excluded = |name: &str| -> u64 {
        let of = plan.excluded.iter().filter(|row| row.reason.name() == name);
        of.map(|row| row.count).sum()
    };
    tracing::info!(
        target: "context_window::tokens",
        model = plan.model,
        tokenizer = plan.tokenizer,
        conversation = plan.carryover.trace.conversation.as_deref(),
        prompt = plan.carryover.trace.prompt.as_deref(),
        attempt = plan.carryover.trace.attempt,
        refused_tokens = plan.carryover.trace.refused_tokens,
        context_len = plan.limits.model_context_len,
        max_input = plan.limits.max_input,
        max_completion = plan.limits.max_completion_tokens,
        safety_buffer = plan.limits.safety_buffer,
        prompt_budget = plan.prompt_budget,
        estimated_tokens_total = plan.estimated_tokens_total.tokens,
        certainty = plan.estimated_tokens_total.certainty.name(),
        overflow_tokens = plan.overflow_tokens(),
        system_pinned_used = system_pinned.used,
        system_pinned_limit = system_pinned.budget,
        conversation_used = conversation.used,
        conversation_limit = conversation.budget,
        rag_used = rag.used,
        rag_limit = rag.budget,
        included = plan.included.len(),
        system_pinned_included = system_pinned.included,
        system_pinned_excluded = system_pinned.excluded,
        conversation_included = conversation.included,
        conversation_excluded = conversation.excluded,
        rag_included = rag.included,
        rag_excluded = rag.excluded,
        excluded_budget = excluded("budget"),
        excluded_ttl_expired = excluded("ttl_expired"),
        excluded_duplicate = excluded("duplicate"),
        excluded_near_duplicate = excluded("near_duplicate"),
        excluded_repeats = excluded("repeats"),
        excluded_in_window = excluded("in_window"),
        excluded_policy = excluded("policy"),
        excluded_archived = excluded("archived"),
        conversation_tokens = plan.usage.conversation_tokens.tokens,
        compactions = plan.usage.compactions,
        notices = plan.notices.len(),
        "plan",
    );
}
