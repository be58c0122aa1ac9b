//! Token counters: the `OpenAI` encodings, Hugging Face tokenizers, estimates, and functions of the caller
//! (counters, rule N1).

#[cfg(feature = "hf")]
use crate::huggingface;
#[cfg(feature = "encodings")]
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

/// A counter of the tokens of plain text. It is cheap to clone and is shared between managers and threads.
///
/// Every counter treats content as plain text: `<|endoftext|>` in a document counts as its characters
/// (content is plain text, rule N2).
///
/// ```
/// use context_window_tokens::{Certainty, TokenCounter};
///
/// # fn main() -> Result<(), context_window_tokens::Error> {
/// let counter = TokenCounter::chars_per_4();
/// let count = counter.count("How long do refunds take?")?;
/// assert_eq!((count.tokens, count.certainty), (7, Certainty::Estimate));
/// // Your own counter; an error of it stops the plan.
/// let words = TokenCounter::from_fn("words", |text: &str| {
///     Ok::<_, std::io::Error>(text.split(' ').count() as u64)
/// });
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
    /// A number that is unique per counter in this process. A message caches its count together with this
    /// number.
    tag: u32,
}

type CountFn = dyn Fn(&str) -> Result<u64, Failure> + Send + Sync;

enum Kind {
    #[cfg(feature = "encodings")]
    OpenAi(openai::Encoding),
    #[cfg(feature = "hf")]
    HuggingFace(Box<huggingface::HuggingFace>),
    Estimate(estimate::CharsPerToken),
    Bytes,
    Fn(Box<CountFn>),
}

/// The maximum count accepted from a counter of the caller, more than any text has. Sums of such counts
/// cannot overflow.
const MOST: u64 = 1 << 40;

/// The end of the error message for an unknown name: the other accepted forms in this build.
const OR_FILE: &str = if cfg!(feature = "hf") {
    ", or the path of a tokenizer.json"
} else {
    " (a tokenizer.json needs the feature `hf`)"
};

/// The next free tag. Lower tags belong to the built-in counters.
static NEXT_TAG: AtomicU32 = AtomicU32::new(8);

