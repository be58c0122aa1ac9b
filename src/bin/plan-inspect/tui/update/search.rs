//! Which rows are shown, and texts that are looked for.

use super::super::{
    search::Search,
    state::{App, View},
};
use super::moves::step;
use context_window::widgets::{ItemListState, Shown};

/// Filters the plan's rows, or looks for a text in the log.
pub(super) fn search(app: &mut App, text: &str) {
    if app.view == View::Log {
        app.sought = Search::new(text);
        app.note.clear();
        // Every letter that is typed looks again from where it began.
        app.log.selected = app.sought_from.min(app.subject.rows.len().saturating_sub(1));
        if !text.is_empty() {
            find(app, app.log.selected, true);
        }
        return;
    }
    filter(app, text);
}

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

/// Selects the first row of the log from here on (or back) that holds what is looked for.
pub(super) fn find(app: &mut App, from: usize, forward: bool) {
    let rows = &app.subject.rows;
    let holds = |at: &usize| app.subject.any_text(&rows[*at], |text| app.sought.is_in(text));
    let found = if forward {
        (from..rows.len()).chain(0..from.min(rows.len())).find(holds)
    } else {
        (0..=from.min(rows.len().saturating_sub(1))).rev().find(holds)
    };
    match found {
        Some(at) => app.log.selected = at,
        None => app.note = format!("no match for `{}` in the log", app.sought.text()),
    }
}

pub(super) fn hit(app: &mut App, forward: bool) {
    if app.view != View::Log || app.sought.is_empty() {
        step(app, if forward { 1 } else { -1 });
    } else if forward {
        find(app, app.log.selected + 1, true);
    } else if let Some(from) = app.log.selected.checked_sub(1) {
        find(app, from, false);
    }
}

/// Chooses other rows, or another order; the selected item stays selected where it is still there.
pub(super) fn list_anew(app: &mut App, choose: impl FnOnce(&mut ItemListState)) {
    app.remember_item();
    choose(&mut app.list);
    app.list_anew();
}

pub(super) fn choose(app: &mut App, shown: Shown) {
    app.view = View::Plan;
    list_anew(app, |list| list.show(shown));
}
