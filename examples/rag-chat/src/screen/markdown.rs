//! The Markdown of an answer as styled lines: headings, emphasis, code, lists, quotations, tables. Markup is
//! removed, and all text is kept.

use context_window_ratatui::Theme;
use context_window_report as report;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::mem::take;
use unicode_segmentation::UnicodeSegmentation;

/// Builds the lines of a text, each of at most `columns` columns.
#[must_use]
pub fn lines(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    // A line such as "[guide.md#2]: yes" is a definition in Markdown, which would not be shown.
    let definitions = parser.reference_definitions().iter().map(|(_, known)| known.span.clone());
    let mut definitions: Vec<_> = definitions.collect();
    definitions.sort_by_key(|span| span.start);
    let mut definitions = definitions.into_iter().peekable();
    let mut page = Page::new(columns.max(8), theme);
    for (event, range) in parser.into_offset_iter() {
        while let Some(span) = definitions.next_if(|span| span.start < range.start) {
            page.definition(&text[span]);
        }
        page.read(event);
    }
    definitions.for_each(|span| page.definition(&text[span]));
    page.flush();
    page.lines
}

/// Text in one style.
type Piece = (String, Style);

/// The prefix of an item or a quotation: of its first line, and of the lines after it.
struct Prefix {
    first: Option<String>,
    rest: String,
}

struct Page {
    columns: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
    /// The pieces of the current paragraph.
    pieces: Vec<Piece>,
    styles: Vec<Style>,
    prefixes: Vec<Prefix>,
    /// The number of the next item of each enclosing list; `None` for lists without numbers.
    lists: Vec<Option<u64>>,
    /// True if an empty line comes before the next block.
    is_apart: bool,
    code: Option<String>,
    /// The start of each open link in the pieces, and its target.
    links: Vec<(usize, String)>,
    rows: Vec<Vec<Vec<Piece>>>,
}

