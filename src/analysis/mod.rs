//! Questions about plans, answered by planning again: why, what if, what changed, what is repeated. [`Explainer`] answers
//! them.

mod explainer;
pub(crate) mod explain;
pub(crate) mod diff;
pub(crate) mod replay;

pub use crate::plan::{PrefixCause, prefix::Prefix};
pub use diff::{Cause, Change, Diff, Evidence, ItemState, ReasoningChange, ReasoningState, ToolsChange};
pub use explain::{
    Advice, AdvisedChange, BudgetMap, BudgetStep, ConfirmedRemedy, Explanation, Interval, MappedItem,
    MappedSection,
};
pub use explainer::Explainer;
pub use replay::{Replay, Step};
