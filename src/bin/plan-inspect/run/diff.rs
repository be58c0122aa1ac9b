//! `plan-inspect diff`: two plans, and why they differ.

use crate::stdout::print;
use crate::{
    args::{DataFormat, Diff, Screen},
    change, input, json,
    prepared::Prepared,
    table::{Align, Table},
};
use anyhow::Result;
use std::process::ExitCode;

pub(crate) fn run(args: &Diff, screen: &Screen) -> Result<ExitCode> {
    let model = args.terms.target.model.as_deref();
    let session = input::sessions(&args.before)?.session(args.id.as_deref())?;
    let before = Prepared::new(session, &args.terms, model)?;
    let id = args.then_id.as_ref().or(args.id.as_ref());
    let session = input::sessions(&args.after)?.session(id.map(String::as_str))?;
    let after =
        Prepared::new(session, &args.terms, args.then_model.as_deref().or(model))?.budget(args.then_budget);
    let diff = context_window::analysis::Diff::between(
        &before.manager.explainer(&before.request()),
        &after.manager.explainer(&after.request()),
    )?;
    print(&match args.format {
        DataFormat::Json => json::indented(&diff)?,
        DataFormat::Text => text(&diff, screen),
    })?;
    before.hint();
    before.say_of_the_model();
    after.hint();
    after.say_of_the_model();
    Ok(ExitCode::SUCCESS)
}

fn text(diff: &context_window::analysis::Diff, screen: &Screen) -> String {
    if diff.changes.is_empty() && diff.thoughts.is_empty() {
        return "no differences\n".into();
    }
    let columns = change::HEADINGS.map(|heading| (heading, Align::Left));
    let mut table = Table::new(&columns).within(screen.limit());
    diff.changes.iter().for_each(|change| table.row(change::cells(change)));
    let changes = if diff.changes.len() == 1 { "change" } else { "changes" };
    let mut text = String::new();
    if !diff.changes.is_empty() {
        text = format!("{table}\n{} {changes}\n", diff.changes.len());
    }
    if !diff.thoughts.is_empty() {
        let columns = ["thought of", "from", "to"].map(|heading| (heading, Align::Left));
        let mut table = Table::new(&columns).within(screen.limit());
        for change in &diff.thoughts {
            table.row([change.id.to_string(), change.from.to_string(), change.to.to_string()]);
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += gap;
        text += &table.to_string();
    }
    text
}
