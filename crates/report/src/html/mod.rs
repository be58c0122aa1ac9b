//! A plan as one self-contained web page.
//!
//! Text from a session stays text. The template escapes it, and controls and direction marks are spelled out.
//! The page's content security policy permits only the style and the script inside the page.

use context_window::{
    ContextPlan, Model, PlanRequest,
    analysis::{BudgetMap, Explanation},
    usage::CostTerms,
};
use minijinja::{Environment, UndefinedBehavior, Value, context, syntax::SyntaxConfig, value::Serde};

mod error;
mod bar;
mod shown;
mod catalog;
mod states;
mod item;
mod overview;
mod timeline;
mod table;
mod view;

pub use error::Error;
pub use table::TablePage;
use view::View;

/// The name ends in `.html`, so that the template engine escapes all values.
const NAME: &str = "page.html";
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The SHA-256 hashes of the style and the script in Base64. The page's content security policy permits these
/// two. A test computes the hashes again.
const STYLE_HASH: &str = "S7OkXcNAMRQAtx9EcxhVy32sVZQd7h598Qr9iVzhXNk=";
const SCRIPT_HASH: &str = "+2ao0cBuydCWwDdw+mVIV1YG1vxG1U+yHOfcSYxVykA=";

/// A plan as a web page. [`Html::render`] returns the page.
///
/// The page needs no network, and is readable on a phone and in dark mode. Without its script it shows the
/// plan. The slider, the lanes, sorting and the messages inside runs need the script. Equal plans and options
/// give equal bytes.
#[derive(Debug, Clone)]
pub struct Html<'a> {
    plan: &'a ContextPlan,
    title: Option<String>,
    request: Option<&'a PlanRequest<'a>>,
    explanations: &'a [Explanation],
    earlier: &'a [ContextPlan],
    first: usize,
    budget_map: Option<&'a BudgetMap>,
    model: Option<&'a Model>,
    terms: CostTerms<'a>,
    redact: bool,
}

impl<'a> Html<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self {
            plan,
            title: None,
            request: None,
            explanations: &[],
            earlier: &[],
            first: 1,
            budget_map: None,
            model: None,
            terms: CostTerms::default(),
            redact: false,
        }
    }

    /// Sets the title of the page (default: contains the name of the model).
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the request of the plan, which has the texts of excluded items. Without it, the page shows only
    /// the texts of included items, which the plan contains.
    #[must_use]
    pub fn with_request(mut self, request: &'a PlanRequest<'a>) -> Self {
        self.request = Some(request);
        self
    }

    /// Sets explanations for all or some rows of this plan. Each one is shown with its row, and the page
    /// reports the number of explained rows.
    #[must_use]
    pub fn with_explanations(mut self, explanations: &'a [Explanation]) -> Self {
        self.explanations = explanations;
        self
    }

    /// Sets the plans of earlier prompts, oldest first. The page then has a timeline, which ends with this
    /// plan.
    #[must_use]
    pub fn with_earlier(mut self, plans: &'a [ContextPlan]) -> Self {
        self.earlier = plans;
        self
    }

    /// Sets the number of the first earlier prompt (default: 1), if older prompts are not included.
    #[must_use]
    pub fn with_first_number(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// Sets the prompt's contents at every budget
    /// ([`Explainer::budget_map`](context_window::analysis::Explainer::budget_map)). The page then has a
    /// slider for the budget. Each row gets a lane that shows the budgets at which it is included.
    #[must_use]
    pub fn with_budget_map(mut self, map: &'a BudgetMap) -> Self {
        self.budget_map = Some(map);
        self
    }

    /// Sets the model, whose prices determine the costs of prompts.
    #[must_use]
    pub fn with_model(mut self, model: &'a Model) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the terms of payment for prompts (default: no date, and the provider's default cache lifetime).
    #[must_use]
    pub fn with_terms(mut self, terms: CostTerms<'a>) -> Self {
        self.terms = terms;
        self
    }

    /// Sets if every text is replaced by a hash (the first 16 hexadecimal digits of blake3) and a size
    /// (default: no).
    ///
    /// The replaced texts are messages, speakers' names, names and arguments of calls, and quotations in
    /// notices. Ids, numbers, names of undeclared tools and the title remain. The hashes are not secret:
    /// anyone who has a text can recognise it, and short texts can be guessed.
    #[must_use]
    pub fn with_redaction(mut self, redact: bool) -> Self {
        self.redact = redact;
        self
    }

    /// Renders the page.
    ///
    /// # Errors
    ///
    /// Returns an error if a template of this crate is faulty.
    pub fn render(&self) -> Result<String, Error> {
        let page = context! {
            style => Value::from_safe_string(STYLE.into()),
            script => Value::from_safe_string(SCRIPT.into()),
            style_hash => STYLE_HASH,
            script_hash => SCRIPT_HASH,
            ..Value::from(Serde(View::new(self))),
        };
        rendered(NAME, PAGE, page)
    }
}

/// Renders a template. Returns an error if the template names a value that does not exist.
fn rendered(name: &'static str, template: &'static str, page: Value) -> Result<String, Error> {
    let fault = |error: minijinja::Error| Error::page(&error);
    let mut engine = Environment::new();
    // By default a missing value would render as an empty string.
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    engine.set_syntax(syntax.map_err(fault)?);
    engine.add_template(name, template).map_err(fault)?;
    engine.get_template(name).and_then(|template| template.render(page)).map_err(fault)
}
