//! What differs, and the one cause of each difference.

use super::{
    super::{
        layout::inside,
        state::{App, Known},
    },
    pane, say,
};
use context_window::{Shown, report};
use ratatui::{Frame, layout::Rect, text::Line};

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(pane(app, &title(app), true), area);
    let inner = inside(area);
    let diff = match &app.diff {
        Known::Answered(diff) => diff,
        Known::Asked => return say(frame, inner, "comparing ...", app.theme.faint),
        Known::Failed(error) => return say(frame, inner, error.clone(), app.theme.alarm),
        Known::Nothing => {
            let nothing =
                "There is no prompt before this one. Try something (< > p t), or start with --against FILE.";
            return say(frame, inner, nothing, app.theme.faint);
        }
    };
    if diff.changes.is_empty() {
        return say(frame, inner, "no difference", app.theme.good);
    }
    let heading =
        format!("{:<24}  {:<18}  {:<18}  {:<14}  {}", "item", "before", "after", "cause", "shown by");
    frame.render_widget(Line::styled(heading, app.theme.heading), inner);
    let last = inner.bottom().saturating_sub(1);
    let rows = (app.differences.offset..diff.changes.len()).zip(inner.top() + 1..last);
    for (place, y) in rows {
        let change = &diff.changes[place];
        let shown = match change.shown {
            Shown::Alone => "only that changed",
            Shown::Needed => "all but that changed",
            _ => "one after the other",
        };
        let id =
            format!("{}{}", if change.document { "rag:" } else { "" }, report::brief(change.id.as_str()));
        let text = format!(
            "{}  {:<18}  {:<18}  {:<14}  {shown}",
            report::fitted(&id, 24),
            change.from,
            change.to,
            change.cause.name()
        );
        let line = Rect { y, height: 1, ..inner };
        frame.render_widget(Line::raw(text), line);
        if place == app.differences.selected {
            frame.buffer_mut().set_style(line, app.theme.selected);
        }
    }
    let changes = if diff.changes.len() == 1 { "change" } else { "changes" };
    let foot = Rect { y: last, height: 1, ..inner };
    frame.render_widget(Line::styled(format!("{} {changes}", diff.changes.len()), app.theme.faint), foot);
}

fn title(app: &App) -> String {
    let what = if !app.what_if.is_empty() {
        "what is tried, against the plan without it"
    } else if app.subject.against.is_some() {
        "this session, against the other one"
    } else {
        "this prompt, against the one before"
    };
    format!("Diff · {what}")
}
