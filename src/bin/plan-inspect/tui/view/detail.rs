//! One item of the plan, or one message of the log.

use super::{
    super::{
        layout::{Places, inside},
        state::{App, Loadable, Pane, Popup, View},
        subject::LogRow,
    },
    pane,
};
use context_window::{
    report,
    widgets::{DetailState, ItemDetail, ItemExplanation, ItemTexts},
};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Text},
    widgets::{Clear, Paragraph, Wrap},
};

/// The most of a message that is shown, in characters.
const SHOWN: usize = 20_000;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(pane(app, &title(app), app.pane == Pane::Detail), area);
    let texts = app.subject.item_texts();
    if let Some(detail) = detail(app, &texts) {
        frame.render_stateful_widget(detail, inside(area), &mut app.detail.clone());
    }
}

pub(super) fn popup(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let block = pane(app, &format!("{} · Esc closes", title(app)), true);
    let texts = app.subject.item_texts();
    if app.view == View::Log {
        let text = Paragraph::new(message(app)).wrap(Wrap { trim: false }).scroll((app.scrolled, 0));
        frame.render_widget(text.block(block), area);
        return;
    }
    frame.render_widget(block, area);
    if let Some(detail) = detail(app, &texts) {
        frame.render_stateful_widget(detail, inside(area), &mut app.detail.clone());
    }
}

/// As large as what it shows, as far as there is room.
pub(crate) fn popup_area(app: &App) -> Rect {
    let most = Places::popup(app.size);
    let width = usize::from(inside(most).width).max(1);
    let lines = if app.view == View::Log {
        message(app).lines.iter().map(|line| line.width().div_ceil(width).max(1)).sum()
    } else {
        let texts = app.subject.item_texts();
        detail(app, &texts).map_or(1, |detail| detail.lines(inside(most).width).len())
    };
    Places::popup_for(app.size, inside(most).width, u16::try_from(lines).unwrap_or(u16::MAX).max(3))
}

/// Finds out how far the detail of the item can be scrolled.
pub(crate) fn scroll_detail(app: &App, state: &mut DetailState) {
    let places = app.places();
    let area = if app.popup.is_some() { popup_area(app) } else { places.detail };
    let texts = app.subject.item_texts();
    if let Some(detail) = detail(app, &texts) {
        detail.scroll_into(inside(area), state);
    }
}

/// How far the help, a compaction or a message can be scrolled.
pub(crate) fn last_line(app: &App) -> u16 {
    if app.popup == Some(Popup::Help) {
        return super::help::last_line(super::help::area(app.size));
    }
    if app.popup == Some(Popup::Compaction) {
        return super::compaction::last_line(app, Places::popup(app.size));
    }
    let inner = inside(popup_area(app));
    let width = usize::from(inner.width).max(1);
    let rows = message(app).lines.iter().map(|line| line.width().div_ceil(width).max(1)).sum::<usize>();
    u16::try_from(rows.saturating_sub(usize::from(inner.height))).unwrap_or(u16::MAX)
}

fn title(app: &App) -> String {
    if app.view == View::Log {
        return match app.subject.rows.get(app.log.selected) {
            Some(LogRow::Message { id, .. }) => report::brief(id.as_str()),
            _ => "Detail".into(),
        };
    }
    let item = app.plan().and_then(|plan| Some(ItemDetail::new(plan, app.row()?).title()));
    item.unwrap_or_else(|| "Detail".into())
}

/// The selected item, and what is known of it by now.
fn detail<'a>(app: &'a App, texts: &'a ItemTexts<'a>) -> Option<ItemDetail<'a>> {
    let explanation = match &app.explained.1 {
        Loadable::Answered(text) => ItemExplanation::Text { of: &app.explained.0, text },
        Loadable::Failed(error) => ItemExplanation::Failed(error),
        Loadable::Asked => ItemExplanation::Pending,
        Loadable::Nothing => ItemExplanation::None,
    };
    let detail = ItemDetail::new(app.plan()?, app.row()?).with_texts(texts);
    Some(detail.with_explanation(explanation).with_theme(app.theme))
}

/// The selected message of the log, line by line, without anything that a terminal would act on.
fn message(app: &App) -> Text<'static> {
    let Some(LogRow::Message { position, .. }) = app.subject.rows.get(app.log.selected) else {
        return Text::default();
    };
    let message = &app.subject.session().log.messages()[*position];
    let text = report::message_lines(message).join("\n");
    let shown = text.char_indices().nth(SHOWN).map_or(&*text, |(at, _)| &text[..at]);
    let mut lines = vec![Line::styled(message.role().name(), app.theme.heading)];
    lines.extend(shown.lines().map(|line| Line::raw(report::shown(line))));
    if shown.len() < text.len() {
        let rest = report::grouped((text.len() - shown.len()) as u64);
        lines.push(Line::raw(format!("... {rest} more bytes")));
    }
    Text::from(lines)
}
