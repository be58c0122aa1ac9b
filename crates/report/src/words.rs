//! Sentences of reports about a whole plan, such as the source of its budget, its overflow and its notices.

pub(super) use super::percent::{percent, percentages, share};
use super::{columns::cut, dollars, grouped, printable, row::beginning, row::number, row::short};
use context_window::{
    ContextPlan, IncludedReason, ItemId, WireFormat,
    analysis::{Advice, AdvisedChange},
    plan::{BudgetSource, Composition, Kind, LargeItem, Notice, Overflow, Overhead, RetentionCost},
    text::plain::{self, per_cent, percentages as percentages_of},
    usage::TokenCalibration,
};

/// The maximum number of ids shown for a notice.
const IDS_SHOWN: usize = 4;

/// The maximum number of required items shown.
const LARGEST_SHOWN: usize = 5;

/// Returns the displayed name of an overhead part.
pub(super) fn overhead(what: Overhead) -> &'static str {
    match what {
        Overhead::Tools => "tools",
        Overhead::Template => "chat template",
        Overhead::ReplyPriming => "reply header",
        Overhead::RagBlock => "document wrapper",
        Overhead::Joins => "joined texts",
        Overhead::Merged => "merged messages",
        Overhead::TokenCalibration => "token calibration",
    }
}

/// Returns the kinds of a prompt by name with their tokens, the largest first. The first list has at most
/// `most` kinds; the second list has a single entry that sums up the rest, or none.
pub(super) fn kinds(composition: &Composition, most: usize) -> [Vec<(String, u64)>; 2] {
    let named = |(kind, tokens): &(Kind, u64)| (printable(&kind.text()), *tokens);
    let (shown, rest) = composition.kinds.split_at(most.min(composition.kinds.len()));
    let folded = match rest {
        [] => Vec::new(),
        [one] => vec![named(one)],
        rest => vec![(format!("{} kinds more", rest.len()), rest.iter().map(|(_, tokens)| tokens).sum())],
    };
    [shown.iter().map(named).collect(), folded]
}

