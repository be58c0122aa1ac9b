//! A warning that the conversation outgrows its window, and the two ways out.

use super::{Theme, detail::folded, status::conversation_level};
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
    /// Compact the conversation: [`context_window::compaction::Compactor::now`] hands out the request for a
    /// summary, and [`context_window::compaction::Compactor::apply_summary`] takes the summary back;
    /// [`context_window::compaction::Compactor::compact_without_model`] does without a model.
    CompactNow,
    /// Archive everything without a summary: [`context_window::Conversation::start_fresh`].
    StartFresh,
}

impl BannerAction {
    /// Every action, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::CompactNow, Self::StartFresh];

    /// Returns its effect in words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::CompactNow => "compact now",
            Self::StartFresh => "start fresh",
        }
    }
}

/// Which action of a [`Banner`] is selected, and whether the user closed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BannerState {
    action: usize,
    closed: Level,
}

impl BannerState {
    /// Selects the next action; after the last one the first.
    pub fn next_action(&mut self) {
        self.action = (self.action + 1) % BannerAction::ALL.len();
    }

    /// Closes it until the level rises above this one.
    pub fn close(&mut self, usage: &ContextUsage) {
        self.closed = usage.level;
    }

    /// Returns true if it is shown: from the level `Approaching` on, unless the user closed it at this level.
    #[must_use]
    pub fn is_shown(&self, usage: &ContextUsage) -> bool {
        usage.level > self.closed
    }

    /// Returns the selected action, whether the banner is shown or not.
    #[must_use]
    pub fn chosen(&self) -> BannerAction {
        BannerAction::ALL[self.action % BannerAction::ALL.len()]
    }

    /// Returns the selected action, to be performed when the user confirms it, or `None` if the banner is not
    /// shown.
    #[must_use]
    pub fn action(&self, usage: &ContextUsage) -> Option<BannerAction> {
        self.is_shown(usage).then(|| self.chosen())
    }
}

/// `! conversation at 81 % of its limit; prompt fits  [compact now]  start fresh`, from the level
/// `Approaching` on. It is red only if the prompt is over its budget.
///
/// A banner of one row, or of more if it does not fit into one; none below that level. [`Banner::height`]
/// returns the number.
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
    /// Creates the banner of these figures: [`context_window::ContextPlan::usage`], or those of
    /// [`context_window::ContextWindowManager::usage`].
    #[must_use]
    pub fn new(usage: &'a ContextUsage) -> Self {
        Self { usage, theme: Theme::default() }
    }

    /// Draws in these styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the rows that it takes at a width in columns: 0 where it is not shown.
    #[must_use]
    pub fn height(&self, columns: u16, state: &BannerState) -> u16 {
        u16::try_from(self.lines(columns, *state).len()).unwrap_or(u16::MAX)
    }

    fn lines(&self, columns: u16, state: BannerState) -> Vec<Line<'static>> {
        let Some(said) = conversation_level(self.usage) else { return Vec::new() };
        let Some(chosen) = state.action(self.usage) else { return Vec::new() };
        // Red is for a prompt that cannot be sent.
        let (said, style) = if self.usage.prompt_tokens > self.usage.budget {
            (format!("!! {said}"), self.theme.alarm)
        } else {
            (format!("! {said}; prompt fits"), self.theme.warning)
        };
        let action = |action: BannerAction| {
            let label = action.label();
            if action == chosen {
                Span::styled(format!("[{label}]"), self.theme.selected)
            } else {
                Span::styled(format!(" {label} "), self.theme.heading)
            }
        };
        let said = Span::styled(said, style);
        let [first, second] = BannerAction::ALL.map(action);
        let actions = vec![Span::raw("  "), first, Span::raw(" "), second];
        let whole: Line<'static> = [said.clone()].into_iter().chain(actions.clone()).collect();
        if whole.width() <= usize::from(columns) {
            return vec![whole];
        }
        let style = said.style;
        let said = folded(&said.content, columns.into()).into_iter().map(|line| Line::styled(line, style));
        said.chain([Line::from(actions)]).collect()
    }
}

impl StatefulWidget for Banner<'_> {
    type State = BannerState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut BannerState) {
        // A level that was left may warn again.
        state.closed = state.closed.min(self.usage.level);
        super::draw_lines(area, buffer, &self.lines(area.width, *state));
    }
}
