//! The help, which lists all keys.

use super::{
    super::{
        keys::BINDINGS,
        layout::{Places, inside},
        state::App,
    },
    pane,
};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Clear,
};
use unicode_width::UnicodeWidthStr;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let inner = inside(area);
    let hidden = last_line(area) > 0;
    let title = if hidden { "Keys · j k scroll, any other key closes" } else { "Keys · any key closes" };
    frame.render_widget(pane(app, title, true), area);
    let from = usize::from(app.scrolled.min(last_line(area)));
    for (binding, y) in BINDINGS.iter().skip(from).zip(inner.top()..inner.bottom()) {
        let fill = " ".repeat(13_usize.saturating_sub(binding.shown.width()));
        let keys = Span::styled(format!(" {}{fill}", binding.shown), app.theme.heading);
        let line: Line<'_> = [keys, Span::raw(binding.does)].into_iter().collect();
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// Returns the area of the help, which fits the table of keys and the screen.
pub(crate) fn area(screen: Rect) -> Rect {
    let columns = BINDINGS.iter().map(|binding| 15 + binding.does.width()).max().unwrap_or_default();
    let lines = u16::try_from(BINDINGS.len()).unwrap_or(u16::MAX);
    Places::popup_for(screen, u16::try_from(columns).unwrap_or(u16::MAX), lines)
}

/// Returns the maximum scroll position of the help, in lines.
pub(super) fn last_line(area: Rect) -> u16 {
    let lines = u16::try_from(BINDINGS.len()).unwrap_or(u16::MAX);
    lines.saturating_sub(inside(area).height)
}
