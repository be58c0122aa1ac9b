//! A plan as lines for snapshot tests. The lines are short and stable, and contain no text of the prompt.

use super::{
    grouped,
    row::{Rows, number, section, short},
    words::{overhead, signed},
};
use context_window::{ContextPlan, plan::Decision};
use std::fmt::{self, Write as _};

/// A plan as lines for a snapshot test. Print it with `{}`. Created by [`super::snapshot`].
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    plan: &'a ContextPlan,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan }
    }
}

impl fmt::Display for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&snapshot(self.plan))
    }
}

fn snapshot(plan: &ContextPlan) -> String {
    let (mut text, rows) = (String::new(), Rows::new(plan));
    let included = plan.included.iter().map(Decision::Included);
    // Rows keep the order of the plan, so a difference between two snapshots shows moved items too.
    let excluded = plan.excluded.iter().map(Decision::Excluded);
    for (mark, decision) in included.map(|row| ("in ", row)).chain(excluded.map(|row| ("out", row))) {
        let words = rows.row(decision);
        let (section, kind) = (section(decision.section()), decision.kind().name());
        line(
            &mut text,
            &format!("{mark}  {section:<13}  {}  {kind}  {}  {}", words.id, words.tokens, words.why),
        );
    }
    for notice in &plan.notices {
        let ids: Vec<String> = notice.ids.iter().map(|id| short(id.as_str())).collect();
        line(&mut text, format!("notice  {}  {}", notice.rule(), ids.join(", ")).trim_end());
    }
    for used in &plan.sections {
        let (name, tokens, budget) = (section(used.section), grouped(used.used), grouped(used.budget));
        line(&mut text, &format!("{name:<13}  {tokens} of {budget}"));
    }
    for part in &plan.overhead {
        line(&mut text, &format!("{:<13}  {} {}", "Overhead", overhead(part.what), signed(part.tokens)));
    }
    let left = match plan.overflow_tokens() {
        0 => format!("{} free", grouped(plan.left_over())),
        over => format!("{} over budget", grouped(over)),
    };
    line(
        &mut text,
        &format!(
            "{:<13}  {} of {}, {left}",
            "Total",
            number(plan.estimated_tokens_total),
            grouped(plan.prompt_budget)
        ),
    );
    text
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window::{
        ContextWindowManager, Conversation, Error, Message, PinnedItem, PlanRequest, RagItem, RequestLimits,
        ToolCall,
    };

    fn taken(budget: u64) -> Result<String, Error> {
        let manager = ContextWindowManager::for_model("gpt-4o")?;
        let mut log = Conversation::from([
            Message::system("Answer from the documents."),
            Message::user("Do you sell kettles?"),
            Message::assistant("").with_tool_calls([ToolCall::new("c1", "stock", "{}")]),
            Message::user("How long do refunds take?"),
        ]);
        log.pin(PinnedItem::new("to\u{1b}[31mne\n", "Short answers."));
        let documents = [
            RagItem::new("refunds", 0.9, "Refunds take 5 days."),
            RagItem::new("hours", 0.1, "From 9 to 18."),
        ];
        let request =
            PlanRequest::new(&log).with_rag(documents).with_limits(RequestLimits::prompt_budget(budget));
        Ok(snapshot(&manager.build_plan(&request)?))
    }

    /// Every row has its line for any id, and no text of the prompt occurs in the lines.
    #[test]
    fn plan_snapshot_has_one_line_per_row_and_sums() {
        let fits = [
            "in   System + pins  m0  system_text  9  required: system text",
            "in   System + pins  to?[31mne?  note  7  pinned note",
            "in   Conversation   m1  message  10  user message",
            "in   Conversation   m2  message  9  assistant message",
            "in   Conversation   synth:m2:c1  placeholder_result  14  placeholder result",
            "in   Documents      refunds  document  17  document",
            "in   Documents      hours  document  16  document",
            "in   Conversation   m3  message  10  required: live question",
            "notice  H2  synth:m2:c1",
            "System + pins  16 of 16",
            "Conversation   43 of 43",
            "Documents      33 of 33",
            "Overhead       reply header 3",
            "Overhead       document wrapper 10",
            "Total          105 of 110, 5 free",
        ];
        assert_eq!(taken(110).unwrap().lines().collect::<Vec<_>>(), fits);
        let over = [
            "in   System + pins  m0  system_text  9  required: system text",
            "in   Conversation   m3  message  10  required: live question",
            "out  System + pins  to?[31mne?  note  <=18  dropped: required items exceed the budget",
            "out  Conversation   m1..m2 (2)  message  <=38  dropped: required items exceed the budget",
            "out  Documents      refunds  document  <=146  dropped: required items exceed the budget",
            "out  Documents      hours  document  <=120  dropped: required items exceed the budget",
            "System + pins  9 of 9",
            "Conversation   10 of 10",
            "Documents      0 of 0",
            "Overhead       reply header 3",
            "Total          22 of 20, 2 over budget",
        ];
        assert_eq!(taken(20).unwrap().lines().collect::<Vec<_>>(), over);
    }
}
