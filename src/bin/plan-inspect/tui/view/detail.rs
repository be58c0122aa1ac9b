//! One item: what it is, why it is in or out, what would change that, and what it says.

use super::{
    super::{
        layout::{Places, inside},
        state::{App, Loadable, Pane, Popup, View},
        subject::LogRow,
    },
    pane,
};
use context_window::{Section, Source, Ttl, plan::Decision, report};
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Text},
    widgets::{Clear, Paragraph, Wrap},
};

/// The most of a text that is shown, in characters.
const SHOWN: usize = 20_000;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let focused = app.pane == Pane::Detail;
    let block = pane(app, &title(app), focused);
    let text = Paragraph::new(text(app)).wrap(Wrap { trim: false }).scroll((app.scrolled, 0));
    frame.render_widget(text.block(block), area);
}

pub(super) fn popup(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let block = pane(app, &format!("{} · Esc closes", title(app)), true);
    let text = Paragraph::new(text(app)).wrap(Wrap { trim: false }).scroll((app.scrolled, 0));
    frame.render_widget(text.block(block), area);
}

/// How far the detail can be scrolled.
pub(crate) fn last_line(app: &App) -> u16 {
    if app.popup == Some(Popup::Help) {
        return super::help::last_line(Places::help(app.size));
    }
    let text = if app.popup == Some(Popup::Notices) { super::notices::text(app) } else { text(app) };
    let places = Places::of(app.size);
    let area = if app.popup.is_some() { Places::popup(app.size) } else { places.detail };
    let inner = inside(area);
    let width = usize::from(inner.width).max(1);
    let rows = text.lines.iter().map(|line| line.width().div_ceil(width).max(1)).sum::<usize>();
    u16::try_from(rows.saturating_sub(usize::from(inner.height))).unwrap_or(u16::MAX)
}

fn title(app: &App) -> String {
    if app.view == View::Log {
        return match app.subject.rows.get(app.log.selected) {
            Some(LogRow::Message { id, .. }) => report::brief(id.as_str()),
            _ => "Detail".into(),
        };
    }
    app.row_id().map_or_else(|| "Detail".into(), |(id, _)| format!("Detail {}", report::brief(id)))
}

fn text(app: &App) -> Text<'static> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    if app.view == View::Log {
        if let Some(LogRow::Message { position, .. }) = app.subject.rows.get(app.log.selected) {
            let message = &app.subject.session().log.messages()[*position];
            lines.push(Line::styled(message.role().name(), app.theme.heading));
            lines.extend(body(&crate::message_text::lines(message, true).join("\n")));
        }
        return Text::from(lines);
    }
    let (Some(plan), Some(row)) = (app.plan(), app.row()) else { return Text::default() };
    let words = report::row(plan, row);
    let (place, style) = match row {
        Decision::Included(_) => ("in", app.theme.good),
        Decision::Excluded(_) => ("out", app.theme.warning),
    };
    lines.push(Line::styled(format!("{place}: {}, {} tokens", words.why, words.tokens), style));
    lines.push(Line::styled(what_it_is(row), app.theme.faint));
    match &app.explained.1 {
        // Its first line says once more what is above.
        Loadable::Answered(explanation) => {
            lines.extend(explanation.lines().skip(1).map(|line| Line::raw(line.to_owned())));
        }
        Loadable::Failed(error) => lines.push(Line::styled(error.clone(), app.theme.alarm)),
        Loadable::Asked => lines.push(Line::styled("  explaining ...", app.theme.faint)),
        Loadable::Nothing => {}
    }
    if let Some((id, document)) = app.row_id() {
        if document && let Some(item) = app.subject.session().rag.iter().find(|item| item.id().as_str() == id)
        {
            lines.push(Line::styled(format!("  score {}", item.score()), app.theme.faint));
        }
        lines.push(Line::raw(""));
        match app.subject.text(id, row.kind()) {
            Some(text) => lines.extend(body(&text)),
            None => lines.push(Line::styled("no text in the session", app.theme.faint)),
        }
    }
    Text::from(lines)
}

/// Whether the source says no more than the section does.
fn same(section: Section, source: Source) -> bool {
    section.name() == source.name()
}

fn what_it_is(row: Decision<'_>) -> String {
    let ttl = |ttl: Option<Ttl>| ttl.map(|ttl| format!(" · {}", report::ttl(ttl))).unwrap_or_default();
    match row {
        Decision::Included(item) => {
            let role = item.role.map(|role| format!(" · role {}", role.name())).unwrap_or_default();
            let (section, priority) = (report::section(item.section), item.priority.name());
            let source = if same(item.section, item.source) {
                String::new()
            } else {
                format!(" · {}", report::source(item.source))
            };
            format!("{section}{source}{role} · priority {priority}{}", ttl(item.ttl))
        }
        Decision::Excluded(item) => {
            let section = report::section(item.section);
            let source = item.source.filter(|source| !same(item.section, *source));
            let source = source.map(|source| format!(" · {}", report::source(source))).unwrap_or_default();
            format!("{section}{source}{}", ttl(item.ttl))
        }
    }
}

/// A text of the session, line by line, without anything that a terminal would act on.
fn body(text: &str) -> Vec<Line<'static>> {
    let shown = text.char_indices().nth(SHOWN).map_or(text, |(at, _)| &text[..at]);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for line in shown.lines() {
        lines.push(Line::raw(crate::message_text::shown(line)));
    }
    if shown.len() < text.len() {
        let rest = report::grouped((text.len() - shown.len()) as u64);
        lines.push(Line::styled(format!("... {rest} more bytes"), Style::new()));
    }
    lines
}
