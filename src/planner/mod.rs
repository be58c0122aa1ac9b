//! From a request to a plan. Each module uses only those above it.

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
