//! Properties of every plan for any input, checked through the public API only.

use context_window::{
    Config, ContextPlan, ContextWindowManager, ExcludedReason, IncludedReason, Message, PlanRequest, Role,
    Section, Source, plan::LimitedBy, render,
};
use context_window_report as report;
use std::collections::{BTreeMap, BTreeSet};

/// One case: the request, its manager and the resulting plan.
pub struct Case<'a> {
    pub manager: &'a ContextWindowManager,
    pub request: &'a PlanRequest<'a>,
    pub messages: &'a [Message],
    /// Ids of the documents in the request.
    pub rag: Vec<String>,
    pub config: &'a Config,
    pub plan: &'a ContextPlan,
}

/// Checks all properties that need no other plan for comparison.
pub fn hold(case: &Case<'_>) -> Result<(), String> {
    ledger_sums_to_total(case)?;
    total_never_exceeds_budget_unless_overflow(case)?;
    every_candidate_has_exactly_one_decision(case)?;
    no_id_is_that_of_two_rows(case)?;
    chunks_continue_the_row_before(case)?;
    excluded_documents_name_an_item_of_the_prompt(case)?;
    exchanges_are_all_in_or_all_out(case)?;
    the_prompt_is_sound(case)?;
    live_question_is_in(case)?;
    the_kept_window_is_contiguous_and_starts_with_a_user_message(case)?;
    nothing_excluded_for_budget_would_fit(case)?;
    included_is_in_prompt_order(case)?;
    same_request_same_bytes(case)
}

fn law(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// N3: rows and lines sum to the total; each section's sum is that of its rows.
fn ledger_sums_to_total(case: &Case<'_>) -> Result<(), String> {
    let plan = case.plan;
    let rows: i128 = plan.included.iter().map(|row| i128::from(row.token_estimate.tokens)).sum();
    let lines: i128 = plan.overhead.iter().map(|line| i128::from(line.tokens)).sum();
    law(rows + lines == i128::from(plan.estimated_tokens_total.tokens), || {
        format!("N3: {rows} + {lines} is not {}", plan.estimated_tokens_total.tokens)
    })?;
    for section in &plan.sections {
        let of = plan.included.iter().filter(|row| row.section == section.section);
        let used: u64 = of.clone().map(|row| row.token_estimate.tokens).sum();
        law(used == section.used && of.count() as u64 == section.included, || {
            format!("section {section:?}: {used}")
        })?;
    }
    Ok(())
}

/// A prompt exceeds its budget only with a stated overflow, and then it contains nothing droppable (rules B1,
/// S6).
fn total_never_exceeds_budget_unless_overflow(case: &Case<'_>) -> Result<(), String> {
    let plan = case.plan;
    let excess = plan.estimated_tokens_total.tokens.saturating_sub(plan.prompt_budget);
    let said = plan.overflow.as_ref().map_or(0, |overflow| overflow.tokens);
    law(excess == said, || format!("S6: over by {excess}, said {said}"))?;
    let droppable = plan.included.iter().find(|row| {
        use IncludedReason::{Question, Recalled, Recent, Relevant};
        matches!(row.reason, Recent | Question | Relevant | Recalled)
    });
    law(excess == 0 || droppable.is_none(), || format!("S6: an overflow holds {droppable:?}"))
}

/// O2: every message and document is in exactly one row; a run represents the messages from its first to its
/// last id.
fn every_candidate_has_exactly_one_decision(case: &Case<'_>) -> Result<(), String> {
    let plan = case.plan;
    let ids: Vec<String> = ids(case.messages);
    let position: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let mut seen = vec![0u32; ids.len()];
    for row in plan.included.iter().filter(|row| row.section != Section::Rag) {
        if let Some(at) = position.get(row.id.as_str()) {
            seen[*at] += 1;
        }
    }
    for row in plan.excluded.iter().filter(|row| row.section != Section::Rag) {
        if let Some(from) = position.get(row.id.as_str()) {
            let to = row.last_id.as_ref().map_or(*from, |last| position[last.as_str()]);
            law((to - from + 1) as u64 == row.count, || format!("O2: run {row:?} counts {}", to - from + 1))?;
            seen[*from..=to].iter_mut().for_each(|count| *count += 1);
        }
    }
    if let Some(at) = seen.iter().position(|count| *count != 1) {
        return Err(format!("O2: message {} stands in {} rows", ids[at], seen[at]));
    }
    let rag = |rows: Vec<&str>| -> Vec<String> { rows.into_iter().map(str::to_owned).collect() };
    let rows = plan.included.iter().filter(|row| row.section == Section::Rag).map(|row| row.id.as_str());
    let out = plan.excluded.iter().filter(|row| row.section == Section::Rag).map(|row| row.id.as_str());
    let (mut decided, mut asked) = (rag(rows.chain(out).collect()), case.rag.clone());
    decided.sort();
    asked.sort();
    law(decided == asked, || format!("O2: documents {asked:?} decided as {decided:?}"))
}

/// No two included rows have the same id, with documents separate from other items (rules O2, O5).
fn no_id_is_that_of_two_rows(case: &Case<'_>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let twice = case.plan.included.iter().find(|row| !seen.insert((row.kind.is_document(), &row.id)));
    law(twice.is_none(), || format!("O2: two rows by the id of {twice:?}"))
}

/// S9: a document that is excluded because another text contains it names an item of the prompt.
fn excluded_documents_name_an_item_of_the_prompt(case: &Case<'_>) -> Result<(), String> {
    for row in &case.plan.excluded {
        let (of, is_document) = match &row.reason {
            ExcludedReason::NearDuplicate { of, .. } => (of, true),
            ExcludedReason::Repeats { of, .. } => (of, false),
            _ => continue,
        };
        let mut named = case.plan.included.iter().filter(|row| row.id == *of);
        let is_in = named.any(|row| is_document == (row.section == Section::Rag));
        law(is_in, || format!("S9: {row:?} names no item of the prompt"))?;
    }
    Ok(())
}

/// S14: a row that continues a document follows its row. Delimiters are whole
/// around a joined text, and nowhere else.
fn chunks_continue_the_row_before(case: &Case<'_>) -> Result<(), String> {
    let rows: Vec<_> = case.plan.included.iter().filter(|row| row.kind.is_document()).collect();
    for (at, row) in rows.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| rows[before]);
        if let Some(of) = row.continues() {
            let follows = before.is_some_and(|before| before.id == *of);
            law(follows, || format!("S14: {row:?} after {before:?}"))?;
        }
        let is_joined = rows.get(at + 1).is_some_and(|next| next.continues().is_some());
        let text = row.body.text();
        let opens = text.starts_with("<document ") || text.starts_with("<document>\n");
        let closes = text.ends_with("\n</document>\n");
        let is_new = row.section == Section::Rag;
        law(!is_new || opens == row.continues().is_none() && closes != is_joined, || {
            format!("S14: delimiters of {row:?}")
        })?;
    }
    Ok(())
}

