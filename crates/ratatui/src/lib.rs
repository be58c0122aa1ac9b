//! Widgets for applications on ratatui. They show the composition of the prompt, a plan's rows with their
//! reasons, and the conversation with its compactions. They also let users try budgets and pins, and decide
//! about expired items.
//!
//! Each widget needs a [`context_window::ContextPlan`], a [`context_window::usage::ContextUsage`] or a record
//! of the log. [`ItemTexts`] adds the texts of excluded items. Widgets draw in 16 colours or without colour
//! ([`Theme::plain`]). Signs and words repeat the meaning of each colour.
//!
//! An interactive widget has a state that you keep between draws: [`ItemListState`], [`DetailState`],
//! [`WhatIfState`], [`NoticeListState`], [`BannerState`], [`TranscriptState`]. No widget handles keys, and
//! none changes a conversation. If a key is pressed, your application calls a method of the state, and
//! performs the action that it returns ([`NoticeAction`], [`BannerAction`], [`WhatIf`]).
//!
//! ```
//! use context_window::*;
//! use context_window_ratatui::{ContextPreview, PreviewState, StatusLine};
//! use ratatui_core::{buffer::Buffer, layout::Rect, widgets::{StatefulWidget, Widget}};
//!
//! # fn main() -> Result<(), Error> {
//! let mut model = Model::custom("small");
//! model.tokenizer = Some("chars/4".into());
//! let manager = ContextWindowManager::configured(model, Config::default())?;
//! let log = Conversation::from([Message::user("How long do refunds take?")]);
//! let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(1_000)))?;
//!
//! let mut screen = Buffer::empty(Rect::new(0, 0, 60, 4));
//! StatusLine::new(&plan.usage).render(Rect::new(0, 0, 60, 1), &mut screen);
//! let mut state = PreviewState::default();
//! ContextPreview::new(&plan).render(Rect::new(0, 1, 60, 3), &mut screen, &mut state);
//! # let line = |y| (0..60).map(|x| screen[(x, y)].symbol().to_owned()).collect::<String>();
//! assert!(line(0).starts_with("ctx tokens: "));
//! assert!(line(2).starts_with("+ "));
//! # Ok(())
//! # }
//! ```
//!
//! A sorted list, the explanation of a row, and a plan that the user tries without a document:
//!
//! ```
//! use context_window::*;
//! use context_window_ratatui::{
//!     Attempt, ItemExplanation, ItemListState, ItemTexts, ListRow, RowExplanation, Sign, SortBy, Theme,
//!     WhatIfEffect, WhatIfState,
//! };
//!
//! # fn main() -> Result<(), Error> {
//! # let mut model = Model::custom("small");
//! # model.tokenizer = Some("chars/4".into());
//! # let manager = ContextWindowManager::configured(model, Config::default())?;
//! let log = Conversation::from([Message::user("How long do refunds take?")]);
//! let request = PlanRequest::new(&log).with_rag([RagItem::new("refunds", 0.9, "Refunds take 5 days.")]);
//! let plan = manager.build_plan(&request)?;
//!
//! let texts = ItemTexts::from_request(&request);
//! let mut list = ItemListState::new();
//! list.sort_by(SortBy::Tokens);
//! list.refresh_rows(&plan, &texts);
//! let rows: &[ListRow] = list.rows();
//! assert_eq!(rows.len(), 2);
//! let row = plan.find("refunds").expect("the document is in");
//! assert_eq!(Sign::from_row(row), Sign::In);
//!
//! let mut tried = WhatIfState::from_plan(&plan);
//! let explained: RowExplanation = tried.changes().explain(&manager, &request, row)?;
//! let explanation = ItemExplanation::from(&explained);
//! assert!(matches!(explanation, ItemExplanation::Text { item_id: "rag:refunds", .. }));
//! let attempt: Attempt = tried.exclude(row, &texts);
//! assert!(attempt.changed());
//! let (_, effect): (ContextPlan, WhatIfEffect) = tried.plan(&manager, &request)?;
//! assert_eq!(effect.went.len(), 1);
//! let theme: Theme = Theme::plain();
//! # let _ = theme;
//! # Ok(())
//! # }
//! ```

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style, text::Line};

mod theme;
mod cursor;
mod row_explanation;
mod what_if;
mod texts;
mod filter;
mod bar;
mod gauge;
mod grid;
mod marker;
mod status;
mod order;
mod effect;
mod preview;
mod items;
mod filter_line;
mod detail;
mod transcript;
mod answer;
mod notices;
mod tries;
mod slider;
mod banner;

pub use answer::NoticeAction;
pub use banner::{Banner, BannerAction, BannerState};
pub use bar::UsageBar;
pub use cursor::Move;
pub use detail::{DetailState, ItemDetail, ItemExplanation};
pub use effect::WhatIfEffect;
pub use filter::{Filter, FilterError};
pub use filter_line::{FilterLine, FilterLineState};
pub use gauge::SectionGauge;
pub use grid::PromptGrid;
pub use items::{ItemList, ItemListState, Shown, SortBy};
pub use marker::CompactionMarker;
pub use notices::{NoticeList, NoticeListState};
pub use order::ListRow;
pub use preview::{ContextPreview, PreviewState, Sign};
pub use row_explanation::RowExplanation;
pub use slider::BudgetSlider;
pub use status::StatusLine;
pub use texts::ItemTexts;
pub use theme::Theme;
pub use transcript::{Transcript, TranscriptRemark, TranscriptState};
pub use tries::{Attempt, WhatIfState};
pub use what_if::WhatIf;

/// Returns the number of columns that show `part` of `whole` in a bar of `columns`: at least 1 if `part` is
/// not 0.
fn columns_of(part: u64, whole: u64, columns: u16) -> u16 {
    let some = u16::from(part > 0 && columns > 0);
    // In 128 bits the product cannot overflow.
    let share = u128::from(part) * u128::from(columns) / u128::from(whole.max(1));
    u16::try_from(share).unwrap_or(columns).clamp(some, columns)
}

/// Draws a label, a bar with a filled and an empty part, and a text: `████░░░░  61 of 100`. The bar is left
/// out if fewer than 4 columns remain for it.
fn draw_bar(
    area: Rect,
    buffer: &mut Buffer,
    (part, whole): (u64, u64),
    style: Style,
    label: &str,
    text: &str,
) {
    const SHORTEST: u16 = 4;
    let width = |text: &str| u16::try_from(unicode_width::UnicodeWidthStr::width(text)).unwrap_or(u16::MAX);
    let room = area.width.saturating_sub(width(label) + width(text) + 2);
    let mut x = buffer.set_stringn(area.x, area.y, label, area.width.into(), Style::new()).0;
    if room >= SHORTEST {
        let full = columns_of(part, whole, room);
        x = buffer.set_string_at(x, area.y, &"█".repeat(full.into()), style);
        x = buffer.set_string_at(x, area.y, &"░".repeat((room - full).into()), Style::new());
        x += 2;
    }
    let left = area.right().saturating_sub(x);
    buffer.set_stringn(x, area.y, text, left.into(), style);
}

/// A drawing operation that returns the column after the drawn text.
trait Draw {
    fn set_string_at(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16;
}

impl Draw for Buffer {
    fn set_string_at(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        self.set_stringn(x, y, text, usize::MAX, style).0
    }
}

/// Draws lines from the top of an area, as many as the area has rows.
fn draw_lines(area: Rect, buffer: &mut Buffer, lines: &[Line<'_>]) {
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        buffer.set_line(area.x, y, line, area.width);
    }
}
