//! The input line, which has several rows for a pasted text with line breaks.

use context_window_report::grouped;
use tui_input::Input;

/// Maximum length of the line after a paste, in characters.
const LONGEST: usize = 20_000;

/// Inserts a pasted text at the cursor. Line breaks stay, a tab becomes four spaces, another control
/// character one. Also returns a sentence if a part of it had no room.
pub(super) fn paste(input: &Input, text: &str) -> (Input, Option<String>) {
    // A terminal sends a line break like the key Enter: "\r".
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    // All at once, because inserting single letters takes quadratic time.
    let clean = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    let mut line: Vec<char> = input.value().chars().collect();
    let (at, room) = (input.cursor().min(line.len()), LONGEST.saturating_sub(line.len()));
    let all = text.chars().count();
    let pasted: Vec<char> = text.chars().take(room).map(clean).collect();
    let (cursor, count) = (at + pasted.len(), pasted.len());
    line.splice(at..at, pasted);
    let cut = (count < all).then(|| {
        let [count, all, most] = [count, all, LONGEST].map(|n| grouped(n as u64));
        format!("Pasted: {count} of {all} characters, a question has at most {most}; use a file in the folder for more")
    });
    (Input::new(line.into_iter().collect()).with_cursor(cursor), cut)
}

/// Breaks the line at the cursor.
pub(super) fn break_line(input: &Input) -> Input {
    paste(input, "\n").0
}

/// Returns the row of the cursor, from 0, and the characters before it in that row.
pub(super) fn place(input: &Input) -> (usize, String) {
    let before: String = input.value().chars().take(input.cursor()).collect();
    let row = before.matches('\n').count();
    (row, before.rsplit('\n').next().unwrap_or_default().to_owned())
}

/// Moves the cursor to the row above or below. Returns `None` if there is none.
pub(super) fn move_row(input: &Input, down: bool) -> Option<Input> {
    let rows: Vec<&str> = input.value().split('\n').collect();
    let (row, before) = place(input);
    let next = if down { row + 1 } else { row.checked_sub(1)? };
    let length = |row: &str| row.chars().count();
    let column = before.chars().count().min(length(rows.get(next)?));
    let above: usize = rows[..next].iter().map(|row| length(row) + 1).sum();
    Some(input.clone().with_cursor(above + column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_rows_stay_rows() {
        let input = Input::new("ab".into()).with_cursor(1);
        let (input, cut) = paste(&input, "1\r\n\t2\r3\u{1b}\n");
        assert_eq!((input.value(), cut), ("a1\n    2\n3 \nb", None));
        assert_eq!(place(&input), (3, String::new()));
        let up = move_row(&move_row(&input, false).unwrap(), false).unwrap();
        assert_eq!(place(&up), (1, String::new()));
        assert_eq!(place(&move_row(&up.with_cursor(8), true).unwrap()), (2, "3 ".to_owned()));
        assert!(move_row(&input, true).is_none());
        assert_eq!(break_line(&Input::new("ab".into()).with_cursor(1)).value(), "a\nb");
    }

    #[test]
    fn truncated_paste_is_reported() {
        let (input, cut) = paste(&Input::new("x".repeat(19_999)), "12");
        assert_eq!(input.value().len(), 20_000);
        assert!(cut.unwrap().starts_with("Pasted: 1 of 2 characters, a question has at most 20,000"));
    }
}