/// H2: a call is in with exactly one result for each of its calls, right after it.
fn exchanges_are_all_in_or_all_out(case: &Case<'_>) -> Result<(), String> {
    let mut messages = case.plan.messages().iter().peekable();
    while let Some(message) = messages.next() {
        law(message.role() != Role::Tool, || format!("a result without its call: {message:?}"))?;
        let mut open: BTreeSet<&str> = message.tool_calls().iter().map(|call| call.id.as_str()).collect();
        law(open.len() == message.tool_calls().len(), || format!("H1: an id twice in {message:?}"))?;
        while !open.is_empty() {
            let answer = messages.next_if(|next| next.role() == Role::Tool);
            let answered = answer.and_then(Message::answers).is_some_and(|id| open.remove(id));
            law(answered, || format!("calls {open:?} of {message:?} have no result"))?;
        }
    }
    Ok(())
}

/// No empty message is sent (rule H3).
fn the_prompt_is_sound(case: &Case<'_>) -> Result<(), String> {
    let empty = case.plan.messages().iter().find(|message| message.is_empty());
    law(empty.is_none(), || format!("H3: {empty:?} is in"))
}

/// The latest user message with content is included at every budget (rule S1).
fn live_question_is_in(case: &Case<'_>) -> Result<(), String> {
    let ids = ids(case.messages);
    let live = case.messages.iter().rposition(|message| message.role() == Role::User && !message.is_empty());
    let Some(live) = live else { return Ok(()) };
    let row =
        case.plan.included.iter().find(|row| row.section != Section::Rag && row.id.as_str() == ids[live]);
    let required = row.is_some_and(|row| row.reason == IncludedReason::Required);
    law(required, || format!("S1: live question {} is {row:?}", ids[live]))
}

