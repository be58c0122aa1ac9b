//! The timeline of a session: the composition, cached prefix, cost and events of each prompt.

use super::{
    super::{
        layout::inside,
        state::{App, Loadable, View},
    },
    pane, show_text,
};
use crate::prompt::Figures;
use context_window::plan::Kind;
use context_window_ratatui::Theme;
use context_window_report as report;
use context_window_report::palette;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Position, Rect},
    style::Style,
    text::Line,
};
use std::ops::Range;

/// The maximum width of a bar in columns, used if there are few prompts.
const WIDEST: usize = 7;

/// The number of columns for the labels of the axis.
const AXIS: u16 = 9;

/// The number of rows of the chart.
const CHART: u16 = 9;

/// Divides the body into the chart and the list of prompts.
fn areas(body: Rect) -> [Rect; 2] {
    let chart = match body.height {
        ..16 => 6,
        16..20 => 9,
        _ => CHART + 5,
    };
    Layout::vertical([Constraint::Length(chart), Constraint::Fill(1)]).areas(body)
}

/// Returns the area of the list of prompts.
pub(crate) fn prompts_area(body: Rect) -> Rect {
    areas(body)[1]
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, body: Rect) {
    let [above, below] = areas(body);
    frame.render_widget(pane(app, &heading(app), false), above);
    chart(frame, app, inside(above));
    frame.render_widget(pane(app, "Prompts", true), below);
    prompts(frame, app, inside(below));
}

/// Draws the chart alone, in a corner of the plan view.
pub(super) fn strip(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(pane(app, &heading(app), false), area);
    chart(frame, app, inside(area));
}

fn heading(app: &App) -> String {
    let prompts = app.marks.len();
    let (reused, of) = app
        .marks
        .iter()
        .filter_map(|mark| Some((mark.figures.reused?, mark.figures.tokens)))
        .fold((0, 0), |sum, (reused, of)| (sum.0 + u128::from(reused), sum.1 + u128::from(of)));
    let reuse = (of > 0).then(|| format!(" · {} cached", report::percent(reused, of)));
    let planning = if matches!(app.replayed, Loadable::Asked) { " · planning" } else { "" };
    let all = app.subject.prompts;
    let (some, whole) = (report::grouped(prompts as u64), report::grouped(all as u64));
    let which = match prompts {
        1 if all == 1 => "1 prompt".to_owned(),
        _ if prompts == all => format!("{whole} prompts"),
        _ => format!("{some} of {whole} prompts"),
    };
    let breaks = app.marks.iter().filter(|mark| mark.figures.cause.is_some()).count();
    let breaks = match breaks {
        0 => String::new(),
        1 => ", 1 break".into(),
        several => format!(", {several} breaks"),
    };
    let cost: u64 = app.marks.iter().filter_map(|mark| mark.figures.cost).map(|cost| cost.billionths).sum();
    let cost = if cost == 0 { String::new() } else { format!(" · {}", report::dollars(cost)) };
    format!("Timeline · {which}{}{breaks}{cost}{planning}", reuse.unwrap_or_default())
}

/// The bars of the chart. A bar represents one prompt, or several if there are more prompts than columns.
#[derive(Clone, Copy)]
struct Columns {
    marks: usize,
    count: usize,
    wide: usize,
}

impl Columns {
    fn fit_marks(marks: usize, width: usize) -> Self {
        let count = marks.min(width);
        Self { marks, count, wide: width.checked_div(count).unwrap_or(1).min(WIDEST) }
    }

    /// Returns the indexes of the prompts that a bar represents.
    fn prompts(self, column: usize) -> Range<usize> {
        // Whole numbers divide the prompts evenly, and every prompt belongs to exactly one bar.
        let first_of = |column: usize| column * self.marks / self.count;
        first_of(column)..first_of(column + 1)
    }
}

/// The legend of events. Their order is their rank, the worst first.
const EVENTS: &str = "! over budget  C compaction  B cache break  L lost";

