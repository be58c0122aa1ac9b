//! Questions about plans, answered by planning again: why, what if, what changed, what is repeated.

mod explainer;
pub(crate) mod prefix;
pub(crate) mod explain;
pub(crate) mod diff;
pub(crate) mod replay;

pub use explainer::Explainer;
