//! A list of a plan's rows, included and excluded.

use super::{Filter, ItemTexts, ListRow, Theme, WhatIfEffect};
use context_window::{
    ContextPlan, IncludedReason, ItemId, Section, Source,
    plan::{Decision, kind_of},
    text::plain::grouped,
};
use context_window_report as report;
use context_window_report::{RowText, cut_ids, fitted, fitted_id};
use ratatui_core::{buffer::Buffer, layout::Rect, style::Style, text::Line, widgets::StatefulWidget};
use unicode_width::UnicodeWidthStr;

/// A list of all rows of a plan, with sign, tokens and reason. Included rows come first in prompt order,
/// excluded rows follow.
///
/// The first line is a heading. Only visible rows are drawn, so the cost does not depend on the size of the
/// plan.
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::{ContextPreview, PreviewState};
/// # use ratatui_core::{buffer::Buffer, layout::Rect};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(40)))?;
/// # let area = Rect::new(0, 0, 60, 2);
/// # let mut buffer = Buffer::empty(area);
/// # use ratatui_core::widgets::StatefulWidget;
/// let mut state = PreviewState::default(); // outlives the picture
/// ContextPreview::new(&plan).render(area, &mut buffer, &mut state);
/// # let line: String = (0..60).map(|x| buffer[(x, 1)].symbol()).collect();
/// assert!(line.starts_with("+ m0 "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ContextPreview<'a> {
    plan: &'a ContextPlan,
    rows: Option<&'a [ListRow]>,
    texts: Option<&'a ItemTexts<'a>>,
    search: Option<&'a Filter>,
    effect: Option<&'a WhatIfEffect>,
    theme: Theme,
}

/// The selected row, and the first visible row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreviewState {
    /// The index of the selected row, from 0. An index past the end selects the last row.
    pub selected: usize,
    /// The index of the first visible row. Drawing changes it to make the selected row visible.
    pub offset: usize,
}

/// The state of a row as one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Sign {
    /// `+`: included.
    In,
    /// `^`: included because it is pinned.
    Pinned,
    /// `~`: included as a replacement for longer content, such as a summary, or as a placeholder.
    Instead,
    /// `-`: excluded.
    Out,
}

impl Sign {
    /// Creates the sign of a row.
    #[must_use]
    pub fn from_row(row: Decision<'_>) -> Self {
        match row {
            Decision::Excluded(_) => Self::Out,
            Decision::Included(item)
                if matches!(item.reason, IncludedReason::Pinned | IncludedReason::Rule) =>
            {
                Self::Pinned
            }
            Decision::Included(item) if matches!(item.source, Source::Summary | Source::Synthetic) => {
                Self::Instead
            }
            Decision::Included(_) => Self::In,
        }
    }

    /// Returns the character.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::In => "+",
            Self::Pinned => "^",
            Self::Instead => "~",
            Self::Out => "-",
        }
    }
}

impl<'a> ContextPreview<'a> {
    /// Creates the list of this plan's rows.
    #[must_use]
    pub fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, rows: None, texts: None, search: None, effect: None, theme: Theme::default() }
    }

    /// Sets the rows to show and their order, for a filtered or sorted list. Markers need the conversation
    /// from [`ContextPreview::with_texts`].
    #[must_use]
    pub fn with_rows(mut self, rows: &'a [ListRow]) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Starts the text of a row shortly before the match of this filter.
    pub(super) fn with_search(mut self, search: &'a Filter) -> Self {
        self.search = Some(search);
        self
    }

    /// Shows the beginning of each row's text, if there is room. The plan itself contains the texts of
    /// included rows.
    #[must_use]
    pub fn with_texts(mut self, texts: &'a ItemTexts<'a>) -> Self {
        self.texts = Some(texts);
        self
    }

    /// Marks rows that the trial added (`+*`) or dropped (`-*`). A run is marked if any of its messages was
    /// dropped.
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

    /// Returns the number of selectable rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.map_or_else(|| self.plan.row_count(), <[ListRow]>::len)
    }

    /// Returns true if there are no rows to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the row at this index of the list, or `None` for a marker.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<Decision<'a>> {
        match self.rows {
            Some(rows) => rows.get(place)?.decision(self.plan),
            None => self.plan.row_at(place),
        }
    }

    /// Returns the line of the marker at this index of the list, or `None` for a row of the plan. Also
    /// returns `None` if the texts or the conversation are unknown.
    fn marker(&self, place: usize, columns: u16, ids: usize) -> Option<Line<'static>> {
        let texts = self.texts?;
        match self.rows?.get(place)? {
            ListRow::Item(_) => None,
            ListRow::LeftOut(nth) => {
                let (id, document) = texts.left_out().nth(*nth as usize)?;
                let section = if document { Section::Rag } else { Section::SystemPinned };
                let id = fitted_id(&report::printable(id.as_str()), ids);
                let blank = " ".repeat(TOKENS);
                let text = format!("-*{id}{blank}  left out ({})", report::section(section).to_lowercase());
                Some(Line::styled(report::cut(&text, columns.into()), self.theme.warning))
            }
            row => Some(row.marker(texts.log()?, self.theme, columns)),
        }
    }
}

