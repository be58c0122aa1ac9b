//! Every prompt of the session: how large it was, how much of the one before it repeated, and where it was compacted.

use super::{
    super::{
        ask::Mark,
        layout::inside,
        state::{App, Loadable, View},
    },
    pane, show_text,
};
use crate::prompt::Figures;
use context_window::report;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Position, Rect},
    style::Style,
    text::Line,
};
use std::ops::Range;

/// Columns of a bar, where there are few prompts.
const WIDEST: usize = 7;

/// Rows of the chart.
const CHART: u16 = 8;

fn areas(body: Rect) -> [Rect; 2] {
    let chart = if body.height >= 20 { CHART + 3 } else { 6 };
    Layout::vertical([Constraint::Length(chart), Constraint::Fill(1)]).areas(body)
}

/// Where the prompts are listed.
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

/// The chart alone, for a corner of the plan view.
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
    let reuse = (reused * 100).checked_div(of).map(|percent| format!(" · cache hit {percent} %"));
    let planning = if matches!(app.replayed, Loadable::Asked) { " · planning" } else { "" };
    let all = app.subject.prompts;
    let (some, whole) = (report::grouped(prompts as u64), report::grouped(all as u64));
    let which = match prompts {
        1 if all == 1 => "1 prompt".to_owned(),
        _ if prompts == all => format!("{whole} prompts"),
        _ => format!("{some} of {whole} prompts"),
    };
    format!("Timeline · {which}{}{planning}", reuse.unwrap_or_default())
}

/// The bars of the chart: one for each prompt, or for several where there are more prompts than columns.
#[derive(Clone, Copy)]
struct Columns {
    marks: usize,
    count: usize,
    wide: usize,
}

impl Columns {
    fn of(marks: usize, width: usize) -> Self {
        let count = marks.min(width);
        Self { marks, count, wide: width.checked_div(count).unwrap_or(1).min(WIDEST) }
    }

    /// Indexes of the prompts that a bar represents; its height is that of the last one.
    fn prompts(self, column: usize) -> Range<usize> {
        let first_of = |column: usize| column * self.marks / self.count;
        first_of(column)..first_of(column + 1)
    }
}

/// The index of the prompt whose bar is here, of the chart in the plan view or in its own.
pub(crate) fn prompt_at(app: &App, at: Position) -> Option<usize> {
    let places = app.places();
    let area = inside(if app.view == View::Timeline { areas(places.body)[0] } else { places.strip });
    let columns = Columns::of(app.marks.len(), area.width.into());
    let column = usize::from(at.x.checked_sub(area.x)?).checked_div(columns.wide)?;
    (area.contains(at) && column < columns.count).then(|| columns.prompts(column).end - 1)
}

/// The cached prefix of a prompt in half lines of a bar, rounded to the nearest.
fn repeated(mark: &Mark, halves: u16) -> u16 {
    let (tokens, whole) =
        (mark.figures.repeats().map_or(0, |(tokens, _)| tokens), mark.figures.tokens.max(1));
    let (tokens, whole) = (u128::from(tokens.min(whole)), u128::from(whole));
    u16::try_from((u128::from(halves) * tokens * 2 + whole) / (whole * 2)).unwrap_or(halves)
}

/// One column a prompt, or several prompts; repeated tokens below, new ones above, `C` where it was compacted.
fn chart(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if let Loadable::Failed(error) = &app.replayed {
        show_text(frame, area, error.clone(), app.theme.alarm);
        return;
    }
    let (height, width) = (area.height.saturating_sub(2), usize::from(area.width));
    if app.marks.is_empty() || height == 0 || width == 0 {
        return;
    }
    let whole = app.marks.iter().map(|mark| mark.figures.tokens).max().unwrap_or(1).max(1);
    let halves = |tokens: u64| {
        let parts = u128::from(tokens) * u128::from(height) * 2 / u128::from(whole);
        u16::try_from(parts).unwrap_or(u16::MAX)
    };
    let columns = Columns::of(app.marks.len(), width);
    for column in 0..columns.count {
        let prompts = columns.prompts(column);
        let mark = &app.marks[prompts.end - 1];
        let x = area.x + u16::try_from(column * columns.wide).unwrap_or_default();
        let bar = if columns.wide > 2 { columns.wide - 1 } else { columns.wide };
        let all = halves(mark.figures.tokens).max(1);
        let reused = repeated(mark, all);
        for row in 0..height {
            let y = area.y + height - 1 - row;
            let (symbol, style) = match (all.saturating_sub(row * 2), reused.saturating_sub(row * 2)) {
                (0, _) => (" ", Style::new()),
                (1, 1..) => ("▄", app.theme.good),
                (1, 0) => ("▂", app.theme.warning),
                (_, 2..) => ("█", app.theme.good),
                (_, 1) => ("▓", app.theme.warning),
                _ => ("░", app.theme.warning),
            };
            frame.buffer_mut().set_string(x, y, symbol.repeat(bar), style);
        }
        let selected = prompts.contains(&app.prompt.selected);
        // A column of several prompts shows what happened at any of them.
        let over = app.marks[prompts.clone()].iter().any(|mark| mark.figures.over > 0);
        let compacted = prompts.clone().any(|place| app.was_compacted(place));
        let (symbol, style) = match (over, compacted, selected) {
            (true, ..) => ("!", app.theme.alarm),
            (_, true, _) => ("C", app.theme.heading),
            (.., true) => ("^", app.theme.heading),
            _ => (" ", Style::new()),
        };
        frame.buffer_mut().set_string(x, area.y + height, symbol, style);
    }
    let legend = "█▄ cached ░▂ new ▓ mixed C compacted ! over budget";
    let line = Rect { y: area.y + height + 1, height: 1, ..area };
    frame.render_widget(Line::styled(legend, app.theme.faint), line);
}

fn prompts(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let heading = format!(
        "{:>6} {:>5} {:>7} {:>9} {:>9} {:>9}  {}",
        "prompt", "turn", "msgs", "tokens", "cached", "new", "events"
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

fn prompt(prompt: &Figures, before: Option<&Figures>) -> String {
    let reused = prompt.reused.map_or_else(|| "-".into(), report::grouped);
    let said = prompt.said(before);
    format!(
        "{:>6} {:>5} {:>7} {:>9} {reused:>9} {:>9}  {said}",
        prompt.number,
        prompt.turn,
        prompt.messages,
        report::grouped(prompt.tokens),
        report::grouped(prompt.new_tokens())
    )
}
