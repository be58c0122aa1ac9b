//! From a request to a plan.
//!
//! Two functions read as the table of contents. [`manager::ContextWindowManager::plan_from`] finds the prompt budget and what
//! still holds of the last prompt, and gathers the candidates. [`solve::Solver::plan`] takes them through the stages:
//!
//! | stage | module | rules | gives |
//! | --- | --- | --- | --- |
//! | candidates | [`candidates`], [`repair`], [`expiry`] | S1, S2, S8, S9, T1, T2, H1-H3, O5 | what may be in, without counting |
//! | budget | [`budget`] | B1, B4, B5 | the tokens of each section |
//! | select | [`select`] | S2-S5, S7-S9, B6 | what is in, and why the rest is not |
//! | assemble | [`assemble`] | O1, O2 | rows and messages in prompt order |
//! | conform | [`assemble`] | H4-H9 | messages that the provider accepts |
//! | ledger | [`assemble`] | B3, N3, S6, U2 | every token, and what would help where it is too much |
//!
//! Each module uses only those above it in the list below. Nothing here writes: planning reads a request and returns.

pub(crate) mod request;
pub(crate) mod repair;
pub(crate) mod expiry;
pub(crate) mod candidates;
pub(crate) mod observer;
pub(crate) mod budget;
pub(crate) mod select;
pub(crate) mod assemble;
pub(crate) mod solve;
pub(crate) mod telemetry;
pub(crate) mod manager;
