//! Texts of one line, and the text of a message.

use crate::message::Message;

/// Returns the text of a message, with a placeholder for each part other than text.
pub(super) fn message_text(message: &Message) -> String {
    let mut text = message.text().trim().to_owned();
    for part in message.as_texts() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part.trim());
    }
    text
}

/// Returns a text with each run of white space as one space.
pub(super) fn joined_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Joins a text to one line and cuts it to `most` bytes.
pub(super) fn one_line(text: &str, most: usize) -> String {
    clipped(&joined_words(text), most)
}

/// Cuts a text to `most` bytes and appends the number of bytes cut.
pub(super) fn clipped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{} [{} more bytes]", text[..end].trim_end(), text.len() - end)
}

/// The first words of a digest that begins with earlier summaries.
pub(super) const BEFORE: &str = "Before that: ";
/// The beginning of the heading of statements, before their number.
pub(super) const SAID: &str = "The user said (";
/// The beginning of a request.
pub(super) const ASKED: &str = "The user asked";
/// The beginning of the number of calls that are left out.
pub(super) const EARLIER: &str = "Earlier: ";
/// The heading of calls that are listed after the statements.
pub(super) const CALLED: &str = "The last tool calls:";
/// The beginning of the heading of resources.
pub(super) const TOUCHED: &str = "Touched, with the last call on each";
/// The beginning of the assistant's last words.
pub(super) const LAST: &str = "The assistant said last: ";
/// The beginning of the second line and of later ones of a request.
pub(super) const INDENT: &str = "  ";

/// Indents the lines of a text after its first one, so that none looks like another entry of a digest.
pub(super) fn indented(text: &str) -> String {
    let mut lines = text.lines();
    let mut indented = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        // No spaces in empty lines: they would be tokens without a use.
        let indent = if line.is_empty() { "" } else { INDENT };
        indented.extend(["\n", indent, line]);
    }
    indented
}

/// Formats a count with a noun in the singular or plural.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the numbers in a text, in their order. Larger ones than any digest has are left out, so that no
/// sum of numbers in a text edited by hand overflows.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u32>().ok().map(u64::from))
}
