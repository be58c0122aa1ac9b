//! A line in a transcript at each compaction; it expands into the details.

use super::{Theme, draw_lines};
use context_window::{conversation::Compaction, text::plain::grouped};
use context_window_report as report;
use context_window_report::{fitted, wrapped};
use ratatui_core::{buffer::Buffer, layout::Rect, text::Line, widgets::Widget};
use unicode_width::UnicodeWidthStr;

/// A marker of a compaction: `── Context compacted #1: 45 messages archived, ~142,000 tokens freed ── [+]`.
/// Expanded, it lists the archived messages, the tokens before and after, and the summary.
///
/// ```
/// # use context_window::{*, conversation::HistoryRow};
/// # use context_window_ratatui::CompactionMarker;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let messages = [Message::user("How long do refunds take?"), Message::assistant("5 days.")];
/// # let mut log = Conversation::from(messages);
/// # log.start_fresh();
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// for row in log.history() {
///     if let HistoryRow::Compaction(record) = row {
///         CompactionMarker::new(record).render(area, &mut buffer);
///     }
/// }
/// # let line: String = (0..60).map(|x| buffer[(x, 0)].symbol()).collect();
/// assert!(line.starts_with("── Started fresh: 2 messages archived "));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CompactionMarker<'a> {
    record: &'a Compaction,
    expanded: bool,
    theme: Theme,
}

impl<'a> CompactionMarker<'a> {
    /// Creates the marker of a compaction, from a [`context_window::conversation::HistoryRow::Compaction`] of
    /// [`context_window::Conversation::history`].
    #[must_use]
    pub fn new(record: &'a Compaction) -> Self {
        Self { record, expanded: false, theme: Theme::default() }
    }

    /// Shows or hides the details (default: hidden).
    #[must_use]
    pub fn with_expanded(mut self, expanded: bool) -> Self {
        self.expanded = expanded;
        self
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the height in rows at a width in columns.
    #[must_use]
    pub fn height(&self, columns: u16) -> u16 {
        u16::try_from(self.lines(columns).len()).unwrap_or(u16::MAX)
    }

    /// Returns the lines at a width in columns, for a transcript.
    #[must_use]
    pub fn lines(&self, columns: u16) -> Vec<Line<'static>> {
        let columns = usize::from(columns);
        let (sign, record) = (if self.expanded { " [-]" } else { " [+]" }, self.record);
        let title = format!("── {} ", report::compaction(record));
        let room = columns.saturating_sub(sign.width());
        // The rule fills the line, so that the sign is always in the last columns.
        let rule = "─".repeat(room.saturating_sub(title.width()));
        let head = fitted(&format!("{title}{rule}"), room) + sign;
        let mut lines = vec![Line::styled(head, self.theme.warning)];
        if !self.expanded {
            return lines;
        }
        let mut say = |text: &str| {
            for line in wrapped(text, columns.saturating_sub(4).max(1)) {
                lines.push(Line::styled(format!("    {line}"), self.theme.faint));
            }
        };
        for run in &record.archived {
            let (first, last) = (report::brief(run.id.as_str()), report::brief(run.last_id.as_str()));
            match run.count {
                1 => say(&format!("archived {first}")),
                count => say(&format!("archived {first} to {last} ({})", grouped(count))),
            }
        }
        // Records without token counts have 0 here.
        if record.tokens_before > 0 {
            say(&format!(
                "{} tokens before, {} after",
                grouped(record.tokens_before),
                grouped(record.tokens_after)
            ));
        }
        for line in record.summary.iter().flat_map(|summary| summary.lines()) {
            say(&report::printable(line));
        }
        lines
    }
}

impl Widget for CompactionMarker<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        draw_lines(area, buffer, &self.lines(area.width));
    }
}
