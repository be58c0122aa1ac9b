//! A bar of the context window's usage.

use super::{Theme, draw_bar};
use context_window::{
    text::plain::grouped,
    usage::{ContextUsage, Level},
};
use context_window_report as report;
use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};

/// A usage bar of up to two rows. The first row has the tokens of the full conversation against its limit, in
/// the style of its level. The second row, if the area has one, has the tokens of the last plan against its
/// budget. The two figures are never merged into one (two figures, rule U2).
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::UsageBar;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(40)))?;
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// UsageBar::new(&plan.usage).render(area, &mut buffer); // two rows: conversation and prompt
/// # let line: String = (0..60).map(|x| buffer[(x, 1)].symbol()).collect();
/// assert!(line.starts_with("sent "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct UsageBar<'a> {
    usage: &'a ContextUsage,
    theme: Theme,
}

impl<'a> UsageBar<'a> {
    /// Creates the bar of these figures.
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
}

impl Widget for UsageBar<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        const LONG_LABELS: u16 = 60;
        let usage = *self.usage;
        let ContextUsage { prompt_tokens, budget, conversation_tokens, limit, level, .. } = usage;
        if area.is_empty() {
            return;
        }
        // The sign shows the level on screens without colour.
        let sign = match level {
            Level::Normal => "",
            Level::Approaching => " !",
            Level::AtLimit => " !!",
        };
        // A limit of 0 has no percentage.
        let all = match limit {
            0 => report::tokens(conversation_tokens),
            _ => {
                let (tokens, percent) = (report::tokens(conversation_tokens), report::usage_percent(&usage));
                format!("{tokens} / {} {percent}{sign}", grouped(limit))
            }
        };
        // In a narrow area, the bar is more useful than the model's context length.
        let sent = if area.width < LONG_LABELS {
            format!("{} / {}", grouped(prompt_tokens), grouped(budget))
        } else {
            usage.to_string()
        };
        let sent = format!("{sent} {}", report::percent(prompt_tokens, budget));
        // Equal text widths give both bars the same length, so that they can be compared.
        let width = all.len().max(sent.len());
        let style = self.theme.level(level);
        let [full, of_plan] = if area.width < LONG_LABELS {
            ["full ", "sent "]
        } else {
            ["full conversation ", "sent              "]
        };
        draw_bar(area, buffer, (conversation_tokens.tokens, limit), style, full, &format!("{all:<width$}"));
        if area.height > 1 {
            let below = Rect { y: area.y + 1, height: 1, ..area };
            let style = self.theme.fill(prompt_tokens, budget);
            draw_bar(below, buffer, (prompt_tokens, budget), style, of_plan, &format!("{sent:<width$}"));
        }
    }
}
