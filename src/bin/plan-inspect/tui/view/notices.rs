//! What the reader of a plan should know, and what would make an overflowing one fit.

use super::{super::state::App, pane};
use context_window::report;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Text},
    widgets::{Clear, Paragraph, Wrap},
};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let text = Paragraph::new(text(app)).wrap(Wrap { trim: false }).scroll((app.scrolled, 0));
    frame.render_widget(text.block(pane(app, "Notices · Esc closes", true)), area);
}

pub(super) fn text(app: &App) -> Text<'static> {
    let Some(plan) = app.plan() else { return Text::default() };
    let mut lines: Vec<Line<'static>> = Vec::new();
    if let Some(overflow) = &plan.overflow {
        let over = format!("over budget by {} tokens", report::grouped(overflow.tokens));
        lines.push(Line::styled(over, app.theme.alarm));
        lines.push(Line::raw(format!("required items: {}", report::largest(plan))));
        lines.push(Line::raw(format!("these alone exceed the budget: {}", report::conflict(overflow))));
        lines.push(Line::styled("any one of these makes it fit:", app.theme.heading));
        for remedy in &overflow.remedies {
            lines.push(Line::raw(format!("  {}", report::remedy(remedy, &plan.limits))));
        }
        lines.push(Line::raw(""));
    }
    for notice in &plan.notices {
        lines.push(Line::raw(format!("{:<3} {}", notice.rule(), report::sentence(notice))));
    }
    if lines.is_empty() {
        lines.push(Line::styled("no notices", app.theme.good));
    }
    Text::from(lines)
}
