//! Movement of the selection and the focus.

use super::super::{
    ask::Question,
    keys::Action,
    layout::inside,
    state::{App, Pane, Popup, View},
    view,
};
use super::compaction;
use context_window_ratatui::Move;
use std::mem;

/// Moves the focus to the next or previous pane. A narrow screen has no detail pane.
pub(super) fn turn_pane(app: &mut App, forward: bool) {
    let panes = [Pane::Sections, Pane::Items, Pane::Detail];
    let panes = if app.places().is_wide() { &panes[..] } else { &panes[..2] };
    let at = panes.iter().position(|pane| *pane == app.pane).unwrap_or_default();
    // Adding the number of panes avoids an underflow.
    let next = if forward { at + 1 } else { at + panes.len() - 1 };
    app.pane = panes[next % panes.len()];
}

/// Returns the number of lines of the current list, at least 1.
pub(super) fn page(app: &App) -> isize {
    let places = app.places();
    let area = if app.view == View::Plan { places.items } else { places.body };
    isize::try_from(inside(area).height.saturating_sub(1)).unwrap_or(1).max(1)
}

/// Moves the selection or scroll position of the focused pane by a number of rows.
pub(super) fn step(app: &mut App, by: isize) {
    // `isize::MIN` means the first row.
    let moved = |at: usize| if by == isize::MIN { 0 } else { at.saturating_add_signed(by) };
    let in_list = if by == isize::MIN { Move::First } else { Move::By(by) };
    if app.popup == Some(Popup::Notices) {
        app.notices.apply_move(in_list);
        let mut state = mem::take(&mut app.notices);
        view::scroll_notices(app, &mut state);
        app.notices = state;
        return;
    }
    let in_pane = app.popup.is_none() && app.pane == Pane::Detail && app.view == View::Plan;
    let is_item = app.row().is_some();
    if is_item && (in_pane || app.popup == Some(Popup::Detail)) {
        // The state is taken out, because `scroll_detail` borrows the whole app.
        let mut state = mem::take(&mut app.detail);
        view::scroll_detail(app, &mut state);
        state.apply_move(in_list);
        app.detail = state;
        return;
    }
    if app.popup.is_some() {
        // A jump to the first or last line exceeds the range of lines.
        let by = i16::try_from(by).unwrap_or(if by < 0 { i16::MIN } else { i16::MAX });
        app.scrolled = app.scrolled.saturating_add_signed(by).min(view::last_line(app));
        return;
    }
    match app.view {
        View::Plan if app.pane == Pane::Sections => app.section = moved(app.section),
        View::Plan | View::Items => app.list.apply_move(in_list),
        View::Timeline => app.prompt.selected = moved(app.prompt.selected),
        View::Diff => app.differences.selected = moved(app.differences.selected),
        View::Config => app.config.selected = moved(app.config.selected),
    }
}

/// Handles left and right, which depend on the popup and the view.
pub(super) fn sideways(app: &mut App, right: bool) -> Vec<Question> {
    match (app.popup, app.view) {
        (Some(Popup::Notices), _) if right => app.notices.next_action(),
        (Some(Popup::Notices), _) => app.notices.previous_action(),
        // There are only two actions, so either direction leads to the other.
        (Some(Popup::Compaction), _) => return compaction::other(app),
        (_, View::Plan) => turn_pane(app, right),
        (_, View::Timeline) => step(app, if right { 1 } else { -1 }),
        _ => {}
    }
    Vec::new()
}

/// Checks if an action moves up or down.
pub(super) fn scrolls(action: Action) -> bool {
    use Action::{Bottom, Down, HalfDown, HalfUp, PageDown, PageUp, Top, Up};
    matches!(action, Down | Up | PageDown | PageUp | HalfDown | HalfUp | Top | Bottom)
}
