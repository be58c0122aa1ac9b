//! A list of a plan's rows that a user filters, sorts and moves in.

use super::{
    ContextPreview, Filter, FilterError, ItemTexts, ListRow, Move, PreviewState, Theme, WhatIfEffect, filter,
    order, texts::TextIndex,
};
use context_window::{ContextPlan, ItemId, plan::Decision};
use context_window_report as report;
use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
use std::{fmt::Write as _, sync::Arc};

/// The rows that the list shows, in addition to the filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// All rows.
    #[default]
    All,
    /// Included rows only.
    In,
    /// Excluded rows only.
    Out,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortBy {
    /// Included rows in prompt order, then excluded rows in the order of their exclusion.
    #[default]
    Order,
    /// The order of the session. Excluded rows are at their original position. If no filter is set, markers
    /// show compactions, undone compactions and rewinds. Without a conversation ([`ItemTexts::with_log`]),
    /// the same as [`SortBy::Order`].
    Session,
    /// By tokens, the largest first.
    Tokens,
    /// By id, in byte order.
    Id,
    /// By section name.
    Section,
    /// By the name of the reason.
    Reason,
}

impl SortBy {
    /// All orders, in the sequence of [`ItemListState::sort_next`].
    pub const ALL: [Self; 6] =
        [Self::Order, Self::Tokens, Self::Id, Self::Section, Self::Reason, Self::Session];

    /// Returns the display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Session => "session",
            Self::Tokens => "tokens",
            Self::Id => "id",
            Self::Section => "section",
            Self::Reason => "reason",
        }
    }
}

/// The user's choices in an [`ItemList`]: filter, order and selected row. It is valid across plans: a
/// selected item stays selected if the next plan has a row for it.
///
/// The state caches the rows of the list, so drawing does not filter and sort again. Setters clear the cache.
/// The application calls [`ItemListState::refresh_rows`] for another plan or another conversation.
#[derive(Debug, Clone, Default)]
pub struct ItemListState {
    place: PreviewState,
    rows: Arc<[ListRow]>,
    filter: Filter,
    typed: String,
    shown: Shown,
    sort: SortBy,
    reversed: bool,
    /// The numbers of included and excluded rows of the plan that `rows` belongs to. `None` if `rows` is out
    /// of date.
    of: Option<(usize, usize)>,
    /// The id of the selected row, and true for a document.
    selected: Option<(ItemId, bool)>,
    /// The height in rows of the last drawn list, without its heading.
    height: usize,
}

impl ItemListState {
    /// Creates a state that shows every row in the plan's order and selects the first one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Computes the rows of this plan. Call it for every new plan. The selected item stays selected if it has
    /// a row of its own or is part of a run.
    pub fn refresh_rows(&mut self, plan: &ContextPlan, texts: &ItemTexts<'_>) {
        let included = plan.included.len();
        // An index makes lookups of texts O(1). It is built only for a filter, because only a filter reads
        // all texts.
        let index = if self.filter.is_empty() { TextIndex::default() } else { texts.index() };
        let indexed = texts.with_index(&index);
        let texts = if self.filter.is_empty() { texts } else { &indexed };
        let shown = |at: usize| match self.shown {
            Shown::All => true,
            Shown::In => at < included,
            Shown::Out => at >= included,
        };
        let mut why = filter::LastWhy::default();
        let mut matches = |at: usize| {
            plan.row_at(at).is_some_and(|row| self.filter.matches_after(plan, row, texts, &mut why))
        };
        // Markers are events between consecutive rows, so they make sense only if all rows are shown.
        let markers = self.shown == Shown::All && self.filter.is_empty();
        let all = match self.sort {
            SortBy::Session => order::of_session(plan, texts, markers),
            _ => (0..u32::try_from(plan.row_count()).unwrap_or(u32::MAX)).map(ListRow::Item).collect(),
        };
        let mut is_listed = |row: &ListRow| match row {
            ListRow::Item(at) => shown(*at as usize) && matches(*at as usize),
            _ => true,
        };
        let mut rows: Vec<ListRow> = all.into_iter().filter(|row| is_listed(row)).collect();
        self.sort_rows(plan, &mut rows);
        if self.shown != Shown::In {
            rows.extend(left_out(plan, texts));
        }
        if let Some((id, document)) = &self.selected {
            let row = |row: &ListRow| row.decision(plan);
            let is_it =
                |at: &ListRow| row(at).is_some_and(|row| row.id() == id && row.is_document() == *document);
            // An item that became part of a run is selected through the row of the run.
            let holds =
                |at: &ListRow| !document && row(at).is_some_and(|row| texts.represents(row, id.as_str()));
            let left_out = |at: &ListRow| match at {
                ListRow::LeftOut(nth) => texts.left_out().nth(*nth as usize) == Some((id, *document)),
                _ => false,
            };
            // An own row is preferred, then a run that contains the item, then the row of an item that a
            // trial removed.
            let place = rows.iter().position(is_it).or_else(|| rows.iter().position(holds));
            let place = place.or_else(|| rows.iter().position(left_out));
            self.place.selected = place.unwrap_or(self.place.selected);
        }
        self.rows = rows.into();
        self.of = Some((included, plan.excluded.len()));
        // The new list may be shorter than the selected index.
        self.place.selected = self.place.selected.min(self.rows.len().saturating_sub(1));
        self.remember_plan(plan);
    }

