//! What several tests share: the real data, the laws every plan keeps, and a second way to count a prompt.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod data;
pub mod generate;
pub mod laws;
pub mod recount;
pub mod texts;
pub mod tokenizers;
