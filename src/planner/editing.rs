//! Edits of the prompt that the provider makes by itself: leaving out old tool results, and compaction.
//!
//! - Input: the options, and the model with the edits that its provider supports.
//! - Output: the fields and headers of the request that order these edits, or options that let the planner do
//!   the work.
//! - Rules: C12.

use crate::{
    config::{CompactionStrategy, Config, ToolResults, UsageBase},
    message::WireFormat,
    plan::{ContextEditing, Notice, NoticeCode},
    planner::assemble::PlanContext,
    provider::model::{LimitsSource, Model},
    text::plain::short,
};
use serde_json::{Value, json};

/// Replaces options that leave an edit to the provider, if the provider of this model does not support it.
/// The planner then makes that edit.
pub(super) fn done_here(config: &mut Config, model: &Model) {
    let rule = model.context_editing();
    let clears = rule.as_ref().is_some_and(|rule| rule.tool_results.is_some());
    if config.conversation.tool_results == ToolResults::Provider && !clears {
        config.conversation.tool_results = ToolResults::default();
    }
    let compacts = rule.is_some_and(|rule| rule.compaction.is_some());
    let of_models = config.compaction.models.values_mut().filter_map(|own| own.strategy.as_mut());
    for strategy in of_models.chain([&mut config.compaction.strategy]).filter(|_| !compacts) {
        if *strategy == CompactionStrategy::Provider {
            *strategy = CompactionStrategy::default();
        }
    }
}

/// Returns the notices of edits that the options leave to the provider and that the planner makes instead.
pub(super) fn notices(asked: &Config, model: &Model) -> Vec<Notice> {
    let mut here = asked.clone();
    done_here(&mut here, model);
    let strategy = |config: &Config| config.compaction.of_model(&model.name).strategy;
    let results = asked.conversation.tool_results != here.conversation.tool_results;
    let compaction = strategy(asked) != strategy(&here);
    let told = [
        (results, "does not clear tool results: long ones are clipped here (conversation.tool_results)"),
        (compaction, "does not compact: a summary is requested here (compaction.strategy)"),
    ];
    let told = told.into_iter().filter(|(stands, _)| *stands);
    let notice = |(_, text): (bool, &str)| Notice {
        code: NoticeCode::EditedHere,
        ids: Vec::new(),
        text: format!("the provider of {} {text}", short(&model.name)),
    };
    told.map(notice).collect()
}

/// Returns the part of the request that orders edits from the provider. Returns `None` if it orders none.
pub(super) fn asked(config: &Config, context: &PlanContext<'_>) -> Option<ContextEditing> {
    let rule = context.model.context_editing()?;
    let options = &config.conversation;
    let results = rule.tool_results.filter(|_| options.tool_results == ToolResults::Provider);
    let mut headers = Vec::new();
    let mut edits: Vec<Value> = Vec::new();
    if let Some(edit) = results {
        // As late as possible: an edit invalidates the cache from the place where it begins.
        let trigger = context.prompt_budget.saturating_sub(options.clear_at_least).max(edit.least).max(1);
        headers.extend(edit.header);
        edits.push(json!({
            "type": edit.edit,
            "trigger": {"type": "input_tokens", "value": trigger},
            "keep": {"type": "tool_uses", "value": options.keep_results},
            "clear_at_least": {"type": "input_tokens", "value": options.clear_at_least},
        }));
    }
    if let Some((edit, threshold)) = rule.compaction.zip(provider_compacts_at(config, context)) {
        headers.extend(edit.header);
        edits.push(match context.model.wire_format {
            WireFormat::OpenAiResponses => json!({"type": edit.edit, "compact_threshold": threshold}),
            _ => json!({"type": edit.edit, "trigger": {"type": "input_tokens", "value": threshold}}),
        });
    }
    if edits.is_empty() {
        return None;
    }
    let context_management = match context.model.wire_format {
        WireFormat::OpenAiResponses => Value::Array(edits),
        _ => json!({"edits": edits}),
    };
    Some(ContextEditing { headers, context_management })
}

/// Returns the number of tokens at which the provider compacts.
///
/// This is the lowest trigger of the options, and at most the prompt budget, so that the provider compacts
/// before the planner cuts. Returns `None` if the provider does not compact, or if the budget is below the
/// least trigger that the provider accepts.
pub(super) fn provider_compacts_at(config: &Config, context: &PlanContext<'_>) -> Option<u64> {
    let options = config.compaction.of_model(&context.model.name);
    let edit = context.model.context_editing()?.compaction?;
    if !options.enabled
        || options.strategy != CompactionStrategy::Provider
        || context.prompt_budget < edit.least
        || context.limits_source == LimitsSource::Unknown
    {
        return None;
    }
    let percent = Some(options.percent).filter(|percent| *percent > 0);
    let base = match options.base {
        UsageBase::Capacity => context.window(),
        UsageBase::Context => context.limits.model_context_len,
    };
    // In 128 bits, because a context length in tokens times 100 may exceed 64 bits.
    let of_base = percent.map(|percent| u128::from(base) * u128::from(percent) / 100);
    let triggers = options.tokens.into_iter().chain(of_base.and_then(|n| u64::try_from(n).ok()));
    Some(triggers.min().unwrap_or(context.prompt_budget).min(context.prompt_budget).max(edit.least).max(1))
}
