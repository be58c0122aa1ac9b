//! Transcripts of messages, for models that accept text only.

use super::{
    calls::{ARGUMENTS, OUTCOME, Outcome},
    texts::{message_text, one_line},
};
use crate::{
    error::Error,
    message::{Message, Role},
    tokens::TokenCounter,
};

/// Formats a message as lines of a transcript: its text, and the names, arguments and outcomes of its calls.
pub(in crate::compaction) fn lines(message: &Message) -> Vec<String> {
    let text = message_text(message);
    let mut lines = Vec::new();
    match message.role() {
        Role::Tool => lines.push(match Outcome::from_result(message) {
            Outcome::Failed(why) => format!("Tool result, failed: {why}"),
            _ => format!("Tool result: {}", one_line(&text, OUTCOME * 4)),
        }),
        _ if text.is_empty() => {}
        Role::User => lines.push(format!("User: {text}")),
        Role::Assistant => lines.push(format!("Assistant: {text}")),
        Role::System | Role::Developer => lines.push(format!("System: {text}")),
    }
    let calls = message.tool_calls().iter();
    lines.extend(
        calls.map(|call| format!("Tool call: {} {}", call.name, one_line(&call.arguments, ARGUMENTS * 4))),
    );
    lines
}

/// A line of a transcript: a message, a call or an earlier summary.
#[derive(Debug)]
pub(in crate::compaction) struct Line {
    pub(in crate::compaction) text: String,
    /// True for an earlier summary, which is kept when a transcript is truncated.
    pub(in crate::compaction) is_summary: bool,
}

/// Cuts a transcript to `limit` tokens. Every earlier summary is kept whole. The remaining tokens go to the
/// newest other lines and the beginning of the first line that does not fit. Returns `None` if the summaries
/// do not fit, or if they leave no room for any other line.
pub(in crate::compaction) fn newest(
    lines: &[Line],
    limit: u64,
    counter: &TokenCounter,
) -> Result<Option<String>, Error> {
    let mut left = limit.saturating_sub(NOTICE_TOKENS);
    for summary in lines.iter().filter(|line| line.is_summary) {
        // One token more than the count, for the line break.
        let tokens = counter.count_up_to(&summary.text, left)?.tokens.saturating_add(1);
        let Some(rest) = left.checked_sub(tokens) else { return Ok(None) };
        left = rest;
    }
    // The index of the first kept line, and the kept beginning of the line before it.
    let (mut first, mut beginning) = (0, "");
    let others = || lines.iter().enumerate().filter(|(_, line)| !line.is_summary);
    for (at, line) in others().rev() {
        let tokens = counter.count_up_to(&line.text, left)?.tokens.saturating_add(1);
        if let Some(rest) = left.checked_sub(tokens) {
            left = rest;
            continue;
        }
        first = at + 1;
        beginning = counter.prefix_within(&line.text, left.saturating_sub(1))?.0.trim_end();
        break;
    }
    if beginning.is_empty() && first > 0 && !lines[first..].iter().any(|line| !line.is_summary) {
        return Ok(None);
    }
    let left_out = others().take_while(|(at, _)| *at < first).count() - usize::from(!beginning.is_empty());
    let mut kept: Vec<&str> = Vec::new();
    let stays = lines[..first].iter().filter(|line| line.is_summary);
    kept.extend(stays.map(|line| line.text.as_str()));
    let gap = format!("[{left_out} earlier lines are left out.]");
    if left_out > 0 {
        kept.push(&gap);
    }
    if !beginning.is_empty() {
        kept.push(beginning);
    }
    kept.extend(lines[first..].iter().map(|line| line.text.as_str()));
    Ok(Some(kept.join("\n")))
}

/// Tokens reserved for the line with the number of omitted lines.
const NOTICE_TOKENS: u64 = 16;
