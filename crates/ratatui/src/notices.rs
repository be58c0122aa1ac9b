//! The notices of a plan, and the actions that a user can take on each.

use super::{Move, NoticeAction, Theme, cursor::scroll_offset, detail::wrap_line};
use context_window::{
    ContextPlan, ItemId,
    plan::{Notice, NoticeCode},
};
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::StatefulWidget,
};

/// The selected notice and the selected action of a [`NoticeList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeListState {
    selected: usize,
    action: usize,
    offset: usize,
    height: usize,
    turns: u32,
    /// The identity of the selected notice at the last draw. The selected action belongs to this notice only.
    of: Option<(NoticeCode, Vec<ItemId>)>,
}

/// Selects the first notice. "keep" means one turn.
impl Default for NoticeListState {
    fn default() -> Self {
        Self { selected: 0, action: 0, offset: 0, height: 0, turns: 1, of: None }
    }
}

impl NoticeListState {
    /// Creates a state that selects the first notice. "keep" means `turns` turns; 0 counts as 1.
    #[must_use]
    pub fn with_turns(turns: u32) -> Self {
        Self { turns: turns.max(1), ..Self::default() }
    }

    /// Selects another entry of the list by a step.
    pub fn apply_move(&mut self, step: Move) {
        (self.selected, self.action, self.of) = (step.from(self.selected, self.height), 0, None);
    }

    /// Selects the next action of the notice. The first action follows the last one.
    pub fn next_action(&mut self) {
        self.action = self.action.saturating_add(1);
    }

    /// Selects the previous action. The first action stays selected.
    pub fn previous_action(&mut self) {
        self.action = self.action.saturating_sub(1);
    }

    /// Returns the index of the selected entry, from 0.
    #[must_use]
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the selected action, or `None` if the selected notice has no actions. Call it when the user
    /// confirms the selection.
    #[must_use]
    pub fn action(&self, plan: &ContextPlan) -> Option<NoticeAction> {
        let entries = entries(plan);
        let Entry::Notice(notice) = entries.get(self.selected.min(entries.len().checked_sub(1)?))? else {
            return None;
        };
        let actions = NoticeAction::for_notice(plan, notice, self.turns);
        // The plan may have changed since the last draw. An action that the user chose for one notice must
        // not apply to
        // another one at the same index.
        let is_another = self.of.as_ref().is_some_and(|of| *of != identity(notice));
        let at = if is_another { 0 } else { self.action.checked_rem(actions.len())? };
        actions.into_iter().nth(at)
    }
}

/// A list of a plan's notices. If the required items exceed the budget, the remedies come first. The selected
/// notice shows its actions, with the selected one in brackets.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{NoticeList, NoticeListState};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let mut config = Config::default();
/// # config.ttl_policy = config::TtlPolicy::Ask;
/// # let manager = ContextWindowManager::configured(model, config)?;
/// let mut log = Conversation::from([Message::user("Hi!")]);
/// log.pin(PinnedItem::new("voucher", "Ida has a voucher.").with_ttl(Ttl::turns(0)));
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
///
/// let mut state = NoticeListState::default();
/// let area = Rect::new(0, 0, 80, 4);
/// let mut screen = Buffer::empty(area);
/// NoticeList::new(&plan).render(area, &mut screen, &mut state);
/// # let line = |y| (0..80).map(|x| screen[(x, y)].symbol().to_owned()).collect::<String>();
/// assert!(line(0).starts_with("T2  voucher: expired"));
/// assert!(line(1).starts_with("    [re-pin]  keep 1 turn   drop "));
/// if let Some(action) = state.action(&plan) { // when Enter is pressed
///     action.apply(&mut log)?;
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NoticeList<'a> {
    plan: &'a ContextPlan,
    theme: Theme,
}

/// One entry of the list: a line of text, or a notice.
enum Entry<'a> {
    Text(String, Tone),
    Notice(&'a Notice),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Alarm,
    Heading,
    Plain,
    Good,
}

/// Returns a key that identifies a notice across plans.
fn identity(notice: &Notice) -> (NoticeCode, Vec<ItemId>) {
    (notice.code, notice.ids.clone())
}

fn entries(plan: &ContextPlan) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut say = |text: String, tone: Tone| entries.push(Entry::Text(text, tone));
    if let Some(overflow) = &plan.overflow {
        say(format!("over budget by {} tokens", report::grouped(overflow.tokens)), Tone::Alarm);
        say(format!("required items: {}", report::largest(plan)), Tone::Plain);
        say(format!("these alone exceed the budget: {}", report::conflict(overflow)), Tone::Plain);
        say("any one of these makes it fit:".into(), Tone::Heading);
        for remedy in &overflow.remedies {
            say(format!("  {}", report::remedy(remedy, &plan.limits)), Tone::Plain);
        }
        say(String::new(), Tone::Plain);
    } else if plan.notices.is_empty() {
        say("no notices".into(), Tone::Good);
    }
    entries.extend(plan.notices.iter().map(Entry::Notice));
    entries
}

