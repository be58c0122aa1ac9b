//! A value that no option can have.

use crate::error::Error;

/// A value out of range.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    /// The keys involved. The error is reported at the one that was set last.
    pub(crate) keys: &'static [&'static str],
    /// The value found.
    pub(crate) found: String,
    /// A description of the expected value.
    pub(crate) expected: &'static str,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::config(fault.keys.join(", "), fault.found, fault.expected)
    }
}
