//! The layout of the screen.

use super::{Focus, Screen, line, markdown};
use crate::chat::{Chat, Preview, Turn};
use context_window_ratatui::{
    Banner, FilterLine, ItemDetail, ItemList, ItemTexts, NoticeList, PromptGrid, StatusLine, Transcript,
    UsageBar,
};
use context_window_report as report;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Borders, Paragraph, Wrap};

/// The smallest screen, in columns and rows.
const SMALLEST: (u16, u16) = (50, 16);
/// Minimum width to show the prompt next to the conversation. On a narrower screen one of both is shown.
const WIDE: u16 = 100;
/// Maximum number of notice rows.
const NOTICES: u16 = 6;
/// Maximum number of input rows.
const WRITTEN: u16 = 6;
/// Rows of the grid with its frame.
const GRID: u16 = PromptGrid::ROWS + 2;
/// Rows that the list needs below the grid, with the conversation next to both and without it.
const LIST: (u16, u16) = (4, 8);
/// Minimum columns of grid and list side by side.
const BESIDE: (u16, u16) = (44, 34);

pub(super) fn draw(frame: &mut Frame<'_>, chat: &Chat, screen: &mut Screen) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!(
            "This terminal has {} x {} characters; the chat needs {} x {}.",
            area.width, area.height, SMALLEST.0, SMALLEST.1
        );
        return frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
    }
    let notices = NoticeList::new(&chat.plan).with_theme(screen.theme);
    // The input line has priority. A notice without room is shown in the help line.
    let written = screen.input.value().matches('\n').count() + 1;
    let written = u16::try_from(written).unwrap_or(WRITTEN).min(WRITTEN).min(area.height - SMALLEST.1 + 1);
    let room = area.height - SMALLEST.1 + 4 - written;
    let notices_height = match notices.is_empty() {
        true => 0,
        false => (notices.height(area.width - 2, &screen.notices).min(NOTICES) + 2).min(room),
    };
    let banner_height = match screen.banner.is_shown(&chat.plan.usage) {
        true => Banner::new(&chat.plan.usage).height(area.width, &screen.banner).min(room - notices_height),
        false => 0,
    };
    let rows = [1, 1, 2].map(Constraint::Length).into_iter().chain([Constraint::Min(5)]);
    let rows = rows.chain([notices_height, banner_height, written + 2, 1].map(Constraint::Length));
    let [head, status, bar, body, ask, banner, line, help] = Layout::vertical(rows).areas(area);

    let title =
        format!("rag-chat  {}  session {}  {}", chat.args.folder.display(), chat.session(), chat.choice.says);
    frame.render_widget(Line::styled(report::printable(&title), screen.theme.heading), head);
    frame.render_widget(StatusLine::new(&chat.plan.usage).with_theme(screen.theme), status);
    frame.render_widget(UsageBar::new(&chat.plan.usage).with_theme(screen.theme), bar);
    if body.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(56), Constraint::Min(40)]).areas(body);
        conversation(frame, left, chat, screen);
        prompt(frame, right, chat, screen);
    } else if screen.focus == Focus::Items {
        prompt(frame, body, chat, screen);
    } else {
        conversation(frame, body, chat, screen);
    }
    if notices_height > 0 {
        let block = framed("Notices", screen.focus == Focus::Notices, screen);
        let inner = block.inner(ask);
        notices.scroll_into(inner, &mut screen.notices);
        frame.render_widget(block, ask);
        frame.render_stateful_widget(notices, inner, &mut screen.notices);
    }
    frame.render_stateful_widget(
        Banner::new(&chat.plan.usage).with_theme(screen.theme),
        banner,
        &mut screen.banner,
    );
    input(frame, line, chat, screen);
    let said = match &screen.note {
        Some(note) => Line::styled(report::printable(note), screen.theme.warning),
        None => Line::styled(help_line(chat, screen), screen.theme.faint),
    };
    frame.render_widget(said, help);
}

/// Returns a frame, which is thicker for the focused area.
fn framed(title: &str, has_focus: bool, screen: &Screen) -> Block<'static> {
    let block = Block::new().borders(Borders::ALL).title(title.to_owned());
    if has_focus { block.border_type(BorderType::Thick).title_style(screen.theme.heading) } else { block }
}

fn conversation(frame: &mut Frame<'_>, area: Rect, chat: &Chat, screen: &mut Screen) {
    let block = framed("Conversation", false, screen);
    let (thought, text) = match &chat.turn {
        Turn::Answering(answering) => (answering.thought.as_str(), answering.text.as_str()),
        _ => ("", ""),
    };
    let transcript = Transcript::new(&chat.log).with_remarks(&chat.remarks).with_reply(thought, text);
    let transcript = transcript.with_answers(markdown::lines);
    frame.render_stateful_widget(
        transcript.with_theme(screen.theme),
        block.inner(area),
        &mut screen.transcript,
    );
    let block = match screen.transcript.below() {
        0 => block,
        below => block.title_bottom(format!("{below} lines below, PgDn")),
    };
    frame.render_widget(block, area);
}