impl TokenCounter {
    /// The names that [`TokenCounter::named`] accepts in this build. With the feature `loadable` alone, an
    /// encoding has to be loaded first.
    pub const NAMES: &'static [&'static str] = &[
        #[cfg(feature = "encodings")]
        "o200k_base",
        #[cfg(feature = "encodings")]
        "cl100k_base",
        "chars/4",
        "chars/3.5",
        "bytes",
    ];

    /// Returns the counter with this name: `o200k_base`, `cl100k_base` (both with feature `openai`, or once
    /// they are loaded), `chars/4`, `chars/3.5` or `bytes`. With feature `hf`, the name can also be the path
    /// of a `tokenizer.json` or of its folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is unknown in this build, or if the file cannot be used.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            #[cfg(feature = "encodings")]
            "o200k_base" => Self::with_encoding(openai::Encoding::O200k),
            #[cfg(feature = "encodings")]
            "cl100k_base" => Self::with_encoding(openai::Encoding::Cl100k),
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

    /// Creates an exact counter with the encoding of `gpt-4o` and newer `OpenAI` models.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::of_encoding(openai::Encoding::O200k)
    }

    /// Creates an exact counter with the encoding of `gpt-4` and `gpt-3.5-turbo`.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self::of_encoding(openai::Encoding::Cl100k)
    }

    /// Loads an encoding for the rest of the process, from the file that the build script writes beside the
    /// program: `o200k_base.merges` or `cl100k_base.merges`. Does nothing if it is loaded or embedded
    /// already.
    ///
    /// # Errors
    ///
    /// Returns an error if no encoding has this name, or if the file is not the one of this version.
    #[cfg(feature = "loadable")]
    pub fn load_encoding(name: &str, merges: &[u8]) -> Result<(), Error> {
        let Some(encoding) = openai::Encoding::named(name) else {
            let known = openai::Encoding::NAMES.join(", ");
            return Err(Error::new(Repr::Unknown { name: name.into(), known, or_file: "" }));
        };
        if encoding.install(merges) {
            Ok(())
        } else {
            Err(Error::new(Repr::NotTheFile { name: encoding.name() }))
        }
    }

    #[cfg(feature = "encodings")]
    fn with_encoding(encoding: openai::Encoding) -> Result<Self, Error> {
        if encoding.is_ready() {
            return Ok(Self::of_encoding(encoding));
        }
        Err(Error::new(Repr::NotLoaded { name: encoding.name() }))
    }

    #[cfg(feature = "encodings")]
    fn of_encoding(encoding: openai::Encoding) -> Self {
        Self::build(encoding.name(), Kind::OpenAi(encoding), 1 + encoding as u32)
    }

    /// Creates an estimate of one token per 4 characters (Unicode scalar values), rounded up.
    #[must_use]
    pub fn chars_per_4() -> Self {
        Self::build("chars/4", Kind::Estimate(estimate::FOUR), 3)
    }

    /// Creates an estimate of one token per 3.5 characters, rounded up. It adds 10 tokens per message in
    /// place of the overhead of the target's wire format.
    #[must_use]
    pub fn chars_per_3_5() -> Self {
        Self::build("chars/3.5", Kind::Estimate(estimate::THREE_AND_A_HALF), 4)
    }

    /// Creates an upper bound of one token per byte. It is valid for byte-level vocabularies and for those
    /// that fall back to bytes, unless a normalizer makes texts longer. For English text it is about four
    /// times too high.
    #[must_use]
    pub fn bytes() -> Self {
        Self::build("bytes", Kind::Bytes, 5)
    }

    /// Loads the tokenizer of any model that comes with a `tokenizer.json`, from the path of that file or of
    /// its folder. The counter is exact. Its name begins with the name of the folder, or of a file that is
    /// not called `tokenizer.json`. The first 8 digits of a hash of the file follow. The hash lets plans
    /// distinguish two versions of a tokenizer.
    ///
    /// ```no_run
    /// let counter = context_window_tokens::TokenCounter::huggingface("models/qwen3")?;
    /// # Ok::<(), context_window_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not a tokenizer, or drops merges at random.
    #[cfg(feature = "hf")]
    pub fn huggingface(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (name, json) = huggingface::read(path)?;
        Self::from_huggingface_json(&name, &path.display().to_string(), &json)
    }

    /// Loads a tokenizer from the bytes of a `tokenizer.json`. Plans and errors use `name` for it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TokenCounter::huggingface`].
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

    /// Creates a counter from your own function, which must depend on the text alone. Its counts are treated
    /// as exact. A count above 2^40 tokens is reduced to 2^40, so that sums do not overflow.
    ///
    /// ```
    /// use context_window_tokens::TokenCounter;
    ///
    /// let words = TokenCounter::from_fn("words", |text| {
    ///     Ok::<_, std::fmt::Error>(text.split(' ').count() as u64)
    /// });
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
            #[cfg(feature = "encodings")]
            Kind::OpenAi(_) => Certainty::Exact,
            #[cfg(feature = "hf")]
            Kind::HuggingFace(_) => Certainty::Exact,
            Kind::Fn(_) => Certainty::Exact,
        };
        // Loads the table now: otherwise the first plan would wait for page faults.
        #[cfg(feature = "encodings")]
        if let Kind::OpenAi(encoding) = &kind {
            encoding.load();
        }
        let bounds = kind.bounds();
        Self { inner: Arc::new(Inner { name: name.into(), kind, tag }), certainty, bounds, cache: None }
    }

    /// Declares that no token of your own counter covers more than `bytes` bytes. A text whose length alone
    /// proves that it exceeds a limit is then not counted. Built-in counters ignore this method, because they
    /// know their own bound.
    #[must_use]
    pub fn with_longest_token(mut self, bytes: u64) -> Self {
        if let Kind::Fn(_) = self.inner.kind {
            // A token of 0 bytes would mean that every text exceeds every limit.
            self.bounds.longest = Some(bytes.max(1));
        }
        self
    }

    /// Caches the counts of texts that recur from request to request, such as documents. The capacity is
    /// about `bytes` bytes of text, or more if the documents of one request need more; 0 disables the cache.
    /// Clones share the cache. It changes speed, never a plan. If a counter has no cache, a manager adds one
    /// of `tokens.cache_bytes`.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.cache = Some(Arc::new(ContentCache::new(bytes)));
        self
    }

    /// Returns true if counts of recurring texts are cached, that is, after [`TokenCounter::with_cache`].
    #[must_use]
    pub fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Marks the counts as estimates, for a model whose tokenizer differs from this one.
    #[must_use]
    pub fn into_estimate(mut self) -> Self {
        self.certainty = Certainty::Estimate;
        self
    }

    /// Returns the counter's name, as plans show it.
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
    /// Returns an error if your own counter fails; the source is its error.
    pub fn count(&self, text: &str) -> Result<TokenCount, Error> {
        let n = match &self.inner.kind {
            #[cfg(feature = "encodings")]
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

    /// Counts tokens only until the limit is exceeded. Returns the count, or `limit` + 1 with certainty
    /// `at_least` (`estimate` for estimating counters). If the byte length alone proves that the text exceeds
    /// the limit, the text is not tokenized (byte bounds, rule N5). Thus 100 MB against 8,000 tokens of
    /// `o200k_base` takes no time.
    ///
    /// ```
    /// # #[cfg(feature = "encodings")] {
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
    /// Returns the error of [`TokenCounter::count`].
    pub fn count_up_to(&self, text: &str, limit: u64) -> Result<TokenCount, Error> {
        Ok(match self.count_to(text, limit)? {
            Weight::Exactly(n) => TokenCount { tokens: n, certainty: self.certainty },
            Weight::Over => {
                TokenCount { tokens: limit.saturating_add(1), certainty: self.limited_certainty() }
            }
        })
    }

    /// Returns a long prefix of the text that has at most `limit` tokens by itself, and its token count. The
    /// prefix ends at a character boundary. With the `OpenAI` encodings it cannot be extended by a whole
    /// word. Other counters find the end by bisection, so a slightly longer prefix might fit. Bytes that
    /// `limit` tokens cannot cover are not read (byte bounds, rule N5).
    ///
    /// # Errors
    ///
    /// Returns the error of [`TokenCounter::count`].
    pub fn prefix_within<'t>(&self, text: &'t str, limit: u64) -> Result<(&'t str, TokenCount), Error> {
        #[cfg(feature = "encodings")]
        if let Kind::OpenAi(encoding) = &self.inner.kind {
            let (end, n) = encoding.beginning(text, limit);
            return Ok((&text[..end], TokenCount { tokens: n, certainty: self.certainty }));
        }
        let most = self.bounds.max_bytes(limit).unwrap_or(u64::MAX);
        let mut over = text.floor_char_boundary(usize::try_from(most).unwrap_or(usize::MAX));
        if let Weight::Exactly(n) = self.count_to(&text[..over], limit)? {
            return Ok((&text[..over], TokenCount { tokens: n, certainty: self.certainty }));
        }
        // Invariant: `..end` fits and `..over` does not. Counts need not grow with the prefix, so the result
        // is a prefix that fits, not always the longest one. Complexity: O(log n) counts.
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

    /// Returns the control tokens of this counter's vocabulary, such as `<|im_end|>`. The list is empty if
    /// none are known.
    #[must_use]
    pub fn control_tokens(&self) -> &[String] {
        match &self.inner.kind {
            #[cfg(feature = "hf")]
            Kind::HuggingFace(tokenizer) => tokenizer.control_tokens(),
            _ => &[],
        }
    }

    /// Counts the tokens of a prompt rendered by a chat template. Control tokens in it count as tokens, not
    /// as characters (content is plain text, rule N2).
    ///
    /// # Errors
    ///
    /// Returns the error of [`TokenCounter::count`].
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

    /// Counts the tokens of a text up to a limit. Returns `None` if the text has more than `limit` tokens,
    /// and stops reading as soon as that is known (byte bounds, rule N5).
    ///
    /// # Errors
    ///
    /// Returns the error of [`TokenCounter::count`].
    pub fn count_within(&self, text: &str, limit: u64) -> Result<Option<u64>, Error> {
        Ok(self.count_to(text, limit)?.within())
    }

    /// Counts like [`TokenCounter::count_within`], for a text that recurs from request to request, such as a
    /// tool schema. The count is cached by content.
    ///
    /// # Errors
    ///
    /// Returns the error of [`TokenCounter::count`].
    pub fn count_recurring_within(&self, text: &str, limit: u64) -> Result<Option<u64>, Error> {
        Ok(self.count_recurring_to(text, limit)?.within())
    }

    /// Counts like [`TokenCounter::count_recurring_within`], for a document between its delimiters. Calls
    /// `delimited` to build that text only if the count is not cached.
    ///
    /// # Errors
    ///
    /// Returns the error of [`TokenCounter::count`].
    pub fn count_document_within(
        &self,
        document: DocumentText<'_>,
        limit: u64,
        delimited: impl FnOnce() -> String,
    ) -> Result<Option<u64>, Error> {
        // A document whose bytes alone exceed the limit is not copied into its delimiters.
        if self.bounds.proves_over(document.text, limit) {
            return Ok(None);
        }
        let weight = match &self.cache {
            Some(cache) => cache
                .count_cached(Recurring::Document(document), limit, || self.count_to(&delimited(), limit)),
            None => self.count_to(&delimited(), limit),
        };
        Ok(weight?.within())
    }

    /// Reserves cache space for the documents of a request. The arguments are their number, their total
    /// bytes, and the bytes of the longest document.
    pub fn reserve_documents(&self, documents: u64, bytes: u64, longest: u64) {
        if let Some(cache) = &self.cache {
            cache.reserve(documents, bytes, longest);
        }
    }

    /// Returns the maximum number of tokens of a text of `bytes` bytes, or `None` if no bound is proven.
    #[must_use]
    pub fn max_tokens(&self, bytes: u64) -> Option<u64> {
        self.bounds.max_tokens(bytes)
    }

    /// Returns a number that distinguishes this counter from all others in the process. A cached count is
    /// valid only for the counter with the same number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.tag
    }

    /// Returns a new number that no counter in the process has, for cached counts that come from another
    /// source.
    #[must_use]
    pub fn next_id() -> u32 {
        next_tag()
    }

    /// Returns the tokens that this counter adds per message in place of the provider's wire format, or
    /// `None` if it adds none.
    #[must_use]
    pub fn tokens_per_message(&self) -> Option<u64> {
        match &self.inner.kind {
            Kind::Estimate(rule) => rule.per_message,
            _ => None,
        }
    }

    /// Returns true if no token spans a line break followed by `<`. Counts of texts joined at such a place
    /// then add up exactly.
    #[must_use]
    pub fn adds_up_at_delimiters(&self) -> bool {
        match &self.inner.kind {
            #[cfg(feature = "encodings")]
            Kind::OpenAi(_) => true,
            _ => false,
        }
    }

    fn count_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        if text.is_empty() {
            return Ok(Weight::Exactly(0));
        }
        if self.bounds.proves_over(text, limit) {
            return Ok(Weight::Over);
        }
        self.count_unproven_to(text, limit)
    }

    /// Counts like `count_to`, but without the byte bounds. The caller has already checked them.
    fn count_unproven_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        let n = match &self.inner.kind {
            #[cfg(feature = "encodings")]
            Kind::OpenAi(encoding) => encoding.count_to(text, limit),
            _ => Some(self.count(text)?.tokens),
        };
        Ok(n.filter(|n| *n <= limit).map_or(Weight::Over, Weight::Exactly))
    }

    fn count_recurring_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        match &self.cache {
            // The byte bound comes first: a text that it proves too long must not evict cached counts.
            Some(_) if self.bounds.proves_over(text, limit) => Ok(Weight::Over),
            Some(cache) => {
                cache.count_cached(Recurring::Text(text), limit, || self.count_unproven_to(text, limit))
            }
            None => self.count_to(text, limit),
        }
    }
}

impl Kind {
    fn bounds(&self) -> Bounds {
        match self {
            #[cfg(feature = "encodings")]
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
