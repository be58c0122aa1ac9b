//! Text → tokens. One concrete counter type; no foreign type shows in it (rule N1).

use crate::error::{Error, Repr};
use serde::Serialize;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

mod estimate;
#[cfg(feature = "openai")]
mod openai;

/// How sure a number is (rule N4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Certainty {
    /// The number itself.
    Exact,
    /// Counting stopped here: it is so much or more.
    AtLeast,
    /// It is so much or less.
    UpperBound,
    /// Nothing is proven about it.
    Estimate,
}

impl Certainty {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at_least",
            Self::UpperBound => "upper_bound",
            Self::Estimate => "estimate",
        }
    }
}

/// A number of tokens, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct TokenCount {
    /// Tokens.
    pub n: u64,
    /// How sure.
    pub certainty: Certainty,
}

/// What counting up to a limit found: the count, or that it is over the limit. It is a function of text and limit
/// only, never of what was counted before (rule O3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Exactly(u64),
    Over,
}

impl Weight {
    /// The count; where nothing limits counting, nothing is over.
    pub(crate) fn in_full(self) -> u64 {
        match self {
            Self::Exactly(n) => n,
            Self::Over => u64::MAX,
        }
    }
}

/// Counts the tokens of plain text. Cheap to clone, shared between managers and threads.
///
/// Content is plain text to every counter: `<|endoftext|>` in a document is counted as its characters (rule N2).
#[derive(Clone)]
pub struct TokenCounter {
    inner: Arc<Inner>,
    certainty: Certainty,
}

struct Inner {
    name: String,
    kind: Kind,
    /// Tells the counters of one process apart, so that a count remembered beside a message is its own.
    tag: u32,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;
type CountFn = dyn Fn(&str) -> Result<u64, Failure> + Send + Sync;

enum Kind {
    #[cfg(feature = "openai")]
    OpenAi(openai::Encoding),
    Estimate(estimate::CharsPerToken),
    Fn(Box<CountFn>),
}

/// More than any text has: what a counter of the caller's own may say of one.
const MOST: u64 = 1 << 40;

/// Tags below this one belong to the built-in counters.
static NEXT_TAG: AtomicU32 = AtomicU32::new(8);

impl TokenCounter {
    /// The names that [`TokenCounter::named`] knows in this build.
    pub const NAMES: &'static [&'static str] = &[
        #[cfg(feature = "openai")]
        "o200k_base",
        #[cfg(feature = "openai")]
        "cl100k_base",
        "chars/4",
        "chars/3.5",
    ];

