//! The plan view: overview, sections, items, detail and timeline.

use super::{
    super::{
        layout::{Places, inside},
        state::{App, Loadable, Pane, View},
    },
    detail, overview, pane, show_text, timeline,
};
use context_window_ratatui::{ItemList, SectionGauge};
use context_window_report as report;
use ratatui::{Frame, layout::Rect, text::Line};

const NOTHING: &str = "no matches: Esc clears the filter, a shows all items";

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, places: &Places) {
    overview::draw(frame, app, places.overview);
    sections(frame, app, places.sections);
    if places.is_wide() {
        timeline::strip(frame, app, places.strip);
        detail::draw(frame, app, places.detail);
    }
    items(frame, app, places.items);
}

fn sections(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let focused = app.pane == Pane::Sections;
    if area.is_empty() {
        return;
    }
    let inner = inside(area);
    let Some(plan) = app.plan() else {
        frame.render_widget(pane(app, "Sections", focused), area);
        return;
    };
    let section = &plan.sections[app.section];
    let cap = section.cap.map_or_else(|| "no cap".into(), |cap| format!("cap {}", report::grouped(cap)));
    let of = format!(
        "{}: share {}, {cap}, {} in, {} out",
        report::section(section.section),
        report::tenths(section.share),
        report::grouped(section.included),
        report::grouped(section.excluded)
    );
    let title = if focused { of } else { "Sections".into() };
    frame.render_widget(
        pane(app, &report::cut(&title, usize::from(area.width).saturating_sub(4)), focused),
        area,
    );
    for (at, (section, y)) in plan.sections.iter().zip(inner.top()..inner.bottom()).enumerate() {
        let line = Rect { y, height: 1, ..inner };
        frame.render_widget(super::head::sign(section.section), line);
        // The sign and a space come before the gauge.
        let gauge = Rect { x: line.x + 2, width: line.width.saturating_sub(2), ..line };
        frame.render_widget(SectionGauge::new(section).with_theme(app.theme), gauge);
        if focused && at == app.section {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
    // The rows below the three sections.
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
}

/// Draws the list of included and excluded items. The items view lists each message separately.
pub(super) fn items(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let focused = app.view == View::Items || app.pane == Pane::Items;
    let inner = inside(area);
    let title = app.listed().map_or_else(|| "Items".into(), |plan| ItemList::new(plan).title(&app.list));
    frame.render_widget(pane(app, &title, focused), area);
    let failed = match (&app.planned, &app.listed) {
        (Loadable::Failed(error), _) => Some(error),
        (_, Loadable::Failed(error)) if app.view == View::Items => Some(error),
        _ => None,
    };
    match (failed, app.known(), app.listed()) {
        (Some(error), ..) => show_text(frame, inner, error.clone(), app.theme.alarm),
        (None, Some(planned), Some(plan)) => {
            let texts = app.texts();
            let list = ItemList::new(plan).with_theme(app.theme).with_empty(NOTHING);
            let list = list.with_texts(&texts).with_effect(&planned.effect);
            frame.render_stateful_widget(list, inner, &mut app.list.clone());
        }
        _ => show_text(frame, inner, "planning ...", app.theme.faint),
    }
}
