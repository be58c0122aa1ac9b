//! The source of a template: its split into raw texts and tags, and the transformed source that counts
//! growth.

use super::growth;
use std::ops::Range;

/// A raw text between tags, or the inside of a tag.
pub(super) enum Piece {
    Raw(Range<usize>),
    Tag { is_block: bool, tokens: Vec<Token>, end: usize },
}

/// A token of a tag, with its position in the source.
pub(super) struct Token {
    kind: Kind,
    range: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Number,
    Text,
    Operator,
}

/// Keywords that cannot end an operand.
const WORDS: [&str; 15] = [
    "in",
    "not",
    "and",
    "or",
    "if",
    "else",
    "elif",
    "is",
    "import",
    "set",
    "for",
    "with",
    "filter",
    "call",
    "recursive",
];

/// The ends of blocks whose output becomes a value, so that their raw texts are counted too.
const CAPTURES: [&str; 5] = ["endset", "endmacro", "endcall", "endfilter", "endblock"];

/// Splits a source into raw texts and tags, in order, without comments and raw blocks. Stops before an
/// unclosed tag.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(open) = find_from(source, at, &["{{", "{%", "{#"]) {
        pieces.push(Piece::Raw(at..open));
        if source[open..].starts_with("{#") {
            let Some(close) = find_from(source, open + 2, &["#}"]) else { return pieces };
            at = close + 2;
            continue;
        }
        let is_block = source[open..].starts_with("{%");
        let Some((tokens, end, after)) = tokens(source, open + 2, if is_block { "%}" } else { "}}" }) else {
            return pieces;
        };
        at = after;
        if is_block && tokens.len() == 1 && &source[tokens[0].range.clone()] == "raw" {
            let Some(close) = source[at..].find("endraw") else { return pieces };
            let Some(end) = find_from(source, at + close, &["%}"]) else { return pieces };
            at = end + 2;
            continue;
        }
        pieces.push(Piece::Tag { is_block, tokens, end });
    }
    pieces.push(Piece::Raw(at..source.len()));
    pieces
}

/// Returns the position of the first of several marks at or after `from`.
fn find_from(source: &str, from: usize, marks: &[&str]) -> Option<usize> {
    marks.iter().filter_map(|mark| Some(from + source[from..].find(mark)?)).min()
}

/// Returns the tokens of a tag, their end, and the position after the tag, or `None` if the tag is not
/// closed.
fn tokens(source: &str, from: usize, close: &str) -> Option<(Vec<Token>, usize, usize)> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = from + usize::from(source[from..].starts_with(['-', '+']));
    let mut open = 0_usize;
    loop {
        let rest = &source[at..];
        let first = rest.chars().next()?;
        // Nested braces may look like the closing mark, so the tag ends only outside of brackets.
        let ends = |rest: &str| rest.starts_with(close);
        if open == 0 && (ends(rest) || rest.starts_with(['-', '+']) && ends(&rest[1..])) {
            let after = at + rest.find(close)? + close.len();
            return Some((tokens, at, after));
        }
        let of_a_name = |c: char| c.is_alphanumeric() || c == '_';
        let until = |own: &dyn Fn(char) -> bool| rest.find(|c: char| !own(c)).unwrap_or(rest.len());
        let (kind, length) = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '"' | '\'' => (Kind::Text, text_length(rest, first)?),
            '0'..='9' => (Kind::Number, until(&of_a_name)),
            _ if of_a_name(first) => (Kind::Name, until(&of_a_name)),
            _ => {
                let two = ["**", "//", "==", "!=", ">=", "<="].iter().any(|two| rest.starts_with(two));
                (Kind::Operator, if two { 2 } else { first.len_utf8() })
            }
        };
        match first {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        tokens.push(Token { kind, range: at..at + length });
        at += length;
    }
}

