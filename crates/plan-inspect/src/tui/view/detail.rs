//! The detail of an item of the plan, or of a compaction of the session.

use super::{
    super::{
        layout::{Places, inside},
        state::{App, Loadable, Pane, Popup},
    },
    pane,
};
use context_window_ratatui::{
    CompactionMarker, DetailState, ItemDetail, ItemExplanation, ItemTexts, ListRow,
};
use context_window_report as report;
use ratatui::{
    Frame,
    layout::Rect,
    text::Text,
    widgets::{Clear, Paragraph},
};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(pane(app, &title(app), app.pane == Pane::Detail), area);
    content(frame, app, inside(area));
}

pub(super) fn popup(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    frame.render_widget(pane(app, &format!("{} · Esc closes", title(app)), true), area);
    content(frame, app, inside(area));
}

fn content(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let texts = app.texts();
    if let Some(detail) = detail(app, &texts) {
        frame.render_stateful_widget(detail, area, &mut app.detail.clone());
    } else if let Some(text) = marker(app, area.width) {
        frame.render_widget(Paragraph::new(text).scroll((app.scrolled, 0)), area);
    }
}

/// Returns the area of the detail popup, which fits its contents and the screen.
pub(crate) fn popup_area(app: &App) -> Rect {
    let most = Places::popup(app.size);
    let columns = inside(most).width;
    // At least three lines, so that a short text does not look like an empty popup.
    Places::popup_for(app.size, columns, u16::try_from(lines(app, columns)).unwrap_or(u16::MAX).max(3))
}

/// Returns the number of lines of the detail at this width, at least 1.
fn lines(app: &App, columns: u16) -> usize {
    let texts = app.texts();
    match (detail(app, &texts), marker(app, columns)) {
        (Some(detail), _) => detail.lines(columns).len(),
        (None, Some(text)) => text.lines.len(),
        (None, None) => 1,
    }
}

/// Limits the scroll position of the item's detail to its lines.
pub(crate) fn scroll_detail(app: &App, state: &mut DetailState) {
    let places = app.places();
    let area = if app.popup.is_some() { popup_area(app) } else { places.detail };
    let texts = app.texts();
    if let Some(detail) = detail(app, &texts) {
        detail.scroll_into(inside(area), state);
    }
}

/// Returns the maximum scroll position of the current popup, in lines.
pub(crate) fn last_line(app: &App) -> u16 {
    if app.popup == Some(Popup::Help) {
        return super::help::last_line(super::help::area(app.size));
    }
    if app.popup == Some(Popup::Compaction) {
        return super::compaction::last_line(app, Places::popup(app.size));
    }
    let inner = inside(popup_area(app));
    let below = lines(app, inner.width).saturating_sub(inner.height.into());
    u16::try_from(below).unwrap_or(u16::MAX)
}

fn title(app: &App) -> String {
    match app.list.selected_row().filter(|_| app.listed().is_some()) {
        Some(ListRow::Compaction(number) | ListRow::CompactionUndone(number)) => {
            return format!("Compaction #{number}");
        }
        Some(ListRow::Rewound(_)) => return "Rewound".into(),
        Some(ListRow::LeftOut(nth)) => {
            let item = app.what_if.changes().left_out().nth(nth as usize);
            return item.map_or_else(
                || "Left out".into(),
                |(id, _)| format!("Detail {}", report::brief(id.as_str())),
            );
        }
        _ => {}
    }
    let item = app.listed().and_then(|plan| Some(ItemDetail::new(plan, app.row()?).title()));
    item.unwrap_or_else(|| "Detail".into())
}

/// Builds the detail of the selected item, with its explanation if it has arrived.
fn detail<'a>(app: &'a App, texts: &'a ItemTexts<'a>) -> Option<ItemDetail<'a>> {
    let explanation = match &app.explained.1 {
        Loadable::Answered(text) => ItemExplanation::Text { item_id: &app.explained.0, text },
        Loadable::Failed(error) => ItemExplanation::Failed(error),
        Loadable::Asked => ItemExplanation::Pending,
        Loadable::Nothing => ItemExplanation::None,
    };
    let detail = ItemDetail::new(app.listed()?, app.row()?).with_texts(texts);
    Some(detail.with_explanation(explanation).with_theme(app.theme))
}

/// Describes the selected marker; a compaction is described in full. Returns `None` for an item.
fn marker(app: &App, columns: u16) -> Option<Text<'static>> {
    let texts = app.texts();
    let (log, row) = (texts.log()?, app.list.selected_row()?);
    app.listed()?;
    match row {
        ListRow::Compaction(number) => {
            let marker = CompactionMarker::new(log.compaction(number)?).with_theme(app.theme);
            Some(marker.with_expanded(true).lines(columns).into())
        }
        ListRow::Item(_) => None,
        ListRow::CompactionUndone(number) => {
            Some(format!("The messages archived by compaction #{number} are sent again.").into())
        }
        ListRow::LeftOut(_) => Some("Left out by a what-if change: x restores it.".into()),
        _ => Some("The messages from that message to this marker are no longer sent.".into()),
    }
}
