//! The error type of this crate.

use super::abridged;

/// The error of a counter that the application provides.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An error of a token counter: an unknown name, a file that is not a tokenizer, or a failed count.
///
/// The message names the tokenizer or the file, and the expected input. [`std::error::Error::source`] returns
/// the error of your own counter, if it caused this one.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Repr>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error(
        "tokenizer `{}` is unknown; expected one of: {known}{or_file}", abridged(.name, 80, 50)
    )]
    Unknown { name: String, known: String, or_file: &'static str },
    #[cfg(feature = "encodings")]
    #[error("tokenizer `{name}` is not loaded; expected its file first, or an estimate such as chars/4")]
    NotLoaded { name: &'static str },
    #[cfg(feature = "loadable")]
    #[error("tokenizer `{name}`: these bytes are not its file; expected {name}.merges of this version")]
    NotTheFile { name: &'static str },
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
