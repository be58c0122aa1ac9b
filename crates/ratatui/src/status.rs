//! A status line with the use of the context window.

use super::{Theme, draw_lines};
use context_window::{
    text::plain::grouped,
    usage::{ContextUsage, Level},
};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget,
};

/// A status line: `ctx tokens: 61,204 / 112,000 (54 % of budget)`. It shows the tokens and the budget of the
/// last plan. If the full conversation approaches its limit, the percentage of that limit follows (two
/// figures, rule V2).
///
/// The line takes one row. Parts that do not fit are left out.
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::StatusLine;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(40)))?;
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// StatusLine::new(&plan.usage).render(area, &mut buffer);
/// # let line: String = (0..60).map(|x| buffer[(x, 0)].symbol()).collect();
/// assert!(line.starts_with("ctx tokens: ") && line.contains(" / 40 ("));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StatusLine<'a> {
    usage: &'a ContextUsage,
    theme: Theme,
}

impl<'a> StatusLine<'a> {
    /// Creates the line for these figures, from [`context_window::ContextPlan::usage`] or
    /// [`context_window::ContextWindowManager::usage`].
    #[must_use]
    pub fn new(usage: &'a ContextUsage) -> Self {
        Self { usage, theme: Theme::default() }
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the line, for use in another widget.
    #[must_use]
    pub fn line(&self) -> Line<'static> {
        let ContextUsage { prompt_tokens, budget, level, .. } = *self.usage;
        let over = prompt_tokens > budget && budget > 0;
        let own = self.theme.fill(prompt_tokens, budget);
        // A conversation at its limit is not an alarm while the prompt fits.
        let style = if own == self.theme.good && level > Level::Normal { self.theme.warning } else { own };
        let mut spans = vec![Span::styled(
            format!("ctx tokens: {} / {}", grouped(prompt_tokens), grouped(budget)),
            style,
        )];
        if budget > 0 {
            let percent = context_window_report::percent(prompt_tokens, budget);
            spans.push(Span::styled(format!(" ({percent} of budget)"), style));
        }
        if over {
            spans.push(Span::styled("  over budget", style));
        }
        spans.extend(conversation_level(self.usage).map(|level| Span::styled(format!("  {level}"), style)));
        Line::from(spans)
    }
}

/// Returns the usage of the full conversation in words: `conversation at 79 % of its limit`. Returns `None`
/// below the level `Approaching`.
pub(super) fn conversation_level(usage: &ContextUsage) -> Option<String> {
    let percent = context_window_report::usage_percent(usage);
    match usage.level {
        Level::Normal => None,
        Level::AtLimit if usage.percent > 100 => Some(format!("conversation over its limit ({percent})")),
        _ => Some(format!("conversation at {percent} of its limit")),
    }
}

impl Widget for StatusLine<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut line = self.line();
        // A part that fits completely is more useful than a longer one that is cut.
        while line.spans.len() > 1 && line.width() > usize::from(area.width) {
            line.spans.pop();
        }
        draw_lines(area, buffer, &[line]);
    }
}
