//! The details of one item: its kind, its reason, the budgets that would change its decision, and its text.

use super::{ItemTexts, Move, RowExplanation, Theme, cursor::scroll_offset};
use context_window::{ContextPlan, ItemId, Section, Source, Ttl, plan::Decision};
use context_window_report as report;
use ratatui_core::{buffer::Buffer, layout::Rect, style::Style, text::Line, widgets::StatefulWidget};
use unicode_width::UnicodeWidthStr;

/// The maximum length of a shown text, in characters.
const SHOWN: usize = 20_000;

/// The explanation in an [`ItemDetail`]: the budgets that would change the decision about the item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemExplanation<'a> {
    /// No explanation.
    #[default]
    None,
    /// An explanation that is still being computed, because it plans several times.
    Pending,
    /// A finished explanation ([`RowExplanation`]). It is shown only for the row that it explains.
    Text {
        /// The id of the explained row: [`Decision::qualified_id`].
        item_id: &'a str,
        /// The text of `report::explanation(&manager.explainer(&request).explain(of)?).to_string()`. Its
        /// first line repeats the row and is not drawn.
        text: &'a str,
    },
    /// The error of an explanation that failed.
    Failed(&'a str),
}

impl<'a> From<&'a RowExplanation> for ItemExplanation<'a> {
    fn from(explanation: &'a RowExplanation) -> Self {
        Self::Text { item_id: &explanation.item_id, text: &explanation.text }
    }
}

/// The scroll position of an [`ItemDetail`]. It returns to the top when another item is shown.
#[derive(Debug, Clone, Default)]
pub struct DetailState {
    offset: usize,
    of: Option<(ItemId, bool)>,
    /// The height in rows of the last drawn area.
    height: usize,
    /// The number of all lines at the last draw.
    lines: usize,
}

impl DetailState {
    /// Scrolls by a step.
    pub fn apply_move(&mut self, step: Move) {
        let most = self.lines.saturating_sub(self.height);
        self.offset = step.from(self.offset, self.height).min(most);
    }

    /// Returns the first visible line.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The details of one row of a plan: `out: dropped: too large; 30 tokens left, >=31 tokens`. The section, the
/// source, the explanation if the application has one, and the item's text if it is known follow.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{DetailState, ItemDetail, ItemTexts, WhatIf};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log);
/// let plan = manager.build_plan(&request)?;
/// let row = plan.find("m0").expect("it is in");
/// let why = WhatIf::new().explain(&manager, &request, row)?;
///
/// let (area, mut state) = (Rect::new(0, 0, 60, 8), DetailState::default());
/// let mut screen = Buffer::empty(area);
/// let texts = ItemTexts::from_request(&request);
/// let detail = ItemDetail::new(&plan, row).with_texts(&texts).with_explanation(&why);
/// detail.render(area, &mut screen, &mut state);
/// # let line: String = (0..60).map(|x| screen[(x, 0)].symbol()).collect();
/// assert!(line.starts_with("in: required: live question, "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ItemDetail<'a> {
    plan: &'a ContextPlan,
    row: Decision<'a>,
    texts: Option<&'a ItemTexts<'a>>,
    explanation: ItemExplanation<'a>,
    theme: Theme,
}

impl<'a> ItemDetail<'a> {
    /// Creates the details of this row of this plan.
    #[must_use]
    pub fn new(plan: &'a ContextPlan, row: Decision<'a>) -> Self {
        Self { plan, row, texts: None, explanation: ItemExplanation::None, theme: Theme::default() }
    }

    /// Sets the source of texts of excluded items. The plan itself contains the texts of included items.
    #[must_use]
    pub fn with_texts(mut self, texts: &'a ItemTexts<'a>) -> Self {
        self.texts = Some(texts);
        self
    }

