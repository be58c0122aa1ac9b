//! Measures how much a policy keeps: the share of the evidence for questions that is in the prompt, beside
//! tokens, cache hits and cost.
//!
//! ```
//! use context_window::{Model, TokenCounter};
//! use context_window_eval::{Baseline, EvalCase, Evaluation, Policy, Scores};
//!
//! # fn main() -> Result<(), context_window_eval::Error> {
//! let case = EvalCase::from_json(r#"{
//!     "id": "keys",
//!     "messages": [
//!         {"id": "a", "role": "user", "content": "The spare key is under the blue flower pot."},
//!         {"id": "b", "role": "assistant", "content": "Noted."},
//!         {"id": "c", "role": "user", "content": "Thank you, that is all for today, see you next week."},
//!         {"id": "d", "role": "assistant", "content": "Goodbye!"}
//!     ],
//!     "questions": [{"text": "Where is the spare key?", "evidence": ["a"]}]
//! }"#)?;
//! let evaluation = Evaluation::new(Model::custom("m"), TokenCounter::chars_per_4())
//!     .with_budgets([30, 60])
//!     .with_policies([Policy::preset("chat")?, Policy::baseline(Baseline::Oracle)]);
//! let mut scores = Scores::default();
//! scores.add("keys", &evaluation.evaluate(&case)?);
//! let [small, large, oracle, _] = &scores.rows()[..] else { unreachable!() };
//! assert_eq!((small.policy.as_str(), small.budget, small.questions_whole), ("chat", 30, 0));
//! assert_eq!((large.policy.as_str(), large.budget, large.questions_whole), ("chat", 60, 1));
//! assert_eq!((oracle.policy.as_str(), oracle.budget, oracle.questions_whole), ("oracle", 30, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! An [`EvalCase`] is a session with [`Question`]s, each with the ids of its evidence. A [`Policy`] is a
//! configuration of the planner or a [`Baseline`]. An [`Evaluation`] plans the prompt of every question for
//! every policy at every budget, and looks for the evidence in the texts that are sent. [`Scores`] sums the
//! results, and [`Share`] is a fraction with its confidence interval. [`Needles`] are facts and instructions
//! that are added to a session, to see if they survive compactions.

mod error;
mod words;
mod question;
mod case;
mod share;
mod prompt;
mod priced;
mod ranking;
mod baseline;
mod policy;
mod needles;
mod result;
mod lived;
mod evaluation;
mod scores;
mod records;
#[cfg(feature = "html")]
mod page;
mod parallel;

pub use baseline::Baseline;
pub use case::EvalCase;
pub use error::{Error, ErrorKind};
pub use evaluation::Evaluation;
pub use needles::{NeedleKind, NeedlePlace, Needles};
#[cfg(feature = "html")]
pub use page::page;
pub use parallel::evaluate_all;
pub use policy::Policy;
pub use question::Question;
pub use result::{CaseResult, CellResult, NeedleResult, QuestionResult, TurnSums};
pub use scores::{Metric, NeedleScore, ScoreRow, Scores};
pub use share::Share;
