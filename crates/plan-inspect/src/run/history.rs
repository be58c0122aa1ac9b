//! `plan-inspect history`: all messages of a session, with a marker for each compaction and rewind.

use crate::stdout::print;
use crate::{
    args::{History, HistoryFormat, Screen},
    input, json,
    message_text::{lines, shown},
    prepared::report_ignored,
};
use anyhow::Result;
use context_window::{Conversation, conversation::HistoryRow};
use context_window_report as report;
use serde_json::{Value, json};
use std::process::ExitCode;
use unicode_width::UnicodeWidthStr;

pub(crate) fn run(args: &History, screen: &Screen) -> Result<ExitCode> {
    let session = input::sessions(&args.session, args.reading.options())?.session(args.id.as_deref())?;
    print(&match args.format {
        HistoryFormat::Text => text(&session.log, args.expand, screen),
        HistoryFormat::Markdown => report::history(&session.log).to_string(),
        HistoryFormat::Json => json(&session.log)?,
    })?;
    report_ignored(&session);
    Ok(ExitCode::SUCCESS)
}

fn text(log: &Conversation, whole: bool, screen: &Screen) -> String {
    let (width, colour) = (screen.width().max(40), screen.colour());
    let paint = |code: &str, line: &str| {
        if colour { format!("\u{1b}[{code}m{line}\u{1b}[0m\n") } else { format!("{line}\n") }
    };
    let longest = log.history().filter_map(|row| match row {
        HistoryRow::Message { id, .. } => Some(report::brief(id.as_str()).width()),
        _ => None,
    });
    let column = longest.max().unwrap_or(2);
    // A compact list limits the id column to a quarter of the page.
    let column = if whole { column } else { column.min((width / 4).max(16)) };
    let mut text = String::new();
    let ids: Vec<String> = log
        .history()
        .filter_map(|row| match row {
            HistoryRow::Message { id, .. } => Some(report::printable(id.as_str())),
            _ => None,
        })
        .collect();
    // Ids are cut together, so that different ids stay different.
    let mut ids = report::cut_ids((1..).zip(ids.iter().map(String::as_str)), column).into_iter();
    for row in log.history() {
        match row {
            HistoryRow::Message { message, is_archived, .. } => {
                // Without colours, a sign marks archived messages, which are dimmed otherwise.
                let sign = if is_archived && !colour { "-" } else { " " };
                let id = ids.next().unwrap_or_default();
                let fill = " ".repeat(column - id.width());
                let head = format!("{sign} {id}{fill}  {:9}  ", message.role().name());
                for (at, line) in lines(message, whole).into_iter().enumerate() {
                    let head = if at == 0 { head.clone() } else { " ".repeat(head.width()) };
                    let line = head + &shown(&line);
                    let line = if whole { line } else { report::cut(&line, width) };
                    let line = line.trim_end().to_owned();
                    text.push_str(&if is_archived { paint("2", &line) } else { line + "\n" });
                }
            }
            HistoryRow::Compaction(record) => {
                text.push_str(&paint("1;33", &rule(&report::compaction(record), width)));
                if whole {
                    for line in record.summary.iter().flat_map(|summary| summary.lines()) {
                        text.push_str(&paint("33", &format!("    {}", shown(line))));
                    }
                }
            }
            HistoryRow::Rewound(id) => {
                let title = format!("Rewound to before {}", report::brief(id.as_str()));
                text.push_str(&paint("1;36", &rule(&title, width)));
            }
            HistoryRow::CompactionUndone(number) => {
                text.push_str(&paint("1;36", &rule(&format!("Compaction #{number} undone"), width)));
            }
        }
    }
    text
}

/// Returns a marker as a line across the page.
fn rule(title: &str, width: usize) -> String {
    let rest = width.saturating_sub(title.width() + 5);
    report::cut(&format!("── {title} {}", "─".repeat(rest)), width)
}

fn json(log: &Conversation) -> Result<String> {
    let rows: Vec<Value> = log
        .history()
        .map(|row| match row {
            HistoryRow::Message { id, message, is_archived, compaction } => json!({
                "kind": "message",
                "id": id,
                "archived": is_archived,
                "archived_by": match compaction {
                    Some(number) => json!(number),
                    None if is_archived => json!("rewind"),
                    None => Value::Null,
                },
                "role": message.role(),
                "text": lines(message, true).join("\n"),
            }),
            HistoryRow::Compaction(record) => json!({
                "kind": "compaction",
                "id": format!("summary:{}", record.number),
                "archived": false,
                "text": report::compaction(record),
                "compaction": record,
            }),
            HistoryRow::Rewound(id) => json!({"kind": "rewind", "id": id, "archived": false}),
            HistoryRow::CompactionUndone(number) => {
                json!({"kind": "undo", "id": format!("summary:{number}"), "archived": false})
            }
        })
        .collect();
    json::indented(&json!({ "rows": rows }))
}