    fn sort_rows(&self, plan: &ContextPlan, rows: &mut [ListRow]) {
        let row = |row: &ListRow| row.decision(plan);
        // Keys are cached because computing them clones ids and looks up rows. The sorts are stable, so rows
        // with equal keys keep the plan's order, or its reverse.
        match self.sort {
            SortBy::Order | SortBy::Session => {}
            SortBy::Tokens => {
                rows.sort_by_cached_key(|at| {
                    std::cmp::Reverse(row(at).map(|row| row.token_estimate().tokens))
                });
            }
            SortBy::Id => rows.sort_by_cached_key(|at| row(at).map(|row| row.id().clone())),
            SortBy::Section => rows.sort_by_cached_key(|at| row(at).map(|row| row.section().name())),
            SortBy::Reason => rows.sort_by_cached_key(|at| row(at).map(filter::reason)),
        }
        if self.reversed {
            rows.reverse();
        }
    }

    /// Remembers the selected item of this plan, so that the next plan selects it again. Drawing calls it.
    /// Call it yourself only if you move the selection and refresh without drawing in between.
    pub fn remember_plan(&mut self, plan: &ContextPlan) {
        match self.selected_row() {
            Some(ListRow::Item(_)) => {
                let row = self.row(plan);
                // If the plan no longer has this row, the earlier selection is kept.
                self.selected = row.map(|row| (row.id().clone(), row.is_document())).or(self.selected.take());
            }
            Some(ListRow::LeftOut(_)) | None => {}
            Some(_) => self.selected = None,
        }
    }

