//! A slider for the budget, with the effect of the changes.

use super::{Theme, WhatIfEffect, WhatIfState};
use context_window::ItemId;
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget,
};
use std::fmt::Write as _;

const LABEL: &str = "what-if ";

/// A slider for the tried budget: `what-if ├──────●─│─────────┤ 320 (session 400)  +1 -2, cached prefix 68
/// %`.
///
/// `●` is the tried budget, and `│` is the session's own. The right end is twice the session's budget,
/// limited by the model. The added and dropped items follow. The slider takes one row, and parts that do not
/// fit are left out.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{BudgetSlider, WhatIfState};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(400));
/// let mut state = WhatIfState::from_plan(&manager.build_plan(&request)?);
/// state.smaller();
/// let (_plan, effect) = state.plan(&manager, &request)?;
///
/// let area = Rect::new(0, 0, 80, 1);
/// let mut screen = Buffer::empty(area);
/// BudgetSlider::new(&state).with_effect(&effect).render(area, &mut screen);
/// # let line: String = (0..80).map(|x| screen[(x, 0)].symbol()).collect();
/// assert!(line.contains(" 396 (session 400)  +0 -0"));
/// assert_eq!(BudgetSlider::new(&state).budget_at(area, 8), Some(1)); // where the left end is clicked
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BudgetSlider<'a> {
    state: &'a WhatIfState,
    effect: Option<&'a WhatIfEffect>,
    theme: Theme,
}

impl<'a> BudgetSlider<'a> {
    /// Creates the slider of this trial.
    #[must_use]
    pub fn new(state: &'a WhatIfState) -> Self {
        Self { state, effect: None, theme: Theme::default() }
    }

    /// Shows the effect of the changes, if there are changes.
    #[must_use]
    pub fn with_effect(mut self, effect: &'a WhatIfEffect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the budget in tokens at this screen column, if the slider is drawn in this area. Returns
    /// `None` outside the slider.
    #[must_use]
    pub fn budget_at(&self, area: Rect, x: u16) -> Option<u64> {
        let (from, width) = track(area);
        let at = u128::from(x.checked_sub(from).filter(|at| *at < width)?);
        // The products are computed in 128 bits and cannot overflow.
        let budget = u128::from(self.end()) * at / u128::from(width - 1);
        Some(u64::try_from(budget).unwrap_or(self.end()).max(1))
    }

    /// Returns the budget in tokens at the right end.
    fn end(&self) -> u64 {
        let (own, budget) = (self.state.own_budget(), self.state.budget());
        // Both marks must be on the track, even if a budget is larger than the model allows.
        self.state.largest_budget().min(own.saturating_mul(2)).max(own).max(budget)
    }

    fn track(&self, width: u16) -> String {
        let (most, width) = (self.end(), usize::from(width));
        let at = |tokens: u64| {
            let column = u128::from(tokens) * (width as u128 - 1) / u128::from(most.max(1));
            usize::try_from(column).unwrap_or_default().min(width - 1)
        };
        let mut line: Vec<char> = vec!['─'; width];
        line[0] = '├';
        line[width - 1] = '┤';
        line[at(self.state.own_budget())] = '│';
        // The tried budget comes last, so that it stays visible on top of the session's own.
        line[at(self.state.budget())] = '●';
        line.into_iter().collect()
    }
}

/// Returns the first column of the slider and its width, including both ends.
fn track(area: Rect) -> (u16, u16) {
    let from = area.x.saturating_add(u16::try_from(LABEL.len()).unwrap_or_default());
    (from, (area.width / 4).clamp(10, 40))
}

impl Widget for BudgetSlider<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let (state, changes) = (self.state, self.state.changes());
        if area.is_empty() || state.own_budget() == 0 {
            return;
        }
        let (budget, own) = (state.budget(), state.own_budget());
        let style = if changes.is_empty() { self.theme.faint } else { self.theme.heading };
        let mut text = format!(" {}", report::grouped(budget));
        if budget != own {
            let _ = write!(text, " (session {})", report::grouped(own));
        }
        let track = self.track(track(area).1);
        let mut spans = vec![Span::styled(LABEL, style), Span::raw(track), Span::styled(text, style)];
        if let Some(effect) = self.effect.filter(|_| !changes.is_empty()) {
            let mut parts = vec![format!("  +{} -{}", effect.came.len(), effect.went.len())];
            let items = changes.items();
            if items > 0 {
                parts.push(format!(", {items} {}", if items == 1 { "change" } else { "changes" }));
            }
            let named = |word: &str, ids: &[ItemId]| {
                let few: Vec<String> = ids.iter().take(4).map(|id| report::brief(id.as_str())).collect();
                let more = if ids.len() > few.len() { " …" } else { "" };
                format!(", {word} {}{more}", few.join(" "))
            };
            if let Some((kept, of)) = effect.kept {
                parts.push(format!(", cached prefix {}", report::percent(kept, of)));
            }
            for (word, ids) in [("added", &effect.came), ("dropped", &effect.went)] {
                if !ids.is_empty() {
                    parts.push(named(word, ids));
                }
            }
            spans.extend(parts.into_iter().map(|parts| Span::styled(parts, self.theme.warning)));
        } else {
            let step = format!("  < > by {}.{} %", state.step() / 10, state.step() % 10);
            spans.push(Span::styled(step, self.theme.faint));
        }
        let mut line = Line::from(spans);
        // A part that fits completely is more useful than a longer one that is cut.
        while line.spans.len() > 1 && line.width() > usize::from(area.width) {
            line.spans.pop();
        }
        super::draw_lines(area, buffer, &[line]);
    }
}