/// Returns the length in bytes of a quoted text, or `None` if it is not closed.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the source with counting filters at each operand of `~`, `+` and `*`, and around each assigned
/// value. Raw texts of captured blocks become expressions. All of these are then counted before they are
/// built.
pub(super) fn counted(source: &str) -> String {
    // Raw texts become values only in captured blocks, so most sources need no expressions for them.
    let captures = CAPTURES.iter().any(|word| source.contains(word));
    let mut inserted: Vec<(usize, &str)> = Vec::new();
    let mut out = String::with_capacity(source.len() * 2);
    let mut raw = Vec::new();
    for piece in pieces(source) {
        match piece {
            Piece::Raw(range) if captures => raw.extend(core(source, range)),
            Piece::Raw(_) => {}
            Piece::Tag { is_block, tokens, end } => {
                if is_block {
                    count_kept(source, &tokens, end, &mut inserted);
                }
                for at in 0..tokens.len() {
                    count_operands(source, &tokens, at, &mut inserted);
                }
            }
        }
    }
    // A stable sort: insertions at the same position keep their order.
    inserted.sort_by_key(|(at, _)| *at);
    let mut edits: Vec<(Range<usize>, String)> =
        inserted.into_iter().map(|(at, text)| (at..at, text.to_owned())).collect();
    edits.extend(raw.into_iter().map(|range| {
        let text = source[range.clone()].replace('\\', "\\\\").replace('"', "\\\"");
        (range, format!("{{{{ \"{text}\" }}}}"))
    }));
    edits.sort_by_key(|(range, _)| range.start);
    let mut from = 0;
    for (range, text) in edits {
        out.push_str(&source[from..range.start]);
        out.push_str(&text);
        from = range.end;
    }
    out.push_str(&source[from..]);
    out
}

/// Returns the inside of a raw text, without the white space at its ends and without its last character. Tags
/// may trim the white space, and the character protects it.
fn core(source: &str, range: Range<usize>) -> Option<Range<usize>> {
    let text = &source[range.clone()];
    let (begin, trimmed) = (text.len() - text.trim_start().len(), text.trim());
    let (last, _) = trimmed.char_indices().next_back().filter(|(at, _)| *at > 0)?;
    Some(range.start + begin..range.start + begin + last)
}

/// Inserts the filter around the value of `{% set name = value %}`.
fn count_kept(source: &str, tokens: &[Token], end: usize, inserted: &mut Vec<(usize, &'static str)>) {
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| &source[token.range.clone()]);
    if text(0) == "set"
        && let Some(sign) = (1..tokens.len()).find(|at| text(*at) == "=")
        && sign + 1 < tokens.len()
    {
        inserted.push((tokens[sign].range.end, " ("));
        inserted.push((end, growth::KEPT_END));
    }
}

/// Inserts the filters of both operands of the operator at a position, if the operator can build a value.
fn count_operands(source: &str, tokens: &[Token], at: usize, inserted: &mut Vec<(usize, &'static str)>) {
    let text = |at: usize| &source[tokens[at].range.clone()];
    let Some((left, right)) = growth::operand_filters(text(at)) else { return };
    if tokens[at].kind != Kind::Operator || at == 0 {
        return;
    }
    let before = &tokens[at - 1];
    // Without a complete operand before it, the sign is unary or unpacks arguments.
    let complete = match before.kind {
        Kind::Name => !WORDS.contains(&text(at - 1)),
        Kind::Number | Kind::Text => true,
        Kind::Operator => [")", "]", "}"].contains(&text(at - 1)),
    };
    if complete && let Some(end) = operand_end(source, tokens, at + 1) {
        inserted.push((before.range.end, left));
        inserted.push((end, right));
    }
}

/// Returns the position after an operand with its attributes, calls and filters.
fn operand_end(source: &str, tokens: &[Token], mut at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| &source[token.range.clone()]);
    // A unary minus belongs to the operand.
    while text(at) == "-" {
        at += 1;
    }
    match tokens.get(at)?.kind {
        Kind::Text => {
            // Adjacent strings are one operand in Jinja.
            while tokens.get(at).is_some_and(|token| token.kind == Kind::Text) {
                at += 1;
            }
        }
        Kind::Name | Kind::Number => at += 1,
        Kind::Operator => at = closed(source, tokens, at)?,
    }
    loop {
        match text(at) {
            "." => at += 2,
            "|" => {
                at += 2;
                while text(at) == "." {
                    at += 2;
                }
                if text(at) == "(" {
                    at = closed(source, tokens, at)?;
                }
            }
            "(" | "[" => at = closed(source, tokens, at)?,
            _ => return Some(tokens.get(at - 1)?.range.end),
        }
    }
}

