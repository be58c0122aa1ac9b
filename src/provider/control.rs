//! The control tokens of a vocabulary, and where a text names one.

use std::borrow::Cow;

/// Control tokens by their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTokens {
    tokens: Vec<String>,
    /// What they begin with: mostly one character for all of them.
    first: Vec<char>,
    /// The rest of each token of which a template writes the beginning by itself, before something that it
    /// prints.
    rests: Vec<String>,
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
        Self { tokens, first, rests: Vec::new() }
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

impl ControlTokens {
    /// Takes texts that a template writes right before something that it prints: if one ends with the
    /// beginning of a token, no text may begin with the rest of it.
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

    /// Returns the text with every control token in it broken, and every piece of one at either end that its
    /// neighbours in a prompt could complete (rule N2).
    pub(crate) fn guarded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = self.broken(text);
        // Templates trim what they print.
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

    /// Returns the positions from which a text is the beginning of a token and no whole one, in order.
    fn beginnings<'s>(&'s self, text: &'s str) -> impl Iterator<Item = usize> + 's {
        let longest = self.tokens.iter().map(String::len).max().unwrap_or(0);
        let from = (text.len().saturating_sub(longest)..=text.len()).find(|at| text.is_char_boundary(*at));
        let from = from.unwrap_or(text.len());
        let starts = text[from..].match_indices(&self.first[..]).map(move |(at, _)| from + at);
        starts.filter(|at| !self.beginning_with(&text[*at..]).is_empty())
    }

    /// Returns the tokens that begin with a text and are longer.
    fn beginning_with(&self, text: &str) -> &[String] {
        let from = self.tokens.partition_point(|token| token.as_str() <= text);
        let number = self.tokens[from..].iter().take_while(|token| token.starts_with(text)).count();
        &self.tokens[from..from + number]
    }

    /// Checks if a text goes on with a token that the template began, to its end or to the text's own.
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
