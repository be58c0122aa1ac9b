//! Steps of a selection or of a scrolled text, as an application names them when a key is pressed.

/// A step in a list or a text. Which key means which step is the application's business.
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
    /// To the row or line before.
    Up,
    /// To the row or line after.
    Down,
    /// By the height of the last picture, back.
    PageUp,
    /// By the height of the last picture, on.
    PageDown,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// By a number of rows or lines; below zero it goes back.
    By(isize),
}

impl Move {
    /// Returns the position after the move; the caller limits it to the list.
    pub(super) fn from(self, at: usize, page: usize) -> usize {
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

/// Returns the first line in sight, so that this range of lines is: its beginning where all of it has no
/// room.
pub(super) fn in_sight(offset: usize, from: usize, to: usize, height: usize, len: usize) -> usize {
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
        assert_eq!([0, 5, 9].map(|offset| in_sight(offset, 6, 8, 4, 12)), [4, 5, 6]);
        assert_eq!(in_sight(9, 6, 8, 40, 12), 0);
    }
}
