//! The budget to try: a slider, and what it would change.

use super::super::state::App;
use context_window::report;
use ratatui::{Frame, layout::Rect, text::Span};
use std::fmt::Write as _;

const LABEL: &str = "what-if ";

/// The slider's columns, ends included; none where there is nothing to slide.
fn track(area: Rect) -> (u16, u16) {
    let from = area.x + u16::try_from(LABEL.len()).unwrap_or_default();
    (from, (area.width / 4).clamp(10, 40))
}

/// The current budget, the session's own, and the one at the right end: twice the session's own, as far as the model
/// goes.
fn ends(app: &App) -> Option<(u64, u64, u64)> {
    let planned = app.known()?;
    let own = planned.base.prompt_budget;
    let budget = app.what_if.budget.unwrap_or(own);
    let most = planned.base.limits.largest_budget().min(own.saturating_mul(2)).max(own).max(budget);
    Some((budget, own, most))
}

/// The budget that this column represents; none beside the slider.
pub(crate) fn budget_at(app: &App, area: Rect, x: u16) -> Option<u64> {
    let (from, width) = track(area);
    let (_, _, most) = ends(app)?;
    let at = u128::from(x.checked_sub(from).filter(|at| *at < width)?);
    let budget = u128::from(most) * at / u128::from(width - 1);
    Some(u64::try_from(budget).unwrap_or(most).max(1))
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let Some((budget, own, most)) = ends(app) else { return };
    let (_, width) = track(area);
    let at = |tokens: u64| {
        let column = u128::from(tokens) * u128::from(width - 1) / u128::from(most.max(1));
        usize::try_from(column).unwrap_or_default().min(usize::from(width) - 1)
    };
    let mut line: Vec<char> = vec!['─'; usize::from(width)];
    line[0] = '├';
    line[usize::from(width) - 1] = '┤';
    line[at(own)] = '│';
    line[at(budget)] = '●';
    let line: String = line.into_iter().collect();
    let tried = !app.what_if.is_empty();
    let style = if tried { app.theme.heading } else { app.theme.faint };
    let mut text = format!(" {}", report::grouped(budget));
    if budget != own {
        let _ = write!(text, " (session {})", report::grouped(own));
    }
    let mut spans = vec![Span::styled(LABEL, style), Span::raw(line), Span::styled(text, style)];
    if let Some(planned) = app.known().filter(|_| tried) {
        let (came, went) = (planned.came.len(), planned.went.len());
        let mut said = vec![format!("  +{came} -{went}")];
        let pins = app.what_if.count() - usize::from(app.what_if.budget.is_some());
        if pins > 0 {
            said.push(format!(", {pins} {}", if pins == 1 { "change" } else { "changes" }));
        }
        if let Some((kept, of)) = planned.kept {
            let percent = u128::from(kept) * 100 / u128::from(of.max(1));
            said.push(format!(", cached prefix {percent} %"));
        }
        spans.extend(said.into_iter().map(|said| Span::styled(said, app.theme.warning)));
    } else {
        spans.push(Span::styled(format!("  < > by {}.{} %", app.step / 10, app.step % 10), app.theme.faint));
    }
    super::render_whole(frame, spans, area);
}
