//! A conversation as Markdown with all its messages, including archived ones.

use super::{compaction, message_lines, printable, shown};
use context_window::{Conversation, conversation::HistoryRow};
use std::fmt;

/// A conversation as Markdown. Print it with `{}`. Created by [`super::history`].
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    log: &'a Conversation,
}

impl<'a> History<'a> {
    pub(super) fn new(log: &'a Conversation) -> Self {
        Self { log }
    }
}

impl fmt::Display for History<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&markdown(self.log))
    }
}

fn markdown(log: &Conversation) -> String {
    let mut text = String::new();
    for row in log.history() {
        match row {
            HistoryRow::Message { id, message, is_archived, .. } => {
                let away = if is_archived { ", archived" } else { "" };
                text +=
                    &["### ", message.role().name(), " (", &printable(id.as_str()), away, ")\n\n"].concat();
                // A quotation keeps a message's text from passing for a heading or a marker of this page.
                text.extend(message_lines(message).iter().map(|line| quoted(line)));
                text.push('\n');
            }
            HistoryRow::Compaction(record) => {
                text += &["---\n\n**", &compaction(record), "**\n\n"].concat();
                text.extend(record.summary.iter().flat_map(|summary| summary.lines()).map(quoted));
                text.push_str("\n---\n\n");
            }
            HistoryRow::Rewound(id) => {
                text += &marker(&format!("Rewound to before {}", printable(id.as_str())));
            }
            HistoryRow::CompactionUndone(number) => text += &marker(&format!("Compaction #{number} undone")),
        }
    }
    text
}

/// Returns a line as a Markdown quotation.
fn quoted(line: &str) -> String {
    format!("> {}\n", shown(line))
}

/// Returns a bold line between two rules, which separates parts of the history.
fn marker(text: &str) -> String {
    format!("---\n\n**{text}**\n\n---\n\n")
}
