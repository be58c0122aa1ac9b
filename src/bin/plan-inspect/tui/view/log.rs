//! Everything that was said, with a marker wherever messages were archived.

use super::{
    super::{ask::At, layout::inside, state::App, subject::LogRow},
    pane,
};
use context_window::{
    ItemKind, Role,
    plan::{Decision, Kind},
    report,
    widgets::{CompactionMarker, Sign},
};
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.subject.rows.len();
    let place = report::grouped(app.log.selected as u64 + 1);
    let sought = if app.sought.is_empty() {
        String::new()
    } else {
        format!(" · search {}", report::brief(app.sought.text()))
    };
    let later = match &app.at {
        At::Past(past) => {
            format!(" · at this prompt: the first {} messages", report::grouped(past.messages as u64))
        }
        At::Now => String::new(),
    };
    let title = format!("Log · {place} of {}{sought}{later}", report::grouped(rows as u64));
    let title = report::cut(&title, usize::from(area.width).saturating_sub(4));
    frame.render_widget(pane(app, &title, true), area);
    let inner = inside(area);
    for (at, y, lines) in in_sight(app, inner) {
        for (line, y) in lines.into_iter().zip(y..inner.bottom()) {
            let area = Rect { y, height: 1, ..inner };
            frame.render_widget(line, area);
            if at == app.log.selected {
                frame.buffer_mut().set_style(area, app.theme.selected);
            }
        }
    }
}

/// The rows in sight: each with the row of its first line, and its lines.
fn in_sight(app: &App, inner: Rect) -> Vec<(usize, u16, Vec<Line<'static>>)> {
    let (mut y, mut shown) = (inner.top(), Vec::new());
    for (at, row) in app.subject.rows.iter().enumerate().skip(first(app, inner)) {
        if y >= inner.bottom() {
            break;
        }
        let lines = lines(app, row, inner.width);
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        shown.push((at, y, lines));
        y = y.saturating_add(height);
    }
    shown
}

/// The first row in sight: expanded rows may push the selected one below, so it starts as late as it has to.
fn first(app: &App, inner: Rect) -> usize {
    let (mut first, mut height) = (app.log.selected, 0);
    for at in (app.log.offset..=app.log.selected).rev() {
        let Some(row) = app.subject.rows.get(at) else { break };
        height += match row {
            LogRow::Compaction(number) if app.open.contains(number) => lines(app, row, inner.width).len(),
            _ => 1,
        };
        if height > usize::from(inner.height) && at < app.log.selected {
            break;
        }
        first = at;
    }
    first
}

/// The row at this line of the screen.
pub(crate) fn row_at(app: &App, y: u16) -> Option<usize> {
    let inner = inside(app.places().body);
    let rows = in_sight(app, inner);
    rows.iter().rev().find(|(_, top, _)| *top <= y).map(|(at, ..)| *at).filter(|_| y >= inner.top())
}

fn lines(app: &App, row: &LogRow, columns: u16) -> Vec<Line<'static>> {
    let log = &app.subject.session().log;
    match row {
        LogRow::Message { position, id, archived } => {
            let message = &log.messages()[*position];
            let width = app.subject.longest_id;
            let later = matches!(&app.at, At::Past(past) if *position >= past.messages);
            let planned = app.plan().and_then(|plan| {
                plan.included.iter().find(|row| row.id == *id && row.kind == ItemKind::Message)
            });
            let sign = match planned {
                _ if later => ">",
                Some(row) => Sign::of(Decision::Included(row)).symbol(),
                None => "-",
            };
            let id: String = report::printable(id.as_str()).chars().take(width).collect();
            let tokens = planned.map(|row| report::tokens(row.tokens)).unwrap_or_default();
            let who = format!("{sign} {id:width$} {tokens:>8}  {:9}  ", message.role().name());
            let room = usize::from(columns).saturating_sub(who.width());
            let text = report::cut(&said(app, row, room), room);
            let faint = *archived || later || planned.is_none();
            let kind = app.theme.kind(&match message.role() {
                Role::System | Role::Developer => Kind::System,
                Role::Assistant => Kind::Assistant,
                Role::Tool => Kind::ToolResults(String::new()),
                _ => Kind::User,
            });
            let [head, rest] = if faint { [app.theme.faint; 2] } else { [kind, Style::new()] };
            vec![Line::from_iter([Span::styled(who, head), Span::styled(text, rest)])]
        }
        LogRow::Compaction(number) => match log.compaction(*number) {
            Some(record) => {
                let open = app.open.contains(number);
                CompactionMarker::new(record).with_expanded(open).with_theme(app.theme).lines(columns)
            }
            None => vec![Line::raw("")],
        },
        LogRow::Rewound(id) => {
            let said = format!("── Rewound to before {} ──", report::brief(id.as_str()));
            vec![Line::styled(said, app.theme.warning)]
        }
    }
}

/// What a message says, in a line: from its beginning, or from shortly before what is looked for where that is further on
/// than so many columns.
fn said(app: &App, row: &LogRow, columns: usize) -> String {
    const BEFORE: usize = 20;
    let texts = app.subject.texts(row);
    let start = in_a_line(texts.iter().map(|text| &**text));
    if app.sought.is_empty() || app.sought.is_in(&report::cut(&start, columns)) {
        return start;
    }
    let mut hits = texts.iter().enumerate();
    let Some((number, at)) = hits.find_map(|(number, text)| Some((number, app.sought.place_in(text)?)))
    else {
        return start;
    };
    let (before, _) = texts[number].split_at(at);
    let from = before.char_indices().rev().take(BEFORE).last().map_or(at, |(from, _)| from);
    let rest = texts[number + 1..].iter().map(|text| &**text);
    format!("… {}", in_a_line(std::iter::once(&texts[number][from..]).chain(rest)))
}

/// A line shows no more than it has columns, however long a text is.
fn in_a_line<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let starts: Vec<String> = texts.map(|text| text.chars().take(400).collect()).collect();
    report::printable(&starts.join(" ").split_whitespace().collect::<Vec<_>>().join(" "))
}
