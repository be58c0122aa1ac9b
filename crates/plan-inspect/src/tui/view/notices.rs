//! The notices of a plan, and the fixes for a prompt over budget.

use super::{
    super::{
        layout::{Places, inside},
        state::App,
    },
    pane,
};
use context_window_ratatui::{NoticeList, NoticeListState};
use ratatui::{Frame, layout::Rect, widgets::Clear};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let Some(plan) = app.plan() else {
        frame.render_widget(pane(app, "Notices · Esc closes", true), area);
        return;
    };
    let title = match app.notices.action(plan) {
        Some(_) => "Notices · h l choose, Enter tries, Esc closes",
        None => "Notices · Esc closes",
    };
    frame.render_widget(pane(app, title, true), area);
    let list = NoticeList::new(plan).with_theme(app.theme);
    frame.render_stateful_widget(list, inside(area), &mut app.notices.clone());
}

/// Returns the area of the notices, which fits their lines and the screen.
pub(crate) fn area(app: &App) -> Rect {
    let most = Places::popup(app.size);
    let columns = inside(most).width;
    let lines = app.plan().map_or(1, |plan| NoticeList::new(plan).height(columns, &app.notices));
    Places::popup_for(app.size, columns, lines.max(1))
}

/// Scrolls the selected notice into view.
pub(crate) fn scroll_notices(app: &App, state: &mut NoticeListState) {
    if let Some(plan) = app.plan() {
        NoticeList::new(plan).scroll_into(inside(area(app)), state);
    }
}
