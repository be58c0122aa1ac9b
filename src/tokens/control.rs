//! The control tokens of a vocabulary, and where a text names one.

/// Control tokens by their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTokens {
    tokens: Vec<String>,
    /// What they begin with: mostly one character for all of them.
    first: Vec<char>,
}

impl ControlTokens {
    #[cfg(feature = "hf")]
    pub(super) fn new(tokens: impl Iterator<Item = String>) -> Self {
        let tokens: Vec<String> = tokens.filter(|token| !token.is_empty()).collect();
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

#[cfg(all(test, feature = "hf"))]
mod tests {
    use super::*;

    #[test]
    fn the_longest_from_the_left_and_none_inside_another() {
        let control = ControlTokens::new(["<a>", "<a><b>", "b>", "é|"].map(String::from).into_iter());
        let found: Vec<_> = control.find("x<a><b>é|<a>< b>").collect();
        assert_eq!(found, [(1, 6), (7, 3), (10, 3), (15, 2)]);
        assert_eq!(ControlTokens::default().find("<a>").count(), 0);
    }
}
