//! Text as it is read, cut and shown; nothing here knows about prompts.

pub mod plain;
#[doc(hidden)]
pub mod object;
pub mod size;
pub(crate) mod file;
pub(crate) mod hash;
