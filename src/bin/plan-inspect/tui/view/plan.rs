//! The plan: sections, items, detail, and the prompts before it.

use super::{
    super::{
        layout::{Places, inside},
        state::{App, Column, Loadable, Pane, Show},
    },
    detail, pane, show_text, timeline,
};
use context_window::{
    report,
    widgets::{ContextPreview, SectionGauge},
};
use ratatui::{Frame, layout::Rect, text::Line};
use std::fmt::Write as _;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, places: &Places) {
    sections(frame, app, places.sections);
    if places.is_wide() {
        timeline::strip(frame, app, places.strip);
        detail::draw(frame, app, places.detail);
    }
    items(frame, app, places.items);
}

fn sections(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let focused = app.pane == Pane::Sections;
    let block = pane(app, "Sections", focused);
    let inner = inside(area);
    frame.render_widget(block, area);
    let Some(plan) = app.plan() else { return };
    for (at, (section, y)) in plan.sections.iter().zip(inner.top()..inner.bottom()).enumerate() {
        let line = Rect { y, height: 1, ..inner };
        frame.render_widget(super::head::sign(section.section), line);
        let gauge = Rect { x: line.x + 2, width: line.width.saturating_sub(2), ..line };
        frame.render_widget(SectionGauge::new(section).with_theme(app.theme), gauge);
        if focused && at == app.section {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
    let mut y = inner.top() + 3;
    let mut row = |text: String| {
        if y < inner.bottom() {
            frame.render_widget(Line::raw(text), Rect { y, height: 1, ..inner });
        }
        y += 1;
    };
    let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
    row(format!("# {:<14}{overhead:>7}", "Overhead"));
    row(format!("· {:<14}{:>7}", "Free", report::grouped(plan.left_over())));
    let section = &plan.sections[app.section];
    let cap = section.cap.map_or_else(|| "no cap".into(), |cap| format!("cap {}", report::grouped(cap)));
    row(String::new());
    row(format!("{}: share {}, {cap}", report::section(section.section), report::tenths(section.share)));
    row(format!("{} in, {} out", report::grouped(section.included), report::grouped(section.excluded)));
}

fn items(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let focused = app.pane == Pane::Items;
    let inner = inside(area);
    let mut title = "Items".to_owned();
    if let Some(plan) = app.plan() {
        let out: u64 = plan.excluded.iter().map(|row| row.count).sum();
        let held = report::grouped(plan.included.len() as u64);
        let _ = write!(title, " · in {held} · out {}", report::grouped(out));
    }
    match app.list.show {
        Show::All => {}
        Show::In => title += " · only in",
        Show::Out => title += " · only out",
    }
    if !app.list.typed.is_empty() {
        let _ = write!(title, " · filter {}", report::brief(&app.list.typed));
    }
    if app.list.column != Column::Order || app.list.reversed {
        let turned = if app.list.reversed { ", reversed" } else { "" };
        let _ = write!(title, " · sorted by {}{turned}", app.list.column.name());
    }
    frame.render_widget(pane(app, &title, focused), area);
    match &app.planned {
        Loadable::Answered(planned) => {
            let preview = ContextPreview::new(&planned.plan).with_rows(&app.list.rows).with_theme(app.theme);
            let nothing = preview.is_empty();
            frame.render_stateful_widget(preview, inner, &mut app.list.place.clone());
            if nothing {
                let below = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
                show_text(
                    frame,
                    below,
                    "no matches: Esc clears the filter, a shows all items; 5 lists every message",
                    app.theme.faint,
                );
            }
        }
        Loadable::Failed(error) => show_text(frame, inner, error.clone(), app.theme.alarm),
        Loadable::Nothing | Loadable::Asked => show_text(frame, inner, "planning ...", app.theme.faint),
    }
}
