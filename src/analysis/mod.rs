//! Questions about plans, answered by planning again: why, what if, what changed, what is repeated. [`Explainer`] answers
//! them.

mod explainer;
pub(crate) mod explain;
pub(crate) mod diff;
pub(crate) mod replay;

pub use crate::plan::{PrefixCause, prefix::Prefix};
pub use diff::{Cause, Change, Diff, Evidence, ItemState, ReasoningChange, ReasoningState, ToolsChange};
pub use explain::{Advice, AdvisedChange, ConfirmedRemedy, Explanation, Interval};
#[doc(hidden)]
pub use explain::{BudgetMap, BudgetStep, EnteringItem, MappedItem, MappedSection};
pub use explainer::Explainer;
pub use replay::Step;
