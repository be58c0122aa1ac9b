//! A bar for one section of the budget.

use super::{Theme, draw_bar};
use context_window::{plan::SectionUse, text::plain::grouped};
use context_window_report as report;
use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};

/// A gauge of the tokens that a section uses of its budget: `Conversation ████░░ 31,004 / 60,000 52 % 61 in
/// 153 out`.
///
/// More than 100 % is valid and is marked with `^`: a section may use tokens that other sections leave free
/// (free tokens, rule B6).
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::SectionGauge;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(40)))?;
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// for (section, row) in plan.sections.iter().zip(area.rows()) {
///     SectionGauge::new(section).render(row, &mut buffer);
/// }
/// # let line: String = (0..60).map(|x| buffer[(x, 1)].symbol()).collect();
/// assert!(line.starts_with("Conversation "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SectionGauge<'a> {
    section: &'a SectionUse,
    theme: Theme,
}

impl<'a> SectionGauge<'a> {
    /// Creates the gauge of a section, one of [`context_window::ContextPlan::sections`].
    #[must_use]
    pub fn new(section: &'a SectionUse) -> Self {
        Self { section, theme: Theme::default() }
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }
}

impl Widget for SectionGauge<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        const COUNTS_FROM: u16 = 60;
        let SectionUse { section, budget, used, included, excluded, .. } = *self.section;
        if area.is_empty() {
            return;
        }
        // The counts would leave no room for the bar in a narrow area.
        let counts = match area.width {
            COUNTS_FROM.. => format!(" {:>5} in {:>6} out", grouped(included), grouped(excluded)),
            _ => String::new(),
        };
        let text = format!(
            "{:>7} / {:<7} {:>6}{counts}",
            grouped(used),
            grouped(budget),
            report::percent(used, budget)
        );
        // A section that uses tokens of others also has a sign, because colour may be missing (rule B6).
        let borrowed = if used > budget { "^" } else { " " };
        let text = text + borrowed;
        let style = if used > budget { self.theme.warning } else { self.theme.section(section) };
        draw_bar(area, buffer, (used, budget), style, &format!("{:<14}", report::section(section)), &text);
    }
}
