//! Scores as one self-contained web page: curves and a table for each set of sessions.

mod chart;
mod view;

use crate::{error::Error, needles::Needles, scores::Scores};
use minijinja::{Environment, UndefinedBehavior, Value, context, syntax::SyntaxConfig, value::Serde};
use view::SetView;

/// The name ends in `.html`, so that the template engine escapes all values.
const NAME: &str = "page.html";
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// Renders the scores as a web page. Each set of sessions has a curve for each policy, of evidence over the
/// budget and over the cost, and a table.
///
/// The page needs neither network nor script. Equal scores give equal bytes.
///
/// # Errors
///
/// Returns an error if the template of this crate is faulty.
pub fn page(scores: &Scores) -> Result<String, Error> {
    let fault = |error: minijinja::Error| Error::input("the page template", error.to_string());
    let mut engine = Environment::new();
    // By default a missing value would render as an empty string.
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    // Lines with a tag alone leave no blank lines in the page.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    engine.set_syntax(syntax.map_err(fault)?);
    engine.add_template(NAME, PAGE).map_err(fault)?;
    let sets: Vec<SetView> = scores.rows().chunk_by(|a, b| a.set == b.set).map(SetView::new).collect();
    let values = context! {
        style => Value::from_safe_string(STYLE.into()),
        compactions => Serde(Needles::COMPACTIONS),
        sets => Serde(sets),
    };
    engine.get_template(NAME).and_then(|template| template.render(values)).map_err(fault)
}
