//! The paragraphs and list items of a text that a person wrote, with the headings above them.

use super::{
    lines::{BOLD_LEVEL, Line, LineKind},
    sections::{self, Section},
};
use std::ops::Range;

/// A paragraph or a list item.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    /// The number of the list, for an item.
    pub(super) list: Option<usize>,
    pub(super) section: Section,
    /// True for a line that says for which case the list after it holds rules.
    pub(super) is_lead: bool,
}

/// A part of a text that is skipped, line by line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    Fence(u8, usize),
    /// Until a line that contains this mark.
    Until(&'static str),
    /// Until an empty line.
    Output,
}

/// The level of a line with a colon, below that of all headings.
const COLON_LEVEL: u8 = BOLD_LEVEL + 1;

/// Columns by which code is indented.
const CODE: usize = 4;

/// The state of reading a text line by line.
struct Reader<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// The paragraph or item that may go on in the next line.
    open: Option<Block>,
    skip: Option<Skip>,
    /// The headings above the line, from the highest to the lowest: the level of each, and its section.
    headings: Vec<(u8, Section)>,
    /// The section that a line with a colon announced for the next list.
    announced: Option<Section>,
    /// The number of the list, and the columns of its marker and of its text.
    list: Option<(usize, usize, usize)>,
    lists: usize,
    was_blank: bool,
    was_code: bool,
}

/// Returns the blocks of a text outside of its hidden parts, which are in ascending order.
pub(super) fn blocks(text: &str, hidden: &[Range<usize>]) -> Vec<Block> {
    let mut reader = Reader {
        text,
        blocks: Vec::new(),
        open: None,
        skip: None,
        headings: Vec::new(),
        announced: None,
        list: None,
        lists: 0,
        was_blank: true,
        was_code: false,
    };
    let mut hidden = hidden.iter().peekable();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        let mut visible = range.start;
        while let Some(part) = hidden.next_if(|part| part.end <= range.end) {
            if text[visible..part.start.max(visible)].trim().is_empty() {
                visible = part.end.max(visible);
            }
        }
        if let Some(part) = hidden.peek().filter(|part| part.start < range.end) {
            let end = part.start.max(visible);
            reader.read(&Line::new(text, range.start..end, visible.min(end)));
        } else {
            reader.read(&Line::new(text, range.clone(), visible.min(range.end)));
        }
    }
    reader.close();
    reader.blocks
}

