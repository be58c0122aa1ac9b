//! The checksum of a log entry, in a file and in a store.

/// Returns the first 16 hex digits of a hash over the entry's number and text. The number is included so that
/// reordered entries are detected.
#[must_use]
pub fn checksum(sequence: u64, text: &str) -> String {
    hash(sequence, text).to_hex()[..16].into()
}

/// Checks if an entry's checksum is `expected`. Unlike a comparison with [`checksum`], this allocates
/// nothing.
#[must_use]
pub fn has_checksum(sequence: u64, text: &str, expected: &str) -> bool {
    let hash = hash(sequence, text);
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    let pairs = expected.as_bytes().chunks(2).zip(hash.as_bytes());
    expected.len() == 16
        && pairs.into_iter().all(|(pair, byte)| *pair == [digit(byte >> 4), digit(byte & 15)])
}

fn hash(sequence: u64, text: &str) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    hash.update(&sequence.to_le_bytes()).update(text.as_bytes());
    hash.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_checksum_of_number_and_text_matches() {
        for sequence in 0..300 {
            let sum = checksum(sequence, "text");
            assert!(has_checksum(sequence, "text", &sum));
            assert!(!has_checksum(sequence + 1, "text", &sum) && !has_checksum(sequence, "texts", &sum));
            let others = [&sum[..14], &sum[..15], &format!("{sum}00"), &sum.to_uppercase(), ""];
            assert!(others.iter().all(|other| *other == sum || !has_checksum(sequence, "text", other)));
            for at in 0..16 {
                let mut wrong = sum.clone().into_bytes();
                wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
                assert!(!has_checksum(sequence, "text", &String::from_utf8(wrong).unwrap()));
            }
        }
    }
}