/// Returns the sign of the worst event at a prompt, if any.
fn event(app: &App, place: usize) -> Option<char> {
    let figures = &app.marks[place].figures;
    let before = place.checked_sub(1).map_or(0, |before| app.marks[before].figures.thoughts_lost);
    match () {
        () if figures.over > 0 => Some('!'),
        () if app.was_compacted(place) => Some('C'),
        () if figures.cause.is_some() => Some('B'),
        () if figures.thoughts_lost > before => Some('L'),
        () => None,
    }
}

/// Returns the prompt that a bar shows if it represents several. This is the one with the worst event,
/// otherwise the largest, and the last of equal ones.
fn worst(app: &App, prompts: Range<usize>) -> usize {
    let rank = |place: &usize| {
        let event = event(app, *place).and_then(|event| EVENTS.find(event));
        (event.map_or(0, |at| usize::MAX - at), app.marks[*place].figures.tokens)
    };
    let last = prompts.end - 1;
    prompts.max_by_key(rank).unwrap_or(last)
}

/// Returns the area of the bars: the chart without axis, marks and legend.
fn bars(area: Rect) -> Rect {
    let axis = if area.width >= 40 { AXIS } else { 0 };
    Rect { x: area.x + axis, width: area.width - axis, height: area.height.saturating_sub(3), ..area }
}

/// Returns the index of the prompt whose bar is at this position, in the chart of the current view.
pub(crate) fn prompt_at(app: &App, at: Position) -> Option<usize> {
    let places = app.places();
    let area = inside(if app.view == View::Timeline { areas(places.body)[0] } else { places.strip });
    let bars = bars(area);
    let columns = Columns::fit_marks(app.marks.len(), bars.width.into());
    let column = usize::from(at.x.checked_sub(bars.x)?).checked_div(columns.wide)?;
    (area.contains(at) && column < columns.count).then(|| worst(app, columns.prompts(column)))
}

/// The block characters for 0 to 8 eighths of a cell, from the bottom.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws the chart: a bar per prompt in time order, stacked by kind, with an axis, a line for the budget, and
/// marks for events.
fn chart(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if let Loadable::Failed(error) = &app.replayed {
        show_text(frame, area, error.clone(), app.theme.alarm);
        return;
    }
    let bars = bars(area);
    if app.marks.is_empty() || bars.height == 0 || bars.width == 0 {
        return;
    }
    let largest = app.marks.iter().map(|mark| mark.figures.tokens).max().unwrap_or(1).max(1);
    // A budget can be 1,000 times as large as any prompt. Budgets above four times the largest prompt are not
    // drawn.
    let budgets = app.marks.iter().map(|mark| mark.figures.budget).filter(|budget| budget / 4 <= largest);
    let whole = budgets.max().unwrap_or(0).max(largest);
    let eighths = |tokens: u64| {
        // The product can exceed `u64`.
        let parts = u128::from(tokens) * u128::from(bars.height) * 8 / u128::from(whole);
        usize::try_from(parts).unwrap_or(usize::MAX).min(usize::from(bars.height) * 8)
    };
    let buffer = frame.buffer_mut();
    if bars.x > area.x {
        // The labels are at the top, in the middle and at the bottom.
        let labels = [(0, whole), (bars.height / 2, whole / 2), (bars.height - 1, 0)];
        let shown = if bars.height < 3 { 1 } else { labels.len() };
        for (row, tokens) in labels.into_iter().take(shown) {
            let label = format!("{:>8} ", report::grouped(tokens));
            buffer.set_stringn(area.x, bars.y + row, label, AXIS.into(), app.theme.faint);
        }
    }
    let columns = Columns::fit_marks(app.marks.len(), bars.width.into());
    for column in 0..columns.count {
        let prompts = columns.prompts(column);
        let place = worst(app, prompts.clone());
        let mark = &app.marks[place];
        let x = bars.x + u16::try_from(column * columns.wide).unwrap_or_default();
        // Bars of three or more columns leave one column as a gap.
        let wide = if columns.wide > 2 { columns.wide - 1 } else { columns.wide };
        // The kind of each eighth of a cell, from the bottom up.
        let (mut filled, mut below): (Vec<&Kind>, u64) = (Vec::new(), 0);
        for (kind, tokens) in &mark.kinds {
            below += tokens;
            // Rounding the sum and not each part keeps the height of the bar exact.
            filled.resize(eighths(below).max(filled.len()), kind);
        }
        let limit =
            usize::from(bars.height).checked_sub(1 + eighths(mark.figures.budget).saturating_sub(1) / 8);
        for row in 0..usize::from(bars.height) {
            let y = bars.y + bars.height - 1 - u16::try_from(row).unwrap_or_default();
            let cell = filled.get(row * 8..).unwrap_or_default();
            let cell = &cell[..cell.len().min(8)];
            let (symbol, style) = match cell.first() {
                None if mark.figures.budget <= whole && limit == Some(usize::from(y - bars.y)) => {
                    ("─".to_owned(), app.theme.alarm)
                }
                None => (" ".to_owned(), Style::new()),
                Some(kind) => block(app, cell, kind),
            };
            buffer.set_string(x, y, symbol.repeat(wide), style);
        }
        let below = bars.y + bars.height;
        let what =
            prompts.clone().filter_map(|place| event(app, place)).min_by_key(|event| EVENTS.find(*event));
        if let Some(what) = what {
            let style = if what == '!' { app.theme.alarm } else { app.theme.warning };
            buffer.set_string(x, below, what.to_string(), style);
        }
        if prompts.contains(&app.prompt.selected) {
            buffer.set_string(x, below + 1, "^", app.theme.heading);
        }
    }
    let line = Rect { y: bars.y + bars.height + 2, height: 1, ..area };
    frame.render_widget(Line::styled(EVENTS, app.theme.faint), line);
}

