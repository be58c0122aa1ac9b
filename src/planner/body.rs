//! Notices about the body that a request was logged with.
//!
//! - Input: a request, and its limits.
//! - Output: notices.
//! - Rules: B8.

use super::request::PlanRequest;
use crate::{
    plan::{Notice, NoticeCode, RemoteContext},
    provider::model::Limits,
};

/// Returns the notices of limits that the body states, and of context that its provider adds.
pub(super) fn notices(request: &PlanRequest<'_>, limits: Limits) -> Vec<Notice> {
    let stated = request.limits.stated.describe(request.limits, limits);
    let stated = stated.map(|text| Notice { code: NoticeCode::StatedLimits, ids: Vec::new(), text });
    stated.into_iter().chain(request.remote.iter().map(RemoteContext::notice)).collect()
}