/// Draws the prompt as a grid, above the items or next to them if there is room, and as a list.
fn prompt(frame: &mut Frame<'_>, area: Rect, chat: &Chat, screen: &mut Screen) {
    let request = chat.request();
    let texts = ItemTexts::from_request(&request);
    let least = if frame.area().width >= WIDE { LIST.0 } else { LIST.1 };
    let [grid, list] = if screen.detail.is_some() {
        [Rect::default(), area]
    } else if area.width >= BESIDE.0 + BESIDE.1 && area.height < 2 * GRID {
        let [grid, list] = Layout::horizontal([BESIDE.0, BESIDE.1].map(Constraint::Min)).areas(area);
        [Rect { height: grid.height.min(GRID), ..grid }, list]
    } else if area.height >= GRID + least {
        Layout::vertical([Constraint::Length(GRID), Constraint::Min(least)]).areas(area)
    } else {
        [Rect::default(), area]
    };
    if !grid.is_empty() {
        let block = framed("Prompt", false, screen);
        frame.render_widget(PromptGrid::new(&chat.plan).with_theme(screen.theme), block.inner(grid));
        frame.render_widget(block, grid);
    }
    if let (Some(detail), Some(row)) = (&mut screen.detail, screen.list.row(&chat.plan)) {
        // An explanation makes several plans, so it is computed once for each plan and item.
        let of = (row.qualified_id(), chat.plan.fingerprint());
        if screen.why.as_ref().is_none_or(|(known, _)| *known != of) {
            screen.why = Some((of, chat.why(row)));
        }
        let widget = ItemDetail::new(&chat.plan, row).with_texts(&texts).with_theme(screen.theme);
        let why = screen.why.as_ref().and_then(|(_, why)| why.as_ref().ok());
        let widget = why.into_iter().fold(widget, |widget, why| widget.with_explanation(why));
        let block = Block::new().borders(Borders::ALL).border_type(BorderType::Thick).title(widget.title());
        let inner = block.inner(list);
        widget.scroll_into(inner, detail);
        frame.render_widget(block, list);
        return frame.render_stateful_widget(widget, inner, detail);
    }
    let widget = ItemList::new(&chat.plan)
        .with_texts(&texts)
        .with_empty("no item matches; Esc shows all")
        .with_theme(screen.theme);
    let block = framed(&widget.title(&screen.list), screen.focus == Focus::Items, screen);
    let mut inner = block.inner(list);
    frame.render_widget(block, list);
    if let Some(filter) = &mut screen.filter {
        let [line, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(inner);
        frame.render_stateful_widget(FilterLine::new().with_theme(screen.theme), line, filter);
        inner = rest;
    }
    screen.list.scroll_into(inner.height);
    frame.render_stateful_widget(widget, inner, &mut screen.list);
}

fn input(frame: &mut Frame<'_>, area: Rect, chat: &Chat, screen: &Screen) {
    let title = match (&chat.turn, chat.indexing) {
        (_, Some((_, 0))) => "Scanning the folder".into(),
        (_, Some((done, of))) => format!("Indexing: {done} of {of} files"),
        (Turn::Idle, None) if matches!(chat.preview, Some(Preview::Job(_))) => {
            "Compact? Enter: yes, Esc: no".into()
        }
        (Turn::Idle, None) if chat.preview.is_some() => "Use this summary? Enter: yes, Esc: no".into(),
        (Turn::Idle, None) if chat.is_busy() => "Summarising in the background; Ctrl-C stops it".into(),
        (Turn::Idle, None) => "Ask".to_owned(),
        (Turn::Searching(_), None) => "Searching documents".into(),
        (Turn::Answering(reply), None) if reply.text.is_empty() => {
            "Waiting for the reply; Ctrl-C stops it".into()
        }
        (Turn::Answering(_), None) => "Answering; Ctrl-C stops it".into(),
    };
    let block = framed(&title, screen.focus == Focus::Line, screen);
    let inner = block.inner(area);
    let (row, before) = line::place(&screen.input);
    // The row of the cursor is visible, and so is the cursor in it.
    let top = (row + 1).saturating_sub(inner.height.into());
    let column = Line::raw(&before).width();
    let hidden = (column + 1).saturating_sub(inner.width.into());
    let rows = screen.input.value().split('\n').skip(top).take(inner.height.into());
    let rows: Vec<Line<'_>> = rows.map(|row| Line::raw(report::printable(row))).collect();
    let shown = Paragraph::new(rows).scroll((0, u16::try_from(hidden).unwrap_or(u16::MAX)));
    frame.render_widget(block, area);
    frame.render_widget(shown, inner);
    if screen.focus == Focus::Line {
        let [x, y] = [column - hidden, row - top].map(|at| u16::try_from(at).unwrap_or(u16::MAX));
        let (x, y) = (inner.x.saturating_add(x), inner.y.saturating_add(y));
        frame.set_cursor_position(Position::new(x.min(inner.right()), y.min(inner.bottom())));
    }
}

fn help_line(chat: &Chat, screen: &Screen) -> &'static str {
    match screen.focus {
        _ if screen.is_ending => "Ctrl-C again ends the chat; the next run continues it",
        Focus::Line if screen.asks(chat) => {
            "An expired pin needs a decision: Tab selects it. Enter sends, /help"
        }
        Focus::Line => "Enter sends, Tab: items of the prompt, PgUp scrolls, /help, Ctrl-D ends",
        Focus::Items if screen.filter.is_some() => {
            "A filter, such as reason:cap; Enter keeps it, Esc clears it"
        }
        Focus::Items => "Enter: why, p pins, x excludes, / filters, a i o show, s r sort, Esc: back",
        Focus::Notices => "Up, Down: notices; Left, Right: choices; Enter applies, Esc: back",
        Focus::Banner => "Left, Right: choices; Enter applies, Esc closes",
    }
}