/// The columns of the reason, before any other column is dropped.
const REASON: usize = 34;
/// The minimum columns of the reason next to long ids.
const MIN_REASON: usize = 22;
/// The columns of the token count.
const TOKENS: usize = 11;
/// The columns of the section.
const SECTION: usize = 15;

/// The columns of the reason next to a text.
const WHY_BESIDE: usize = 24;
/// The minimum columns of a text.
const MIN_TEXT: usize = 12;

/// The columns of ids and sections. If texts are shown, also those of the reason.
#[derive(Clone, Copy)]
struct Widths {
    ids: usize,
    section: usize,
    why: Option<usize>,
}

impl Widths {
    /// Returns the widths for `columns` columns if the longest visible id has `longest` columns.
    fn fit_columns(columns: usize, longest: usize) -> Self {
        // Sign and mark take two columns, and two spaces follow the tokens.
        let rest = columns.saturating_sub(2 + TOKENS + 2);
        let section = if rest >= REASON + 12 + SECTION { SECTION } else { 0 };
        // Ids get the columns that the reason leaves. Long ids may narrow the reason to its minimum.
        let usual = rest.saturating_sub(section + REASON).clamp(8.min(rest), 24);
        let most = rest.saturating_sub(section + MIN_REASON).min(40);
        Self { ids: usual.max(longest.min(most)), section, why: None }
    }

    /// Returns the widths with a column for texts. A text is more useful than the section. If there is no
    /// room for a text, returns the widths without texts.
    fn with_texts(columns: usize, longest: usize, longest_why: usize) -> Self {
        const FULL: usize = 120;
        const WIDE: usize = 100;
        let rest = columns.saturating_sub(2 + TOKENS + 2);
        let section = if columns >= FULL { SECTION } else { 0 };
        let ids = longest.clamp(8, 24).min((rest / 4).max(8));
        let most = match columns {
            FULL.. => REASON + 6,
            WIDE.. => REASON,
            _ => WHY_BESIDE,
        };
        let why = longest_why.clamp(12, most);
        // A shorter text would be of no use.
        match rest.checked_sub(ids + section + why + 2) {
            Some(text) if text >= MIN_TEXT => Self { ids, section, why: Some(why) },
            _ => Self::fit_columns(columns, longest),
        }
    }
}