/// Returns the position after the bracket that closes the one at `at`, or `None` if it is not closed.
fn closed(source: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let mut open = 0_usize;
    for (own, token) in tokens.iter().enumerate().skip(at) {
        match &source[token.range.clone()] {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" if open <= 1 => return (open == 1).then_some(own + 1),
            ")" | "]" | "}" => open -= 1,
            _ if open == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the texts that a template writes right before a printed value: the ends of raw texts, and the
/// strings in tags. Texts before a message's role are left out, because a role is not content.
pub(super) fn written_before_values(source: &str) -> Vec<String> {
    let pieces = pieces(source);
    let mut written = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Raw(range) => {
                let is_role = |piece: &Piece| match piece {
                    Piece::Tag { tokens, is_block: false, .. } => names_a_role(source, tokens),
                    _ => false,
                };
                if !pieces.get(at + 1).is_some_and(is_role) {
                    written.push(source[range.clone()].trim_end().to_owned());
                }
            }
            Piece::Tag { tokens, .. } => {
                for (nth, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Text) {
                    let text = &source[token.range.start + 1..token.range.end - 1];
                    let next = tokens.get(nth + 1).map_or("", |token| &source[token.range.clone()]);
                    let joined = ["+", "~"].contains(&next);
                    if !(joined && names_a_role(source, &tokens[nth + 2..])) {
                        written.push(unescaped(text).trim_end().to_owned());
                    }
                }
            }
        }
    }
    written
}

/// Returns true if the tokens are the role of a message, alone or with a text after it: `message.role`,
/// `message['role'] + ...`.
fn names_a_role(source: &str, tokens: &[Token]) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| &source[token.range.clone()]);
    let end = match (text(1), text(2), text(3)) {
        (".", "role", _) => 3,
        ("[", "'role'" | "\"role\"", "]") => 4,
        _ => return false,
    };
    tokens[0].kind == Kind::Name && (tokens.len() == end || ["+", "~"].contains(&text(end)))
}

/// Returns a string of a tag with the usual escapes resolved.
fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\'", "'")
        .replace("\\\"", "\"")
        .replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_and_kept_values_get_filters() {
        for (source, expected) in [
            ("{{ a ~ b.c[d](e)|f(g) }}", "{{ a|_joined ~ b.c[d](e)|f(g)|_joined }}"),
            ("{{ -a + f(*b) -}}", "{{ -a|_added + f(*b)|_joined -}}"),
            ("{{ (a * 'x' 'y')+%}", "{{ (a * 'x' 'y')+%}"),
            ("{{ (a * 'x' 'y') }}", "{{ (a|_times * 'x' 'y'|_product) }}"),
            ("{%+ set a, b = c ~ '}}', d -%}", "{%+ set a, b = ( c|_joined ~ '}}'|_joined, d )|_kept -%}"),
            (
                "{% raw %}{{ a ~ b }}{% endraw %}{# {{ a ~ b }} #}~",
                "{% raw %}{{ a ~ b }}{% endraw %}{# {{ a ~ b }} #}~",
            ),
            (
                " ab \\\"c {% set x %} de {% endset %}",
                " {{ \"ab \\\\\\\"\" }}c {% set x %} {{ \"d\" }}e {% endset %}",
            ),
            ("{{ {'a': {'b': 1}} ~ a }}", "{{ {'a': {'b': 1}}|_joined ~ a|_joined }}"),
        ] {
            assert_eq!(counted(source), expected);
        }
    }

    #[test]
    fn texts_before_output_values_are_found() {
        let source = "<|{{ m.role }}|>x<{{ name }}>{{ '<|' + m['role'] + '|>' ~ \"[\" ~ x }}";
        let written = written_before_values(source);
        assert_eq!(written, ["|>x<", ">", "role", "|>", "[", ""]);
    }
}