impl<'a> NoticeList<'a> {
    /// Creates the list of this plan's notices.
    #[must_use]
    pub fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, theme: Theme::default() }
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the number of selectable entries, at least 1.
    #[must_use]
    pub fn len(&self) -> usize {
        entries(self.plan).len()
    }

    /// Returns true if there are no notices and the prompt fits its budget.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plan.notices.is_empty() && self.plan.overflow.is_none()
    }

    fn entry(
        &self,
        entry: &Entry<'_>,
        columns: usize,
        selected: bool,
        state: &NoticeListState,
    ) -> Vec<Line<'static>> {
        let theme = &self.theme;
        let (text, style) = match entry {
            Entry::Text(text, Tone::Alarm) => (text.clone(), theme.alarm),
            Entry::Text(text, Tone::Heading) => (text.clone(), theme.heading),
            Entry::Text(text, Tone::Good) => (text.clone(), theme.good),
            Entry::Text(text, Tone::Plain) => (text.clone(), Style::new()),
            Entry::Notice(notice) => {
                (format!("{:<3} {}", notice.rule(), report::sentence(notice)), Style::new())
            }
        };
        let style = if selected { style.patch(theme.selected) } else { style };
        let text = wrap_line(&report::printable(&text), columns);
        let mut lines: Vec<Line<'static>> = text.into_iter().map(|line| Line::styled(line, style)).collect();
        if let (Entry::Notice(notice), true) = (entry, selected) {
            lines.extend(self.actions(notice, columns, state));
        }
        lines
    }

    /// Returns the actions of a notice, wrapped to lines of `columns` columns.
    fn actions(&self, notice: &Notice, columns: usize, state: &NoticeListState) -> Vec<Line<'static>> {
        const INDENT: usize = 4;
        let actions = NoticeAction::for_notice(self.plan, notice, state.turns);
        let chosen = state.action.checked_rem(actions.len());
        let (mut lines, mut spans, mut used) = (Vec::new(), vec![Span::raw(" ".repeat(INDENT))], INDENT);
        for (at, action) in actions.iter().enumerate() {
            let mut label = action.label();
            // With several items, a label without an id would be ambiguous.
            if notice.ids.len() > 1 {
                label = format!("{label} {}", report::brief(action.id().as_str()));
            }
            let is_it = Some(at) == chosen;
            let text = if is_it { format!("[{label}]") } else { format!(" {label} ") };
            let style = if is_it { self.theme.heading } else { self.theme.faint };
            let span = Span::styled(text, style);
            let width = span.width();
            // An action is never split; one that is wider than the line still gets a line of its own.
            if used > INDENT && used + width > columns {
                lines.push(Line::from(std::mem::replace(&mut spans, vec![Span::raw(" ".repeat(INDENT))])));
                used = INDENT;
            }
            used += width + 1;
            spans.push(span);
            spans.push(Span::raw(" "));
        }
        if spans.len() > 1 {
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Returns the height in rows at a width in columns, including the actions of the selected entry.
    #[must_use]
    pub fn height(&self, columns: u16, state: &NoticeListState) -> u16 {
        let area = Rect { x: 0, y: 0, width: columns, height: u16::MAX };
        // A clone, because measuring must not scroll the state.
        u16::try_from(self.scroll(area, &mut state.clone()).len()).unwrap_or(u16::MAX)
    }

    /// Scrolls to make the selected entry visible in this area. Drawing calls it.
    pub fn scroll_into(&self, area: Rect, state: &mut NoticeListState) {
        self.scroll(area, state);
    }

    /// Builds all lines, and scrolls the state to make the selected entry visible.
    fn scroll(&self, area: Rect, state: &mut NoticeListState) -> Vec<Line<'static>> {
        let entries = entries(self.plan);
        state.selected = state.selected.min(entries.len().saturating_sub(1));
        state.height = area.height.into();
        if let Some(Entry::Notice(notice)) = entries.get(state.selected) {
            let now = Some(identity(notice));
            // Another notice is now at this index, so the chosen action no longer applies.
            if state.of.is_some() && state.of != now {
                state.action = 0;
            }
            state.of = now;
        }
        let (mut lines, mut from, mut to) = (Vec::new(), 0, 0);
        for (at, entry) in entries.iter().enumerate() {
            let selected = at == state.selected;
            let more = self.entry(entry, area.width.into(), selected, state);
            if selected {
                (from, to) = (lines.len(), lines.len() + more.len());
            }
            lines.extend(more);
        }
        state.offset = scroll_offset(state.offset, from, to, state.height, lines.len());
        lines
    }
}

impl StatefulWidget for NoticeList<'_> {
    type State = NoticeListState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut NoticeListState) {
        let lines = self.scroll(area, state);
        super::draw_lines(area, buffer, lines.get(state.offset..).unwrap_or_default());
    }
}
