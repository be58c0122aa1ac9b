//! A conversation as a readable transcript, drawn from its end.

use super::{CompactionMarker, Move, Theme, detail::folded, draw_lines};
use context_window::{Conversation, ItemId, Message, Role, conversation::HistoryRow};
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::StatefulWidget,
};

/// A remark of the application between messages, such as an error or the result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptRemark {
    /// The number of rows of [`Conversation::history`] at the time of the remark. The remark follows these
    /// rows.
    pub after: usize,
    /// The text. Each of its lines is a line of the transcript.
    pub text: String,
    /// True for an error.
    pub is_error: bool,
}

/// A readable transcript of a conversation. It shows the messages of the user and the model with their ids,
/// and archived messages in a fainter style. Each compaction has a marker ([`CompactionMarker`]). Remarks of
/// the application and a reply in progress are included. System texts and tool calls are left out.
///
/// It shows the end at first, and [`TranscriptState::apply_move`] scrolls. Only the visible lines and the
/// lines below are wrapped, however long the conversation is. Control characters are replaced, so that the
/// terminal does not act on them.
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::{Move, Transcript, TranscriptRemark, TranscriptState};
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
/// # let messages = [Message::user("How long do refunds take?"), Message::assistant("5 days.")];
/// # let log = Conversation::from(messages);
/// # let area = Rect::new(0, 0, 40, 8);
/// # let mut buffer = Buffer::empty(area);
/// let remarks = [TranscriptRemark { after: 2, text: "saved".into(), is_error: false }];
/// let mut state = TranscriptState::default();
/// Transcript::new(&log).with_remarks(&remarks).with_reply("", "And").render(area, &mut buffer, &mut state);
/// state.apply_move(Move::PageUp); // when PgUp is pressed
/// # let line = |y| (0..40).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
/// assert_eq!((line(5).trim_end(), line(7).trim_end()), ("· saved", "  And"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    log: &'a Conversation,
    remarks: &'a [TranscriptRemark],
    thought: &'a str,
    reply: &'a str,
    answers: Option<AnswerLines>,
    theme: Theme,
}

/// A function that returns the lines of an answer from its text, the width in columns, and the styles.
type AnswerLines = fn(&str, usize, Theme) -> Vec<Line<'static>>;

/// The scroll position of a [`Transcript`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TranscriptState {
    below: usize,
    page: usize,
}

impl TranscriptState {
    /// Scrolls by a step. [`Move::Last`] goes to the end, and the transcript then follows new messages.
    pub fn apply_move(&mut self, step: Move) {
        // The position is counted from the end, so steps have the opposite sign.
        self.below = match step {
            Move::Up => self.below.saturating_add(1),
            Move::Down => self.below.saturating_sub(1),
            Move::PageUp => self.below.saturating_add(self.page.max(1)),
            Move::PageDown => self.below.saturating_sub(self.page.max(1)),
            Move::First => usize::MAX,
            Move::Last => 0,
            Move::By(lines) => self.below.saturating_add_signed(lines.saturating_neg()),
        };
    }

    /// Returns the number of lines below the visible ones. Returns 0 at the end.
    #[must_use]
    pub fn below(&self) -> usize {
        self.below
    }
}

impl<'a> Transcript<'a> {
    /// Creates the transcript of a conversation.
    #[must_use]
    pub fn new(log: &'a Conversation) -> Self {
        Self { log, remarks: &[], thought: "", reply: "", answers: None, theme: Theme::default() }
    }

    /// Sets the remarks of the application, sorted by [`TranscriptRemark::after`].
    #[must_use]
    pub fn with_remarks(mut self, remarks: &'a [TranscriptRemark]) -> Self {
        self.remarks = remarks;
        self
    }

    /// Adds the received part of a reply. The model's reasoning (`thought`) is shown until the answer
    /// (`text`) begins.
    #[must_use]
    pub fn with_reply(mut self, thought: &'a str, text: &'a str) -> Self {
        (self.thought, self.reply) = (thought, text);
        self
    }

    /// Sets a function that draws answers, for an application that renders Markdown. It receives a text, the
    /// width in columns and the styles. Control characters in its lines are still replaced, and archived
    /// answers are still faint.
    #[must_use]
    pub fn with_answers(mut self, lines: fn(&str, usize, Theme) -> Vec<Line<'static>>) -> Self {
        self.answers = Some(lines);
        self
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the visible lines for this area. Limits the scroll position to the beginning of the
    /// transcript.
    fn in_sight(&self, area: Rect, state: &mut TranscriptState) -> Vec<Line<'static>> {
        let rows = usize::from(area.height);
        // Blocks are wrapped from the end, and the loop stops at the first visible line. Blocks far above are
        // never wrapped.
        let mut lines: Vec<Line<'static>> = Vec::new();
        for block in self.blocks().into_iter().rev() {
            lines.extend(self.lines(&block, area.width).into_iter().rev());
            if lines.len() >= state.below.saturating_add(rows) {
                break;
            }
        }
        state.page = rows;
        // If the loop reached the beginning, `lines` is complete and limits the position.
        state.below = state.below.min(lines.len().saturating_sub(rows));
        let mut lines: Vec<_> = lines.into_iter().skip(state.below).take(rows).collect();
        lines.reverse();
        lines
    }

