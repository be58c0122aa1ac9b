//! `plan-inspect retrieval`: the number of tokens available for documents, before they are retrieved.

use crate::stdout::print;
use crate::{
    args::{DataFormat, Retrieval, Screen},
    json,
    prepared::Prepared,
    table::{Align, Table},
};
use anyhow::Result;
use context_window::plan::RetrievalBudget;
use context_window_report::grouped;
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(args: &Retrieval, screen: &Screen) -> Result<ExitCode> {
    let prepared = Prepared::read(&args.request)?;
    let budget = prepared.manager.retrieval_budget(&prepared.request())?;
    // The number of documents follows from the budget and the size of a document.
    let top_k = args.tokens_each.map(|each| (each, budget.top_k(each)));
    print(&match args.format {
        DataFormat::Text => text(budget, top_k, screen),
        DataFormat::Json => {
            let mut object = json!(budget);
            if let Some((each, top_k)) = top_k {
                object["tokens_each"] = json!(each);
                object["top_k"] = json!(top_k);
            }
            json::indented(&object)?
        }
    })?;
    prepared.report_hints();
    prepared.report_model();
    Ok(ExitCode::SUCCESS)
}

fn text(budget: RetrievalBudget, top_k: Option<(u64, u64)>, screen: &Screen) -> String {
    let mut table = Table::new(&[("documents", Align::Left), ("tokens", Align::Right), ("", Align::Left)])
        .within(screen.limit());
    let rows = [
        ("free", budget.free, "free after all other items"),
        ("share", budget.share, "guaranteed, even if the conversation could use the whole budget"),
        ("most", budget.most, "maximum for documents"),
    ];
    for (name, tokens, meaning) in rows {
        table.row([name.to_owned(), grouped(tokens), meaning.to_owned()]);
    }
    if let Some((each, top_k)) = top_k {
        table.row([
            "top_k".to_owned(),
            grouped(top_k),
            format!("maximum number of documents of {} tokens", grouped(each)),
        ]);
    }
    table.to_string()
}
