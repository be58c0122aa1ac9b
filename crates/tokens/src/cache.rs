//! A cache of token counts by content, for texts that recur from request to request, such as documents and
//! tool schemas. Its size in bytes is limited. It affects only speed: every entry was counted, and any entry
//! may be evicted.

use crate::certainty::Weight;
use foldhash::{fast::FixedState, quality::RandomState};
use quick_cache::{
    Equivalent, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use smol_str::SmolStr;
use std::{
    fmt,
    hash::{BuildHasher, Hash, Hasher},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Hashes a text with a seed that no one outside the process can predict, because documents are untrusted.
fn text_hash(text: &str) -> u64 {
    SEED.hash_one(text)
}

/// A random seed per process. A fixed seed would allow crafted documents to collide.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Hashes a cache key. The hash of a document includes its delimiter attributes, because many documents may
/// have the same text.
fn content_hash(recurring: Recurring<'_>) -> u64 {
    match recurring {
        Recurring::Text(text) => text_hash(text),
        Recurring::Document(document) => {
            // The origin is left out of the hash: entries with equal hashes are compared in full anyway.
            // Hashing all parts as one value took a third of the planning time when all documents were
            // cached.
            let header = document.header.map_or(0, |header| SEED.hash_one(header));
            document.hash ^ SEED.hash_one(document.id).rotate_left(17) ^ header.rotate_left(31)
        }
    }
}

/// The known facts about a text: its exact count, or a number of tokens that it exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Exactly(u64),
    MoreThan(u64),
}

/// A text to look up.
#[derive(Clone, Copy)]
pub(crate) enum Recurring<'a> {
    /// A text that is counted as it is.
    Text(&'a str),
    /// A document, which is counted together with its delimiters.
    Document(DocumentText<'a>),
}

/// A document between its delimiters: its text, and the attributes that the delimiters contain.
///
/// ```
/// use context_window_tokens::DocumentText;
/// use std::sync::Arc;
///
/// let text: Arc<str> = "Refunds take 5 days.".into();
/// let document =
///     DocumentText { text: &text, hash: 7, id: "refunds", origin: None, header: None, label: None };
/// assert_eq!(document.text.len(), 20);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DocumentText<'a> {
    /// The text of the document.
    pub text: &'a Arc<str>,
    /// A hash of the text. Documents are untrusted: seed the hash, so that no one can predict it.
    pub hash: u64,
    /// The id of the document.
    pub id: &'a str,
    /// The origin of the document, if the delimiters contain it.
    pub origin: Option<&'a Arc<str>>,
    /// Its header without its label, unless that is its id and origin alone, as the two fields above have
    /// them.
    pub header: Option<&'a Arc<str>>,
    /// Its label, if the delimiters contain it.
    pub label: Option<u32>,
}

/// The key of a cached count: a text and, for a document, its delimiter attributes.
#[derive(Clone)]
struct Key {
    hash: u64,
    text: Arc<str>,
    attributes: Option<DelimiterAttributes>,
}

/// The attributes in the delimiters of a document.
#[derive(Clone, PartialEq)]
struct DelimiterAttributes {
    id: SmolStr,
    origin: Option<Arc<str>>,
    header: Option<Arc<str>>,
    label: Option<u32>,
}

impl Key {
    fn new(hash: u64, recurring: Recurring<'_>) -> Self {
        match recurring {
            Recurring::Text(text) => Self { hash, text: text.into(), attributes: None },
            Recurring::Document(document) => {
                let (origin, header) = (document.origin.cloned(), document.header.cloned());
                let label = document.label;
                let attributes = DelimiterAttributes { id: document.id.into(), origin, header, label };
                Self { hash, text: Arc::clone(document.text), attributes: Some(attributes) }
            }
        }
    }
}

// Only the text hash is hashed, so that a borrowed `LookupKey` finds an owned `Key` without copying the text.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text && self.attributes == other.attributes
    }
}

impl Eq for Key {}

/// A borrowed key for lookups: the content hash and the text.
struct LookupKey<'a>(u64, Recurring<'a>);

impl Hash for LookupKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

