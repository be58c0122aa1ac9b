//! One line that says how full the window is.

use super::{Theme, draw_lines};
use context_window::{
    text::plain::{grouped, per_cent},
    usage::{ContextUsage, Level},
};
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget,
};

/// `ctx tokens: 61,204 / 112,000 of 128,000 (54 % of budget)`: what the last plan sends, of what it may send, of the model's
/// context length. Where the conversation as a whole
/// comes near its limit, that follows as a figure of its own (rule U2), in the level's style.
///
/// One row; what has no room is left out.
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::StatusLine;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::budget(40)))?;
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// StatusLine::new(&plan.usage).render(area, &mut buffer);
/// # let line: String = (0..60).map(|x| buffer[(x, 0)].symbol()).collect();
/// assert!(line.starts_with("ctx tokens: ") && line.contains(" / 40 of "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StatusLine<'a> {
    usage: &'a ContextUsage,
    theme: Theme,
}

impl<'a> StatusLine<'a> {
    /// The line of these figures: [`context_window::ContextPlan::usage`], or what
    /// [`context_window::ContextWindowManager::usage`] says.
    #[must_use]
    pub fn new(usage: &'a ContextUsage) -> Self {
        Self { usage, theme: Theme::default() }
    }

    /// Draws in these styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// The line, to be put somewhere else.
    #[must_use]
    pub fn line(&self) -> Line<'static> {
        let ContextUsage {
            prompt_tokens,
            budget,
            context_len,
            conversation_tokens,
            limit,
            percent,
            level,
            ..
        } = *self.usage;
        let over = prompt_tokens > budget && budget > 0;
        let own = self.theme.fill(prompt_tokens, budget);
        // Whichever is the worse of the two says it.
        let style = if own == self.theme.good || level == Level::AtLimit && !over {
            self.theme.level(level)
        } else {
            own
        };
        let sent = format!("ctx tokens: {} / {}", grouped(prompt_tokens), grouped(budget));
        let mut spans = vec![Span::styled(sent, style)];
        if context_len > 0 {
            spans.push(Span::styled(format!(" of {}", grouped(context_len)), style));
        }
        if budget > 0 {
            let percent = per_cent(prompt_tokens, budget);
            spans.push(Span::styled(format!(" ({percent} % of budget)"), style));
        }
        if over {
            spans.push(Span::styled("  over budget", style));
        }
        let word = match level {
            Level::Normal => return Line::from(spans),
            Level::Approaching => "approaching the limit",
            Level::AtLimit if percent > 100 => "over the limit",
            Level::AtLimit => "at the limit",
        };
        let all = format!(
            "  {word}: full conversation {} of {} ({percent} %)",
            report::tokens(conversation_tokens),
            grouped(limit)
        );
        spans.push(Span::styled(all, style));
        Line::from(spans)
    }
}

impl Widget for StatusLine<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut line = self.line();
        // What is whole is worth more than what is cut.
        while line.spans.len() > 1 && line.width() > usize::from(area.width) {
            line.spans.pop();
        }
        draw_lines(area, buffer, &[line]);
    }
}
