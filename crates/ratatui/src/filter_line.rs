//! The input line for a filter.

use super::{FilterError, ItemListState, Theme};
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::StatefulWidget,
};
use unicode_segmentation::UnicodeSegmentation;

/// A filter while the user types it. Every keystroke applies the filter at once. An invalid filter leaves the
/// rows unchanged.
///
/// ```
/// use context_window_ratatui::{FilterLineState, ItemListState};
///
/// let (mut line, mut list) = (FilterLineState::default(), ItemListState::new());
/// "tokens:5".chars().for_each(|c| line.insert(c, &mut list)); // as keys are pressed
/// assert!(line.error().is_some_and(|error| error.to_string().contains("expected")));
/// line.clear(&mut list);
/// assert_eq!(list.filter(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct FilterLineState {
    text: String,
    error: Option<FilterError>,
}

impl FilterLineState {
    /// Starts with the filter of this list.
    #[must_use]
    pub fn from_list(list: &ItemListState) -> Self {
        Self { text: list.filter().to_owned(), error: None }
    }

    /// Appends a character.
    pub fn insert(&mut self, letter: char, list: &mut ItemListState) {
        self.text.push(letter);
        self.filter(list);
    }

    /// Removes the last character.
    pub fn erase(&mut self, list: &mut ItemListState) {
        // A grapheme cluster, so that an accent or emoji of several code points disappears as one.
        let before = self.text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
        self.text.truncate(before);
        self.filter(list);
    }

    /// Removes the whole text, so that every row is shown.
    pub fn clear(&mut self, list: &mut ItemListState) {
        self.text.clear();
        self.filter(list);
    }

    /// Returns the typed text. It may contain unprintable characters.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the error of the typed text, or `None` if it is a valid filter.
    #[must_use]
    pub fn error(&self) -> Option<&FilterError> {
        self.error.as_ref()
    }

    fn filter(&mut self, list: &mut ItemListState) {
        self.error = list.set_filter(&self.text).err();
    }
}

/// A row such as `filter: section:documents`, followed by the error if there is one. If the text is too long,
/// its end is shown.
///
/// ```
/// use context_window_ratatui::{FilterLine, FilterLineState, ItemListState};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
///
/// let (mut line, mut list) = (FilterLineState::default(), ItemListState::new());
/// ">x".chars().for_each(|c| line.insert(c, &mut list));
/// let area = Rect::new(0, 0, 60, 1);
/// let mut screen = Buffer::empty(area);
/// FilterLine::new().render(area, &mut screen, &mut line);
/// # let text: String = (0..60).map(|x| screen[(x, 0)].symbol()).collect();
/// assert!(text.starts_with("filter: >x▏  `>x`: expected a number of tokens"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct FilterLine {
    theme: Theme,
}

impl FilterLine {
    /// Creates the line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }
}

impl StatefulWidget for FilterLine {
    type State = FilterLineState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut FilterLineState) {
        const LABEL: &str = "filter: ";
        let room = usize::from(area.width).saturating_sub(LABEL.len() + 1);
        let text = report::printable(&state.text);
        // Characters are typed at the end, so the end is visible.
        let start =
            text.grapheme_indices(true).map(|(at, _)| at).find(|at| Span::raw(&text[*at..]).width() <= room);
        let shown = &text[start.unwrap_or(text.len())..];
        let mut spans = vec![Span::styled(LABEL, self.theme.heading), Span::raw(shown), Span::raw("▏")];
        if let Some(error) = &state.error {
            spans.push(Span::styled(format!("  {error}"), self.theme.alarm));
        }
        super::draw_lines(area, buffer, &[Line::from(spans)]);
    }
}
