//! Token counters: the encodings of `OpenAI`, Hugging Face tokenizers, estimates, or a function of one's own
//! (rule N1).

#[cfg(feature = "hf")]
use crate::huggingface;
#[cfg(feature = "openai")]
use crate::openai;
use crate::{
    bounds::Bounds,
    cache::{ContentCache, DocumentText, Recurring},
    certainty::{Certainty, TokenCount, Weight},
    error::{Error, Failure, Repr},
    estimate,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// A counter of the tokens of plain text. Cheap to clone, shared between managers and threads.
///
/// Content is plain text to every counter: `<|endoftext|>` in a document is counted as its characters (rule
/// N2).
///
/// ```
/// use context_window_tokens::{Certainty, TokenCounter};
///
/// # fn main() -> Result<(), context_window_tokens::Error> {
/// let counter = TokenCounter::chars_per_4();
/// let count = counter.count("How long do refunds take?")?;
/// assert_eq!((count.tokens, count.certainty), (7, Certainty::Estimate));
/// // A counter of one's own; an error of it stops the plan.
/// let words = TokenCounter::from_fn("words", |text: &str| Ok::<_, std::io::Error>(text.split(' ').count() as u64));
/// assert_eq!(words.count("How long?")?.tokens, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TokenCounter {
    inner: Arc<Inner>,
    certainty: Certainty,
    bounds: Bounds,
    cache: Option<Arc<ContentCache>>,
}

struct Inner {
    name: String,
    kind: Kind,
    /// Tells the counters of one process apart, so that a count remembered beside a message is its own.
    tag: u32,
}

type CountFn = dyn Fn(&str) -> Result<u64, Failure> + Send + Sync;

enum Kind {
    #[cfg(feature = "openai")]
    OpenAi(openai::Encoding),
    #[cfg(feature = "hf")]
    HuggingFace(Box<huggingface::HuggingFace>),
    Estimate(estimate::CharsPerToken),
    Bytes,
    Fn(Box<CountFn>),
}

/// More than any text has: what a counter of the caller's own may say of one.
const MOST: u64 = 1 << 40;

/// The other forms of a tokenizer's name in this build.
const OR_FILE: &str = if cfg!(feature = "hf") {
    ", or the path of a tokenizer.json"
} else {
    " (a tokenizer.json needs the feature `hf`)"
};

/// Tags below this one belong to the built-in counters.
static NEXT_TAG: AtomicU32 = AtomicU32::new(8);