impl ContextPreview<'_> {
    fn heading(&self, columns: usize, widths: Widths, state: PreviewState) -> String {
        let mut text = format!("  {}{:>TOKENS$}  ", fitted("item", widths.ids), "tokens");
        if widths.section > 0 {
            text += &fitted("section", widths.section);
        }
        let place = match self.len() {
            0 => String::new(),
            len => format!(" {}/{}", grouped(state.selected.min(len - 1) as u64 + 1), grouped(len as u64)),
        };
        let room = columns.saturating_sub(place.len());
        text += &widths.why.map_or_else(|| "why".to_owned(), |why| fitted("why", why) + "  text");
        fitted(&text, room) + &place
    }

    fn line(
        &self,
        row: Decision<'_>,
        (id, words): (&str, &RowText),
        columns: usize,
        widths: Widths,
    ) -> String {
        let (sign, id) = (Sign::from_row(row).symbol(), fitted(id, widths.ids));
        let mark = if self.is_changed(row) { "*" } else { " " };
        let mut text = format!("{sign}{mark}{id}{:>TOKENS$}  ", words.tokens);
        if widths.section > 0 {
            text += &fitted(report::section(row.section()), widths.section);
        }
        match (widths.why, self.texts) {
            (Some(why), Some(texts)) => {
                text += &fitted(&words.why, why);
                text += "  ";
                let room = columns.saturating_sub(text.width());
                text += &self.item_text(row, texts, room).unwrap_or_default();
            }
            _ => text += &words.why,
        }
        fitted(&text, columns)
    }

    /// Returns the text of a row as one line. It starts at the beginning, or near the filter's match if the
    /// match is not visible from there.
    fn item_text(&self, row: Decision<'_>, texts: &ItemTexts<'_>, columns: usize) -> Option<String> {
        let start = texts.first_line(row)?;
        let Some(search) = self.search.filter(|filter| !filter.is_empty()) else { return Some(start) };
        let further = || search.excerpt(&report::cut(&start, columns), &texts.text(row)?, columns);
        further().or(Some(start))
    }

    /// Checks if the trial added or dropped the item of this row.
    fn is_changed(&self, row: Decision<'_>) -> bool {
        let Some(effect) = self.effect else { return false };
        let none = ItemTexts::new();
        let texts = self.texts.unwrap_or(&none);
        match row {
            Decision::Included(item) => effect.came.contains(&item.id),
            Decision::Excluded(_) => {
                let is_it = |id: &ItemId| row.id() == id || texts.represents(row, id.as_str());
                effect.went.iter().any(is_it)
            }
        }
    }

    /// Returns the style of a row, and the style of its sign and id.
    fn styles(&self, row: Decision<'_>) -> [Style; 2] {
        match (row, self.is_changed(row)) {
            (Decision::Included(_), true) => [self.theme.good; 2],
            (Decision::Excluded(_), true) => [self.theme.warning; 2],
            (Decision::Excluded(_), false) => [self.theme.faint; 2],
            (Decision::Included(item), false) => [Style::new(), self.theme.kind(&kind_of(item))],
        }
    }
}

impl StatefulWidget for ContextPreview<'_> {
    type State = PreviewState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut PreviewState) {
        if area.is_empty() {
            return;
        }
        let (columns, height) = (usize::from(area.width), usize::from(area.height - 1));
        state.selected = state.selected.min(self.len().saturating_sub(1));
        // The selected row must be visible, and no blank rows follow the last row if there are enough rows.
        let earliest = (state.selected + 1).saturating_sub(height.max(1));
        state.offset = state.offset.clamp(earliest, state.selected).min(self.len().saturating_sub(height));
        let places = (state.offset..self.len()).take(height);
        let top = area.top() + 1;
        // Only the visible rows are formatted: the widths depend on them alone.
        let rows = places.clone().filter_map(|place| Some((place, self.row(place)?)));
        let rows: Vec<_> = rows.map(|(place, row)| (place, row, report::row(self.plan, row))).collect();
        let longest = rows.iter().map(|(.., words)| words.id.width()).max();
        let longest = longest.unwrap_or_default();
        let why = rows.iter().map(|(.., words)| words.why.width()).max().unwrap_or_default();
        let widths = match self.texts {
            Some(_) => Widths::with_texts(columns, longest, why),
            None => Widths::fit_columns(columns, longest),
        };
        for (place, y) in places.zip(top..area.bottom()) {
            if let Some(line) = self.marker(place, area.width, widths.ids) {
                buffer.set_line(area.x, y, &line, area.width);
                if place == state.selected {
                    buffer.set_style(Rect { y, height: 1, ..area }, self.theme.selected);
                }
            }
        }
        let heading = self.heading(columns, widths, *state);
        buffer.set_stringn(area.x, area.y, heading, columns, self.theme.heading);
        // Row numbers make ids unique that would look the same when cut.
        let ids = cut_ids(rows.iter().map(|(place, _, words)| (place + 1, words.id.as_str())), widths.ids);
        for ((place, row, words), id) in rows.into_iter().zip(ids) {
            let y = top + u16::try_from(place - state.offset).unwrap_or(u16::MAX);
            let [style, head] = self.styles(row);
            buffer.set_stringn(area.x, y, self.line(row, (&id, &words), columns, widths), columns, style);
            let line = Rect { y, height: 1, ..area };
            let head_columns = u16::try_from(widths.ids + 2).unwrap_or(u16::MAX).min(area.width);
            buffer.set_style(Rect { width: head_columns, ..line }, head);
            if place == state.selected {
                buffer.set_style(line, self.theme.selected);
            }
        }
    }
}
