//! `plan-inspect diff`: the differences between two plans, with their causes.

use crate::stdout::print;
use crate::{
    args::{Diff, DiffFormat, FailOn, Screen},
    input, json,
    prepared::Prepared,
    stderr,
    table::{Align, Table, Tone},
};
use anyhow::Result;
use context_window::{ContextPlan, analysis, analysis::ItemState, plan::ExcludedCode};
use context_window_report as report;
use std::process::ExitCode;

pub(crate) fn run(args: &Diff, screen: &Screen) -> Result<ExitCode> {
    let model = args.terms.target.model.as_deref();
    let session = input::sessions(&args.before, args.reading.options())?.session(args.id.as_deref())?;
    let before = Prepared::new(session, &args.terms, model)?;
    // Without --then-id, both files use the same session id.
    let id = args.then_id.as_ref().or(args.id.as_ref());
    let session = input::sessions(&args.after, args.reading.options())?.session(id.map(String::as_str))?;
    let after =
        Prepared::new(session, &args.terms, args.then_model.as_deref().or(model))?.budget(args.then_budget);
    let diff = analysis::Diff::between(
        &before.manager.explainer(&before.request()),
        &after.manager.explainer(&after.request()),
    )?;
    let plans = [before.manager.build_plan(&before.request())?, after.manager.build_plan(&after.request())?];
    print(&match args.format {
        DiffFormat::Json => json::indented(&diff)?,
        DiffFormat::Text => {
            headed(&within(&head(&diff, &plans), screen), screen) + "\n" + &text(&diff, screen)
        }
        DiffFormat::Html => page(args, &diff, &plans)?,
        DiffFormat::Markdown => markdown(&diff, &plans),
    })?;
    before.report_hints();
    before.report_model();
    after.report_hints();
    after.report_model();
    let failures: Vec<String> = args.fail_on.iter().filter_map(|on| failure(*on, &diff, &plans)).collect();
    for failure in &failures {
        stderr::note(&format!("failed: {failure}"));
    }
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

/// Checks one failure condition. Returns a description if it occurred.
fn failure(on: FailOn, diff: &analysis::Diff, [_, after]: &[ContextPlan; 2]) -> Option<String> {
    match on {
        FailOn::Dropped => {
            let dropped = diff.changes.iter().filter(|change| {
                matches!(change.from, ItemState::Included(_))
                    && change.to == ItemState::Excluded(ExcludedCode::Budget)
            });
            let ids: Vec<String> = dropped.map(|change| report::brief(change.id.as_str())).collect();
            (!ids.is_empty()).then(|| format!("dropped: {}", ids.join(", ")))
        }
        FailOn::Overflow => {
            after.overflow.as_ref().map(|over| format!("over budget by {}", report::grouped(over.tokens)))
        }
        FailOn::Cache => {
            let broken = cache_break(diff)?;
            Some(format!("cache break at {broken}"))
        }
    }
}

/// Wraps lines at the page width. Continuation lines are indented to the text after the name.
fn within(text: &str, screen: &Screen) -> String {
    let Some(limit) = screen.limit() else { return text.into() };
    let lines = text.lines().flat_map(|line| {
        // Every line begins with a label of 8 columns.
        let (name, said) = line.split_at_checked(8).unwrap_or((line, ""));
        let said = report::wrapped(said, limit.saturating_sub(8).max(1)).into_iter().enumerate();
        said.map(move |(number, said)| format!("{}{said}\n", if number == 0 { name } else { "        " }))
    });
    lines.collect()
}

/// Returns the colour of a change: an item that was added, removed, or otherwise changed.
fn tone(change: &analysis::Change) -> Tone {
    match (change.from, change.to) {
        (_, ItemState::Included(_)) if matches!(change.from, ItemState::Included(_)) => Tone::Plain,
        (_, ItemState::Included(_)) => Tone::Good,
        (ItemState::Included(_), _) => Tone::Warning,
        _ => Tone::Faint,
    }
}

/// Colours the head: red if the second plan is over its budget, yellow if there is a cache break.
fn headed(head: &str, screen: &Screen) -> String {
    let line = |line: &str| {
        let tone = match () {
            () if line.contains(", over budget by ") => Tone::Alarm,
            () if line.contains(", cache break at ") => Tone::Warning,
            () => Tone::Plain,
        };
        tone.paint(line, screen.colour()) + "\n"
    };
    head.lines().map(line).collect()
}

/// Returns an error, because this build has no web pages.
#[cfg(not(feature = "html"))]
fn page(_: &Diff, _: &analysis::Diff, _: &[ContextPlan; 2]) -> Result<String> {
    crate::missing_feature::fail("--format html", "html")
}

#[cfg(feature = "html")]
fn page(args: &Diff, diff: &analysis::Diff, plans: &[ContextPlan; 2]) -> Result<String> {
    let name = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let names = [&args.before, &args.after].map(|path| name(path).unwrap_or_else(|| "standard input".into()));
    let rows = diff.changes.iter().map(|change| {
        let class = match tone(change) {
            Tone::Good => "came",
            Tone::Warning => "left",
            _ => "",
        };
        (class, report::change(change).into_cells().to_vec())
    });
    let head = head(diff, plans);
    let mut page = report::TablePage::new(format!("{} → {}", names[0], names[1]))
        .with_lines(head.lines().map(str::to_owned));
    if !diff.changes.is_empty() {
        page = page.with_table(report::ChangeText::HEADINGS.map(str::to_owned).to_vec(), rows.collect());
    }
    if let Some(change) = &diff.tools {
        page = page.with_table(vec!["tools".to_owned()], vec![("", vec![tools(change)])]);
    }
    if !diff.thoughts.is_empty() {
        let row = |one: &analysis::ReasoningChange| {
            ("", vec![one.id.to_string(), one.before().to_string(), one.after().to_string()])
        };
        let headings = ["reasoning of", "from", "to"].map(str::to_owned).to_vec();
        page = page.with_table(headings, diff.thoughts.iter().map(row).collect());
    }
    Ok(page.render()?)
}

/// Describes the cache break: the first item that differs, and the cause. If tools only changed their order,
/// that is the cause.
fn cache_break(diff: &analysis::Diff) -> Option<String> {
    let prefix = diff.prefix.as_ref()?;
    let cause = prefix.cause?;
    let at = prefix.instead_of.as_ref().map(|id| report::brief(id.as_str())).unwrap_or_default();
    let is_order = diff.tools.as_ref().is_some_and(analysis::ToolsChange::is_order_only);
    // Tools come first in a prompt, so a changed order breaks the prefix at its first item.
    let moved = is_order && prefix.items == 0 && prefix.differs_at == prefix.instead_of;
    Some(format!("{at}: {}", if moved { "order changed" } else { cause.text() }))
}

/// Describes the differences between the declared tools.
fn tools(change: &analysis::ToolsChange) -> String {
    const NAMED: usize = 8;
    let named = |what: &str, names: &[String]| {
        let some: Vec<String> = names.iter().take(NAMED).map(|name| report::brief(name)).collect();
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{what} {}{more}", some.join(", ")))
    };
    let whose = if change.is_order_only() { "the same tools" } else { "the others" };
    let order = change.reordered.then(|| format!("{whose} in another order"));
    let said = [
        named("added", &change.added),
        named("removed", &change.removed),
        named("changed", &change.changed),
        order,
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    said.join("; ")
}

/// Returns the totals of both plans, the differences of the tools, and the cached prefix of the second
/// prompt.
fn head(diff: &analysis::Diff, [before, after]: &[ContextPlan; 2]) -> String {
    let line = |name: &str, plan: &ContextPlan| {
        let (total, budget) =
            (report::tokens(plan.estimated_tokens_total), report::grouped(plan.prompt_budget));
        let over = match plan.overflow_tokens() {
            0 => String::new(),
            over => format!(", over budget by {}", report::grouped(over)),
        };
        let count = |rows: u64| report::grouped(rows);
        // An excluded row can represent a run of messages, so the counts are summed.
        let out: u64 = plan.excluded.iter().map(|row| row.count).sum();
        let included = count(plan.included.len() as u64);
        format!("{name:<7} {total} / {budget} tokens, {included} in, {} out{over}\n", count(out))
    };
    let prefix = diff.prefix.as_ref().map(|prefix| {
        // The prefix is measured on the first prompt and can exceed a shorter second prompt.
        let tokens = report::grouped(prefix.tokens.min(after.estimated_tokens_total.tokens));
        let (of, kept) =
            (report::grouped(after.estimated_tokens_total.tokens), report::percent(prefix.tokens, prefix.of));
        let cause = cache_break(diff).map(|broken| format!(", cache break at {broken}")).unwrap_or_default();
        format!(
            "cached  {tokens} of the second prompt's {of} tokens, {kept} of the first one's items{cause}\n"
        )
    });
    let nothing = diff.prefix.as_ref().is_some_and(|prefix| prefix.items == 0);
    let nothing = if nothing { "; tools come first in a prompt: nothing is read from the cache" } else { "" };
    let tools = diff.tools.as_ref().map(|change| format!("tools   {}{nothing}\n", tools(change)));
    line("before", before) + &line("after", after) + &tools.unwrap_or_default() + &prefix.unwrap_or_default()
}

/// Formats the changes as Markdown.
fn markdown(diff: &analysis::Diff, plans: &[ContextPlan; 2]) -> String {
    let mut text = String::new();
    for line in head(diff, plans).lines() {
        text = text + "- " + &report::markdown_cell(line) + "\n";
    }
    let changes = diff.changes.iter().map(|change| report::change(change).into_cells().to_vec());
    let thoughts = diff.thoughts.iter();
    let thoughts =
        thoughts.map(|one| vec![one.id.to_string(), one.before().to_string(), one.after().to_string()]);
    for (headings, rows) in [
        (report::ChangeText::HEADINGS.to_vec(), changes.collect::<Vec<_>>()),
        (vec!["reasoning of", "from", "to"], thoughts.collect()),
    ] {
        if rows.is_empty() {
            continue;
        }
        let line = " --- |".repeat(headings.len());
        text = text + "\n| " + &headings.join(" | ") + " |\n|" + &line + "\n";
        for row in rows {
            let cells: Vec<String> = row.iter().map(|text| report::markdown_cell(text)).collect();
            text = text + "| " + &cells.join(" | ") + " |\n";
        }
    }
    if diff.changes.is_empty() && diff.thoughts.is_empty() {
        text = text + "\n" + unchanged(diff) + "\n";
    }
    text
}

/// Describes two plans without changes of items.
fn unchanged(diff: &analysis::Diff) -> &'static str {
    let is_broken = diff.prefix.as_ref().is_some_and(|prefix| prefix.cause.is_some());
    // "No differences" would be false if the prompts differ outside of items.
    if is_broken || diff.tools.is_some() { "no item changed its state or text" } else { "no differences" }
}

fn text(diff: &analysis::Diff, screen: &Screen) -> String {
    if diff.changes.is_empty() && diff.thoughts.is_empty() {
        return format!("{}\n", unchanged(diff));
    }
    let columns = report::ChangeText::HEADINGS.map(|heading| (heading, Align::Left));
    let mut table = Table::new(&columns).within(screen.limit()).in_colour(screen.colour());
    diff.changes.iter().for_each(|change| table.row_in(tone(change), report::change(change).into_cells()));
    let changes = if diff.changes.len() == 1 { "change" } else { "changes" };
    let mut text = String::new();
    if !diff.changes.is_empty() {
        text = format!("{table}\n{} {changes}\n", diff.changes.len());
    }
    if !diff.thoughts.is_empty() {
        let columns = ["reasoning of", "from", "to"].map(|heading| (heading, Align::Left));
        let mut table = Table::new(&columns).within(screen.limit());
        for change in &diff.thoughts {
            table.row([change.id.to_string(), change.before().to_string(), change.after().to_string()]);
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += gap;
        text += &table.to_string();
    }
    text
}
