//! Text as it is read, cut and shown; nothing here knows about prompts.

pub mod plain;
pub mod size;
pub mod file;
pub mod hash;
pub mod name;