/// Returns a text with its first letter in upper case.
pub(super) fn capital(text: &str) -> String {
    // One letter can become several in upper case, so `to_uppercase` returns an iterator.
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Describes the kind with the most tokens of a prompt, and the prompt's largest item, in one line. Returns
/// `None` if less than half of the budget is used. [`advised`] adds a way to make the prompt smaller.
#[must_use]
pub fn advice(plan: &ContextPlan) -> Option<String> {
    if per_cent(plan.estimated_tokens_total.tokens, plan.prompt_budget) < 50 {
        return None;
    }
    let composition = plan.composition(1);
    let groups = composition.by_group();
    let (kind, _) = groups.kinds.first()?;
    let parts: Vec<u64> = groups.kinds.iter().map(|(_, tokens)| *tokens).collect();
    // All kinds are rounded together, so that the figure equals that of the table of kinds.
    let of_kind = percentages_of(&parts, composition.total).first().copied().unwrap_or_default();
    let item = composition.largest.first()?;
    let name = format!("{} ({})", short(item.id.as_str()), item_description(item));
    let largest = format!(
        "the largest item is {name}: {} tokens, {}",
        grouped(item.tokens.tokens),
        share(item.tokens.tokens, composition.total)
    );
    Some(printable(&format!("{} {of_kind} % of the prompt; {largest}", kind.text())))
}

/// Describes advice as a command or an option, with the tokens before and after the change.
#[must_use]
pub fn advised(advice: &Advice) -> String {
    let (before, after) = (grouped(advice.before), grouped(advice.after));
    match advice.change {
        AdvisedChange::ClearResults { results } => {
            let stubs = if results == 1 { "as a stub" } else { "as stubs" };
            let results = grouped(results);
            format!(
                "--set conversation.tool_results=clear sends {results} old results {stubs}: {before} tokens become {after}"
            )
        }
        AdvisedChange::LimitDocuments { max_items } => {
            format!("--set rag.max_items={max_items} sends fewer documents: {before} tokens become {after}")
        }
        AdvisedChange::DropReasoning => {
            format!("--set conversation.reasoning=drop sends no reasoning: {before} tokens become {after}")
        }
        AdvisedChange::Compact { messages } => {
            let (messages, s) = (grouped(messages), if messages == 1 { "" } else { "s" });
            format!(
                "`plan-inspect compact` archives {messages} message{s}: this prompt of {before} tokens becomes {after}"
            )
        }
        _ => String::new(),
    }
}

/// Describes the start of the included history. For a trimmed turn, also names its question. Returns `None`
/// if no history is included.
pub(super) fn history(plan: &ContextPlan) -> Option<String> {
    let start = short(plan.window_start.as_ref()?.as_str());
    let question = plan.included.iter().find(|item| item.reason == IncludedReason::Question);
    Some(match question {
        Some(question) => {
            format!("starts at {start}, in the turn of the user message {}", short(question.id.as_str()))
        }
        None => format!("starts at {start}"),
    })
}

/// Describes a large item with the beginning of its text: `Read session_live.ex: defmodule …`.
#[must_use]
pub fn large_item(item: &LargeItem) -> String {
    let text = if item.text.is_empty() { String::new() } else { format!(": {}", item.text) };
    printable(&format!("{}{text}", item_description(item)))
}

/// Describes a large item without its text: `Read session_live.ex`.
fn item_description(item: &LargeItem) -> String {
    let what = match &item.kind {
        Kind::ToolResults(name) if !name.is_empty() => name.clone(),
        Kind::ToolResults(_) => "tool result".into(),
        Kind::Documents(_) => "document".into(),
        kind => kind.text(),
    };
    let about = if item.about.is_empty() { String::new() } else { format!(" {}", item.about) };
    printable(&cut(&format!("{what}{about}"), 40))
}

/// Describes the cost of documents and state retained from earlier questions (retention cost, rule S11).
pub(super) fn retention_cost(retention: RetentionCost) -> String {
    format!(
        "{} documents and state entries of earlier questions have {} tokens: re-reading them has cost {} so \
         far, re-sending the prompt without them costs {}",
        grouped(retention.items),
        grouped(retention.tokens),
        dollars(retention.spent),
        dollars(retention.leaving)
    )
}

/// Describes the calculation of the budget.
pub(super) fn formula(plan: &ContextPlan) -> String {
    let limits = plan.limits;
    match plan.budget_source {
        BudgetSource::Request => "set explicitly (--budget or prompt_budget)".to_owned(),
        BudgetSource::MaxInput => format!(
            "input limit {} - safety margin {}",
            grouped(limits.max_input.unwrap_or_default()),
            grouped(limits.safety_buffer),
        ),
        BudgetSource::ContextLen => {
            let quarter = if limits.max_completion_tokens == limits.model_context_len / 4 {
                " (a quarter)"
            } else {
                ""
            };
            format!(
                "context length {} - reply reserve {}{quarter} - safety margin {}",
                grouped(limits.model_context_len),
                grouped(limits.max_completion_tokens),
                grouped(limits.safety_buffer),
            )
        }
    }
}

/// Describes the calculation of the budget as [`formula`] does, and adds the context length if it is missing
/// there.
pub(super) fn budget(plan: &ContextPlan) -> String {
    match plan.budget_source {
        BudgetSource::ContextLen => formula(plan),
        _ => format!("{}, context length {}", formula(plan), grouped(plan.limits.model_context_len)),
    }
}

/// Describes the source of the limits, the tokenizer, the options and the wire format.
pub(super) fn limits(plan: &ContextPlan) -> String {
    let calibration =
        plan.calibration.map(|calibration| format!(", {}", provider_count(calibration))).unwrap_or_default();
    let form = match plan.wire_format {
        WireFormat::OpenAiChat => String::new(),
        other => format!(" · wire format {}", other.name()),
    };
    format!(
        "{} · tokenizer {} ({}{calibration}) · config {}{form}",
        plan.limits_source.name(),
        printable(&plan.tokenizer),
        plan.estimated_tokens_total.certainty.name(),
        plan.config,
    )
}

/// Returns the largest items and overhead parts of a plan that overflows, in one line, in descending order.
#[must_use]
#[doc(hidden)]
pub fn largest(plan: &ContextPlan) -> String {
    let items = plan.included.iter();
    let items = items.map(|item| {
        (item.token_estimate.tokens, format!("{} {}", short(item.id.as_str()), number(item.token_estimate)))
    });
    let lines = plan.overhead.iter().filter_map(|line| {
        // A negative part saves tokens, so it is not among the largest.
        Some((u64::try_from(line.tokens).ok()?, format!("{} {}", overhead(line.what), signed(line.tokens))))
    });
    let mut parts: Vec<(u64, String)> = items.chain(lines).collect();
    parts.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
    let largest: Vec<String> = parts.iter().take(LARGEST_SHOWN).map(|(_, text)| text.clone()).collect();
    let more = parts.len().saturating_sub(LARGEST_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    largest.join(", ") + &more
}

/// Returns the smallest set of required items that exceeds the budget by itself.
#[must_use]
pub fn conflict(overflow: &Overflow) -> String {
    let conflict: Vec<String> = overflow.conflict.iter().map(|id| short(id.as_str())).collect();
    match conflict.len() {
        0 => "the overhead".to_owned(),
        // The conflict consists of the largest items, so a count is enough to identify them.
        more if more > LARGEST_SHOWN => format!("the {more} largest"),
        _ => conflict.join(", "),
    }
}

/// Describes the token calibration, which converts a local count into the provider's count.
fn provider_count(calibration: TokenCalibration) -> String {
    let offset = match calibration.offset {
        0 => String::new(),
        offset if offset > 0 => format!(" + {}", signed(offset)),
        offset => format!(" - {}", grouped(offset.unsigned_abs())),
    };
    let from = match calibration.reports {
        0 => "set by option".to_owned(),
        1 => "from 1 usage report".to_owned(),
        reports => format!("from {reports} usage reports"),
    };
    format!(
        "calibrated x {}.{:03}{offset} {from}",
        calibration.per_mille / 1000,
        calibration.per_mille % 1000
    )
}

/// Describes a notice in one line with its item ids and its text.
#[must_use]
pub fn sentence(notice: &Notice) -> String {
    let name = |id: &ItemId| printable(&plain::short(id.as_str()));
    let mut ids: Vec<String> = notice.ids.iter().take(IDS_SHOWN).map(name).collect();
    let more = notice.ids.len().saturating_sub(IDS_SHOWN);
    if more > 0 {
        ids.push(format!("{more} more"));
    }
    let at = if ids.is_empty() { String::new() } else { format!("{}: ", ids.join(", ")) };
    at + &beginning(&notice.text)
}

/// Formats a number that can be negative, with commas at the thousands.
pub(super) fn signed(tokens: i64) -> String {
    let sign = if tokens < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(tokens.unsigned_abs()))
}

/// Formats a share in per mille as per cent, with one decimal if needed: `15 %`.
#[must_use]
#[doc(hidden)]
pub fn tenths(share: u16) -> String {
    match share % 10 {
        0 => format!("{} %", share / 10),
        rest => format!("{}.{rest} %", share / 10),
    }
}
