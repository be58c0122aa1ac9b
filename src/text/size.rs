//! Size limits for JSON input. Values are counted in the text, before anything is built from them. A file of
//! 2 MB can unpack to hundreds of millions of values, each of which takes tens of bytes in memory.

use crate::text::plain::grouped;
use serde::de::DeserializeOwned;

/// Maximum number of values in one session, one set of retrieved documents or one catalogue: about 3 million
/// messages.
pub const VALUES: u64 = 10_000_000;

/// Maximum number of values in a log that is read as a session file, in which each message is a separate
/// record.
pub const VALUES_OF_A_LOG: u64 = 40_000_000;

/// Maximum number of values in JSON that is parsed as a tree: one part of an unknown type, one schema, the
/// arguments of one call.
pub const VALUES_OF_A_TREE: u64 = 1_000_000;

/// Maximum nesting depth of JSON that is parsed as a tree: the limit of `serde_json`.
pub const LEVELS: u64 = 127;

/// Maximum number of bytes kept for the parts of unknown types of one session.
pub const OPAQUE_BYTES: u64 = 256 << 20;

/// Maximum number of bytes of an unpacked file.
pub const BYTES: u64 = 1 << 30;

/// A counter of JSON values over a stream of bytes. The count is never too low. It is too high only by empty
/// arrays and objects, which count twice. Invalid JSON is left to the parser.
#[derive(Debug, Default)]
pub struct Tally {
    /// True inside of a string.
    quoted: bool,
    /// True right after a backslash in a string.
    escaped: bool,
    /// The number of open brackets.
    depth: u64,
    /// The maximum number of brackets open at the same time.
    deepest: u64,
    /// True inside of a number or a literal (`true`, `false`, `null`).
    bare: bool,
    /// The number of values in the current JSON text. An input may hold several texts in sequence.
    here: u64,
    /// The number of values in all texts.
    all: u64,
    /// The number of texts.
    texts: u64,
    /// The number of line breaks so far.
    breaks: u64,
}

/// An exceeded size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// The line at which the limit was exceeded, from 1.
    pub line: u64,
}

impl Tally {
    /// Counts further bytes of the input.
    ///
    /// # Errors
    ///
    /// If one text has more than `most` values, or if there are more than `most` texts.
    pub fn count_bytes(&mut self, bytes: &[u8], most: u64) -> Result<(), Excess> {
        for byte in bytes {
            if self.quoted {
                self.quoted = *byte != b'"' || self.escaped;
                self.escaped = *byte == b'\\' && !self.escaped;
                self.breaks += u64::from(*byte == b'\n');
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\r' => self.bare = false,
                b'\n' => {
                    self.bare = false;
                    self.breaks += 1;
                }
                // A comma starts another value of an array or object; its first value is counted at the
                // opening bracket.
                b',' | b':' | b']' | b'}' => {
                    self.bare = false;
                    self.count(*byte == b',');
                    self.depth = self.depth.saturating_sub(u64::from(matches!(byte, b']' | b'}')));
                }
                _ => {
                    if self.depth == 0 && !self.bare {
                        self.texts += 1;
                        self.here = 0;
                        self.count(true);
                    }
                    let opens = matches!(byte, b'[' | b'{');
                    self.count(opens);
                    self.depth += u64::from(opens);
                    self.deepest = self.deepest.max(self.depth);
                    self.quoted = *byte == b'"';
                    self.bare = !opens && !self.quoted;
                }
            }
            if self.here > most || self.texts > most {
                return Err(Excess { line: self.breaks + 1 });
            }
        }
        Ok(())
    }

    fn count(&mut self, one: bool) {
        self.here += u64::from(one);
        self.all += u64::from(one);
    }

    /// Returns the number of values in all texts so far.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.all
    }
}

/// Returns the nesting depth of a JSON text.
#[must_use]
pub fn levels(text: &str) -> u64 {
    let mut tally = Tally::default();
    // Without a limit, counting cannot fail.
    let _ = tally.count_bytes(text.as_bytes(), u64::MAX);
    tally.deepest
}

/// Checks that a JSON text has at most `most` values.
pub fn check(text: &str, most: u64) -> Result<(), Excess> {
    Tally::default().count_bytes(text.as_bytes(), most)
}

/// Parses a JSON text. Returns `None` if it has too many values or is not JSON.
#[must_use]
pub fn tree<T: DeserializeOwned>(text: &str) -> Option<T> {
    check(text, VALUES_OF_A_TREE).ok()?;
    serde_json::from_str(text).ok()
}

/// Returns the error text for a text with too many values. `what` names the text.
#[must_use]
pub fn too_many(what: &str, most: u64) -> String {
    format!("{what} contains more than {} JSON values; expected no more", grouped(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn values(value: &Value) -> u64 {
        1 + match value {
            Value::Array(list) => list.iter().map(values).sum(),
            Value::Object(object) => object.values().map(values).sum(),
            _ => 0,
        }
    }

    fn empty(value: &Value) -> u64 {
        match value {
            Value::Array(list) if list.is_empty() => 1,
            Value::Object(object) if object.is_empty() => 1,
            Value::Array(list) => list.iter().map(empty).sum(),
            Value::Object(object) => object.values().map(empty).sum(),
            _ => 0,
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\,\\[\\]{}:\n ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let key = "[a\"\\\\,:]{0,3}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..5).prop_map(|pairs| pairs.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_value_is_missed_and_only_empty_values_count_twice(
            texts in prop::collection::vec((json(), any::<bool>()), 1..4), cut in any::<prop::sample::Index>(),
        ) {
            let text: String = texts
                .iter()
                .map(|(value, pretty)| if *pretty { format!("{value:#}\n") } else { format!("{value}\n") })
                .collect();
            let expected: u64 = texts.iter().map(|(value, _)| values(value) + empty(value)).sum();
            // Counted in two steps, split at any byte.
            let (mut tally, cut) = (Tally::default(), cut.index(text.len()));
            tally.count_bytes(&text.as_bytes()[..cut], u64::MAX).unwrap();
            tally.count_bytes(&text.as_bytes()[cut..], u64::MAX).unwrap();
            prop_assert_eq!(tally.values(), expected, "{}", text);
            prop_assert_eq!(tally.texts, texts.len() as u64);
            let largest = texts.iter().map(|(value, _)| values(value) + empty(value)).max().unwrap_or(0);
            let most = largest.max(texts.len() as u64);
            prop_assert_eq!(check(&text, most), Ok(()));
            prop_assert!(check(&text, most - 1).is_err(), "{}", text);
        }
    }

    #[test]
    fn excess_is_reported_with_its_line() {
        let text = "{\"a\":[1,\n2,3]}\n[1]\n[[],[],[],\n[],[]]";
        assert_eq!(check(text, 6), Err(Excess { line: 4 }));
        assert_eq!(check(text, 20), Ok(()));
        assert_eq!(check("1 2 3 4", 3), Err(Excess { line: 1 }));
        assert_eq!(check("\"[[[[[,,,,,\"", 2), Ok(()));
    }
}
