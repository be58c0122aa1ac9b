//! The error of this crate.

use super::abridged;

/// An error of a counter that an application brings.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An error of a token counter: an unknown name, a file that is no tokenizer, or a failed count.
///
/// The message names the tokenizer or the file, and what was expected. [`std::error::Error::source`] returns
/// the error of a counter of your own.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Repr>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error(
        "tokenizer `{}` is not known here; expected one of: {known}{or_file}", abridged(.name, 80, 50)
    )]
    Unknown { name: String, known: String, or_file: &'static str },
    #[cfg(feature = "hf")]
    #[error("{origin}: {}", abridged(.detail, 1_600, 1_000))]
    File { origin: String, detail: String },
    #[error("counter `{}` failed", abridged(.counter, 80, 50))]
    Count {
        counter: String,
        #[source]
        source: Failure,
    },
}

impl Error {
    pub(crate) fn new(repr: Repr) -> Self {
        Self(Box::new(repr))
    }
}
