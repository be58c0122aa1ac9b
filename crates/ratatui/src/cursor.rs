//! Steps of a selection or of scrolled text.

/// A step in a list or text. The application decides which key means which step.
///
/// ```
/// use context_window_ratatui::{DetailState, Move};
///
/// let mut state = DetailState::default();
/// state.apply_move(Move::PageDown); // when PgDn is pressed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Move {
    /// To the previous row or line.
    Up,
    /// To the next row or line.
    Down,
    /// Back by the height of the last drawn area.
    PageUp,
    /// Forward by the height of the last drawn area.
    PageDown,
    /// To the first row or line.
    First,
    /// To the last row or line.
    Last,
    /// By a number of rows or lines; a negative number moves back.
    By(isize),
}

impl Move {
    /// Returns the position after the step, not limited to the length of the list: the caller does that.
    pub(super) fn from(self, at: usize, page: usize) -> usize {
        // The height is 0 before the first draw; a page is at least one row.
        let page = page.max(1);
        match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at.saturating_add(1),
            Self::PageUp => at.saturating_sub(page),
            Self::PageDown => at.saturating_add(page),
            Self::First => 0,
            Self::Last => usize::MAX,
            Self::By(rows) => at.saturating_add_signed(rows),
        }
    }
}

/// Returns the first visible line so that the lines `from..to` are visible. If they need more than `height`
/// lines, their beginning is visible.
pub(super) fn scroll_offset(offset: usize, from: usize, to: usize, height: usize, len: usize) -> usize {
    // `max` shows the end of the range. `min` comes second, so the beginning wins if the range is too long.
    let offset = offset.max(to.saturating_sub(height)).min(from);
    offset.min(len.saturating_sub(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_never_wrap() {
        for (step, from, to) in [
            (Move::Up, 0, 0),
            (Move::Down, usize::MAX, usize::MAX),
            (Move::PageUp, 3, 0),
            (Move::PageDown, 3, 13),
            (Move::First, 9, 0),
            (Move::Last, 9, usize::MAX),
            (Move::By(-2), 9, 7),
            (Move::By(isize::MIN), 9, 0),
        ] {
            assert_eq!(step.from(from, 10), to, "{step:?} from {from}");
        }
        assert_eq!([0, 5, 9].map(|offset| scroll_offset(offset, 6, 8, 4, 12)), [4, 5, 6]);
        assert_eq!(scroll_offset(9, 6, 8, 40, 12), 0);
    }
}
