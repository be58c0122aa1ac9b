//! Drawing of the state. Nothing here changes the state.

mod compaction;
mod config;
mod diff;
mod head;
mod help;
mod notices;
mod overview;
mod detail;
mod timeline;
mod plan;

use super::{
    layout::{Places, SMALLEST},
    state::{App, Popup, View},
};
use context_window_ratatui::BudgetSlider;
use context_window_report as report;
pub(super) use detail::{last_line, scroll_detail};
pub(super) use head::tab_at;
pub(super) use notices::scroll_notices;
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Block, Paragraph},
};
pub(super) use timeline::{prompt_at, prompts_area};

pub(crate) fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        for (y, line) in (area.top()..area.bottom()).zip(too_small(area)) {
            frame.render_widget(Line::raw(line), Rect { y, height: 1, ..area });
        }
        return;
    }
    let places = app.places();
    head::draw(frame, app, &places);
    if let Some((banner, _)) = app.banner() {
        // Widgets may change their state, but drawing must not, so they get a clone.
        frame.render_stateful_widget(banner, places.banner, &mut app.banner.clone());
    }
    match app.view {
        View::Plan => plan::draw(frame, app, &places),
        View::Timeline => timeline::draw(frame, app, places.body),
        View::Diff => diff::draw(frame, app, places.body),
        View::Config => config::draw(frame, app, places.body),
        View::Items => plan::items(frame, app, places.body),
    }
    what_if(frame, app, places.what_if);
    head::foot(frame, app, places.keys);
    match app.popup {
        Some(Popup::Help) => help::draw(frame, app, help::area(area)),
        Some(Popup::Notices) => notices::draw(frame, app, notices::area(app)),
        Some(Popup::Compaction) => compaction::draw(frame, app, Places::popup(area)),
        Some(Popup::Detail) => detail::popup(frame, app, detail::popup_area(app)),
        None => {}
    }
}

/// Returns the lines of the message for a screen that is too small: the longest text whose words fit.
fn too_small(area: Rect) -> Vec<String> {
    let (columns, rows) = SMALLEST;
    let texts = [
        format!("terminal too small: {}x{}, expected {columns}x{rows}", area.width, area.height),
        format!("too small: expected {columns}x{rows}"),
        format!("needs {columns}x{rows}"),
        format!("{columns}x{rows}"),
    ];
    let width = usize::from(area.width).max(1);
    let fits = |lines: &Vec<String>| lines.len() <= area.height.into() && !breaks_a_word(lines, &texts);
    let mut wrapped = texts.iter().map(|text| report::wrapped(text, width));
    wrapped.find(fits).unwrap_or_default()
}

/// Checks if lines contain a part of a word.
fn breaks_a_word(lines: &[String], texts: &[String]) -> bool {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let parts: Vec<String> = lines.iter().flat_map(|line| words(line)).collect();
    !texts.iter().any(|text| words(text) == parts)
}

/// Draws the budget slider and the effect of the tried changes.
fn what_if(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if let Some(planned) = app.known() {
        let slider = BudgetSlider::new(&app.what_if).with_effect(&planned.effect);
        frame.render_widget(slider.with_theme(app.theme), area);
    }
}

/// Returns the budget at a column of the slider, if there is one.
pub(super) fn budget_at(app: &App, area: Rect, x: u16) -> Option<u64> {
    app.known().and_then(|_| BudgetSlider::new(&app.what_if).budget_at(area, x))
}

/// Returns the border of a pane. Brackets in the title mark the focus, so that it is visible without colour.
fn pane(app: &App, title: &str, focused: bool) -> Block<'static> {
    let title = if focused { format!("[{title}]") } else { format!(" {title} ") };
    let style = if focused { app.theme.heading } else { app.theme.faint };
    Block::bordered().title(title).border_style(style).title_style(app.theme.heading)
}

/// Draws spans in a line, from the first on, as long as they fit completely. The first one is always drawn.
fn render_whole(frame: &mut Frame<'_>, spans: Vec<Span<'_>>, area: Rect) {
    let mut room = usize::from(area.width);
    let whole = spans.into_iter().enumerate().take_while(|(at, span)| {
        let fits = span.width() <= room || *at == 0;
        room = room.saturating_sub(span.width());
        fits
    });
    frame.render_widget(whole.map(|(_, span)| span).collect::<Line<'_>>(), area);
}

/// Draws a message in place of the contents of an area.
fn show_text(frame: &mut Frame<'_>, area: Rect, text: impl Into<String>, style: Style) {
    frame.render_widget(
        Paragraph::new(text.into()).style(style).wrap(ratatui::widgets::Wrap { trim: true }),
        area,
    );
}
