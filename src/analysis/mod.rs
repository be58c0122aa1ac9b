//! Questions about plans, answered by planning again: why, what if, what changed, what is repeated.

pub(crate) mod prefix;
pub(crate) mod explain;
pub(crate) mod diff;
pub(crate) mod replay;