/// Between the window's start and the end of the log, only expired messages and those that belong to their
/// call are missing. The window starts with a user message if there is one: its own, or that of the split
/// turn right before it (rule S4).
fn the_kept_window_is_contiguous_and_starts_with_a_user_message(case: &Case<'_>) -> Result<(), String> {
    let Some(start) = &case.plan.window_start else { return Ok(()) };
    let ids = ids(case.messages);
    let start = ids.iter().position(|id| id == start.as_str()).ok_or("S4: window_start is no message")?;
    let included: BTreeSet<&str> = case.plan.included.iter().map(|row| row.id.as_str()).collect();
    let head = case.messages[..=start]
        .iter()
        .rposition(|message| message.role() == Role::User && !message.is_empty());
    let expired = |at: usize| {
        case.plan.excluded.iter().any(|row| {
            let first = ids.iter().position(|id| id == row.id.as_str());
            let last =
                row.last_id.as_ref().and_then(|last| ids.iter().position(|id| id == last.as_str())).or(first);
            row.section != Section::Rag
                && matches!(row.reason, ExcludedReason::TtlExpired { .. })
                && first.is_some_and(|first| first <= at)
                && last.is_some_and(|last| at <= last)
        })
    };
    if let Some(head) = head {
        law(included.contains(ids[head].as_str()) || expired(head), || {
            format!("S4: the window starts at {} without its user message {}", ids[start], ids[head])
        })?;
    }
    for row in case.plan.excluded.iter().filter(|row| row.section == Section::Conversation) {
        let from = ids.iter().position(|id| id == row.id.as_str()).ok_or("unknown row")?;
        let window = matches!(
            row.reason,
            ExcludedReason::Budget {
                limited_by: LimitedBy::Window | LimitedBy::Cap | LimitedBy::StickyWindow,
                ..
            }
        );
        let late_result = case.messages[from].role() == Role::Tool;
        law(!window || from < start || late_result, || {
            format!("S4: a gap at {} inside the window", ids[from])
        })?;
    }
    Ok(())
}

/// An item excluded only for its size is larger than the free tokens (rule B6).
fn nothing_excluded_for_budget_would_fit(case: &Case<'_>) -> Result<(), String> {
    let left = case.plan.left_over();
    for row in &case.plan.excluded {
        if let ExcludedReason::Budget { room, limited_by: LimitedBy::Size } = row.reason {
            let has_block = case.plan.included.iter().any(|row| row.section == Section::Rag);
            let block = if has_block { 0 } else { 66 + case.config.rag.template.introduction.len() as u64 };
            // Tokens saved by a merge are unavailable to items that would end it. A first document also opens
            // the block, and savings from joins are known only after rendering.
            let saved: i64 = case.plan.overhead.iter().map(|line| line.tokens.min(0)).sum();
            // Some are kept free if a joined text has more tokens than its chunks (rule N3).
            let withheld = if case.config.rag.join_chunks { 8 } else { 0 };
            let spared = left.saturating_sub(block + withheld).saturating_sub(saved.unsigned_abs());
            law(room >= spared, || format!("B6: {row:?} had {room}, but {left} are left"))?;
        }
    }
    Ok(())
}

/// O1: system first, the block right before the live question, state last, messages in log order.
fn included_is_in_prompt_order(case: &Case<'_>) -> Result<(), String> {
    let ids = ids(case.messages);
    let position: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let rows = case.plan.included.iter().filter(|row| row.section != Section::Rag);
    let heads: Vec<usize> = rows
        .filter(|row| row.source != Source::Tool)
        .filter_map(|row| position.get(row.id.as_str()).copied())
        .collect();
    law(heads.is_sorted(), || format!("O1: messages stand as {heads:?}"))?;
    let scores: Vec<usize> = {
        let rows = case.plan.included.iter().enumerate();
        rows.filter(|(_, row)| row.section == Section::Rag).map(|(at, _)| at).collect()
    };
    let together = scores.windows(2).all(|pair| pair[1] == pair[0] + 1);
    law(together, || "O1: the documents are not one block".into())
}

/// The same request gives the same plan, report, JSON and messages (rule O3).
fn same_request_same_bytes(case: &Case<'_>) -> Result<(), String> {
    let again = case.manager.build_plan(case.request).map_err(|error| error.to_string())?;
    law(&again == case.plan, || "O3: planned twice, two plans".into())?;
    law(all_bytes(&again) == all_bytes(case.plan), || "O3: one plan, two texts".into())
}

/// Returns all printed forms of a plan.
pub fn all_bytes(plan: &ContextPlan) -> String {
    let body = serde_json::to_string(&render::openai(plan)).unwrap();
    format!("{}\n{}\n{body}", report::text(plan), plan.to_json())
}

/// Returns the id of each message: its own, or `m` and its position.
pub fn ids(messages: &[Message]) -> Vec<String> {
    let id = |(at, message): (usize, &Message)| {
        message.id().map_or_else(|| format!("m{at}"), |id| id.as_str().to_owned())
    };
    messages.iter().enumerate().map(id).collect()
}
