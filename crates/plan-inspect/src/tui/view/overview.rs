//! The composition of the prompt, or the fixes if it is over budget.

use super::{
    super::{layout::inside, state::App},
    pane,
};
use context_window::ContextPlan;
use context_window_ratatui::{PromptGrid, Theme};
use context_window_report as report;
use ratatui::{Frame, layout::Rect, text::Line};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if area.is_empty() {
        return;
    }
    let Some(plan) = app.plan() else {
        frame.render_widget(pane(app, "Contents of the prompt", false), area);
        return;
    };
    let Some(overflow) = &plan.overflow else {
        frame.render_widget(pane(app, "Contents of the prompt", false), area);
        frame.render_widget(PromptGrid::new(plan).with_theme(app.theme), inside(area));
        return;
    };
    let over = report::grouped(overflow.tokens);
    let title = format!("Over budget by {over}: f tries a fix");
    let block = pane(app, &report::cut(&title, usize::from(area.width).saturating_sub(4)), false);
    frame.render_widget(block.border_style(app.theme.alarm).title_style(app.theme.alarm), area);
    let inner = inside(area);
    let lines = fixes(plan, app.theme, inner.width.into());
    for (line, y) in lines.iter().zip(inner.top()..inner.bottom()) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
    // One blank line separates the fixes from the grid.
    let used = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(1);
    // The grid is drawn only as a whole, because a part of it would be misleading.
    if inner.height >= used + PromptGrid::ROWS {
        let below = Rect { y: inner.y + used, height: inner.height - used, ..inner };
        frame.render_widget(PromptGrid::new(plan).with_theme(app.theme), below);
    }
}

/// Returns the lines that name the conflicting items and each fix for the overflow.
fn fixes(plan: &ContextPlan, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let Some(overflow) = &plan.overflow else { return Vec::new() };
    let mut lines = vec![format!("these alone exceed the budget: {}", report::conflict(overflow))];
    lines
        .extend(overflow.remedies.iter().map(|remedy| format!("- {}", report::remedy(remedy, &plan.limits))));
    let mut styled = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        for line in report::wrapped(&report::printable(&line), columns.max(1)) {
            styled.push(if at == 0 { Line::styled(line, theme.alarm) } else { Line::raw(line) });
        }
    }
    styled
}
