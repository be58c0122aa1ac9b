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
//!     .with_budgets([40, 100])
//!     .with_policies([Policy::preset("chat")?, Policy::baseline(Baseline::Oracle)]);
//! let mut scores = Scores::default();
//! scores.add("keys", &evaluation.evaluate(&case)?);
//! let [small, large, oracle, _] = &scores.rows()[..] else { unreachable!() };
//! assert_eq!((small.policy.as_str(), small.budget, small.questions_whole), ("chat", 40, 0));
//! assert_eq!((large.policy.as_str(), large.budget, large.questions_whole), ("chat", 100, 1));
//! assert_eq!((oracle.policy.as_str(), oracle.budget, oracle.questions_whole), ("oracle", 40, 1));
//! # Ok(())
//! # }
//! ```
//!
//! Results are also available one by one:
//!
//! ```
//! use context_window::{Model, TokenCounter};
//! use context_window_eval::{
//!     CaseResult, CellResult, Error, ErrorKind, EvalCase, Evaluation, Metric, NeedleKind, NeedlePlace,
//!     NeedleResult, NeedleScore, Needles, Question, QuestionResult, ScoreRow, Scores, Share, TurnSums,
//! };
//!
//! let without_questions = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;
//! let error: Error = EvalCase::from_json(without_questions).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Input); // no questions
//!
//! # fn main() -> Result<(), Error> {
//! let turns = (0..40).map(|at| {
//!     let role = if at % 2 == 0 { "user" } else { "assistant" };
//!     format!(r#"{{"id": "m{at}", "role": "{role}", "content": "House {at} costs {at} million dollars."}}"#)
//! });
//! let question = r#"{"text": "What does house 3 cost?", "evidence": ["m3"], "after": "m20"}"#;
//! let messages = turns.collect::<Vec<_>>().join(",");
//! let json = format!(r#"{{"messages": [{messages}], "questions": [{question}]}}"#);
//! let case = EvalCase::from_json(&json)?;
//! let question: &Question = &case.questions()[0];
//! assert_eq!(question.messages_before, 21);
//!
//! let evaluation = Evaluation::new(Model::custom("m"), TokenCounter::chars_per_4())
//!     .with_budgets([200])
//!     .with_every(2)
//!     .with_needles(Needles::from_seed(7));
//! let result: CaseResult = evaluation.evaluate(&case)?;
//! let cell: &CellResult = &result.cells[0];
//! let asked: &QuestionResult = &cell.questions[0];
//! assert_eq!(asked.missing, ["m3"]);
//! let turns: TurnSums = cell.turns;
//! assert_eq!(turns.prompts, 10);
//! let needle: &NeedleResult = &cell.needles[0];
//! assert_eq!((needle.kind, needle.place), (NeedleKind::UserFact, NeedlePlace::First));
//!
//! let mut scores = Scores::default();
//! scores.add("houses", &result);
//! let row: &ScoreRow = &scores.rows()[0];
//! assert_eq!(row.whole(), Share::new(0, 1));
//! assert!(row.per_mille(Metric::CacheHit) > Some(0));
//! let score: &NeedleScore = &row.needles[0];
//! assert_eq!(score.planted, 1);
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
mod share;
mod counted;
mod question;
mod case;
mod baseline;
mod policy;
mod needle;
mod result;
mod prompt;
mod application;
mod replay;
mod needles;
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
pub use needle::{NeedleKind, NeedlePlace};
pub use needles::Needles;
#[cfg(feature = "html")]
pub use page::page;
pub use parallel::evaluate_all;
pub use policy::Policy;
pub use question::Question;
pub use result::{CaseResult, CellResult, NeedleResult, QuestionResult, TurnSums};
pub use scores::{Metric, NeedleScore, ScoreRow, Scores};
pub use share::Share;