impl Equivalent<Key> for LookupKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.0 == key.hash
            && match (self.1, &key.attributes) {
                (Recurring::Text(text), None) => *text == *key.text,
                (Recurring::Document(document), Some(attributes)) => {
                    // The text is usually the same allocation: comparing two `Arc`s compares their pointers
                    // first.
                    *document.text == key.text
                        && document.id == attributes.id
                        && document.origin == attributes.origin.as_ref()
                        && document.header == attributes.header.as_ref()
                        && document.label == attributes.label
                }
                _ => false,
            }
    }
}

/// The weight of an entry: its size in bytes.
#[derive(Debug, Clone)]
struct Bytes;

/// The approximate size of an entry in bytes, without its text.
const ENTRY: u64 = 160;

impl Weighter<Key, Known> for Bytes {
    fn weight(&self, key: &Key, _: &Known) -> u64 {
        key.text.len() as u64 + ENTRY
    }
}

/// The number of shards, each with its own lock. It is small, so that a document of the largest size does not
/// fill its shard.
const SHARDS: u64 = 4;

/// A cache of token counts, limited by bytes.
pub(super) struct ContentCache {
    counts: Cache<Key, Known, Bytes, FixedState>,
    /// The configured capacity in bytes, used unless a request needs more.
    bytes: u64,
    /// The current capacity in bytes, approximately.
    capacity: AtomicU64,
}

