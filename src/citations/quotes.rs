//! Comparison of a quote with the text that it is from.

use std::borrow::Cow;

/// Marks in place of left out text. The last one replaces the others.
const ELLIPSES: [&str; 6] = ["[...]", "[…]", "(...)", "(…)", "...", "…"];

/// Punctuation and markup around a quote, which may differ from that of the text.
const AROUND: &[char] = &[
    ' ', '.', ',', ';', ':', '!', '?', '*', '_', '"', '。', '，', '、', '；', '：', '！', '？', '؟', '،', '।',
];

/// Returns a text for comparisons: runs of white space are one space, and none between characters of scripts
/// without spaces. Typographic quotation marks and apostrophes are straight.
pub(super) fn comparable(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let has_no_spaces = |c: char| matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}');
        let is_one_word = folded.ends_with(has_no_spaces) && word.starts_with(has_no_spaces);
        if !folded.is_empty() && !is_one_word {
            folded.push(' ');
        }
        folded.extend(word.chars().map(|c| match c {
            '‘' | '’' | '‚' => '\'',
            '“' | '”' | '„' => '"',
            other => other,
        }));
    }
    folded
}

/// Checks if a [`comparable`] text contains a quote. The parts around an ellipsis must follow each other, and
/// the punctuation at the ends may differ.
pub(super) fn contains(text: &str, quote: &str) -> bool {
    let lines = quote.lines().map(|line| line.trim_start().trim_start_matches('>'));
    let mut quote = Cow::from(comparable(&lines.collect::<Vec<_>>().join("\n")));
    let [others @ .., mark] = ELLIPSES;
    for other in others {
        if quote.contains(other) {
            quote = quote.replace(other, mark).into();
        }
    }
    let parts = quote.split(mark).map(|part| part.trim_matches(AROUND));
    let mut rest = text;
    parts.filter(|part| !part.is_empty()).all(|part| {
        rest.find(part).is_some_and(|found| {
            rest = &rest[found + part.len()..];
            true
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_compared_word_for_word() {
        let text = comparable("Refunds take\n5 days. We don’t pay in cash,\nnever. Ask... us 五天\n退款。");
        for said in [
            "Refunds take 5 days",
            "take 5  days.",
            "**take 5 days**,",
            "We don't pay",
            "Refunds … in cash",
            "Refunds [...] days. We (...) never....",
            "> Refunds take\n> 5 days",
            "Ask...",
            "五天退款，",
        ] {
            assert!(contains(&text, said), "{said}");
        }
        for other in ["Refunds take 6 days", "refunds take", "in cash ... Refunds", "take take", "六天"] {
            assert!(!contains(&text, other), "{other}");
        }
    }

    #[test]
    fn hostile_quotes_take_linear_time() {
        let text = comparable(&"a b ".repeat(100_000));
        assert!(contains(&text, &"…".repeat(100_000)));
        assert!(contains(&text, &"a[...]".repeat(30_000)));
        assert!(!contains(&text, &"b(…)c".repeat(30_000)));
    }
}
