//! The differences between two plans, with the cause of each difference.

use super::{
    super::{
        layout::inside,
        state::{App, Comparison, Loadable},
    },
    pane, show_text,
};
use context_window::analysis::Diff;
use context_window_report as report;
use ratatui::{Frame, layout::Rect, text::Line};
use unicode_width::UnicodeWidthStr;

/// The gap between two columns.
const GAP: &str = "  ";

/// The minimum width of the item column.
const LEAST: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let title = report::cut(&title(app), usize::from(area.width).saturating_sub(4));
    frame.render_widget(pane(app, &title, true), area);
    let inner = inside(area);
    let diff = match &app.diff {
        Loadable::Answered(diff) => diff,
        Loadable::Asked => return show_text(frame, inner, "comparing ...", app.theme.faint),
        Loadable::Failed(error) => return show_text(frame, inner, error.clone(), app.theme.alarm),
        Loadable::Nothing => {
            let nothing = "No previous prompt. Try a change (< > p t), or start with --against FILE.";
            return show_text(frame, inner, nothing, app.theme.faint);
        }
    };
    if diff.changes.is_empty() {
        let said = match (&diff.tools, diff.prefix.as_ref().and_then(|prefix| prefix.cause)) {
            (Some(change), _) if change.is_order_only() => {
                "the tools are in another order: nothing is cached"
            }
            (Some(_), _) => "the tools differ: nothing is cached",
            (None, Some(_)) => "no item changed its state or text; their order differs",
            (None, None) => "no differences",
        };
        return show_text(frame, inner, said, app.theme.good);
    }
    let columns = columns(diff, inner.width.into());
    let row = |cells: [String; 5]| -> String {
        let cells = cells.iter().zip(columns).filter(|(_, width)| *width > 0);
        cells.map(|(cell, width)| report::fitted(cell, width) + GAP).collect()
    };
    frame.render_widget(
        Line::styled(row(report::ChangeText::HEADINGS.map(str::to_owned)), app.theme.heading),
        inner,
    );
    // The last line shows the number of changes.
    let last = inner.bottom().saturating_sub(1);
    let rows = (app.differences.offset..diff.changes.len()).zip(inner.top() + 1..last);
    let rows: Vec<_> =
        rows.map(|(place, y)| (place, y, report::change(&diff.changes[place]).into_cells())).collect();
    let ids =
        report::cut_ids(rows.iter().map(|(place, _, cells)| (place + 1, cells[0].as_str())), columns[0]);
    for ((place, y, mut cells), id) in rows.into_iter().zip(ids) {
        let line = Rect { y, height: 1, ..inner };
        cells[0] = id;
        frame.render_widget(Line::raw(row(cells)), line);
        if place == app.differences.selected {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
    let changes = if diff.changes.len() == 1 { "change" } else { "changes" };
    let foot = Rect { y: last, height: 1, ..inner };
    frame.render_widget(Line::styled(format!("{} {changes}", diff.changes.len()), app.theme.faint), foot);
}

/// Returns the width of each column. Each is as wide as its widest text, but the item column shrinks first,
/// and the last visible column is cut.
fn columns(diff: &Diff, room: usize) -> [usize; 5] {
    let mut columns = report::ChangeText::HEADINGS.map(UnicodeWidthStr::width);
    for change in &diff.changes {
        for (column, cell) in columns.iter_mut().zip(report::change(change).into_cells()) {
            *column = cell.width().max(*column);
        }
    }
    let beside =
        |columns: [usize; 5], to: usize| columns[1..to].iter().map(|column| column + GAP.len()).sum();
    // The cause is more important than the full text of the two states.
    if room < LEAST.saturating_add(beside(columns, 4)) {
        (columns[1], columns[2]) = (columns[1].min(LEAST), columns[2].min(LEAST));
    }
    columns[0] = columns[0].min(room.saturating_sub(beside(columns, 5)).max(LEAST).min(room));
    let mut used = 0;
    for column in &mut columns {
        let left = room.saturating_sub(used);
        // A column that is too narrow to be read is omitted.
        if *column > left {
            *column = if left < LEAST { 0 } else { left };
        }
        used += *column + GAP.len();
    }
    columns
}

fn title(app: &App) -> String {
    let this = if app.what_if.changes().is_empty() { "" } else { " with what-if changes" };
    let what = match app.comparison() {
        Some(Comparison::Untried) => "what-if vs. current".to_owned(),
        Some(Comparison::Other) => format!("this session{this} vs. --against"),
        Some(Comparison::Before) | None => format!("this prompt{this} vs. the previous one"),
    };
    let others = if app.comparisons().len() > 1 { " · d next comparison" } else { "" };
    format!("Diff · {what}{others}")
}
