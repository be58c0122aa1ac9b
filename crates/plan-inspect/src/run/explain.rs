//! `plan-inspect explain`: the reasons for including or excluding items, and the budgets that would change
//! that.

use crate::stdout::print;
use crate::{
    args::{Counts, DataFormat, Explain, Screen},
    json,
    prepared::Prepared,
    progress::Progress,
    table::{Align, Table, Tone},
    wrap::folded,
};
use anyhow::Result;
use context_window::{
    ItemId,
    analysis::{ConfirmedRemedy, Explanation},
};
use context_window_report as report;
use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

pub(crate) fn run(args: &Explain, screen: &Screen) -> Result<ExitCode> {
    let prepared = Prepared::read(&args.request)?;
    // The plan's report counts excluded items in full at this size, so both show the same numbers.
    let request = if Counts::is_unnoticed(prepared.bytes()) {
        prepared.request().with_excluded_counts()
    } else {
        prepared.request()
    };
    let shown = Progress::spinner(if args.item.is_some() { "explaining" } else { "explaining every item" });
    let text = match (&args.item, args.format) {
        (Some(id), DataFormat::Text) => {
            let explanation = prepared.manager.explainer(&request).explain(id)?;
            let plan = prepared.manager.build_plan(&request)?;
            let is_shared = plan.find(&format!("item:{}", explanation.id)).is_some();
            let text = report::explanation(&explanation).with_shared_id(is_shared).to_string();
            first_line_in_colour(&folded(&text, screen.limit()), screen)
        }
        (Some(id), DataFormat::Json) => json::indented(&prepared.manager.explainer(&request).explain(id)?)?,
        (None, DataFormat::Text) => {
            // The remedies are planned again, unlike those of the plan, so their totals are known.
            let remedies = prepared.manager.explainer(&request).remedies()?;
            table(&prepared.manager.explainer(&request).explain_all()?, screen)
                + &Tone::Alarm.paint(&folded(&confirmed(&remedies), screen.limit()), screen.colour())
        }
        (None, DataFormat::Json) => {
            let all = BTreeMap::from([("explanations", prepared.manager.explainer(&request).explain_all()?)]);
            json::indented(&all)?
        }
    };
    drop(shown);
    print(&text)?;
    prepared.report_hints();
    prepared.report_model();
    Ok(ExitCode::SUCCESS)
}

/// Colours the first line, which has the answer: green for an included item, yellow for an excluded one.
fn first_line_in_colour(text: &str, screen: &Screen) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let tone = if first.contains("  in: ") { Tone::Good } else { Tone::Warning };
    format!("{}\n{rest}", tone.paint(first, screen.colour()))
}

/// Lists the changes that make an overflowing plan fit, with the total of the resulting plan.
fn confirmed(remedies: &[ConfirmedRemedy]) -> String {
    let line = |one: &ConfirmedRemedy| {
        let (total, budget) =
            (report::grouped(one.estimated_tokens_total.tokens), report::grouped(one.prompt_budget));
        format!("  {}: {total} of {budget}\n", report::remedy(&one.remedy, &one.limits))
    };
    let lines: String = remedies.iter().map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\nover budget; any one of these makes it fit (planned again to verify):\n{lines}")
    }
}

/// Formats a table with one line per item.
fn table(all: &[Explanation], screen: &Screen) -> String {
    let mut table = Table::new(&[
        ("item", Align::Left),
        ("now", Align::Left),
        ("tokens", Align::Right),
        ("enters at", Align::Right),
        ("always from", Align::Right),
        ("drops at", Align::Right),
        ("why", Align::Left),
    ])
    .within(screen.limit())
    .in_colour(screen.colour());
    let number = |n: Option<u64>| n.map(report::grouped).unwrap_or_default();
    // Documents with the id of another item get the prefix `rag:`.
    let others: BTreeSet<&ItemId> = all.iter().filter(|one| !one.document).map(|one| &one.id).collect();
    for one in all {
        let enters = one.enters_at.filter(|_| !one.included);
        let never = if one.never.is_some() { "never" } else { "" };
        let tone = match one.included {
            true => Tone::Plain,
            false if one.never.is_some() => Tone::Faint,
            false => Tone::Warning,
        };
        table.row_in(
            tone,
            [
                report::explanation(one).with_shared_id(others.contains(&one.id)).name(),
                if one.included { "in" } else { "out" }.into(),
                report::explanation(one).cost().unwrap_or_default(),
                if one.included { String::new() } else { enters.map_or(never.into(), report::grouped) },
                number(one.stays_from.filter(|from| *from != one.prompt_budget)),
                if one.included {
                    one.leaves_at.map_or(never.into(), report::grouped)
                } else {
                    String::new()
                },
                report::printable(&one.reason.to_string()),
            ],
        );
    }
    // All explanations have the same prompt budget.
    let budget = all.first().map(|one| format!("prompt budget {}\n\n", report::grouped(one.prompt_budget)));
    let runs = all.iter().any(|one| one.first_id.is_some());
    let said = "\nA run of messages (a..b) has the tokens of the whole run and the budgets of its newest exchange.\n";
    let runs = if runs { folded(said, screen.limit()) } else { String::new() };
    format!("{}{table}{runs}", budget.unwrap_or_default())
}
