//! The lines of a log. Each contains one record with its number and its checksum.

use context_window::{
    events::{
        checksum::{checksum, has_checksum},
        record::{Record, VERSION},
    },
    text::plain,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// The number of hexadecimal digits of a checksum.
const SUM_DIGITS: usize = 16;

/// A line of the file. The keys on disk are short: `n`, `sum`, `record`.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(rename = "n")]
    sequence: u64,
    #[serde(rename = "sum")]
    checksum: String,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// Parses the record of a line. Returns an error if the line is damaged or is not record `next`.
pub(crate) fn parse(line: &[u8], next: u64) -> Result<Record, String> {
    let text = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
    let line: Line<'_> = serde_json::from_str(text)
        .map_err(|error| format!("is not a record ({})", plain::without_place(&error)))?;
    if !has_checksum(line.sequence, line.record.get(), &line.checksum) {
        return Err("does not match its checksum".into());
    }
    if line.sequence != next {
        return Err(format!("is record {}; expected record {next}", line.sequence));
    }
    serde_json::from_str(line.record.get()).map_err(|error| plain::without_place(&error))
}

/// Formats the line of a record, without the line break.
pub(crate) fn line_of(sequence: u64, record: &str) -> String {
    format!("{{\"n\":{sequence},\"sum\":\"{}\",\"record\":{record}}}", checksum(sequence, record))
}

/// Returns the first line of every log, with its line break.
pub(crate) fn first_line() -> String {
    line_of(0, &format!("{{\"context_window_log\":{VERSION}}}")) + "\n"
}

/// Returns the number and the JSON of a record if the line is intact, whatever its number.
pub(crate) fn whole_record(line: &[u8]) -> Option<(u64, &str)> {
    let line: Line<'_> = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
    let json = line.record.get();
    has_checksum(line.sequence, json, &line.checksum).then_some((line.sequence, json))
}

/// Returns true if a text without a line break can be the beginning of record `next`. A crash during a write
/// can leave such a text.
pub(crate) fn is_unfinished(text: &[u8], next: u64) -> bool {
    // The checks follow the order of the line: number, checksum digits, separator, JSON of the record.
    let head = format!("{{\"n\":{next},\"sum\":\"");
    let middle = b"\",\"record\":";
    let Some(rest) = text.strip_prefix(head.as_bytes()) else { return head.as_bytes().starts_with(text) };
    let (sum, rest) = rest.split_at(rest.len().min(SUM_DIGITS));
    if !sum.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return false;
    }
    let Some(record) = rest.strip_prefix(middle) else { return middle.starts_with(rest) };
    // A multi-byte character may be cut in its middle.
    let text = match std::str::from_utf8(record) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&record[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    if !(text.is_empty() || text.starts_with('{')) {
        return false;
    }
    // A number may be cut after a sign, a point or an exponent. The parser then reports an invalid number
    // instead of an early end, unless a digit follows.
    let just_ends = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof());
    match serde_json::from_str::<IgnoredAny>(text) {
        // The JSON is complete, so only the closing brace of the line is missing and the checksum must match.
        Ok(_) => checksum(next, text).as_bytes() == sum,
        Err(_) => just_ends(text) || just_ends(&format!("{text}0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_a_record_is_unfinished_and_nothing_else_is() {
        let record =
            "{\"message\":{\"role\":\"user\",\"text\":\"水壶 \\u00e9 1\",\"n\":[-1.5e+3,true,null]}}";
        let line = line_of(12, record);
        for end in 0..line.len() {
            assert!(is_unfinished(&line.as_bytes()[..end], 12), "{end}");
        }
        let bytes = line.as_bytes();
        assert!(!is_unfinished(bytes, 12), "it is whole");
        assert!(!is_unfinished(&bytes[..40], 11), "another record");
        for other in ["x", "\0", "}", " ", "\n"] {
            assert!(!is_unfinished(&[bytes, other.as_bytes()].concat(), 12), "{other:?} behind a record");
        }
        let wrong_sum = line.replacen(&checksum(12, record), "0123456789abcdef", 1);
        assert!(!is_unfinished(&wrong_sum.as_bytes()[..line.len() - 1], 12), "another checksum");
        for other in ["\0\0\0\0", "{\"n\":99999,\"sum\":\"0\",\"rec", "{\"n\":12,\"sum\":\"0", "no log"] {
            assert!(!is_unfinished(other.as_bytes(), 1), "{other:?}");
        }
    }
}