    /// Shows only rows that match a filter. An empty text shows all rows.
    ///
    /// # Errors
    ///
    /// Returns an error if a term cannot be parsed. The previous filter stays active.
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        self.filter = text.parse()?;
        text.clone_into(&mut self.typed);
        self.of = None;
        Ok(())
    }

    /// Returns the filter as the user typed it. It may contain unprintable characters.
    #[must_use]
    pub fn filter(&self) -> &str {
        &self.typed
    }

    /// Shows included rows, excluded rows, or both.
    pub fn set_shown(&mut self, shown: Shown) {
        self.shown = shown;
        self.of = None;
    }

    /// Returns the kind of rows that is shown.
    #[must_use]
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// Sorts the rows.
    pub fn sort_by(&mut self, sort: SortBy) {
        self.sort = sort;
        self.of = None;
    }

    /// Sorts by the next order of [`SortBy::ALL`]. The first order follows the last one.
    pub fn sort_next(&mut self) {
        let at = SortBy::ALL.iter().position(|sort| *sort == self.sort).unwrap_or_default();
        self.sort_by(SortBy::ALL[(at + 1) % SortBy::ALL.len()]);
    }

    /// Returns the current order.
    #[must_use]
    pub fn sorted_by(&self) -> SortBy {
        self.sort
    }

    /// Reverses the order.
    pub fn reverse_order(&mut self) {
        self.reversed = !self.reversed;
        self.of = None;
    }

    /// Returns true if the order is reversed.
    #[must_use]
    pub fn is_reversed(&self) -> bool {
        self.reversed
    }

    /// Moves the selection by a step.
    pub fn apply_move(&mut self, step: Move) {
        self.select(step.from(self.place.selected, self.height));
    }

    /// Selects a row of the list by its index from 0. An index past the end selects the last row.
    pub fn select(&mut self, place: usize) {
        self.place.selected = place.min(self.rows.len().saturating_sub(1));
        // The index wins over an item that the next refresh would select.
        self.selected = None;
    }

    /// Selects an item by its id at the next [`ItemListState::refresh_rows`] or draw. `document` is true for
    /// the id of a document.
    pub fn select_id(&mut self, id: impl Into<ItemId>, document: bool) {
        self.selected = Some((id.into(), document));
        self.of = None;
    }

    /// Selects the row in a line of the last drawn list, as for a mouse click. Lines count from the top of
    /// the area, and line 0 is the heading. Returns false if the line has no row.
    pub fn select_line(&mut self, line: u16) -> bool {
        let Some(below) = usize::from(line).checked_sub(1) else { return false };
        let place = self.place.offset + below;
        let is_there = place < self.rows.len();
        if is_there {
            self.select(place);
        }
        is_there
    }

    /// Scrolls to make the selected row visible in an area of `lines` lines, including the heading. Drawing
    /// calls it.
    pub fn scroll_into(&mut self, lines: u16) {
        self.height = usize::from(lines.saturating_sub(1));
        let (len, height) = (self.rows.len(), self.height);
        self.place.selected = self.place.selected.min(len.saturating_sub(1));
        let at = self.place.selected;
        self.place.offset = super::cursor::in_sight(self.place.offset, at, at + 1, height.max(1), len);
    }

    /// Returns the selected row of this plan, or `None` if a marker is selected.
    #[must_use]
    pub fn row<'p>(&self, plan: &'p ContextPlan) -> Option<Decision<'p>> {
        self.selected_row()?.decision(plan)
    }

    /// Returns the selected row, which may be a marker.
    #[must_use]
    pub fn selected_row(&self) -> Option<ListRow> {
        self.rows.get(self.place.selected).copied()
    }

    /// Returns the rows of the list in order.
    #[must_use]
    pub fn rows(&self) -> &[ListRow] {
        &self.rows
    }

    /// Returns the index of the selected row in the list.
    #[must_use]
    pub fn selected(&self) -> usize {
        self.place.selected
    }

    /// Returns the index of the first visible row.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.place.offset
    }
}

/// Returns a row for each item that the trial removes from the request and that has no row in the plan.
fn left_out(plan: &ContextPlan, texts: &ItemTexts<'_>) -> Vec<ListRow> {
    // Linear in the rows for each removed item; a user removes few items.
    let has_row = |id: &ItemId, document: bool| {
        let rows = (0..plan.row_count()).filter_map(|at| plan.row_at(at));
        rows.into_iter().any(|row| row.is_document() == document && row.id() == id)
    };
    let is_left_out = |(id, document): (&ItemId, bool)| {
        // A message stays in the conversation without its pin, so only notes and documents can lose their
        // row.
        !has_row(id, document) && (document || texts.message(id.as_str()).is_none())
    };
    let all = (0..).zip(texts.left_out());
    all.filter(|(_, item)| is_left_out(*item)).map(|(nth, _)| ListRow::LeftOut(nth)).collect()
}