    /// The counter of this name: `o200k_base`, `cl100k_base` (both with feature `openai`), `chars/4` or `chars/3.5`.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` when the name is not known in this build.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            #[cfg(feature = "openai")]
            "o200k_base" => Ok(Self::o200k_base()),
            #[cfg(feature = "openai")]
            "cl100k_base" => Ok(Self::cl100k_base()),
            "chars/4" => Ok(Self::chars_per_4()),
            "chars/3.5" => Ok(Self::chars_per_3_5()),
            _ => Err(Error::new(Repr::Tokenizer { name: name.into(), known: Self::NAMES.join(", ") })),
        }
    }

    /// The encoding of `gpt-4o` and everything newer from `OpenAI`. Exact.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::build("o200k_base", Kind::OpenAi(openai::Encoding::O200k), 1)
    }

    /// The encoding of `gpt-4` and `gpt-3.5-turbo`. Exact.
    #[cfg(feature = "openai")]
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self::build("cl100k_base", Kind::OpenAi(openai::Encoding::Cl100k), 2)
    }

    /// An estimate: a token for every 4 characters (Unicode scalar values) begun.
    #[must_use]
    pub fn chars_per_4() -> Self {
        Self::build("chars/4", Kind::Estimate(estimate::FOUR), 3)
    }

    /// An estimate: a token for every 3.5 characters begun, and 10 a message in place of the target's framing.
    #[must_use]
    pub fn chars_per_3_5() -> Self {
        Self::build("chars/3.5", Kind::Estimate(estimate::THREE_AND_A_HALF), 4)
    }

    /// A counter of the caller's own. Its counts are taken as exact; it has to be a function of the text alone. More than
    /// 2^40 tokens for one text read as 2^40, so that sums stay sums.
    ///
    /// ```
    /// use context_window::TokenCounter;
    ///
    /// let words = TokenCounter::from_fn("words", |text| Ok::<_, std::fmt::Error>(text.split(' ').count() as u64));
    /// assert_eq!(words.count("three short words")?.n, 3);
    /// # Ok::<(), context_window::Error>(())
    /// ```
    #[must_use]
    pub fn from_fn<E: Into<Failure>>(
        name: &str,
        count: impl Fn(&str) -> Result<u64, E> + Send + Sync + 'static,
    ) -> Self {
        let count = move |text: &str| count(text).map_err(Into::into);
        let tag = NEXT_TAG.fetch_add(1, Ordering::Relaxed);
        Self::build(name, Kind::Fn(Box::new(count)), tag)
    }

    fn build(name: &str, kind: Kind, tag: u32) -> Self {
        let certainty = match kind {
            Kind::Estimate(_) => Certainty::Estimate,
            _ => Certainty::Exact,
        };
        Self { inner: Arc::new(Inner { name: name.into(), kind, tag }), certainty }
    }

    /// The same counter for a model whose own tokenizer is another one: its numbers are estimates.
    #[must_use]
    pub fn as_estimate(mut self) -> Self {
        self.certainty = Certainty::Estimate;
        self
    }

    /// The counter's name, as plans give it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How sure this counter's full counts are.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// The tokens of a text.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` when a counter of the caller's own fails; the source is its error.
    pub fn count(&self, text: &str) -> Result<TokenCount, Error> {
        let n = match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(encoding) => encoding.count(text),
            Kind::Estimate(rule) => rule.count(text),
            Kind::Fn(count) => count(text)
                .map_err(|source| Error::new(Repr::Count { counter: self.inner.name.clone(), source }))?
                .min(MOST),
        };
        let certainty = self.certainty;
        Ok(TokenCount { n, certainty })
    }

    /// Counts, but reads no further than it takes to know that there are more than `limit` tokens (rule N5).
    pub(crate) fn count_to(&self, text: &str, limit: u64) -> Result<Weight, Error> {
        if text.is_empty() {
            return Ok(Weight::Exactly(0));
        }
        let n = match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(encoding) => encoding.count_to(text, limit),
            _ => Some(self.count(text)?.n),
        };
        Ok(n.filter(|n| *n <= limit).map_or(Weight::Over, Weight::Exactly))
    }

    /// Whether the bytes alone prove that a text has more than `limit` tokens, wherever it is put.
    pub(crate) fn surely_over(&self, text: &str, limit: u64) -> bool {
        match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(_) => openai::surely_over(text, limit),
            _ => false,
        }
    }

    pub(crate) fn tag(&self) -> u32 {
        self.inner.tag
    }

    /// Tokens that this counter's rule takes for a message, in place of the target's framing.
    pub(crate) fn per_message(&self) -> Option<u64> {
        match &self.inner.kind {
            Kind::Estimate(rule) => rule.per_message,
            _ => None,
        }
    }

    /// Whether the pieces of the document block add up to the whole, by the argument in `wording`.
    pub(crate) fn adds_up_at_fences(&self) -> bool {
        match &self.inner.kind {
            #[cfg(feature = "openai")]
            Kind::OpenAi(_) => true,
            _ => false,
        }
    }

    /// Whether no count exceeds the bytes of its text.
    pub(crate) fn bounded_by_bytes(&self) -> bool {
        !matches!(self.inner.kind, Kind::Fn(_))
    }
}

impl fmt::Debug for TokenCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCounter")
            .field("name", &self.name())
            .field("certainty", &self.certainty)
            .finish_non_exhaustive()
    }
}
