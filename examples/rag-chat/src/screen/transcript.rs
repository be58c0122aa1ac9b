//! The conversation as a person reads it: messages, what the chat itself said, and where messages were archived.

use crate::chat::{Chat, Turn};
use context_window::{
    ItemId, Message, Role,
    conversation::HistoryRow,
    report,
    widgets::{CompactionMarker, Theme},
};
use ratatui::text::{Line, Span};

/// The last lines of it, `most` of them above the `scrolled` lines that are not seen, at a width in columns.
pub(super) fn lines(
    chat: &Chat,
    theme: Theme,
    columns: u16,
    most: usize,
    scrolled: usize,
) -> (Vec<Line<'static>>, usize) {
    let mut page = Page { theme, columns: usize::from(columns).max(8), lines: Vec::new() };
    let (mut notes, mut messages) = (chat.notes.iter().peekable(), 0);
    for row in chat.log.display() {
        if let HistoryRow::Message { .. } = row {
            while let Some(note) = notes.next_if(|note| note.after <= messages) {
                page.note(&note.text, note.is_error);
            }
            messages += 1;
        }
        match row {
            HistoryRow::Message { id, message, archived } => page.message(&id, message, archived.is_some()),
            HistoryRow::Compaction(record) => {
                page.lines.extend(CompactionMarker::new(record).with_theme(theme).lines(columns));
            }
            HistoryRow::Rewound(id) => page.note(&format!("went back to before {id}"), false),
            HistoryRow::CompactionUndone(number) => {
                page.note(&format!("compaction {number} taken back"), false);
            }
            _ => {}
        }
    }
    notes.for_each(|note| page.note(&note.text, note.is_error));
    if let Turn::Answering(answering) = &chat.turn {
        if answering.text.is_empty() {
            page.text(&format!("thinks: {}", tail(&answering.thought)), theme.faint, "  ");
        }
        page.text(&answering.text, ratatui::style::Style::new(), "  ");
    }
    let end = page.lines.len();
    let scrolled = scrolled.min(end.saturating_sub(most));
    let lines = page.lines.drain(..end - scrolled).rev().take(most).collect::<Vec<_>>();
    (lines.into_iter().rev().collect(), scrolled)
}

/// The end of a long thought.
fn tail(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words[words.len().saturating_sub(30)..].join(" ")
}

struct Page {
    theme: Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
}

impl Page {
    fn message(&mut self, id: &ItemId, message: &Message, is_archived: bool) {
        if message.role().instructs() {
            return;
        }
        let (who, style) = match message.role() {
            Role::User => ("you", self.theme.heading),
            _ => ("answer", self.theme.good),
        };
        let archived = if is_archived { ", archived" } else { "" };
        self.lines.push(Line::default());
        self.lines.push(Line::from(vec![
            Span::styled(who, style),
            Span::styled(format!("  {}{archived}", report::brief(id.as_str())), self.theme.faint),
        ]));
        let style = if is_archived { self.theme.faint } else { ratatui::style::Style::new() };
        if message.is_loaded() {
            self.text(message.text(), style, "  ")
        } else {
            self.text("[text left in the store]", self.theme.faint, "  ")
        }
    }

    fn note(&mut self, text: &str, is_error: bool) {
        let style = if is_error { self.theme.alarm } else { self.theme.faint };
        self.lines.push(Line::default());
        self.text(text, style, if is_error { "! " } else { "· " });
    }

    /// A text in lines that fit, with a mark before the first.
    fn text(&mut self, text: &str, style: ratatui::style::Style, mark: &str) {
        let mut mark = mark;
        for line in text.lines() {
            for line in report::wrapped(&report::shown(line), self.columns - 2) {
                self.lines.push(Line::styled(format!("{mark}{line}"), style));
                mark = "  ";
            }
        }
    }
}