/// A list of a plan's rows, as chosen by an [`ItemListState`]. A heading comes first, then one row for each
/// item with its sign, tokens and reason. With [`ItemList::with_texts`] and enough room, a row also shows the
/// beginning of its text.
///
/// ```
/// use context_window::*;
/// use context_window_ratatui::{ItemList, ItemListState, ItemTexts, Move, Shown};
/// use ratatui_core::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
///
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_rag([(0.1, "hours", "Open from 9 to 18.")]);
/// let plan = manager.build_plan(&request)?;
///
/// let mut state = ItemListState::new(); // outlives the picture
/// state.set_filter("section:documents").expect("a filter");
/// let area = Rect::new(0, 0, 80, 4);
/// let mut screen = Buffer::empty(area);
/// let texts = ItemTexts::from_request(&request);
/// ItemList::new(&plan).with_texts(&texts).render(area, &mut screen, &mut state);
/// # let line: String = (0..80).map(|x| screen[(x, 1)].symbol()).collect();
/// assert!(line.starts_with("+ hours ") && line.contains("Open from"));
/// assert_eq!(state.row(&plan).unwrap().id(), "hours");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ItemList<'a> {
    plan: &'a ContextPlan,
    texts: Option<&'a ItemTexts<'a>>,
    effect: Option<&'a WhatIfEffect>,
    empty: &'a str,
    theme: Theme,
}

impl<'a> ItemList<'a> {
    /// Creates the list of this plan.
    #[must_use]
    pub fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, texts: None, effect: None, empty: "no matches", theme: Theme::default() }
    }

    /// Shows texts in the rows, and finds messages inside runs by id.
    #[must_use]
    pub fn with_texts(mut self, texts: &'a ItemTexts<'a>) -> Self {
        self.texts = Some(texts);
        self
    }

    /// Marks the items that the trial added or dropped.
    #[must_use]
    pub fn with_effect(mut self, effect: &'a WhatIfEffect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Sets the text that is drawn if no row is shown (default: `no matches`).
    #[must_use]
    pub fn with_empty(mut self, text: &'a str) -> Self {
        self.empty = text;
        self
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns a printable title for the surrounding frame: `Items · in 13 · out 2 · filter
    /// section:documents`.
    #[must_use]
    pub fn title(&self, state: &ItemListState) -> String {
        // A row of excluded messages may be a run, so counts are added up.
        let out: u64 = self.plan.excluded.iter().map(|row| row.count).sum();
        let held = report::grouped(self.plan.included.len() as u64);
        let mut title = format!("Items · in {held} · out {}", report::grouped(out));
        match state.shown {
            Shown::All => {}
            Shown::In => title += " · only in",
            Shown::Out => title += " · only out",
        }
        if !state.typed.is_empty() {
            let _ = write!(title, " · filter {}", report::brief(&state.typed));
        }
        if state.sort != SortBy::Order || state.reversed {
            let turned = if state.reversed { ", reversed" } else { "" };
            let _ = write!(title, " · sorted by {}{turned}", state.sort.name());
        }
        title
    }
}

impl StatefulWidget for ItemList<'_> {
    type State = ItemListState;

    fn render(self, area: Rect, buffer: &mut Buffer, state: &mut ItemListState) {
        let (plan, none) = (self.plan, ItemTexts::new());
        // Equal numbers of rows do not prove that the plan is the same; the application refreshes for a new
        // plan.
        if state.of != Some((plan.included.len(), plan.excluded.len())) {
            state.refresh_rows(plan, self.texts.unwrap_or(&none));
        }
        state.scroll_into(area.height);
        state.remember_plan(plan);
        let list = ContextPreview::new(plan).with_rows(&state.rows).with_theme(self.theme);
        let list = list.with_sought(&state.filter);
        let list = match self.texts {
            Some(texts) => list.with_texts(texts),
            None => list,
        };
        let list = match self.effect {
            Some(effect) => list.with_effect(effect),
            None => list,
        };
        let nothing = list.is_empty();
        list.render(area, buffer, &mut state.place);
        if nothing && area.height > 1 {
            let said = report::wrapped(&report::printable(self.empty), area.width.max(1).into());
            for (line, y) in said.iter().zip(area.top() + 1..area.bottom()) {
                buffer.set_stringn(area.x, y, line, area.width.into(), self.theme.faint);
            }
        }
    }
}
