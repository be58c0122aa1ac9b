//! From a request to a plan.
//!
//! - [`manager::ContextWindowManager::plan`] finds the prompt budget (rule B1) and the part of the last
//!   prompt to continue (`sticky`, rule S5).
//! - [`build`] gathers the candidates and plans in rounds, until a prompt has no fault.
//! - [`solve::Solver`] holds everything that does not depend on the budget.
//!
//! Ids such as S5 are rules; `docs/rules.md` has them. The stages, in order:
//!
//! | stage | module | rules | gives |
//! | --- | --- | --- | --- |
//! | candidates | [`candidates`], [`repair`], [`eligibility`] | S1, S2, S8, S9, T1, T2, H1-H3, O5 | what may be in, without counting |
//! | budget | [`budget`] | B4, B5, S6 | the tokens of each section |
//! | select | [`select`] | S2-S5, S7-S9, B6 | the included candidates, and the reasons of the others |
//! | assemble | [`assemble`] | O1, O2 | rows and messages in prompt order |
//! | conform | [`assemble`] | H4-H9 | messages that the provider accepts |
//! | ledger | [`assemble`] | B3, N3, S6, U2 | every token, and what would help where it is too much |
//!
//! Each module uses only those above it in the list below. Planning reads a request and never writes.

pub(crate) mod request;
pub(crate) mod repair;
pub(crate) mod eligibility;
pub(crate) mod rendering;
pub(crate) mod replan;
pub(crate) mod retained;
pub(crate) mod candidates;
pub(crate) mod budget;
pub(crate) mod select;
pub(crate) mod assemble;
pub(crate) mod solve;
pub(crate) mod telemetry;
pub(crate) mod births;
pub(crate) mod thoughts;
mod body;
mod editing;
pub(crate) mod manager;
mod build;
mod unanswered;
mod retrieval;
mod count;
