//! Comparison of a quote with the text that it is from.

use crate::text::plain::fold_white_space;

/// Marks in place of left out text.
const ELLIPSES: [&str; 4] = ["[...]", "[…]", "...", "…"];

/// Checks if a text contains a quote. Runs of white space count as one space, the parts around an ellipsis
/// must follow each other, and the punctuation at the end may differ.
pub(super) fn contains(text: &str, quote: &str) -> bool {
    let text = fold_white_space(text);
    let lines = quote.lines().map(|line| line.trim_start().trim_start_matches('>'));
    let quote = fold_white_space(&lines.collect::<Vec<_>>().join("\n"));
    let mut quote = quote.trim_end_matches(['.', ',', ';', ':', '!', '?', ' ', '*', '_']);
    let mut rest = text.as_str();
    loop {
        let next = ELLIPSES
            .iter()
            .filter_map(|mark| Some((quote.find(mark)?, mark.len())))
            .min_by_key(|next| next.0);
        let part = quote[..next.map_or(quote.len(), |(at, _)| at)].trim();
        let Some(found) = rest.find(part) else { return false };
        rest = &rest[found + part.len()..];
        match next {
            Some((at, length)) => quote = &quote[at + length..],
            None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_compared_word_for_word() {
        let text = "Refunds take\n5 days. We pay by card, never in cash. Ask... us";
        for said in [
            "Refunds take 5 days",
            "refunds".trim_start_matches("refunds"),
            "take 5  days.",
            "take 5 days,",
            "Refunds … by card",
            "Refunds [...] days. We [...] never",
            "> Refunds take\n> 5 days",
            "Ask...",
        ] {
            assert!(contains(text, said), "{said}");
        }
        for other in [
            "Refunds take 6 days",
            "refunds take",
            "by card ... Refunds",
            "never in … card",
            "take 5"[..5].repeat(2).as_str(),
        ] {
            assert!(!contains(text, other), "{other}");
        }
    }
}