    /// Sets the explanation of the budgets that would change the decision.
    #[must_use]
    pub fn with_explanation(mut self, explanation: impl Into<ItemExplanation<'a>>) -> Self {
        self.explanation = explanation.into();
        self
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns a printable title for the surrounding frame: `Detail` and the id.
    #[must_use]
    pub fn title(&self) -> String {
        format!("Detail {}", report::brief(self.row.id().as_str()))
    }

    /// Returns all lines at a width in columns. They are printable.
    #[must_use]
    pub fn lines(&self, columns: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut say = |text: &str, style: Style| {
            lines.extend(wrap_line(text, columns.into()).into_iter().map(|line| Line::styled(line, style)));
        };
        let words = report::row(self.plan, self.row);
        let (place, style) = match self.row {
            Decision::Included(_) => ("in", self.theme.good),
            Decision::Excluded(_) => ("out", self.theme.warning),
        };
        say(&format!("{place}: {}, {} tokens", words.why, words.tokens), style);
        say(&item_description(self.row), self.theme.faint);
        match self.explanation {
            ItemExplanation::Text { item_id, text } if item_id == self.row.qualified_id() => {
                // The first line of an explanation repeats the row, which is drawn already.
                text.lines().skip(1).for_each(|line| say(&report::shown(line), Style::new()));
            }
            ItemExplanation::Failed(error) => say(&report::printable(error), self.theme.alarm),
            ItemExplanation::Pending => say("  explaining ...", self.theme.faint),
            ItemExplanation::Text { .. } | ItemExplanation::None => {}
        }
        let none = ItemTexts::new();
        let texts = self.texts.unwrap_or(&none);
        // Scores of several lists cannot be compared; the reason has the ranks.
        let ranks = match self.row {
            Decision::Included(item) => item.ranks(),
            Decision::Excluded(item) => item.ranks(),
        };
        let is_scored = self.row.is_document() && ranks.is_empty();
        if let Some(item) = texts.document(self.row.id().as_str()).filter(|_| is_scored) {
            say(&format!("  score {}", item.score()), self.theme.faint);
        }
        say("", Style::new());
        let Some(text) = texts.text(self.row) else {
            say("no text in the session", self.theme.faint);
            return lines;
        };
        let shown = text.char_indices().nth(SHOWN).map_or(&*text, |(at, _)| &text[..at]);
        shown.lines().for_each(|line| say(&report::shown(line), Style::new()));
        if shown.len() < text.len() {
            let rest = report::grouped((text.len() - shown.len()) as u64);
            say(&format!("... {rest} more bytes"), self.theme.faint);
        }
        lines
    }

    /// Scrolls as drawing in this area would: no blank rows follow the last line, and another item starts at
    /// the top.
    pub fn scroll_into(&self, area: Rect, state: &mut DetailState) {
        self.scroll(self.lines(area.width).len(), area, state);
    }

    fn scroll(&self, lines: usize, area: Rect, state: &mut DetailState) {
        let shown = Some((self.row.id().clone(), self.row.is_document()));
        // A document and a message may share an id (rule O5), so the id alone does not identify the item.
        if state.of != shown {
            (state.of, state.offset) = (shown, 0);
        }
        (state.height, state.lines) = (area.height.into(), lines);
        state.offset = scroll_offset(state.offset, state.offset, state.offset, state.height, lines);
    }
}

impl StatefulWidget for ItemDetail<'_> {
    type State = DetailState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut DetailState) {
        let lines = self.lines(area.width);
        self.scroll(lines.len(), area, state);
        super::draw_lines(area, buffer, lines.get(state.offset..).unwrap_or_default());
    }
}

/// Wraps a line to `columns` columns. The following lines get the indentation of the first one.
pub(super) fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    if line.width() <= columns {
        return vec![line.to_owned()];
    }
    let words = line.trim_start_matches(' ');
    // At most half of the columns, so that deeply indented text keeps room for words.
    let indent = (line.len() - words.len()).min(columns / 2);
    let lines = report::wrapped(words, columns.saturating_sub(indent).max(1));
    lines.into_iter().map(|line| " ".repeat(indent) + &line).collect()
}

/// Returns the section, source, role, priority and remaining TTL of a row.
fn item_description(row: Decision<'_>) -> String {
    let ttl = |ttl: Option<Ttl>| ttl.map(|ttl| format!(" · {}", report::ttl(ttl))).unwrap_or_default();
    match row {
        Decision::Included(item) => {
            let role = item.role.map(|role| format!(" · role {}", role.name())).unwrap_or_default();
            let (section, priority) = (report::section(item.section), item.priority.name());
            let source = if same(item.section, item.source) {
                String::new()
            } else {
                format!(" · {}", report::source(item.source))
            };
            format!("{section}{source}{role} · priority {priority}{}", ttl(item.ttl))
        }
        Decision::Excluded(item) => {
            let section = report::section(item.section);
            let source = item.source.filter(|source| !same(item.section, *source));
            let source = source.map(|source| format!(" · {}", report::source(source))).unwrap_or_default();
            format!("{section}{source}{}", ttl(item.ttl))
        }
    }
}

/// Checks if the source repeats the section's name.
fn same(section: Section, source: Source) -> bool {
    section.name() == source.name()
}
