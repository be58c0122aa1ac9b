//! From a request to a plan.
//!
//! - Input: a [`request::PlanRequest`] with its conversation, and a [`manager::ContextWindowManager`] with
//!   model, counter and options.
//! - Output: a plan: the prompt, a row for each included item, and a reason for each excluded one.
//! - Rules: the table below lists them for each stage; `docs/rules.md` explains every id.
//!
//! The path of a request through the code:
//!
//! - [`manager::ContextWindowManager::plan`] finds the prompt budget (B1), and the part of the last prompt to
//!   continue (sticky window, S5).
//! - [`build`] gathers the candidates, then plans in rounds until a prompt has no fault.
//! - [`solve::Solver`] holds everything that does not depend on the budget.
//!
//! The stages of one round, in order:
//!
//! | stage | module | rules | result |
//! | --- | --- | --- | --- |
//! | candidates | [`candidates`] | S1, S2, S8, S9, T1, T2, H1-H3, O5 | candidates, not yet counted |
//! | budget | [`budget`] | B4, B5, S6 | the tokens of each section |
//! | select | [`select`] | S2-S5, S7-S9, S14-S15, B6 | included candidates, and the reasons of the others |
//! | assemble | [`assemble`] | O1, O2 | rows and messages in prompt order |
//! | conform | [`assemble`] | H4-H9 | messages that the provider accepts |
//! | ledger | [`assemble`] | B3, N3, S6, U2 | every token, and remedies on overflow |
//!
//! [`eligibility`] and [`repair`] decide which items and exchanges may be candidates at all. [`replan`] holds
//! the adjustments between two rounds.
//!
//! Each module uses only those above it in the list below. Planning reads a request and never changes it.

pub(crate) mod request;
pub(crate) mod repair;
pub(crate) mod eligibility;
pub(crate) mod rendering;
pub(crate) mod replan;
pub(crate) mod retained;
mod standing_rules;
pub(crate) mod candidates;
pub(crate) mod budget;
pub(crate) mod select;
pub(crate) mod assemble;
pub(crate) mod solve;
pub(crate) mod telemetry;
pub(crate) mod uncommitted_reasoning;
pub(crate) mod reasoning;
mod logged_body;
mod editing;
pub(crate) mod manager;
mod build;
mod unanswered;
mod retrieval;
mod count;
