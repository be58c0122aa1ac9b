//! Text as it is read, cut and shown; nothing here knows about prompts.

pub(crate) mod plain;
pub(crate) mod size;
pub(crate) mod file;
pub(crate) mod name;
