//! The preview of a compaction or a fresh start, before it is applied.

use super::{
    super::{
        layout::inside,
        state::{App, Loadable},
    },
    pane, show_text,
};
use crate::wrap::folded;
use context_window_ratatui::BannerAction;
use context_window_report as report;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Clear,
};

/// The number of lines above the text: the choice of actions and a blank line.
const HEAD: u16 = 2;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    frame.render_widget(Clear, area);
    let title = match &app.offered {
        Loadable::Answered(Some(_)) => "Compaction · h l choose, Enter applies, w saves, Esc closes",
        _ => "Compaction · h l choose, Esc closes",
    };
    frame.render_widget(pane(app, title, true), area);
    let inner = inside(area);
    let choices = BannerAction::ALL.into_iter().map(|action| {
        if action == app.banner.chosen() {
            Span::styled(format!("[{}] ", action.label()), app.theme.selected)
        } else {
            Span::styled(format!(" {}  ", action.label()), app.theme.heading)
        }
    });
    frame.render_widget(choices.collect::<Line<'_>>(), Rect { height: 1.min(inner.height), ..inner });
    let body = below(inner);
    match &app.offered {
        Loadable::Answered(Some(offer)) => {
            let text = folded(&offer.text, Some(body.width.into()));
            // The window can have grown since the last scroll.
            let from = usize::from(app.scrolled.min(last_line(app, area)));
            for (line, y) in text.lines().skip(from).zip(body.top()..body.bottom()) {
                frame.render_widget(Line::raw(report::printable(line)), Rect { y, height: 1, ..body });
            }
        }
        Loadable::Answered(None) => show_text(frame, body, "nothing to compact", app.theme.faint),
        Loadable::Failed(error) => show_text(frame, body, error.clone(), app.theme.alarm),
        Loadable::Nothing | Loadable::Pending => {
            show_text(frame, body, "compacting a copy ...", app.theme.faint);
        }
    }
}

/// Returns the maximum scroll position of the text, in lines.
pub(super) fn last_line(app: &App, area: Rect) -> u16 {
    let Loadable::Answered(Some(offer)) = &app.offered else { return 0 };
    let body = below(inside(area));
    let lines = folded(&offer.text, Some(body.width.into())).lines().count();
    u16::try_from(lines.saturating_sub(body.height.into())).unwrap_or(u16::MAX)
}

fn below(inner: Rect) -> Rect {
    let head = HEAD.min(inner.height);
    Rect { y: inner.y + head, height: inner.height - head, ..inner }
}