impl fmt::Debug for ContentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentCache").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl ContentCache {
    /// Creates a cache of about `bytes` bytes. [`ContentCache::reserve`] can raise the capacity.
    pub(super) fn new(bytes: u64) -> Self {
        // Assumes texts of 1 kB on average. The clamp limits the memory that the cache reserves at the start.
        let entries = usize::try_from(bytes / 1_024).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        let mut options = OptionsBuilder::new();
        options.shards(SHARDS as usize).estimated_items_capacity(entries).weight_capacity(bytes);
        let options = options.build().expect("all that is needed is set");
        let counts = Cache::with_options(options, Bytes, FixedState::default(), DefaultLifecycle::default());
        Self { counts, bytes, capacity: AtomicU64::new(bytes) }
    }

    /// Adapts the capacity before the documents of a request are counted. The arguments are the number of
    /// documents, their total bytes, and the bytes of the longest one.
    ///
    /// The capacity rises to twice the total, so that every document is found again in the next request. Half
    /// of it is reserve, because entries are distributed over the shards by hash, and unevenly. If later
    /// requests need less, the capacity shrinks by an eighth per request.
    pub(super) fn reserve(&self, documents: u64, bytes: u64, longest: u64) {
        if self.bytes == 0 || documents == 0 {
            return;
        }
        let needed = (bytes + documents * ENTRY).saturating_mul(2);
        // `count_cached` skips texts longer than `capacity / (2 * SHARDS)`: the longest document must stay
        // below that.
        let wanted = needed.max((longest + ENTRY).saturating_mul(2 * SHARDS)).max(self.bytes);
        // Relaxed ordering is enough: the capacity is a hint, and a lost update changes only speed.
        let now = self.capacity.load(Ordering::Relaxed);
        let next = wanted.max(now - now / 8);
        if next != now {
            self.capacity.store(next, Ordering::Relaxed);
            self.counts.set_capacity(next);
        }
    }

    /// Returns the cached result for the text up to `limit`. Calls `count` only if the cache cannot answer.
    pub(super) fn count_cached<E>(
        &self,
        recurring: Recurring<'_>,
        limit: u64,
        count: impl FnOnce() -> Result<Weight, E>,
    ) -> Result<Weight, E> {
        let length = match recurring {
            Recurring::Text(text) => text.len(),
            Recurring::Document(document) => document.text.len(),
        };
        let hash = content_hash(recurring);
        // A longer text would evict too many other entries.
        if length as u64 > self.capacity.load(Ordering::Relaxed) / (2 * SHARDS) {
            return count();
        }
        match self.counts.get(&LookupKey(hash, recurring)) {
            Some(Known::Exactly(n)) => {
                return Ok(if n <= limit { Weight::Exactly(n) } else { Weight::Over });
            }
            // The text exceeds `least` tokens, so it also exceeds every smaller limit.
            Some(Known::MoreThan(least)) if least >= limit => return Ok(Weight::Over),
            _ => {}
        }
        let weight = count()?;
        let known = match weight {
            Weight::Exactly(n) => Known::Exactly(n),
            Weight::Over => Known::MoreThan(limit),
        };
        self.counts.insert(Key::new(hash, recurring), known);
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
            (cache.count_cached(Recurring::Text(text), limit, count).unwrap_or(Weight::Over), asked.get())
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
            assert_eq!(cache.count_cached(Recurring::Text(&text), 9, count), Ok(Weight::Exactly(1)));
        }
        assert!(cache.counts.weight() <= 100_000, "{}", cache.counts.weight());
        assert!(cache.counts.len() > 20, "{} entries", cache.counts.len());
    }

    #[test]
    fn cache_grows_to_the_need_of_a_request_and_shrinks_again() {
        let cache = ContentCache::new(10_000);
        let items: Vec<(String, Arc<str>)> =
            (0..200).map(|at| (format!("d{at}"), format!("{at:0500}").into())).collect();
        let asked = Cell::new(0);
        let weigh_all = || {
            asked.set(0);
            for (id, text) in &items {
                let hash = text_hash(text);
                let document = DocumentText { text, hash, id, origin: None, header: None, label: None };
                let count = || {
                    asked.set(asked.get() + 1);
                    Ok::<_, Infallible>(Weight::Exactly(7))
                };
                assert_eq!(
                    cache.count_cached(Recurring::Document(document), 9, count),
                    Ok(Weight::Exactly(7))
                );
            }
            asked.get()
        };
        weigh_all();
        assert!(weigh_all() > 100, "10,000 bytes hold few of them");
        cache.reserve(200, 100_000, 500);
        weigh_all();
        assert_eq!(weigh_all(), 0);
        (0..40).for_each(|_| cache.reserve(1, 100, 100));
        assert!(cache.counts.weight() <= 10_000, "{}", cache.counts.weight());
    }

    /// Entries with equal hashes are compared one by one, and a long series of them would make lookups slow.
    #[test]
    fn documents_of_one_text_have_hashes_of_their_own() {
        let text: Arc<str> = "the same".into();
        let hash = |at: u32| {
            let (id, header): (_, Arc<str>) = (format!("d{}", at / 2), format!("h{}", at % 2).into());
            let header = Some(&header);
            let document = DocumentText { text: &text, hash: 7, id: &id, origin: None, header, label: None };
            content_hash(Recurring::Document(document))
        };
        let hashes: std::collections::BTreeSet<u64> = (0..1_000).map(hash).collect();
        assert_eq!(hashes.len(), 1_000);
    }

    #[test]
    fn text_in_two_delimiters_is_two_texts() {
        let cache = ContentCache::new(1 << 20);
        let text: Arc<str> = "the same".into();
        let source: Arc<str> = "s".into();
        let labelled = |(id, header, origin): (&str, &str, Option<&Arc<str>>), label, n| {
            let hash = text_hash(&text);
            let header: Arc<str> = header.into();
            let document = DocumentText { text: &text, hash, id, origin, header: Some(&header), label };
            cache.count_cached(Recurring::Document(document), 99, || Ok::<_, Infallible>(Weight::Exactly(n)))
        };
        let known = |document, n| labelled(document, None, n);
        assert_eq!(known(("a", "h", None), 1), Ok(Weight::Exactly(1)));
        assert_eq!(labelled(("a", "h", None), Some(1), 6), Ok(Weight::Exactly(6)));
        assert_eq!(labelled(("a", "h", None), Some(12), 7), Ok(Weight::Exactly(7)));
        assert_eq!(known(("b", "h", None), 2), Ok(Weight::Exactly(2)));
        assert_eq!(known(("a", "i", None), 3), Ok(Weight::Exactly(3)));
        assert_eq!(known(("a", "h", Some(&source)), 4), Ok(Weight::Exactly(4)));
        assert_eq!(known(("a", "h", None), 9), Ok(Weight::Exactly(1)));
        let plain =
            cache.count_cached(Recurring::Text(&text), 99, || Ok::<_, Infallible>(Weight::Exactly(5)));
        assert_eq!(plain, Ok(Weight::Exactly(5)));
    }
}
