//! Texts for people: numbers, parser errors and suggestions for misspelt names.

use context_window_tokens::abridged;
use std::borrow::Cow;

/// Maximum length, in bytes, of a name that is compared. Distances of longer names take too long and find
/// nothing.
const LONGEST: usize = 100;

/// Returns the candidate most similar to a name, if it is close enough to be a typing error. Letter case does
/// not count.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    // One error per four letters, at most three in total. More errors make another word.
    let tolerated = (name.chars().count() / 4).clamp(1, 3);
    let near = candidates.into_iter().filter_map(|candidate| {
        let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
        (distance <= tolerated).then_some((distance, candidate))
    });
    // The smallest distance, then the first in byte order, so that the hint does not depend on the order of
    // candidates.
    near.min().map(|(_, candidate)| candidate)
}

/// Rewrites a serde error in plain words. For an unknown key or value, appends the most similar name among
/// those that the message lists.
#[must_use]
pub fn words(message: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("expected a tuple of size ", "expected an array of size "),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
        ("expected a sequence", "expected an array"),
        ("expected struct ", "expected the table of "),
        ("invalid type: sequence", "invalid type: an array"),
        ("invalid type: map", "invalid type: an object"),
        ("floating point `", "number `"),
    ];
    let message = without_long_value(message);
    let message =
        WORDS.iter().fold(message.into_owned(), |text, (technical, plain)| text.replace(technical, plain));
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = match quoted.split_first() {
        Some((wrong, known)) if message.starts_with("unknown") => nearest(wrong, known.iter().copied()),
        _ => None,
    };
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    message + &hint
}

/// Shortens a value of the input for an error, notice or note (rule V4). Up to 80 characters are kept. A
/// longer value is reduced to its beginning, its end and its size in bytes.
///
/// ```
/// use context_window::text::plain::short;
///
/// assert_eq!(short("m1"), "m1");
/// let long = format!("{}-{}", "a".repeat(1_000_000), "b".repeat(40));
/// assert_eq!(short(&long), format!("{}…{} (1,000,041 bytes)", "a".repeat(50), "b".repeat(20)));
/// ```
#[must_use]
pub fn short(value: &str) -> Cow<'_, str> {
    abridged(value, 80, 50)
}

/// Shortens a sentence for an error (rule V4). Up to 1,600 characters are kept. A longer sentence is reduced
/// to its beginning and end. Values are shortened earlier by [`short`]; this limits lists of many values, and
/// messages of other libraries.
#[must_use]
pub fn bounded(sentence: &str) -> Cow<'_, str> {
    abridged(sentence, 1_600, 1_000)
}

/// Shortens a path of keys for an error. Up to 300 characters are kept, because a key may have any length.
#[must_use]
pub fn short_path(path: &str) -> Cow<'_, str> {
    abridged(path, 300, 200)
}

/// Shortens the value in a parser message by [`short`]. Such a message is `unknown variant` with a value in
/// quotes, followed by the expected values.
#[must_use]
pub fn without_long_value(message: &str) -> Cow<'_, str> {
    let ends = ["`, expected", "\", expected", "`, there are", "`"];
    let parts = message.find(['`', '"']).and_then(|at| {
        // Searched from the right, because the value itself may contain quotes.
        let end = ends.iter().find_map(|end| message.rfind(end)).filter(|end| *end > at)?;
        Some((&message[..=at], &message[at + 1..end], &message[end..]))
    });
    match parts {
        Some((before, value, after)) if value.len() > 80 && !value.contains("`, `") => {
            bounded(&format!("{before}{}{after}", short(value))).into_owned().into()
        }
        _ => bounded(message),
    }
}

