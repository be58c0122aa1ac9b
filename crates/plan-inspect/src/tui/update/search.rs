//! The filter, the selection of rows, and their order.

use super::super::state::{App, View};
use context_window_ratatui::{ItemListState, Shown};

/// Filters the rows of the list. An invalid filter leaves the rows unchanged and is reported in the foot.
pub(super) fn filter(app: &mut App, text: &str) {
    app.remember_item();
    match app.list.set_filter(text) {
        Ok(()) => {
            app.note.clear();
            app.relist();
        }
        Err(error) => app.note = error.to_string(),
    }
}

/// Changes the rows or their order. The selected item remains selected if it is still in the list.
pub(super) fn relist(app: &mut App, choose: impl FnOnce(&mut ItemListState)) {
    app.remember_item();
    choose(&mut app.list);
    app.relist();
}

/// Shows all, only included or only excluded items.
pub(super) fn choose(app: &mut App, shown: Shown) {
    if app.view != View::Items {
        app.open_view(View::Plan);
    }
    relist(app, |list| list.set_shown(shown));
}
