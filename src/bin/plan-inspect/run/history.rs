//! `plan-inspect history`: everything that was said, with a marker wherever messages were archived.

use super::print;
use crate::{
    args::{History, HistoryFormat},
    input,
    prepared::say_ignored,
};
use anyhow::Result;
use context_window::{ArchivedBy, Compaction, CompactionKind, Conversation, Message, Part, Row, report};
use serde_json::{Value, json};
use std::{fmt::Write as _, process::ExitCode};
use unicode_width::UnicodeWidthChar;

pub(crate) fn run(args: &History) -> Result<ExitCode> {
    let session = input::sessions(&args.session)?.session(args.id.as_deref())?;
    print(&match args.format {
        HistoryFormat::Text => text(&session.log, args),
        HistoryFormat::Markdown => markdown(&session.log)?,
        HistoryFormat::Json => json(&session.log)?,
    })?;
    say_ignored(&session);
    Ok(ExitCode::SUCCESS)
}

/// What a marker says: `Context compacted #1: 45 messages archived, ~142,000 tokens freed`.
fn marker(record: &Compaction) -> String {
    let archived = messages(record.messages_archived);
    let freed = match record.freed() {
        0 => String::new(),
        freed => format!(", ~{} tokens freed", report::grouped(freed)),
    };
    let how = match record.kind {
        CompactionKind::Fresh => "Started fresh".to_owned(),
        CompactionKind::SlidingWindow => format!("Context compacted #{} without a summary", record.number),
        CompactionKind::Digest => format!("Context compacted #{} by a digest", record.number),
        _ => format!("Context compacted #{}", record.number),
    };
    format!("{how}: {archived} archived{freed}")
}

fn messages(count: u64) -> String {
    format!("{} message{}", report::grouped(count), if count == 1 { "" } else { "s" })
}

fn text(log: &Conversation, args: &History) -> String {
    let (width, colour) = (args.screen.width().max(40), args.screen.colour());
    let paint = |code: &str, line: &str| {
        if colour { format!("\u{1b}[{code}m{line}\u{1b}[0m\n") } else { format!("{line}\n") }
    };
    let longest = log.display().filter_map(|row| match row {
        Row::Message { id, .. } => Some(id.as_str().chars().count().min(16)),
        _ => None,
    });
    let column = longest.max().unwrap_or(2);
    let mut text = String::new();
    for row in log.display() {
        match row {
            Row::Message { id, message, archived } => {
                let sign = if archived.is_some() && !colour { "-" } else { " " };
                let head =
                    format!("{sign} {:column$}  {:9}  ", report::brief(id.as_str()), message.role().name());
                for (at, line) in lines(message, args.expand).into_iter().enumerate() {
                    let head = if at == 0 { head.clone() } else { " ".repeat(head.chars().count()) };
                    let line = report::printable(&(head + &line));
                    let line = if args.expand { line } else { fitted(&line, width) };
                    text.push_str(&if archived.is_some() { paint("2", &line) } else { line + "\n" });
                }
            }
            Row::Compaction(record) => {
                text.push_str(&paint("1;33", &rule(&marker(record), width)));
                if args.expand {
                    for line in record.summary.iter().flat_map(|summary| summary.lines()) {
                        text.push_str(&paint("33", &format!("    {}", report::printable(line))));
                    }
                }
            }
            Row::Rewound(id) => {
                let said = format!("Went on from before {}", report::brief(id.as_str()));
                text.push_str(&paint("1;36", &rule(&said, width)));
            }
            _ => {}
        }
    }
    text
}

/// A marker as a line across the page.
fn rule(said: &str, width: usize) -> String {
    let rest = width.saturating_sub(said.chars().count() + 5);
    fitted(&format!("── {said} {}", "─".repeat(rest)), width)
}

/// What a message says: in one line, or whole.
fn lines(message: &Message, whole: bool) -> Vec<String> {
    let mut lines: Vec<String> = message.text().lines().map(str::to_owned).collect();
    for part in message.content_parts() {
        match part {
            Part::Text(text) => lines.extend(text.lines().map(str::to_owned)),
            Part::Image { .. } => lines.push("[image]".into()),
            _ => lines.push("[part]".into()),
        }
    }
    let calls = message.tool_calls().iter();
    lines.extend(calls.map(|call| format!("→ {} {}", call.name, call.arguments)));
    if whole && !lines.is_empty() {
        return lines;
    }
    vec![lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")]
}

/// A line cut to so many columns.
fn fitted(line: &str, columns: usize) -> String {
    let mut width = 0;
    let mut cut = String::new();
    for c in line.chars() {
        width += c.width().unwrap_or(0);
        if width > columns - 1 {
            cut.push('…');
            return cut;
        }
        cut.push(c);
    }
    cut
}

fn markdown(log: &Conversation) -> Result<String> {
    let mut text = String::new();
    for row in log.display() {
        match row {
            Row::Message { id, message, archived } => {
                let away = if archived.is_some() { ", archived" } else { "" };
                writeln!(text, "### {} ({}{away})\n", message.role().name(), report::printable(id.as_str()))?;
                for line in lines(message, true) {
                    // What somebody said is no heading and no marker of this page.
                    writeln!(text, "> {}", report::printable(&line))?;
                }
                text.push('\n');
            }
            Row::Compaction(record) => {
                writeln!(text, "---\n\n**{}**\n", marker(record))?;
                for line in record.summary.iter().flat_map(|summary| summary.lines()) {
                    writeln!(text, "> {}", report::printable(line))?;
                }
                text.push_str("\n---\n\n");
            }
            Row::Rewound(id) => {
                writeln!(text, "---\n\n**Went on from before {}**\n\n---\n", report::printable(id.as_str()))?;
            }
            _ => {}
        }
    }
    Ok(text)
}

fn json(log: &Conversation) -> Result<String> {
    let rows: Vec<Value> = log
        .display()
        .filter_map(|row| match row {
            Row::Message { id, message, archived } => Some(json!({
                "kind": "message",
                "id": id,
                "archived": archived.is_some(),
                "archived_by": match archived {
                    Some(ArchivedBy::Compaction(number)) => json!(number),
                    Some(ArchivedBy::Rewind) => json!("rewind"),
                    _ => Value::Null,
                },
                "role": message.role(),
                "text": lines(message, true).join("\n"),
            })),
            Row::Compaction(record) => Some(json!({
                "kind": "compaction",
                "id": format!("summary:{}", record.number),
                "archived": false,
                "text": marker(record),
                "compaction": record,
            })),
            Row::Rewound(id) => Some(json!({"kind": "rewind", "id": id, "archived": false})),
            _ => None,
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({ "rows": rows }))? + "\n")
}
