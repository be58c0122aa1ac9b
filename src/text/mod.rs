//! Reading, shortening and formatting of text, independent of prompts.

pub mod plain;
pub mod words;
#[doc(hidden)]
pub mod object;
pub mod size;
#[doc(hidden)]
pub mod date;
pub(crate) mod attribute;
pub(crate) mod file;
pub(crate) mod hash;
