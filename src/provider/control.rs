//! The control tokens of a vocabulary, and where a text names one.

use std::borrow::Cow;

/// Control tokens by their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTokens {
    tokens: Vec<String>,
    /// What they begin with: mostly one character for all of them.
    first: Vec<char>,
}

impl ControlTokens {
    pub(crate) fn new(tokens: impl Iterator<Item = String>) -> Self {
        let mut tokens: Vec<String> =
            tokens.filter(|token| !token.contains(BREAK) && token.chars().count() > 1).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let mut first: Vec<char> = tokens.iter().filter_map(|token| token.chars().next()).collect();
        first.sort_unstable();
        first.dedup();
        Self { tokens, first }
    }

    /// Where a text names control tokens, and the bytes of each: from left to right, the longest first, none inside
    /// another.
    pub(crate) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
        let mut end = 0;
        text.match_indices(&self.first[..]).filter_map(move |(at, _)| {
            let here = self.tokens.iter().filter(|token| text[at..].starts_with(token.as_str()));
            let length = here.map(String::len).max().filter(|_| at >= end)?;
            end = at + length;
            Some((at, length))
        })
    }
}

/// What is inserted into a control token that content spells out, so that it no longer is one: a zero-width space.
const BREAK: char = '\u{200b}';

impl ControlTokens {
    /// The text, with every control token that it names broken after its first character (rule N2).
    pub(crate) fn broken<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.find(text).next().is_none() {
            return text.into();
        }
        let mut out = String::with_capacity(text.len() + 16);
        let mut from = 0;
        for (at, _) in self.find(text) {
            let inside = at + text[at..].chars().next().map_or(0, char::len_utf8);
            out.push_str(&text[from..inside]);
            out.push(BREAK);
            from = inside;
        }
        out.push_str(&text[from..]);
        // A token inside another one may be whole still, where it does not begin with the same character. Each round breaks
        // at least one, and what is broken stays broken.
        self.broken(&out).into_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_from_the_left_and_none_inside_another() {
        let control = ControlTokens::new(["<a>", "<a><b>", "b>", "é|"].map(String::from).into_iter());
        let found: Vec<_> = control.find("x<a><b>é|<a>< b>").collect();
        assert_eq!(found, [(1, 6), (7, 3), (10, 3), (15, 2)]);
        let letter = ControlTokens::new(["!", "<p>"].map(String::from).into_iter());
        assert_eq!(
            letter.broken("hi! <p>"),
            "hi! <\u{200b}p>",
            "one character cannot be broken, and is no marker"
        );
        let broken = control.broken("x<a><b>é|").into_owned();
        assert!(control.find(&broken).next().is_none(), "{broken:?}");
        assert_eq!(broken.replace(BREAK, ""), "x<a><b>é|");
        assert_eq!(ControlTokens::default().find("<a>").count(), 0);
    }
}
