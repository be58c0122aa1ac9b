//! Counts of texts that recur from request to request (documents, tool schemas), remembered by content. It is bounded
//! in bytes, and it may change speed only: what it knows was counted, and any of it may be forgotten.

use super::Weight;
use quick_cache::{Equivalent, Weighter, sync::Cache};
use std::sync::Arc;

/// What is known of a text: its count, or that it is over some number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Exactly(u64),
    MoreThan(u64),
}

/// Texts, weighed in bytes.
#[derive(Debug, Clone)]
struct Bytes;

/// Bytes that an entry takes beside its text, about.
const ENTRY: u64 = 96;

impl Weighter<Arc<str>, Known> for Bytes {
    fn weight(&self, text: &Arc<str>, _: &Known) -> u64 {
        text.len() as u64 + ENTRY
    }
}

/// A text to look for.
#[derive(Hash)]
struct Wanted<'a>(&'a str);

impl Equivalent<Arc<str>> for Wanted<'_> {
    fn equivalent(&self, key: &Arc<str>) -> bool {
        *self.0 == **key
    }
}

/// Remembers counts.
#[derive(Debug)]
pub(super) struct ContentCache {
    counts: Cache<Arc<str>, Known, Bytes>,
    /// A longer text would push out too much else.
    longest: usize,
}

impl ContentCache {
    /// A cache that holds about this many bytes of texts at most.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / 1_024).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        let longest = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        Self { counts: Cache::with_weighter(entries, bytes, Bytes), longest }
    }

    /// What `count` says of the text up to `limit`; it is asked only where that is not known.
    pub(super) fn weigh<E>(
        &self,
        text: &str,
        limit: u64,
        count: impl FnOnce() -> Result<Weight, E>,
    ) -> Result<Weight, E> {
        if text.len() > self.longest {
            return count();
        }
        match self.counts.get(&Wanted(text)) {
            Some(Known::Exactly(n)) => {
                return Ok(if n <= limit { Weight::Exactly(n) } else { Weight::Over });
            }
            Some(Known::MoreThan(least)) if least >= limit => return Ok(Weight::Over),
            _ => {}
        }
        let weight = count()?;
        let known = match weight {
            Weight::Exactly(n) => Known::Exactly(n),
            Weight::Over => Known::MoreThan(limit),
        };
        self.counts.insert(text.into(), known);
        Ok(weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, convert::Infallible};

    #[test]
    fn a_text_is_counted_once_and_over_is_over_for_less() {
        let cache = ContentCache::new(1 << 20);
        let asked = Cell::new(0);
        let weigh = |text: &str, limit| {
            let count = || {
                asked.set(asked.get() + 1);
                let n = text.len() as u64;
                Ok::<_, Infallible>(if n <= limit { Weight::Exactly(n) } else { Weight::Over })
            };
            (cache.weigh(text, limit, count).unwrap_or(Weight::Over), asked.get())
        };
        assert_eq!(weigh("abcdef", 3), (Weight::Over, 1));
        assert_eq!(weigh("abcdef", 2), (Weight::Over, 1));
        assert_eq!(weigh("abcdef", 5), (Weight::Over, 2));
        assert_eq!(weigh("abcdef", 6), (Weight::Exactly(6), 3));
        assert_eq!(weigh("abcdef", 9), (Weight::Exactly(6), 3));
        assert_eq!(weigh("abcdef", 1), (Weight::Over, 3));
        assert_eq!(weigh("ABCDEF", 9), (Weight::Exactly(6), 4));
    }

    #[test]
    fn it_stays_within_its_bytes() {
        let cache = ContentCache::new(100_000);
        for at in 0..10_000 {
            let text = format!("{at:0500}");
            let count = || Ok::<_, Infallible>(Weight::Exactly(1));
            assert_eq!(cache.weigh(&text, 9, count), Ok(Weight::Exactly(1)));
        }
        assert!(cache.counts.weight() <= 100_000, "{}", cache.counts.weight());
        assert!(cache.counts.len() > 20, "{} entries", cache.counts.len());
    }
}
