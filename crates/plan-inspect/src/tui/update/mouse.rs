//! The mouse: a click selects, the wheel scrolls the pane under it.

use super::super::{
    ask::Question,
    layout::{SMALLEST, inside},
    state::{App, Pane, View},
    view,
};
use super::{compaction, moves::step, prompts::to_prompt, show, tries::apply_change};
use ratatui::{
    crossterm::event::{MouseButton, MouseEvent, MouseEventKind},
    layout::{Position, Rect},
};

/// Handles a mouse event.
pub(super) fn clicked(app: &mut App, mouse: MouseEvent) -> Vec<Question> {
    let at = Position::new(mouse.column, mouse.row);
    let by = match mouse.kind {
        MouseEventKind::ScrollDown => 3,
        MouseEventKind::ScrollUp => -3,
        MouseEventKind::Down(MouseButton::Left) | MouseEventKind::Drag(MouseButton::Left) => 0,
        _ => return Vec::new(),
    };
    // A screen that is too small shows only a message, so there is nothing to click.
    if app.size.width < SMALLEST.0 || app.size.height < SMALLEST.1 {
        return Vec::new();
    }
    // A click closes the popup and has no other effect, because the user cannot see the view below.
    if app.popup.is_some() && by == 0 {
        app.popup = None;
        return Vec::new();
    }
    let places = app.places();
    if app.view == View::Plan && app.popup.is_none() {
        let panes =
            [(places.sections, Pane::Sections), (places.items, Pane::Items), (places.detail, Pane::Detail)];
        if let Some((_, pane)) = panes.iter().find(|(area, _)| area.contains(at)) {
            app.pane = *pane;
        }
    }
    if by != 0 {
        step(app, by);
        return Vec::new();
    }
    if places.title.contains(at) {
        let tab = view::tab_at(app, at.x);
        return tab.map(|view| show(app, view)).unwrap_or_default();
    }
    if places.banner.contains(at) {
        return compaction::open(app);
    }
    if places.what_if.contains(at) {
        let Some(budget) = view::budget_at(app, places.what_if, at.x) else { return Vec::new() };
        return apply_change(app, |what_if| what_if.set_budget(budget));
    }
    // The index of the clicked line in a list, below the border and `used` heading lines.
    let row = |area: Rect, used: u16| usize::from(at.y.saturating_sub(area.y + 1 + used));
    match app.view {
        View::Plan if places.items.contains(at) => {
            app.list.select_line(at.y.saturating_sub(inside(places.items).y));
        }
        View::Plan if places.sections.contains(at) => app.section = row(places.sections, 0),
        View::Plan if places.strip.contains(at) => {
            if let Some(place) = view::prompt_at(app, at) {
                return to_prompt(app, |_, _| Some(place));
            }
        }
        View::Timeline => {
            let area = view::prompts_area(places.body);
            // The first line below the border is the heading.
            if area.contains(at) && at.y > area.y + 1 {
                app.prompt.selected = app.prompt.offset + row(area, 1);
            } else if let Some(place) = view::prompt_at(app, at) {
                app.prompt.selected = place;
            }
        }
        View::Config if places.body.contains(at) => {
            app.config.selected = app.config.offset + row(places.body, 1);
        }
        View::Items if places.body.contains(at) => {
            app.list.select_line(at.y.saturating_sub(inside(places.body).y));
        }
        _ => {}
    }
    Vec::new()
}