impl TokenCounter {
    /// Returns the names that [`TokenCounter::named`] knows in this build.
    pub const NAMES: &'static [&'static str] = &[
        #[cfg(feature = "openai")]
        "o200k_base",
        #[cfg(feature = "openai")]
        "cl100k_base",
        "chars/4",
        "chars/3.5",
        "bytes",
    ];

    /// Returns the counter of this name: `o200k_base`, `cl100k_base` (both with feature `openai`), `chars/4`,
    /// `chars/3.5`, `bytes`, or, with feature `hf`, the path of a `tokenizer.json` or of the folder it is in.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not known in this build, or the file cannot be used.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            #[cfg(feature = "openai")]
            "o200k_base" => Ok(Self::o200k_base()),
            #[cfg(feature = "openai")]
            "cl100k_base" => Ok(Self::cl100k_base()),
            "chars/4" => Ok(Self::chars_per_4()),
            "chars/3.5" => Ok(Self::chars_per_3_5()),
            "bytes" => Ok(Self::bytes()),
            #[cfg(feature = "hf")]
            _ if std::path::Path::new(name).exists() => Self::huggingface(std::path::Path::new(name)),
            _ => Err(Error::new(Repr::Unknown {
                name: name.into(),
                known: Self::NAMES.join(", "),
                or_file: OR_FILE,
            })),
        }
    }

    /// Creates a counter with the encoding of `gpt-4o` and everything newer from `OpenAI`. Exact.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::build("o200k_base", Kind::OpenAi(openai::Encoding::O200k), 1)
    }

    /// Creates a counter with the encoding of `gpt-4` and `gpt-3.5-turbo`. Exact.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self::build("cl100k_base", Kind::OpenAi(openai::Encoding::Cl100k), 2)
    }

    /// Creates an estimate: a token for every 4 characters (Unicode scalar values) begun.
    #[must_use]
    pub fn chars_per_4() -> Self {
        Self::build("chars/4", Kind::Estimate(estimate::FOUR), 3)
    }

    /// Creates an estimate: a token for every 3.5 characters begun, and 10 a message in place of the target's
    /// wire format.
    #[must_use]
    pub fn chars_per_3_5() -> Self {
        Self::build("chars/3.5", Kind::Estimate(estimate::THREE_AND_A_HALF), 4)
    }

    /// Creates an upper bound for byte-level vocabularies and those that fall back to bytes: a token for
    /// every byte. It counts too much for English by about a factor of four, and never too little unless a
    /// normaliser makes texts longer.
    #[must_use]
    pub fn bytes() -> Self {
        Self::build("bytes", Kind::Bytes, 5)
    }

    /// Loads the tokenizer of any model that comes with a `tokenizer.json`: the path of that file, or of the
    /// folder it is in. Exact. The counter is named after the folder (or the file, if that is not called
    /// `tokenizer.json`), with the first 8 digits of a hash of the file, so that plans distinguish two of
    /// them.
    ///
    /// ```no_run
    /// let counter = context_window_tokens::TokenCounter::huggingface("models/qwen3")?;
    /// # Ok::<(), context_window_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is no tokenizer, or drops merges at random.
    #[cfg(feature = "hf")]
    pub fn huggingface(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (name, json) = huggingface::read(path)?;
        Self::from_huggingface_json(&name, &path.display().to_string(), &json)
    }

    /// Loads a tokenizer from the bytes of a `tokenizer.json`; plans and errors call it `name`.
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::huggingface`].
    #[cfg(feature = "hf")]
    pub fn huggingface_bytes(name: &str, json: &[u8]) -> Result<Self, Error> {
        let json = std::str::from_utf8(json)
            .map_err(|error| Error::new(Repr::File { origin: name.into(), detail: error.to_string() }))?;
        Self::from_huggingface_json(name, name, json)
    }

    #[cfg(feature = "hf")]
    fn from_huggingface_json(name: &str, origin: &str, json: &str) -> Result<Self, Error> {
        let tokenizer = huggingface::HuggingFace::new(json, origin)?;
        let name = format!("{name}@{}", &blake3::hash(json.as_bytes()).to_hex()[..8]);
        Ok(Self::build(&name, Kind::HuggingFace(Box::new(tokenizer)), next_tag()))
    }

    /// Creates a counter from your own function. Its counts are taken as exact; it has to depend on the text
    /// alone. More than 2^40 tokens for one text read as 2^40, so that sums do not overflow.
    ///
    /// ```
    /// use context_window_tokens::TokenCounter;
    ///
    /// let words = TokenCounter::from_fn("words", |text| Ok::<_, std::fmt::Error>(text.split(' ').count() as u64));
    /// assert_eq!(words.count("three short words")?.tokens, 3);
    /// # Ok::<(), context_window_tokens::Error>(())
    /// ```
    #[must_use]
    pub fn from_fn<E: Into<Failure>>(
        name: &str,
        count: impl Fn(&str) -> Result<u64, E> + Send + Sync + 'static,
    ) -> Self {
        let count = move |text: &str| count(text).map_err(Into::into);
        Self::build(name, Kind::Fn(Box::new(count)), next_tag())
    }

    fn build(name: &str, kind: Kind, tag: u32) -> Self {
        let certainty = match kind {
            Kind::Estimate(_) => Certainty::Estimate,
            Kind::Bytes => Certainty::UpperBound,
            #[cfg(feature = "openai")]
            Kind::OpenAi(_) => Certainty::Exact,
            #[cfg(feature = "hf")]
            Kind::HuggingFace(_) => Certainty::Exact,
            Kind::Fn(_) => Certainty::Exact,
        };
        #[cfg(feature = "openai")]
        if let Kind::OpenAi(encoding) = &kind {
            encoding.load();
        }
        let bounds = kind.bounds();
        Self { inner: Arc::new(Inner { name: name.into(), kind, tag }), certainty, bounds, cache: None }
    }

    /// States that no token of a counter of the caller's own covers more than so many bytes: texts that are
    /// over a limit by their length alone are not counted then. What the built-in counters know of themselves
    /// stays.
    #[must_use]
    pub fn with_longest_token(mut self, bytes: u64) -> Self {
        if let Kind::Fn(_) = self.inner.kind {
            self.bounds.longest = Some(bytes.max(1));
        }
        self
    }

    /// Caches the counts of texts that recur from request to request (documents and the like), up to about
    /// `bytes` bytes of text, or as many as the documents of one request need if that is more; 0 caches
    /// nothing. Clones share the cache. It changes speed, never a plan. A manager sets the cache of a counter
    /// without one by `tokens.cache_bytes`.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.cache = Some(Arc::new(ContentCache::new(bytes)));
        self
    }

    /// Returns whether counts of recurring texts are cached: [`TokenCounter::with_cache`] was called.
    #[must_use]
    pub fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns this counter for a model that has another tokenizer: its numbers are estimates.
    #[must_use]
    pub fn into_estimate(mut self) -> Self {
        self.certainty = Certainty::Estimate;
        self
    }

    /// Returns the counter's name, as in plans.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the certainty of this counter's full counts.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Counts the tokens of a text.
    ///
    /// # Errors
    ///
    /// Returns an error if a counter of the caller's own fails; the source is its error.
    pub fn count(&self, text: &str) -> Result<TokenCount, Error> {
        let n = match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(encoding) => encoding.count(text),
            #[cfg(feature = "hf")]
            Kind::HuggingFace(tokenizer) => tokenizer.count(text).map_err(|source| self.failed(source))?,
            Kind::Estimate(rule) => rule.count(text),
            Kind::Bytes => text.len() as u64,
            Kind::Fn(count) => count(text).map_err(|source| self.failed(source))?.min(MOST),
        };
        let certainty = self.certainty;
        Ok(TokenCount { tokens: n, certainty })
    }

    /// Counts, but no further than it takes to know that there are more than `limit` tokens: the count, or
    /// `limit` + 1 with certainty `at_least` (`estimate` for counters that estimate). If the byte length
    /// alone proves that the text is over the limit, it is not tokenized (rule N5): 100 MB against 8,000
    /// tokens of `o200k_base` costs nothing.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use context_window_tokens::{Certainty, TokenCounter};
    ///
    /// let pasted = "a".repeat(100 << 20);
    /// let count = TokenCounter::o200k_base().count_up_to(&pasted, 8_000)?;
    /// assert_eq!((count.tokens, count.certainty), (8_001, Certainty::AtLeast));
    /// # }
    /// # Ok::<(), context_window_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn count_up_to(&self, text: &str, limit: u64) -> Result<TokenCount, Error> {
        Ok(match self.count_to(text, limit)? {
            Weight::Exactly(n) => TokenCount { tokens: n, certainty: self.certainty },
            Weight::Over => {
                TokenCount { tokens: limit.saturating_add(1), certainty: self.limited_certainty() }
            }
        })
    }

    /// Returns a long beginning of the text that has no more than `limit` tokens by itself, and its tokens.
    /// It ends where a character ends. With the `OpenAI` encodings no whole word more would fit; with others
    /// the place is found by halving, so a little more might. Nothing is read that no `limit` tokens can
    /// cover (rule N5).
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn prefix_within<'t>(&self, text: &'t str, limit: u64) -> Result<(&'t str, TokenCount), Error> {
        #[cfg(feature = "openai")]
        if let Kind::OpenAi(encoding) = &self.inner.kind {
            let (end, n) = encoding.beginning(text, limit);
            return Ok((&text[..end], TokenCount { tokens: n, certainty: self.certainty }));
        }
        let most = self.bounds.covers(limit).unwrap_or(u64::MAX);
        let mut over = text.floor_char_boundary(usize::try_from(most).unwrap_or(usize::MAX));
        if let Weight::Exactly(n) = self.count_to(&text[..over], limit)? {
            return Ok((&text[..over], TokenCount { tokens: n, certainty: self.certainty }));
        }
        let (mut end, mut tokens) = (0, 0);
        while let middle = text.floor_char_boundary(end + (over - end) / 2)
            && middle > end
        {
            match self.count_to(&text[..middle], limit)? {
                Weight::Exactly(n) => (end, tokens) = (middle, n),
                Weight::Over => over = middle,
            }
        }
        Ok((&text[..end], TokenCount { tokens, certainty: self.certainty }))
    }

    /// Returns the certainty of a count that stopped at a limit.
    #[must_use]
    pub fn limited_certainty(&self) -> Certainty {
        match self.certainty {
            Certainty::Exact => Certainty::AtLeast,
            _ => Certainty::Estimate,
        }
    }

    /// Returns the control tokens of this counter's vocabulary, such as `<|im_end|>`; empty if none are
    /// known.
    #[must_use]
    pub fn control_tokens(&self) -> &[String] {
        match &self.inner.kind {
            #[cfg(feature = "hf")]
            Kind::HuggingFace(tokenizer) => tokenizer.control_tokens(),
            _ => &[],
        }
    }

    /// Counts the tokens of a prompt as a chat template renders it: control tokens in it are tokens, not
    /// characters (rule N2).
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn count_rendered(&self, text: &str) -> Result<u64, Error> {
        match &self.inner.kind {
            #[cfg(feature = "hf")]
            Kind::HuggingFace(tokenizer) => {
                tokenizer.count_rendered(text).map_err(|source| self.failed(source))
            }
            _ => Ok(self.count(text)?.tokens),
        }
    }

    fn failed(&self, source: Failure) -> Error {
        Error::new(Repr::Count { counter: self.inner.name.clone(), source })
    }

    /// Counts the tokens of a text up to a limit. Returns `None` if there are more than `limit`; reads no
    /// further than it takes to know that (rule N5).
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn count_within(&self, text: &str, limit: u64) -> Result<Option<u64>, Error> {
        Ok(self.count_to(text, limit)?.within())
    }

    /// Like [`TokenCounter::count_within`], for a text that recurs from request to request, such as a tool
    /// schema: it is counted once and cached by content.
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn count_recurring_within(&self, text: &str, limit: u64) -> Result<Option<u64>, Error> {
        Ok(self.count_recurring_to(text, limit)?.within())
    }

    /// Like [`TokenCounter::count_recurring_within`], for a document between its delimiters, which
    /// `delimited` puts together only if the count is not cached.
    ///
    /// # Errors
    ///
    /// As [`TokenCounter::count`].
    pub fn count_document_within(
        &self,
        document: DocumentText<'_>,
        limit: u64,
        delimited: impl FnOnce() -> String,
    ) -> Result<Option<u64>, Error> {
        // A text that is over the limit by its bytes alone is not even copied.
        if self.bounds.surely_over(document.text, limit) {
            return Ok(None);
        }
        let weight = match &self.cache {
            Some(cache) => {
                cache.weigh(Recurring::Document(document), limit, || self.count_to(&delimited(), limit))
            }
            None => self.count_to(&delimited(), limit),
        };
        Ok(weight?.within())
    }

    /// Reserves cache space for the documents of a request: their number, their bytes in all, and those of
    /// the longest.
    pub fn reserve_documents(&self, documents: u64, bytes: u64, longest: u64) {
        if let Some(cache) = &self.cache {
            cache.make_room(documents, bytes, longest);
        }
    }

    /// Returns the most tokens that a text of this many bytes can have, or `None` if no bound is proven.
    #[must_use]
    pub fn max_tokens(&self, bytes: u64) -> Option<u64> {
        self.bounds.most(bytes)
    }

    /// Returns the number that distinguishes this counter from others of the process, so that a cached count
    /// is its own.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.tag
    }

    /// Returns a number that no counter of the process has, for counts that are cached beside it.
    #[must_use]
    pub fn next_id() -> u32 {
        next_tag()
    }

    /// Returns the tokens that this counter adds per message in place of the provider's wire format, if its
    /// rule does so.
    #[must_use]
    pub fn tokens_per_message(&self) -> Option<u64> {
        match &self.inner.kind {
            Kind::Estimate(rule) => rule.per_message,
            _ => None,
        }
    }

    /// Returns whether no token spans a line break that is followed by `<`: counts of texts that are joined
    /// there add up.
    #[must_use]
    pub fn adds_up_at_delimiters(&self) -> bool {
        match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(_) => true,
            _ => false,
        }
    }

    fn count_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        if text.is_empty() {
            return Ok(Weight::Exactly(0));
        }
        if self.bounds.surely_over(text, limit) {
            return Ok(Weight::Over);
        }
        self.count_unproven_to(text, limit)
    }

    /// Like `count_to`, without trying the byte bounds first.
    fn count_unproven_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        let n = match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(encoding) => encoding.count_to(text, limit),
            _ => Some(self.count(text)?.tokens),
        };
        Ok(n.filter(|n| *n <= limit).map_or(Weight::Over, Weight::Exactly))
    }

    fn count_recurring_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        match &self.cache {
            Some(_) if self.bounds.surely_over(text, limit) => Ok(Weight::Over),
            Some(cache) => cache.weigh(Recurring::Text(text), limit, || self.count_unproven_to(text, limit)),
            None => self.count_to(text, limit),
        }
    }
}

impl Kind {
    fn bounds(&self) -> Bounds {
        match self {
            #[cfg(feature = "openai")]
            Self::OpenAi(_) => openai::BOUNDS,
            #[cfg(feature = "hf")]
            Self::HuggingFace(tokenizer) => tokenizer.bounds,
            Self::Estimate(rule) => rule.bounds(),
            Self::Bytes => Bounds { longest: Some(1), per_byte: Some(1), ..Bounds::default() },
            Self::Fn(_) => Bounds::default(),
        }
    }
}

fn next_tag() -> u32 {
    NEXT_TAG.fetch_add(1, Ordering::Relaxed)
}

impl fmt::Debug for TokenCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCounter")
            .field("name", &self.name())
            .field("certainty", &self.certainty)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_a_common_beginning_are_cached_separately() {
        let counter = TokenCounter::chars_per_4().with_cache(1 << 20);
        for tail in 0..40 {
            let text = format!("{}{}", "the same beginning ".repeat(30), "x".repeat(tail));
            let expected = counter.count_to(&text, 10_000).unwrap();
            assert_eq!(counter.count_recurring_to(&text, 10_000).unwrap(), expected);
            assert_eq!(counter.count_recurring_to(&text, 10_000).unwrap(), expected);
        }
    }
}