    fn blocks(&self) -> Vec<Block<'a>> {
        let (mut blocks, mut remarks) = (Vec::new(), self.remarks.iter().peekable());
        for (place, row) in self.log.history().enumerate() {
            while let Some(remark) = remarks.next_if(|remark| remark.after <= place) {
                blocks.push(Block::Remark(remark));
            }
            blocks.push(Block::Row(row));
        }
        blocks.extend(remarks.map(Block::Remark));
        blocks.push(Block::Reply);
        blocks
    }

    fn lines(&self, block: &Block<'_>, columns: u16) -> Vec<Line<'static>> {
        let (theme, answers) = (self.theme, self.answers);
        let mut page = Page { theme, answers, columns: usize::from(columns).max(8), lines: Vec::new() };
        match block {
            Block::Row(HistoryRow::Message { id, message, is_archived, .. }) => {
                page.message(id, message, *is_archived);
            }
            Block::Row(HistoryRow::Compaction(record)) => {
                let marker = CompactionMarker::new(record).with_theme(self.theme);
                page.lines = [Line::default()].into_iter().chain(marker.lines(columns)).collect();
            }
            Block::Row(HistoryRow::Rewound(id)) => page.remark(&format!("rewound to before {id}"), false),
            Block::Row(HistoryRow::CompactionUndone(number)) => {
                page.remark(&format!("compaction {number} undone"), false);
            }
            Block::Remark(remark) => page.remark(&remark.text, remark.is_error),
            Block::Reply if self.reply.is_empty() && self.thought.is_empty() => {}
            Block::Reply => {
                page.lines.push(Line::default());
                if self.reply.is_empty() {
                    page.text(self.thought, self.theme.faint, "  ");
                }
                page.answer(self.reply, Style::new());
            }
        }
        page.lines
    }
}

impl StatefulWidget for Transcript<'_> {
    type State = TranscriptState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut TranscriptState) {
        draw_lines(area, buffer, &self.in_sight(area, state));
    }
}

enum Block<'a> {
    Row(HistoryRow<'a>),
    Remark(&'a TranscriptRemark),
    Reply,
}

/// The lines of one block. An empty line precedes each block.
struct Page {
    theme: Theme,
    answers: Option<AnswerLines>,
    columns: usize,
    lines: Vec<Line<'static>>,
}

impl Page {
    fn message(&mut self, id: &ItemId, message: &Message, is_archived: bool) {
        let (who, style) = match message.role() {
            Role::User => ("you", self.theme.heading),
            Role::Assistant if !message.text().is_empty() || !message.is_loaded() => {
                ("answer", self.theme.good)
            }
            _ => return,
        };
        let archived = if is_archived { ", archived" } else { "" };
        let id = Span::styled(format!("  {}{archived}", report::brief(id.as_str())), self.theme.faint);
        self.lines.extend([Line::default(), Line::from(vec![Span::styled(who, style), id])]);
        let text = if message.is_loaded() { message.text() } else { "[text not loaded from the store]" };
        let is_faint = is_archived || !message.is_loaded();
        let style = if is_faint { self.theme.faint } else { Style::new() };
        if message.role() == Role::Assistant && message.is_loaded() {
            self.answer(text, style);
        } else {
            self.text(text, style, "  ");
        }
    }

    /// Adds the text of an answer, drawn by the application's function if there is one.
    fn answer(&mut self, text: &str, style: Style) {
        let Some(lines) = self.answers else { return self.text(text, style, "  ") };
        // Two columns are reserved for the indentation.
        for mut line in lines(text, self.columns - 2, self.theme) {
            for span in &mut line.spans {
                span.content = report::printable(&span.content).into();
                span.style = span.style.patch(style);
            }
            line.spans.insert(0, Span::raw("  "));
            self.lines.push(line);
        }
    }

    fn remark(&mut self, text: &str, is_error: bool) {
        self.lines.push(Line::default());
        let (style, mark) = if is_error { (self.theme.alarm, "! ") } else { (self.theme.faint, "· ") };
        self.text(text, style, mark);
    }

    /// Adds a text in wrapped lines, with `mark` before the first line.
    fn text(&mut self, text: &str, style: Style, mark: &str) {
        let mut mark = mark;
        for line in text.lines() {
            for line in folded(&report::shown(line), self.columns - 2) {
                self.lines.push(Line::styled(format!("{mark}{line}"), style));
                mark = "  ";
            }
        }
    }
}
