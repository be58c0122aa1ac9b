//! The control tokens of a vocabulary, and their occurrences in texts.

use std::borrow::Cow;

/// A set of control tokens, by their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTokens {
    tokens: Vec<String>,
    /// The characters that begin a token, usually one for all of them.
    first: Vec<char>,
    /// The remainders of the tokens whose beginning a template writes itself, right before content.
    rests: Vec<String>,
}

impl ControlTokens {
    pub(crate) fn new(tokens: impl Iterator<Item = String>) -> Self {
        // A token of one character cannot be broken. A token with the break character could be completed by
        // breaking another one.
        let mut tokens: Vec<String> =
            tokens.filter(|token| !token.contains(BREAK) && token.chars().count() > 1).collect();
        // `beginning_with` relies on this order for its binary search.
        tokens.sort_unstable();
        tokens.dedup();
        let mut first: Vec<char> = tokens.iter().filter_map(|token| token.chars().next()).collect();
        first.sort_unstable();
        first.dedup();
        Self { tokens, first, rests: Vec::new() }
    }

    /// Returns the positions and lengths in bytes of the control tokens in a text, from left to right. At
    /// each position the longest token wins; tokens inside another one are skipped.
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

/// The character that is inserted into a control token in content, so that it no longer is one: a zero-width
/// space.
const BREAK: char = '\u{200b}';

impl ControlTokens {
    /// Returns the text with every control token broken after its first character (content is plain text,
    /// rule N2).
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
        // A token inside another one may still be complete if it begins with another character. Each round
        // breaks at least one token and never completes one, so the recursion ends.
        self.broken(&out).into_owned().into()
    }
}

impl ControlTokens {
    /// Registers texts that a template writes right before content. If such a text ends with the beginning of
    /// a token, no content may begin with the rest of that token.
    pub(crate) fn after<'t>(mut self, written: impl Iterator<Item = &'t str>) -> Self {
        let mut rests = Vec::new();
        for text in written {
            for begun in self.beginnings(text).map(|at| &text[at..]) {
                rests.extend(self.beginning_with(begun).iter().map(|token| token[begun.len()..].to_owned()));
            }
        }
        rests.sort_unstable();
        rests.dedup();
        self.rests = rests;
        self
    }

    /// Returns the text with every control token broken. A part of a token at either end is broken too if the
    /// neighbouring text could complete it (content is plain text, rule N2).
    pub(crate) fn guarded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.broken(text);
        // Templates trim content, so the ends are examined without white space.
        loop {
            let Some(at) = self.beginnings(out.trim_end()).next() else { break };
            let inside = at + out[at..].chars().next().map_or(0, char::len_utf8);
            out.to_mut().insert(inside, BREAK);
        }
        let begin = out.len() - out.trim_start().len();
        if self.completes(out.trim()) {
            out.to_mut().insert(begin, BREAK);
        }
        out
    }

    /// Returns the positions from which the text is a proper prefix of a token, in ascending order.
    fn beginnings<'s>(&'s self, text: &'s str) -> impl Iterator<Item = usize> + 's {
        // A proper prefix is shorter than the longest token, so only the end of the text is searched.
        let longest = self.tokens.iter().map(String::len).max().unwrap_or(0);
        let from = (text.len().saturating_sub(longest)..=text.len()).find(|at| text.is_char_boundary(*at));
        let from = from.unwrap_or(text.len());
        let starts = text[from..].match_indices(&self.first[..]).map(move |(at, _)| from + at);
        starts.filter(|at| !self.beginning_with(&text[*at..]).is_empty())
    }

    /// Returns the tokens that begin with a text and are longer.
    fn beginning_with(&self, text: &str) -> &[String] {
        // The tokens are sorted, so those with a common prefix are adjacent: O(log n) plus the matches.
        let from = self.tokens.partition_point(|token| token.as_str() <= text);
        let number = self.tokens[from..].iter().take_while(|token| token.starts_with(text)).count();
        &self.tokens[from..from + number]
    }

    /// Returns true if a text continues a token that the template began, up to the end of the token or of the
    /// text.
    fn completes(&self, text: &str) -> bool {
        let goes_on = |rest: &String| text.starts_with(rest.as_str()) || rest.starts_with(text);
        !text.is_empty() && self.rests.iter().any(goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_leftmost_tokens_are_found_without_overlap() {
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