impl Reader<'_> {
    fn read(&mut self, line: &Line) {
        if self.is_skipped(line) {
            return;
        }
        let is_code = self.is_code(line);
        match line.kind {
            LineKind::Blank => self.close(),
            _ if is_code => self.close(),
            LineKind::Fence(mark, count) => self.begin_skip(Skip::Fence(mark, count)),
            LineKind::Output => self.begin_skip(Skip::Output),
            LineKind::Quote => self.close(),
            LineKind::Machine => {
                self.close();
                self.skip = self.skip_after(line);
            }
            LineKind::Heading(level) => self.read_heading(level, line.text.clone()),
            LineKind::Break => {
                self.close();
                self.list = None;
                self.headings.retain(|heading| heading.1 != Section::Pasted);
            }
            LineKind::Item => self.read_item(line),
            LineKind::Prose => self.read_prose(line),
        }
        self.was_blank = line.kind == LineKind::Blank;
        self.was_code = is_code || (self.was_code && self.was_blank);
    }

    /// Checks if a line belongs to a part that is skipped, and ends the part at its last line.
    fn is_skipped(&mut self, line: &Line) -> bool {
        let text = &self.text[line.text.clone()];
        let (is_skipped, is_last) = match self.skip {
            None => (false, false),
            Some(Skip::Fence(mark, count)) => (
                true,
                matches!(line.kind, LineKind::Fence(one, length) if one == mark && length >= count)
                    && text.bytes().all(|b| b == mark),
            ),
            Some(Skip::Until(end)) => (true, text.contains(end)),
            Some(Skip::Output) if line.kind == LineKind::Blank => (false, line.indent == 0),
            Some(Skip::Output) => (true, false),
        };
        if is_last {
            self.skip = None;
        }
        is_skipped
    }

    fn begin_skip(&mut self, skip: Skip) {
        self.close();
        self.skip = Some(skip);
    }

    /// Returns the part that a line of code begins: a comment or a text of several lines.
    fn skip_after(&self, line: &Line) -> Option<Skip> {
        let text = &self.text[line.text.clone()];
        let marks = [("/*", "*/"), ("\"\"\"", "\"\"\""), ("'''", "'''")];
        let (_, end) =
            marks.iter().find(|mark| text.starts_with(mark.0) && !text[mark.0.len()..].contains(mark.1))?;
        Some(Skip::Until(end))
    }

    /// Checks if a line is code by its indentation. Below an item, it is indented more than the item's text.
    fn is_code(&self, line: &Line) -> bool {
        let base = self.list.map_or(0, |list| list.2);
        let begins = self.was_blank || self.was_code;
        let is_item = line.kind == LineKind::Item && self.list.is_some();
        begins && !is_item && line.kind != LineKind::Blank && line.indent >= base + CODE
    }

    fn read_heading(&mut self, level: u8, range: Range<usize>) {
        self.close();
        self.list = None;
        self.announced = None;
        let section = sections::announced(self.text, range, false);
        self.begin_section(level, section);
    }

    /// Begins a section. One that says nothing about its text inherits the kind of the section around it.
    fn begin_section(&mut self, level: u8, section: Section) {
        while self.headings.last().is_some_and(|heading| heading.0 >= level) {
            self.headings.pop();
        }
        let inherited = self.headings.last().map_or(Section::Plain, |heading| heading.1);
        self.headings.push((level, if section == Section::Plain { inherited } else { section }));
    }

    fn read_item(&mut self, line: &Line) {
        self.close();
        let number = self.list.map_or(self.lists + 1, |list| list.0);
        self.lists = number;
        self.list = Some((number, line.indent, line.column));
        self.begin_block(line);
    }

    fn read_prose(&mut self, line: &Line) {
        let is_inside = self.list.is_some_and(|list| line.indent > list.1);
        if self.list.is_some() && !is_inside {
            self.close();
            self.list = None;
            self.announced = None;
        }
        let is_heading = self.list.is_none() && self.is_heading(line);
        match &mut self.open {
            Some(open) if !is_heading => {
                open.range.end = line.text.end;
                return;
            }
            Some(_) => self.close(),
            None => {}
        }
        self.begin_block(line);
        if is_heading {
            self.close();
        }
    }

    /// Checks if a line of a paragraph is a heading of its own: a short one with a colon at its end.
    fn is_heading(&self, line: &Line) -> bool {
        let text = &self.text[line.text.clone()];
        let is_free = self.open.is_none() || !text.chars().any(char::is_lowercase);
        is_free && text.ends_with([':', '：']) && sections::is_short(self.text, line.text.clone())
    }

    fn begin_block(&mut self, line: &Line) {
        let heading = self.headings.last().map_or(Section::Plain, |heading| heading.1);
        let announced = self.announced.filter(|_| self.list.is_some());
        let section = announced.filter(|one| *one != Section::Plain).unwrap_or(heading);
        let list = self.list.map(|list| list.0);
        self.open = Some(Block { range: line.text.clone(), list, section, is_lead: false });
    }

    /// Ends the open block. A paragraph that ends with a colon may announce what follows.
    fn close(&mut self) {
        let Some(mut block) = self.open.take() else { return };
        if block.list.is_none() {
            self.announce(&mut block);
        }
        self.blocks.push(block);
    }

    fn announce(&mut self, block: &mut Block) {
        let text = &self.text[block.range.clone()];
        self.announced = None;
        if !text.ends_with([':', '：']) {
            // The text after the colon is pasted: "Context: ...".
            let first = text.split_inclusive([':', '：', '\n']).next().unwrap_or_default();
            let label = block.range.start..block.range.start + first.len();
            if first.ends_with([':', '：']) && sections::announced(self.text, label, true) == Section::Pasted
            {
                block.section = Section::Pasted;
            }
            return;
        }
        let start = block.range.start + text.rfind('\n').map_or(0, |at| at + 1);
        let label = start..block.range.end;
        let is_capital = !self.text[label.clone()].chars().any(char::is_lowercase);
        let section = sections::announced(self.text, label.clone(), true);
        let is_short = sections::is_short(self.text, label);
        self.announced = Some(section);
        // The line itself says nothing without its list.
        block.is_lead = matches!(section, Section::Each | Section::Case);
        let is_inside = self.headings.last().is_some_and(|heading| heading.1 == Section::Pasted);
        let is_heading = is_short
            && !matches!(section, Section::Each | Section::Case)
            && (section != Section::Plain || !is_inside || is_capital);
        if is_heading || section == Section::Pasted {
            self.begin_section(COLON_LEVEL, section);
        }
    }
}