/// Returns the symbol and style of a cell. With colours, the boundary between two kinds is exact to an
/// eighth. Without, the cell shows the sign of the kind that fills most of it.
fn block(app: &App, cell: &[&Kind], lowest: &Kind) -> (String, Style) {
    let upper = cell.iter().find(|kind| **kind != lowest);
    let own = cell.iter().take_while(|kind| **kind == lowest).count();
    if app.theme == Theme::plain() {
        let kind = upper.filter(|_| own < 4).copied().unwrap_or(lowest);
        let sign = if cell.len() < 4 { ".".to_owned() } else { palette::sign(kind).to_string() };
        return (sign, Style::new());
    }
    let style = app.theme.kind(lowest);
    match upper {
        None => (EIGHTHS[own].to_owned(), style),
        // The kind above fills the rest of the cell as its background, even if the bar ends inside the cell.
        Some(upper) => (EIGHTHS[own].to_owned(), style.bg(app.theme.kind(upper).fg.unwrap_or_default())),
    }
}

fn prompts(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let heading = format!(
        "{:>6} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9}  {}",
        "prompt", "turn", "msgs", "tokens", "cached", "new", "cost", "events"
    );
    frame.render_widget(Line::styled(heading, app.theme.heading), area);
    if app.marks.is_empty() {
        return;
    }
    let rows = (app.prompt.offset..app.marks.len()).zip(area.top() + 1..area.bottom());
    for (place, y) in rows {
        let line = Rect { y, height: 1, ..area };
        let before = place.checked_sub(1).map(|before| &app.marks[before].figures);
        let text = report::cut(&prompt(&app.marks[place].figures, before), area.width.into());
        frame.render_widget(Line::raw(text), line);
        if place == app.prompt.selected {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
}

/// Formats the table row of a prompt.
fn prompt(prompt: &Figures, before: Option<&Figures>) -> String {
    let reused = prompt.reused.map_or_else(|| "-".into(), report::grouped);
    let said = prompt.said(before);
    let cost = prompt.cost.map_or_else(|| "-".into(), |cost| report::dollars(cost.billionths));
    format!(
        "{:>6} {:>5} {:>7} {:>9} {reused:>9} {:>9} {cost:>9}  {said}",
        prompt.number,
        prompt.turn,
        prompt.messages,
        report::grouped(prompt.tokens),
        report::grouped(prompt.new_tokens())
    )
}
