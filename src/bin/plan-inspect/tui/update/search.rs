//! Which rows are shown, and texts that are looked for.

use super::super::{
    filter::Filter,
    search::Search,
    state::{App, Show, View},
};
use super::moves::step;

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
    match Filter::read(text) {
        Ok(filter) => {
            let selected = app.row_id().map(|(id, document)| (id.to_owned(), document));
            app.list.filter = filter;
            text.clone_into(&mut app.list.typed);
            app.note.clear();
            app.list_anew(selected.as_ref());
        }
        Err(error) => app.note = error,
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

pub(super) fn list_anew(app: &mut App) {
    let selected = app.row_id().map(|(id, document)| (id.to_owned(), document));
    app.list_anew(selected.as_ref());
}

pub(super) fn choose(app: &mut App, show: Show) {
    app.view = View::Plan;
    app.list.show = show;
    list_anew(app);
}
