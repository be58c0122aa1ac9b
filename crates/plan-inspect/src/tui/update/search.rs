//! Which rows are shown.

use super::super::state::{App, View};
use context_window_ratatui::{ItemListState, Shown};

/// Filters the plan's rows.
pub(super) fn filter(app: &mut App, text: &str) {
    app.remember_item();
    match app.list.set_filter(text) {
        Ok(()) => {
            app.note.clear();
            app.list_anew();
        }
        Err(error) => app.note = error.to_string(),
    }
}

/// Chooses other rows, or another order; the selected item stays selected where it is still there.
pub(super) fn list_anew(app: &mut App, choose: impl FnOnce(&mut ItemListState)) {
    app.remember_item();
    choose(&mut app.list);
    app.list_anew();
}

pub(super) fn choose(app: &mut App, shown: Shown) {
    if app.view != View::Items {
        app.go_to(View::Plan);
    }
    list_anew(app, |list| list.set_shown(shown));
}
