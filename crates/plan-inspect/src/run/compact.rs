//! `plan-inspect compact`: the result of a compaction, shown or written to a new file.

use crate::stdout::print;
use crate::{
    args::{Compact, CompactFormat, Screen},
    compaction::{self, Compacted},
    input, json,
    prepared::Prepared,
    stderr,
    table::Tone,
    wrap::folded,
};
use anyhow::{Result, bail};
use context_window::{
    ItemId,
    compaction::{BlockedBy, CompactionState},
};
use context_window_report as report;
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(args: &Compact, screen: &Screen) -> Result<ExitCode> {
    let prepared = Prepared::read(&args.request)?;
    let (request, manager) = (prepared.request(), &prepared.manager);
    let state = manager.compactor().state(&request)?;
    // A range given by hand overrides the range that the options choose.
    let by_hand = args.first.is_some() || args.last.is_some();
    let job = if by_hand {
        let [first, last] = [&args.first, &args.last].map(|id| id.as_deref().map(ItemId::from));
        manager.compactor().range(&request, first.as_ref(), last.as_ref())?
    } else {
        manager.compactor().now(&request)?
    };
    let Some(job) = job else {
        return refused(args, waiting(state).unwrap_or("no messages are older than the kept messages"));
    };
    let summary = args.summary.as_deref().map(input::text).transpose()?;
    let summary = summary.as_ref().map(|(_, text)| &**text);
    let compacted = Compacted::by(&prepared, job, summary)?;
    if let Some(why) = compacted.refusal() {
        return refused(args, why);
    }
    let text = match args.format {
        CompactFormat::Text => labelled(&folded(&compacted.text(state)?, screen.limit()), screen.colour()),
        CompactFormat::Markdown => markdown(&compacted.text(state)?),
        CompactFormat::Json => compacted.json(state, prepared.model.wire_format)?,
    };
    // The file is written before the output, so a failed write prints no result.
    if let Some(path) = &args.apply {
        compaction::write(path, &args.request, &[&compacted])?;
        stderr::note(&format!("written to {}", path.display()));
    }
    print(&text)?;
    prepared.hint();
    Ok(ExitCode::SUCCESS)
}

/// Reports the reason for not compacting. Returns an error if a file was requested.
fn refused(args: &Compact, why: &str) -> Result<ExitCode> {
    if args.apply.is_some() {
        bail!("nothing to compact: {why}; nothing was written");
    }
    print(&nothing(args.format, why)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Highlights the labels of the figures, and the state of a due compaction.
fn labelled(text: &str, colour: bool) -> String {
    let line = |line: &str| match line.split_once("  ").filter(|(label, _)| !label.is_empty()) {
        Some((label, rest)) => {
            let due = label == "compaction" && rest.trim_start().starts_with("due");
            let rest = if due { Tone::Warning.paint(rest, colour) } else { rest.to_owned() };
            format!("{}  {rest}\n", Tone::Heading.paint(label, colour))
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Converts the figures to a Markdown table, and the summary to a quotation.
fn markdown(text: &str) -> String {
    // A blank line separates the figures from the summary.
    let (figures, summary) = text.split_once("\n\n").unwrap_or((text, ""));
    let cell = |text: &str| report::markdown_cell(text.trim());
    let mut lines = vec!["| compaction | |".to_owned(), "| --- | --- |".to_owned()];
    for line in figures.lines() {
        let (label, rest) = line.split_once("  ").unwrap_or((line, ""));
        lines.push(format!("| {} | {} |", cell(label), cell(rest)));
    }
    let mut texts = summary.lines();
    if let Some(kind) = texts.next() {
        lines.extend([String::new(), cell(kind), String::new()]);
    }
    lines.extend(texts.map(|line| format!("> {}", cell(line))));
    lines.join("\n") + "\n"
}

/// Returns the reason that blocks a compaction, or `None` if it can be made now.
fn waiting(state: CompactionState) -> Option<&'static str> {
    match state {
        // These reasons block only automatic compaction. The user requested this one.
        CompactionState::Waiting(BlockedBy::TooShort | BlockedBy::Disabled | BlockedBy::Provider) => None,
        CompactionState::Waiting(blocked_by) => Some(blocked_by.text()),
        _ => None,
    }
}

/// Formats the output for a session without a compaction.
fn nothing(format: CompactFormat, why: &str) -> Result<String> {
    Ok(match format {
        CompactFormat::Text | CompactFormat::Markdown => format!("nothing to compact: {why}\n"),
        CompactFormat::Json => {
            let none: [&str; 0] = [];
            let all = json!({"archived": none, "kept": null, "tokens_before": null, "tokens_after": null,
                "request": null, "digest": null, "why": why});
            json::indented(&all)?
        }
    })
}
