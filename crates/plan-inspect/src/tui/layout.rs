//! The layout of the screen, shared by drawing and mouse handling.

use ratatui::layout::{Constraint, Layout, Rect};

/// The smallest size of the screen in columns and lines. Smaller screens show only a message.
pub(crate) const SMALLEST: (u16, u16) = (60, 15);

/// The width in columns from which sections, timeline and detail are next to the items.
const WIDE: u16 = 100;

/// The number of lines of the grid with its frame, and of the sections.
const GRID: u16 = 12;
const SECTIONS: u16 = 5;
/// The number of lines of the sections with overhead and free tokens.
const GAUGES: u16 = 7;

/// The areas of a screen. An area without enough lines or columns is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) title: Rect,
    pub(crate) fill: Rect,
    pub(crate) facts: Rect,
    /// The banner for a conversation that is about to outgrow its window.
    pub(crate) banner: Rect,
    /// The composition of the prompt, or the fixes for a prompt over budget.
    pub(crate) overview: Rect,
    pub(crate) sections: Rect,
    pub(crate) strip: Rect,
    pub(crate) items: Rect,
    pub(crate) detail: Rect,
    /// The area between head and foot, which other views fill.
    pub(crate) body: Rect,
    pub(crate) what_if: Rect,
    pub(crate) keys: Rect,
}

impl Places {
    /// Divides the screen. `banner` is the number of lines of the banner. A small screen shows either the
    /// overview or the sections, depending on `overview`.
    pub(crate) fn divide_area(area: Rect, banner: u16, overview: bool) -> Self {
        let rows = [1, 1, 1, banner].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
        let rows = rows.chain([1, 1].map(Constraint::Length));
        let [title, fill, facts, banner, body, what_if, keys] = Layout::vertical(rows).areas(area);
        let places = Self { title, fill, facts, banner, body, what_if, keys, ..Self::default() };
        if area.width < WIDE {
            // The overview is shown only if at least two rows of items remain inside their frame.
            let overview = overview && body.height >= GRID + 4;
            let above = Constraint::Length(if overview { GRID } else { SECTIONS });
            let [above, items] = Layout::vertical([above, Constraint::Fill(1)]).areas(body);
            let none = Rect::default();
            let (overview, sections) = if overview { (above, none) } else { (none, above) };
            return Self { overview, sections, items, ..places };
        }
        let columns = match area.width {
            ..120 => 44,
            120..170 => 54,
            _ => 60,
        };
        let [left, right] =
            Layout::horizontal([Constraint::Length(columns), Constraint::Fill(1)]).areas(body);
        let (overview, sections) = match body.height {
            ..27 if overview => (GRID, 0),
            ..27 => (0, GAUGES),
            27..40 => (GRID, GAUGES),
            // The six additional lines show the largest items.
            _ => (GRID + 6, GAUGES),
        };
        let heights = [Constraint::Length(overview), Constraint::Length(sections), Constraint::Fill(1)];
        let [overview, sections, strip] = Layout::vertical(heights).areas(left);
        let [items, detail] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(right);
        Self { overview, sections, strip, items, detail, ..places }
    }

    /// Checks if the screen has a detail area.
    pub(crate) fn is_wide(&self) -> bool {
        !self.detail.is_empty()
    }

    /// Returns a centred area for a popup with this many columns and lines of text, limited to the screen.
    pub(crate) fn popup_for(area: Rect, columns: u16, lines: u16) -> Rect {
        let width = columns.saturating_add(2).min(area.width);
        // Two more lines and columns for the border.
        let height = lines.saturating_add(2).min(area.height.saturating_sub(2));
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
    }

    /// Returns a centred area for a large popup over the body.
    pub(crate) fn popup(area: Rect) -> Rect {
        let margin = (area.width / 12).min(8);
        let (width, height) = (area.width - 2 * margin, area.height.saturating_sub(4));
        Rect { x: area.x + margin, y: area.y + 2.min(area.height), width, height }
    }
}

/// Returns the area inside a border.
pub(crate) fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_add(1),
        y: area.y.saturating_add(1),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}
