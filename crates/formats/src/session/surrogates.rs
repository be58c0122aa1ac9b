//! Lone surrogates: halves of UTF-16 pairs without the other half, from logs that were cut inside a pair. A
//! Rust string cannot contain them.

use std::borrow::Cow;

/// Returns the JSON text with each escape of a lone surrogate replaced by `\ufffd`, and the number of
/// replacements. The length stays the same, so byte offsets stay valid.
pub(crate) fn mended(json: &str) -> (Cow<'_, str>, usize) {
    let bytes = json.as_bytes();
    let (mut mended, mut lone, mut at) = (String::new(), 0, 0);
    let mut copied = 0;
    // In valid JSON, backslashes occur only inside strings.
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        let Some(unit) = unit(bytes, at) else {
            // Skips the escaped character, which may itself be a backslash.
            at += 2;
            if at >= bytes.len() {
                break;
            }
            continue;
        };
        let is_pair = (0xd800..0xdc00).contains(&unit)
            && self::unit(bytes, at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if is_pair {
            at += 12;
        } else {
            if (0xd800..0xe000).contains(&unit) {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                copied = at + 6;
                lone += 1;
            }
            at += 6;
        }
    }
    if lone == 0 {
        return (json.into(), 0);
    }
    mended.push_str(&json[copied..]);
    (mended.into(), lone)
}

/// Returns the UTF-16 unit of a four-digit JSON escape at a byte offset. Returns `None` if there is no
/// escape.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any escapes in any order: the result equals Rust's own decoding, which replaces lone surrogates.
        #[test]
        fn surrogate_escapes_decode_as_utf_16(
            units in prop::collection::vec(
                prop_oneof![0xd7f0u16..0xd810, 0xdbf0u16..0xdc10, 0xdff0u16..0xe010, 0x20u16..0x60], 0..12,
            ),
            upper in any::<bool>(),
        ) {
            let escaped = |unit: &u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            let json = format!("[\"\\\\ud800\", \"{}\"]", units.iter().map(escaped).collect::<String>());
            let (text, lone) = mended(&json);
            let read: Vec<String> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read[0], "\\ud800");
            prop_assert_eq!(&read[1], &String::from_utf16_lossy(&units));
            prop_assert_eq!(lone, char::decode_utf16(units).filter(Result::is_err).count());
            prop_assert_eq!(text.len(), json.len());
        }
    }

    #[test]
    fn truncated_escapes_are_left_to_the_parser() {
        for json in ["\"\\", "\"\\u", "\"\\ud8", "\"\\ud800", "\"\\ud800\\", "\"\\ud800\\u\"", "\\", "\\u00"]
        {
            assert_eq!(mended(json).0.len(), json.len(), "{json}");
        }
    }
}
