//! The layout of the screen, shared by drawing and mouse.

use ratatui::layout::{Constraint, Layout, Rect};

/// Below this nothing is drawn but a word.
pub(crate) const SMALLEST: (u16, u16) = (60, 15);

/// From this width on sections, timeline and detail stand beside the items.
const WIDE: u16 = 100;

/// The parts of a screen; those that there is no room for are empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) title: Rect,
    pub(crate) fill: Rect,
    pub(crate) facts: Rect,
    /// Where the conversation outgrows its window.
    pub(crate) banner: Rect,
    pub(crate) sections: Rect,
    pub(crate) strip: Rect,
    pub(crate) items: Rect,
    pub(crate) detail: Rect,
    /// Everything between head and foot: the whole of another view.
    pub(crate) body: Rect,
    pub(crate) what_if: Rect,
    pub(crate) keys: Rect,
}

impl Places {
    /// With so many lines for the banner.
    pub(crate) fn of(area: Rect, banner: u16) -> Self {
        let rows = [1, 1, 1, banner].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
        let rows = rows.chain([1, 1].map(Constraint::Length));
        let [title, fill, facts, banner, body, what_if, keys] = Layout::vertical(rows).areas(area);
        let places = Self { title, fill, facts, banner, body, what_if, keys, ..Self::default() };
        if area.width < WIDE {
            let [sections, items] =
                Layout::vertical([Constraint::Length(5), Constraint::Fill(1)]).areas(body);
            return Self { sections, items, ..places };
        }
        let [left, right] = Layout::horizontal([
            Constraint::Length(if area.width < 120 { 44 } else { 52 }),
            Constraint::Fill(1),
        ])
        .areas(body);
        let [sections, strip] = Layout::vertical([Constraint::Length(10), Constraint::Fill(1)]).areas(left);
        let [items, detail] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(right);
        Self { sections, strip, items, detail, ..places }
    }

    pub(crate) fn is_wide(&self) -> bool {
        !self.detail.is_empty()
    }

    /// A window as wide as the screen.
    pub(crate) fn help(area: Rect) -> Rect {
        Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area }
    }

    /// A window over the middle of the body.
    pub(crate) fn popup(area: Rect) -> Rect {
        let margin = (area.width / 12).min(8);
        let (width, height) = (area.width - 2 * margin, area.height.saturating_sub(4));
        Rect { x: area.x + margin, y: area.y + 2.min(area.height), width, height }
    }
}

/// What is inside of a border.
pub(crate) fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_add(1),
        y: area.y.saturating_add(1),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}