/// Formats a number with commas between thousands.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats billionths of a US dollar: with cents, or with three significant digits below one cent.
#[must_use]
pub fn dollars(billionths: u64) -> String {
    let decimals = match billionths {
        0 | 1_000_000_000.. => 2,
        1_000_000.. => 4,
        100_000.. => 5,
        10_000.. => 6,
        _ => 9,
    };
    let unit = 10u64.pow(9 - decimals);
    let rounded = billionths.saturating_add(unit / 2) / unit;
    let whole = 10u64.pow(decimals);
    format!("${}.{:0>width$}", grouped(rounded / whole), rounded % whole, width = decimals as usize)
}

/// Returns `tokens` as a percentage of `of`, rounded down. Returns 0 if `of` is 0. May exceed 100.
#[must_use]
pub fn per_cent(tokens: u64, of: u64) -> u64 {
    // 128 bits, because 100 times a 64-bit count overflows.
    let percent = (u128::from(tokens) * 100).checked_div(u128::from(of)).unwrap_or(0);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Returns the parts as whole percentages by the largest remainder method. If the parts sum to `whole`, the
/// percentages sum to 100. If `whole` is larger, the rest takes part in the rounding and is left out of the
/// result.
#[must_use]
pub fn percentages(parts: &[u64], whole: u64) -> Vec<u64> {
    let sum = parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let rest = whole.saturating_sub(sum);
    let all: Vec<u64> = parts.iter().copied().chain([rest]).collect();
    let mut divided = by_largest_remainder(&all, 100);
    divided.pop();
    divided.into_iter().map(|part| part as u64).collect()
}

/// Writes each run of white space as one space, and none around the text.
pub(crate) fn fold_white_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Divides `cells` in proportion to the parts, by the largest remainder method. The results sum to `cells`,
/// unless all parts are 0. Of equal remainders, the first part gets the extra cell.
pub(crate) fn by_largest_remainder(parts: &[u64], cells: usize) -> Vec<usize> {
    let whole: u128 = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let share = |part: &u64| u128::from(*part) * cells as u128;
    let mut divided: Vec<usize> =
        parts.iter().map(|part| usize::try_from(share(part) / whole).unwrap_or(cells)).collect();
    // A part of 0 never gets a cell, not even by its remainder.
    let mut order: Vec<usize> = (0..parts.len()).filter(|at| parts[*at] > 0).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(share(&parts[*at]) % whole), *at));
    let left = cells.saturating_sub(divided.iter().sum());
    for at in order.into_iter().take(left) {
        divided[at] += 1;
    }
    divided
}

/// Returns a serde error in plain words without its "at line … column …", which counts from the start of the
/// parsed text.
#[must_use]
pub fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    words(text.strip_suffix(&place).unwrap_or(&text))
}

/// Removes white space between the tokens of a JSON text. Everything else, including the order of keys, stays
/// unchanged.
#[must_use]
pub fn compact_json(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        let blank = matches!(c, ' ' | '\t' | '\n' | '\r');
        if quoted || !blank {
            out.push(c);
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_keep_three_digits() {
        let all = [0, 7, 12_345, 123_456, 1_234_567, 12_345_678, 1_999_999_999, 12_345_678_901_234];
        let all: Vec<String> = all.into_iter().map(dollars).collect();
        let expected =
            ["$0.00", "$0.000000007", "$0.000012", "$0.00012", "$0.0012", "$0.0123", "$2.00", "$12,345.68"];
        assert_eq!(all, expected);
    }

    #[test]
    fn typos_are_recognised_and_other_words_are_not() {
        let keys = ["max_items", "max_item_tokens", "min_score", "fill"];
        assert_eq!(nearest("max_itmes", keys), Some("max_items"));
        assert_eq!(nearest("Fil", keys), Some("fill"));
        assert_eq!(nearest("temperature", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn json_without_white_space_is_the_same_json() {
        let text = "{ \"b\" : [ 1 ,\n 2 ], \"a\": \"x \\\" \\\\\", \"c\":\t\" { \" }";
        let compact = compact_json(text);
        assert_eq!(compact, "{\"b\":[1,2],\"a\":\"x \\\" \\\\\",\"c\":\" { \"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&compact), read(text));
    }
}
