//! A warning for a conversation that approaches its limit, with the two remedies.

use super::{Theme, detail::wrap_line, status::conversation_level};
use context_window::usage::{ContextUsage, Level};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::StatefulWidget,
};

/// The action that a user chose in a [`Banner`]. The application performs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BannerAction {
    /// Compaction of the conversation. [`context_window::compaction::Compactor::now`] returns the request for
    /// a summary, and [`context_window::compaction::Compactor::apply_summary`] accepts the finished summary.
    /// [`context_window::compaction::Compactor::compact_without_model`] needs no model.
    CompactNow,
    /// Archiving of every message without a summary: [`context_window::Conversation::start_fresh`].
    StartFresh,
}

impl BannerAction {
    /// All actions, in display order.
    pub const ALL: [Self; 2] = [Self::CompactNow, Self::StartFresh];

    /// Returns the action's label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::CompactNow => "compact now",
            Self::StartFresh => "start fresh",
        }
    }
}

/// The selected action of a [`Banner`], and the usage level at which the user closed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BannerState {
    action: usize,
    closed: Level,
}

impl BannerState {
    /// Selects the next action. The first action follows the last one.
    pub fn next_action(&mut self) {
        self.action = (self.action + 1) % BannerAction::ALL.len();
    }

    /// Closes the banner until the usage level rises above that of `usage`.
    pub fn close(&mut self, usage: &ContextUsage) {
        self.closed = usage.level;
    }

    /// Returns true if the banner is shown. The level must be at least `Approaching`, and higher than the
    /// level at which the user closed the banner.
    #[must_use]
    pub fn is_shown(&self, usage: &ContextUsage) -> bool {
        usage.level > self.closed
    }

    /// Returns the selected action, even if the banner is hidden.
    #[must_use]
    pub fn chosen(&self) -> BannerAction {
        BannerAction::ALL[self.action % BannerAction::ALL.len()]
    }

    /// Returns the selected action, or `None` if the banner is hidden. Call it when the user confirms the
    /// selection.
    #[must_use]
    pub fn action(&self, usage: &ContextUsage) -> Option<BannerAction> {
        self.is_shown(usage).then(|| self.chosen())
    }
}

/// A warning about the conversation's usage: `! conversation at 81 % of its limit; prompt fits  [compact now]
/// start fresh`.
///
/// It is shown from the level `Approaching` on, and is red only if the prompt exceeds its budget. It takes
/// one row, or more if the text does not fit into one. [`Banner::height`] returns the number of rows.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{Banner, BannerAction, BannerState};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let mut log = Conversation::from([Message::user("How long do refunds take? ".repeat(8))]);
/// let mut limits = RequestLimits::new();
/// (limits.model_context_len, limits.max_completion_tokens) = (Some(80), Some(8));
/// let usage = manager.usage(&PlanRequest::new(&log).with_limits(limits))?;
///
/// let mut state = BannerState::default();
/// let area = Rect::new(0, 0, 100, 1);
/// let mut screen = Buffer::empty(area);
/// Banner::new(&usage).render(area, &mut screen, &mut state);
/// # let line: String = (0..100).map(|x| screen[(x, 0)].symbol()).collect();
/// assert!(line.starts_with("! conversation at 8") && line.contains("[compact now]  start fresh"));
/// state.next_action(); // when Tab is pressed
/// if state.action(&usage) == Some(BannerAction::StartFresh) { // when Enter is pressed
///     log.start_fresh();
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Banner<'a> {
    usage: &'a ContextUsage,
    theme: Theme,
}

impl<'a> Banner<'a> {
    /// Creates the banner for these figures, from [`context_window::ContextPlan::usage`] or
    /// [`context_window::ContextWindowManager::usage`].
    #[must_use]
    pub fn new(usage: &'a ContextUsage) -> Self {
        Self { usage, theme: Theme::default() }
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the height in rows at a width in columns. Returns 0 if the banner is hidden.
    #[must_use]
    pub fn height(&self, columns: u16, state: &BannerState) -> u16 {
        u16::try_from(self.lines(columns, *state).len()).unwrap_or(u16::MAX)
    }

    fn lines(&self, columns: u16, state: BannerState) -> Vec<Line<'static>> {
        let Some(text) = conversation_level(self.usage) else { return Vec::new() };
        let Some(chosen) = state.action(self.usage) else { return Vec::new() };
        // Red is reserved for a prompt that exceeds its budget and cannot be sent.
        let (text, style) = if self.usage.prompt_tokens > self.usage.budget {
            (format!("!! {text}"), self.theme.alarm)
        } else {
            (format!("! {text}; prompt fits"), self.theme.warning)
        };
        let action = |action: BannerAction| {
            let label = action.label();
            if action == chosen {
                Span::styled(format!("[{label}]"), self.theme.selected)
            } else {
                Span::styled(format!(" {label} "), self.theme.heading)
            }
        };
        let text = Span::styled(text, style);
        let [first, second] = BannerAction::ALL.map(action);
        let actions = vec![Span::raw("  "), first, Span::raw(" "), second];
        // Only the text can be wrapped: the actions then get a row of their own.
        let whole: Line<'static> = [text.clone()].into_iter().chain(actions.clone()).collect();
        if whole.width() <= usize::from(columns) {
            return vec![whole];
        }
        let style = text.style;
        let text = wrap_line(&text.content, columns.into()).into_iter().map(|line| Line::styled(line, style));
        text.chain([Line::from(actions)]).collect()
    }
}

impl StatefulWidget for Banner<'_> {
    type State = BannerState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut BannerState) {
        // If the level has fallen since the user closed the banner, a new rise shows the banner again.
        state.closed = state.closed.min(self.usage.level);
        super::draw_lines(area, buffer, &self.lines(area.width, *state));
    }
}