impl Page {
    fn new(columns: usize, theme: Theme) -> Self {
        Self {
            columns,
            theme,
            lines: Vec::new(),
            pieces: Vec::new(),
            styles: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            is_apart: false,
            code: None,
            links: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push(&text, Style::new()),
            },
            Event::Code(code) => {
                let code = if self.is_plain() { format!("`{code}`") } else { code.into_string() };
                self.push(&code, self.code_style());
            }
            Event::SoftBreak | Event::HardBreak => self.pieces.push(("\n".into(), Style::new())),
            Event::Rule => {
                self.flush();
                self.emit(vec![("─".repeat(self.room()), self.theme.faint)]);
                self.is_apart = true;
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (at, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if at > 0 {
                        self.pieces.push(("\n".into(), Style::new()));
                    }
                    self.push(line, Style::new());
                }
            }
            // These extensions are not enabled.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text, Style::new());
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }, Style::new()),
        }
    }

    fn begin(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let first = level == HeadingLevel::H1;
                let style = self.theme.heading.add_modifier(Modifier::BOLD);
                self.styles.push(if first { style.add_modifier(Modifier::UNDERLINED) } else { style });
            }
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::BlockQuote(_) => {
                self.flush();
                self.indent("│ ", "│ ");
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.emit(vec![(report::shown(&language), self.theme.faint)]);
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(width(&mark));
                self.indent(&mark, &rest);
            }
            Tag::Link { dest_url, .. } => self.links.push((self.pieces.len(), dest_url.into_string())),
            Tag::Image { dest_url, .. } => {
                self.push("[image: ", Style::new());
                self.links.push((self.pieces.len(), dest_url.into_string()));
            }
            Tag::Table(_) => {
                self.flush();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.is_apart = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.is_apart = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.is_apart |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    // An item without a text.
                    self.emit(Vec::new());
                }
                self.prefixes.pop();
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                self.end_link();
                self.push("]", Style::new());
            }
            TagEnd::TableCell => {
                let cell = take(&mut self.pieces);
                self.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let style = self.code_style();
        for line in code.trim_end_matches('\n').split('\n') {
            let line = report::shown(line.trim_end_matches('\r'));
            let mut rest = &*line;
            // Code is broken at any character, because its spaces are significant and have to stay.
            while width(rest) + 2 > self.room() {
                let at = fitting(rest, self.room().saturating_sub(2));
                self.emit(vec![("  ".into(), Style::new()), (rest[..at].to_owned(), style)]);
                rest = &rest[at..];
            }
            self.emit(vec![("  ".into(), Style::new()), (rest.to_owned(), style)]);
        }
        self.is_apart = true;
    }

    /// Adds the target of a link, unless its text is the target.
    fn end_link(&mut self) {
        let Some((from, leads)) = self.links.pop() else { return };
        let text: String = self.pieces.iter().skip(from).map(|(text, _)| text.as_str()).collect();
        if !leads.is_empty() && leads != text && leads.strip_prefix("mailto:") != Some(&text) {
            self.push(&format!(" ({leads})"), self.theme.faint);
        }
    }

    /// Builds the rows of a table, in columns if there is room for them.
    fn end_table(&mut self) {
        let rows = take(&mut self.rows);
        let count = rows.iter().map(Vec::len).max().unwrap_or_default();
        let size = |cell: &Vec<Piece>| cell.iter().map(|(text, _)| width(text)).sum::<usize>();
        let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(size).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(widest).collect();
        let fits = widths.iter().sum::<usize>() + 3 * count.saturating_sub(1) <= self.room();
        for (number, row) in rows.into_iter().enumerate() {
            let mut line: Vec<Piece> = Vec::new();
            for (at, cell) in row.into_iter().enumerate() {
                if at > 0 {
                    line.push((" │ ".into(), self.theme.faint));
                }
                let gap = widths[at].saturating_sub(size(&cell));
                let bold = |(text, style): Piece| (text, style.add_modifier(Modifier::BOLD));
                line.extend(cell.into_iter().map(|piece| if number == 0 { bold(piece) } else { piece }));
                if fits && at + 1 < count {
                    line.push((" ".repeat(gap), Style::new()));
                }
            }
            self.pieces = line;
            self.flush();
        }
        self.is_apart = true;
    }

    /// Adds a link definition as written.
    fn definition(&mut self, text: &str) {
        self.flush();
        for line in text.lines() {
            self.push(line, Style::new());
            self.flush();
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().fold(Style::new(), |all, one| all.patch(*one)).patch(style);
        self.pieces.push((report::shown(text), style));
    }

    fn indent(&mut self, first: &str, rest: &str) {
        // At any nesting depth, half of the columns are left for the text.
        let has_room = self.columns - self.room() + width(first) <= self.columns / 2;
        let (first, rest) = if has_room { (first, rest) } else { ("", "") };
        self.prefixes.push(Prefix { first: Some(first.into()), rest: rest.into() });
    }

    /// Returns the columns left by the prefixes.
    fn room(&self) -> usize {
        self.columns - self.prefixes.iter().map(|prefix| width(&prefix.rest)).sum::<usize>()
    }

    fn is_plain(&self) -> bool {
        self.theme == Theme::plain()
    }

    fn code_style(&self) -> Style {
        if self.is_plain() { Style::new() } else { Style::new().fg(Color::Cyan) }
    }

    /// Ends the current paragraph and breaks its lines between words.
    fn flush(&mut self) {
        let mut pieces = take(&mut self.pieces).into_iter().peekable();
        while pieces.peek().is_some() {
            let mut line: Vec<Piece> = Vec::new();
            for piece in pieces.by_ref() {
                if piece.0 == "\n" {
                    break;
                }
                line.push(piece);
            }
            self.wrap(&line);
        }
    }

    fn wrap(&mut self, pieces: &[Piece]) {
        let text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        let mut at = 0;
        for line in report::wrapped(&text, self.room()) {
            // Spaces at a break are dropped.
            let from = at + text[at..].find(&line).unwrap_or_default();
            at = from + line.len();
            self.emit(between(pieces, from, at));
        }
    }

    /// Adds one line with its prefixes.
    fn emit(&mut self, pieces: Vec<Piece>) {
        if take(&mut self.is_apart) && !self.lines.is_empty() {
            let around = self.prefixes.iter().filter(|prefix| prefix.first.is_none());
            let bars: String = around.map(|prefix| prefix.rest.as_str()).collect();
            self.lines.push(Line::styled(bars.trim_end().to_owned(), self.theme.faint));
        }
        let before = self.prefixes.iter_mut().map(|prefix| {
            let text = prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
            Span::styled(text, self.theme.faint)
        });
        let mut spans: Vec<Span<'static>> = before.filter(|span| !span.content.is_empty()).collect();
        spans.extend(pieces.into_iter().map(|(text, style)| Span::styled(text, style)));
        self.lines.push(Line::from(spans));
    }
}

/// Returns the pieces of a part of the text that all pieces form together.
fn between(pieces: &[Piece], from: usize, to: usize) -> Vec<Piece> {
    let mut start = 0;
    let cut = |(text, style): &Piece| {
        let (first, last) = (from.max(start), to.min(start + text.len()));
        let part = (first < last).then(|| (text[first - start..last - start].to_owned(), *style));
        start += text.len();
        part
    };
    pieces.iter().filter_map(cut).collect()
}

/// Returns the width of a text in columns.
fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns the bytes of a text that fit these columns, at least one character.
fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let over = |(_, letter): &(usize, &str)| {
        used += width(letter);
        used > columns
    };
    let first = text.graphemes(true).next().map_or(0, str::len);
    text.grapheme_indices(true).find(over).map_or(text.len(), |(at, _)| at).max(first)
}
