//! All effective options, with the layer that set each of them.

use super::{
    super::{layout::inside, state::App},
    pane,
};
use context_window::config::LoadedConfig;
use context_window_report as report;
use ratatui::{Frame, layout::Rect, style::Style, text::Line};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(pane(app, "Config · effective options and their origins", true), area);
    let mut inner = inside(area);
    if let Some(plan) = app.plan() {
        let limits = plan.limits;
        let text = format!(
            "limits ({}): context length {}, reply reserve {}, safety margin {}, prompt budget {}",
            plan.limits_source.name(),
            report::grouped(limits.model_context_len),
            report::grouped(limits.max_completion_tokens),
            report::grouped(limits.safety_buffer),
            report::grouped(plan.prompt_budget)
        );
        frame.render_widget(Line::styled(text, app.theme.heading), Rect { height: 1, ..inner });
    }
    // The first line shows the limits.
    inner = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    let settings = app.subject.config.config.settings();
    let rows = LoadedConfig::keys().enumerate().skip(app.config.offset).zip(inner.top()..inner.bottom());
    for ((at, key), y) in rows {
        let origin = app.subject.config.origin(key);
        let value = settings.get(key).map_or("not set", String::as_str);
        // Options that are not defaults are highlighted.
        let style = if origin == "default" { Style::new() } else { app.theme.heading };
        let text = format!("{key:<38} {:<22} {}", report::brief(value), report::printable(&origin));
        let line = Rect { y, height: 1, ..inner };
        frame.render_widget(Line::styled(text, style), line);
        if at == app.config.selected {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
}
