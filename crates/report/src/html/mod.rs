//! A plan as one self-contained web page. Whatever a session holds stays text: the template escapes it, controls and direction
//! marks are written out, and the page's own policy lets nothing run and nothing load but the style and script in it.

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

/// Its name says to the engine that everything in it is escaped.
const NAME: &str = "page.html";
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// SHA-256 of the style and of the script, in Base64: what the page's policy lets in. A test computes them again.
const STYLE_HASH: &str = "S7OkXcNAMRQAtx9EcxhVy32sVZQd7h598Qr9iVzhXNk=";
const SCRIPT_HASH: &str = "qeN/QMty3IcQb6L4Yx6vW6yTuoWJX/LdpoexnbzcNuw=";

/// A plan as a web page; [`Html::render`] gives its bytes.
///
/// The page needs no network, and reads well on a phone and in the dark. Without its script it shows the plan; the slider, lanes, sorting and
/// the messages inside of runs need it. The same plan and the same options give the same bytes.
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

    /// Sets what the page is called (default: the name of the model).
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The request that was planned: it knows the texts of what is left out. Without it the page shows those of what is in,
    /// which the plan carries itself.
    #[must_use]
    pub fn with_request(mut self, request: &'a PlanRequest<'a>) -> Self {
        self.request = Some(request);
        self
    }

    /// Explanations of rows of this plan, all of them or some: each is shown with its row, and the page says how many rows
    /// have one.
    #[must_use]
    pub fn with_explanations(mut self, explanations: &'a [Explanation]) -> Self {
        self.explanations = explanations;
        self
    }

    /// The plans of earlier prompts, oldest first: the page then has a timeline, which ends with this plan.
    #[must_use]
    pub fn with_earlier(mut self, plans: &'a [ContextPlan]) -> Self {
        self.earlier = plans;
        self
    }

    /// The number of the first of those prompts (default: 1), where older ones are not among them.
    #[must_use]
    pub fn with_first_number(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// What the prompt holds at every budget
    /// ([`Explainer::budget_map`](context_window::analysis::Explainer::budget_map)): the page then has a
    /// slider that shows it, and a lane a row with the budgets at which it is in.
    #[must_use]
    pub fn with_budget_map(mut self, map: &'a BudgetMap) -> Self {
        self.budget_map = Some(map);
        self
    }

    /// The model: its prices say what prompts cost.
    #[must_use]
    pub fn with_model(mut self, model: &'a Model) -> Self {
        self.model = Some(model);
        self
    }

    /// On which terms prompts are paid (default: without a day, cached for the provider's default time).
    #[must_use]
    pub fn with_terms(mut self, terms: CostTerms<'a>) -> Self {
        self.terms = terms;
        self
    }

    /// Whether a hash (blake3, its first 16 hexadecimal digits) and a size stand in place of every text (default: no). What
    /// was said, speakers' names, the names and arguments of calls and what a notice quotes are texts; ids, numbers, names of
    /// tools that are not declared and the title stay. The hashes are not secret: someone who has a text can recognise
    /// it, and short texts can be guessed.
    #[must_use]
    pub fn with_redaction(mut self, redact: bool) -> Self {
        self.redact = redact;
        self
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// Returns an error if the page's own template fails, which is a fault of this crate.
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

/// A template as a page; a value that it names and that is not there is a fault.
fn rendered(name: &'static str, template: &'static str, page: Value) -> Result<String, Error> {
    let fault = |error: minijinja::Error| Error::page(&error);
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    engine.set_syntax(syntax.map_err(fault)?);
    engine.add_template(name, template).map_err(fault)?;
    engine.get_template(name).and_then(|template| template.render(page)).map_err(fault)
}
