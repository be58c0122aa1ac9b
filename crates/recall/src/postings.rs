//! The passages that contain a word, with the number of times.
//!
//! - Input: the words of passages, in the order of the passages.
//! - Output: for each word, its passages in order.
//! - Rules: a passage may get further words while it is the last one. Two bytes are enough for most entries.

/// The passages of one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postings {
    /// The passages before the last one: the distance to the one before, and the number of times.
    bytes: Vec<u8>,
    /// The passage before the last one plus 1, or 0.
    before: u32,
    /// The last passage. It is not in `bytes` yet, because its count may grow.
    last: u32,
    count: u32,
    passages: u32,
}

impl Postings {
    /// Creates the postings of a word that a passage contains.
    pub(crate) fn new(passage: u32, count: u32) -> Self {
        Self { bytes: Vec::new(), before: 0, last: passage, count, passages: u32::from(count > 0) }
    }

    /// Creates the postings of a word that is in no passage yet.
    pub(crate) fn empty() -> Self {
        Self::new(0, 0)
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    /// Adds the word to a passage, which is the last one or a later one.
    pub(crate) fn add(&mut self, passage: u32, count: u32) {
        if self.count == 0 {
            (self.last, self.count, self.passages) = (passage, count, 1);
            return;
        }
        if passage == self.last {
            self.count = self.count.saturating_add(count);
            return;
        }
        // One bit says that the word occurs once, which most words do.
        let distance = u64::from(self.last - self.before);
        self.push(distance << 1 | u64::from(self.count > 1));
        if self.count > 1 {
            self.push(u64::from(self.count));
        }
        self.before = self.last + 1;
        (self.last, self.count) = (passage, count);
        self.passages += 1;
    }

    fn push(&mut self, mut value: u64) {
        // A vector that doubles would leave a third of the memory unused.
        if self.bytes.capacity() - self.bytes.len() < 10 {
            self.bytes.reserve_exact(10 + self.bytes.len() / 8);
        }
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Returns the number of passages.
    pub(crate) fn passages(&self) -> u32 {
        self.passages
    }

    /// Calls `each` with every passage, in order, and the number of times.
    pub(crate) fn each(&self, mut each: impl FnMut(u32, u32)) {
        let mut next = 0;
        let mut bytes = self.bytes.iter();
        let mut read = || {
            let first = u32::from(*bytes.next()?);
            if first < 0x80 {
                return Some(first);
            }
            let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if *byte < 0x80 {
                    break;
                }
            }
            Some(value as u32)
        };
        while let Some(distance) = read() {
            // Distances have 31 bits: a conversation has fewer passages than that.
            let count = if distance & 1 == 0 { 1 } else { read().unwrap_or(1) };
            next += distance >> 1;
            each(next, count);
            next += 1;
        }
        if self.count > 0 {
            each(self.last, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_are_read_as_added(steps in prop::collection::vec((0u32..300_000, 1u32..400), 1..60)) {
            let mut expected: Vec<(u32, u32)> = Vec::new();
            let mut postings: Option<Postings> = None;
            let mut passage = 0;
            for (step, count) in steps {
                passage += step;
                match expected.last_mut() {
                    Some((last, sum)) if *last == passage => *sum += count,
                    _ => expected.push((passage, count)),
                }
                match &mut postings {
                    Some(postings) => postings.add(passage, count),
                    none => *none = Some(Postings::new(passage, count)),
                }
            }
            let mut found = Vec::new();
            let postings = postings.unwrap();
            postings.each(|passage, count| found.push((passage, count)));
            prop_assert_eq!(postings.passages() as usize, expected.len());
            prop_assert_eq!(found, expected);
        }
    }
}
