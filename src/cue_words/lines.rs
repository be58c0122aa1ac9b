//! The lines of a text: prose, headings and list items, or the output and the files of programs.

use std::ops::Range;

/// A line of a text, without its indentation and its list marker.
#[derive(Debug)]
pub(super) struct Line {
    /// The part of the text after the indentation and the marker, without spaces at its end.
    pub(super) text: Range<usize>,
    /// Columns before the marker or the text.
    pub(super) indent: usize,
    /// Columns before the text, with the marker.
    pub(super) column: usize,
    pub(super) kind: LineKind,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Prose,
    Item,
    /// A heading of this level.
    Heading(u8),
    /// A line between two parts of a text: `---`.
    Break,
    /// A quote of another text: `> text`.
    Quote,
    /// A mark of this byte and length, before or after code.
    Fence(u8, usize),
    /// Code, a log line, a table row and the like.
    Machine,
    /// The first line of an output that ends at an empty line.
    Output,
}

/// The level of a heading in bold letters, below all headings with `#`.
pub(super) const BOLD_LEVEL: u8 = 7;

/// Bytes at the beginning of a line by which its kind is decided.
const BEGINNING: usize = 200;

impl Line {
    /// Reads a line, from `start` on.
    pub(super) fn new(text: &str, range: Range<usize>, start: usize) -> Self {
        let mut line = Self { text: start..range.end, indent: 0, column: 0, kind: LineKind::Blank };
        line.skip_spaces(text);
        line.indent = line.column;
        line.text.end = line.text.start + text[line.text.clone()].trim_end().len();
        line.kind = line.read_kind(text);
        line
    }

    fn skip_spaces(&mut self, text: &str) {
        let rest = &text[self.text.clone()];
        let spaces = &rest[..rest.len() - rest.trim_start().len()];
        self.column += columns(spaces);
        self.text.start += spaces.len();
    }

    fn read_kind(&mut self, text: &str) -> LineKind {
        let kind = plain_kind(&text[self.text.clone()]);
        let Some(marker) = (kind == LineKind::Prose).then(|| marker(&text[self.text.clone()])).flatten()
        else {
            return kind;
        };
        self.text.start += marker;
        self.column += marker;
        self.skip_spaces(text);
        match plain_kind(&text[self.text.clone()]) {
            LineKind::Prose if is_checkbox(&text[self.text.clone()]) => LineKind::Machine,
            LineKind::Prose | LineKind::Heading(_) | LineKind::Break => LineKind::Item,
            other => other,
        }
    }
}

/// Counts the columns of spaces, with four for a tab.
fn columns(spaces: &str) -> usize {
    spaces.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// Returns the kind of a line without its indentation.
fn plain_kind(line: &str) -> LineKind {
    if line.is_empty() {
        return LineKind::Blank;
    }
    if line.starts_with('>') {
        return LineKind::Quote;
    }
    if let Some(fence) = fence(line) {
        return fence;
    }
    if line.len() >= 3
        && line.len() < BEGINNING
        && line.bytes().all(|b| matches!(b, b'-' | b'*' | b'_' | b'='))
    {
        return LineKind::Break;
    }
    if begins_output(line) {
        return LineKind::Output;
    }
    if is_machine(line) {
        return LineKind::Machine;
    }
    heading_level(line).map_or(LineKind::Prose, LineKind::Heading)
}

fn fence(line: &str) -> Option<LineKind> {
    let mark = line.bytes().next().filter(|b| matches!(b, b'`' | b'~'))?;
    let count = line.bytes().take_while(|b| *b == mark).count();
    let is_inline = mark == b'`' && line[count..].contains('`');
    (count >= 3 && !is_inline).then_some(LineKind::Fence(mark, count))
}

fn heading_level(line: &str) -> Option<u8> {
    let marks = line.bytes().take_while(|b| *b == b'#').count();
    if (1..=6).contains(&marks) && line[marks..].starts_with(' ') {
        return Some(marks as u8);
    }
    let bold = line.strip_prefix("**")?.trim_end_matches([':', '：']);
    let inner = bold.strip_suffix("**")?;
    let is_sentence = inner.ends_with(['.', '!', '?', '。']);
    (!inner.contains("**") && !is_sentence && inner.len() < 80).then_some(BOLD_LEVEL)
}

/// Returns the length of the list marker at the beginning of a line.
fn marker(line: &str) -> Option<usize> {
    let first = line.chars().next()?;
    let length = match first {
        '-' | '*' | '•' | '·' | '–' | '—' | '◦' | '▪' | '●' => first.len_utf8(),
        '0'..='9' => {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let close = line[digits..].chars().next().filter(|c| matches!(c, '.' | ')' | '、' | '．'))?;
            (digits <= 3).then_some(digits + close.len_utf8())?
        }
        'a'..='z' | 'A'..='H' if line[1..].starts_with(')') => 2,
        _ => return None,
    };
    let rest = &line[length..];
    let is_wide = rest.starts_with(|c: char| !c.is_ascii()) && !matches!(first, '-' | '–' | '—');
    (rest.starts_with([' ', '\t']) || is_wide).then_some(length)
}

fn is_checkbox(line: &str) -> bool {
    ["[ ]", "[x]", "[X]"].iter().any(|mark| line.starts_with(mark))
}

/// Checks if a line begins an output that ends at an empty line: a traceback, a diff or an object.
fn begins_output(line: &str) -> bool {
    let beginnings = ["Traceback (", "diff --", "@@ ", "--- a/", "+++ ", "Index: ", "File \"", "Caused by:"];
    beginnings.iter().any(|one| line.starts_with(one))
        || (line.starts_with(['{', '[']) && line.ends_with(['{', '[', ',']))
        || (line.starts_with("thread '") && line.contains("panicked at"))
}

/// Checks if a line is from a program: code, a log line, a row of a table.
fn is_machine(line: &str) -> bool {
    let beginnings = [
        "|", "//", "/*", "*/", "$ ", "%> ", ">>> ", "... ", "#!", "#include", "<?", "</", "}", "{", "[{",
        "[\"", "\"\"\"", "'''", "--", "==", "__", "import ", "def ", "error:", "warning:", "error[",
        "npm ERR", "E  ", "+ ", "at ", "panic:", "fatal:",
    ];
    let is_signed = line.strip_prefix(['+', '-']).is_some_and(|rest| !rest.starts_with(char::is_whitespace));
    is_signed
        || beginnings.iter().any(|one| line.starts_with(one))
        || line.ends_with([';', '{', '}'])
        || line.ends_with("},")
        || is_log(line)
        || is_exception(line)
}

/// Checks if a line begins with a time or a log level.
fn is_log(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(']);
    let number = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_time = (number == 4 && line[4..].starts_with(['-', '/']))
        || (number == 2 && line[2..].starts_with([':', '/']));
    let levels = ["INFO", "DEBUG", "ERROR", "TRACE", "FATAL", "WARN"];
    let level = levels.iter().find_map(|level| line.strip_prefix(level));
    is_time || level.is_some_and(|rest| rest.starts_with([' ', ':', ']', '|']))
}

/// Checks if a line begins with the name of an exception: `ValueError: text`.
fn is_exception(line: &str) -> bool {
    let name =
        line.bytes().take(BEGINNING).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
    let name = &line[..name.count()];
    let kinds = ["Error", "Exception", "Warning"];
    line[name.len()..].starts_with(": ") && kinds.iter().any(|one| name.ends_with(one) && name != *one)
}
