//! A plan as a web page with all available details: explanations, other budgets and costs.

use crate::prepared::Prepared;
#[cfg(feature = "html")]
use crate::stderr;
use anyhow::Result;
use context_window::{ContextPlan, PlanRequest, usage::CostTerms};
#[cfg(feature = "html")]
use context_window_report as report;
use std::path::{Path, PathBuf};

/// The maximum number of messages and documents for explanations. Each explanation plans the prompt at other
/// budgets, so the cost grows with all items.
#[cfg(feature = "html")]
pub(crate) const MAX_EXPLAINED: usize = 3_000;

/// The limit for the planning work of a slider: the number of rows of all its plans together. `CHANGES` is
/// the minimum and maximum number of budget changes on either side of the present budget. Each change needs
/// one plan.
#[cfg(feature = "html")]
const MAX_PLANNED_ROWS: usize = 300_000;
#[cfg(feature = "html")]
const CHANGES: [usize; 2] = [20, 1_500];

/// The contents of a page in addition to the plan.
#[cfg_attr(not(feature = "html"), allow(dead_code, reason = "only pages read it"))]
pub(crate) struct PageOptions<'a> {
    pub(crate) title: String,
    pub(crate) redact: bool,
    /// The plans of earlier prompts, oldest first. `first` is the number of the first one.
    pub(crate) earlier: &'a [ContextPlan],
    pub(crate) first: usize,
    pub(crate) terms: CostTerms<'a>,
    /// The package of a page that plans by itself.
    pub(crate) live: Option<&'a LivePackage<'a>>,
}

/// The npm package with which a page plans by itself.
#[cfg_attr(not(feature = "html"), allow(dead_code, reason = "only pages read it"))]
pub(crate) struct LivePackage<'a> {
    pub(crate) folder: &'a Path,
    /// The file of the user's own models.
    pub(crate) models: Option<PathBuf>,
}

/// Returns an error, because this build has no web pages.
#[cfg(not(feature = "html"))]
pub(crate) fn render_page(
    _: &Prepared,
    _: &PlanRequest<'_>,
    _: &ContextPlan,
    _: PageOptions<'_>,
) -> Result<String> {
    crate::missing_feature::fail("--format html", "html")
}

#[cfg(feature = "html")]
pub(crate) fn render_page(
    prepared: &Prepared,
    request: &PlanRequest<'_>,
    plan: &ContextPlan,
    options: PageOptions<'_>,
) -> Result<String> {
    if let Some(package) = options.live {
        return crate::live::render_page(prepared, request, plan, &options, package);
    }
    let session = &prepared.session;
    let explainer = prepared.manager.explainer(request);
    let small = session.log.messages().len() + session.rag.len() <= MAX_EXPLAINED;
    let explanations = if small { explainer.explain_all()? } else { Vec::new() };
    if !small {
        stderr::note(&format!(
            "more than {} messages and documents: the page has no explanations; use `plan-inspect explain`",
            report::grouped(MAX_EXPLAINED as u64)
        ));
    }
    // Larger plans get fewer changes, so that the work stays bounded.
    let rows = plan.included.len() + plan.excluded.len();
    let map = explainer.budget_map((MAX_PLANNED_ROWS / rows.max(1)).clamp(CHANGES[0], CHANGES[1]))?;
    let page = report::html(plan)
        .with_request(request)
        .with_explanations(&explanations)
        .with_budget_map(&map)
        .with_model(&prepared.model)
        .with_terms(options.terms)
        .with_title(options.title)
        .with_earlier(options.earlier)
        .with_first_number(options.first)
        .with_redaction(options.redact);
    Ok(page.render()?)
}
