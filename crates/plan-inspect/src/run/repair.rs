//! `plan-inspect repair`: shows the damaged line of a log, and cuts the log off before it.

use crate::{
    args::{DataFormat, Repair, Screen},
    input, json,
    stdout::print,
    stored,
    table::{Align, Table},
};
use anyhow::{Result, bail};
use context_window_report as report;
use context_window_store::{LogDamage, LogState, check_log, cut_log};
use serde_json::json;
use std::process::ExitCode;

/// The number of lines in the list without `--all`.
const LISTED: usize = 20;

pub(crate) fn run(args: &Repair, screen: &Screen) -> Result<ExitCode> {
    if stored::address(&args.log).is_some() || args.log.as_os_str() == "-" {
        bail!("{} is not a log on disk; expected the file of a log", input::name(&args.log));
    }
    if input::is_sqlite(&args.log) {
        bail!(
            "{0} is an SQLite file and not a log; check a store with `plan-inspect store check sqlite:{0}`",
            args.log.display()
        );
    }
    let checked = if args.cut { cut_log(&args.log)? } else { check_log(&args.log)? };
    print(&match args.format {
        DataFormat::Text => text(args, &checked, screen),
        DataFormat::Json => as_json(&checked)?,
    })?;
    let is_cut = checked.copy.is_some();
    // An unfinished last line is not damage: the next writer removes it.
    let is_damaged = |damage: LogDamage| damage.second.is_some() || damage.detail.is_some() && !is_cut;
    Ok(ExitCode::from(u8::from(checked.damage.is_some_and(is_damaged))))
}

fn text(args: &Repair, checked: &LogState, screen: &Screen) -> String {
    let name = report::printable(&args.log.display().to_string());
    let whole = format!("{} and {}", counted(checked.messages, "message"), counted(checked.events, "event"));
    let Some(damage) = &checked.damage else { return format!("{name} is intact: {whole}\n") };
    let line = damage.line;
    let found = match &damage.detail {
        Some(detail) => format!("{name}:{line}: {}\n", report::printable(detail)),
        None => format!(
            "{name}:{line}: is incomplete, as after a crash: its write was never confirmed, and the next writer removes it\n"
        ),
    };
    // The first line is the same in every log, so it can be restored without a loss.
    if damage.is_first_line {
        let next = match &checked.copy {
            Some(copy) => {
                format!(
                    "Line 1 was restored. {} contains its old bytes.\n",
                    report::printable(&copy.display().to_string())
                )
            }
            None => format!(
                "`plan-inspect repair {name} --cut` restores it and keeps its old bytes in a file next to the log.\n"
            ),
        };
        let second = damage.second.as_ref().map(|(line, detail)| {
            let detail = report::printable(detail);
            let after = if checked.copy.is_some() { "" } else { " after line 1 is restored" };
            format!(
                "\n{name}:{line}: {detail}\nThis is a second damaged line: `plan-inspect repair {name}` \
                 shows it{after}.\n"
            )
        });
        let second = second.unwrap_or_default();
        return format!(
            "{found}\nLine 1 is the same in every log: its repair loses no data. Intact after it: \
             {whole}\n\n{next}{second}"
        );
    }
    let bytes: u64 = damage.lost.iter().map(|lost| lost.bytes).sum();
    let lost = format!("{} with {}", counted(damage.lost.len(), "line"), plural(bytes, "byte"));
    let next = match &checked.copy {
        Some(copy) => {
            let copy = report::printable(&copy.display().to_string());
            format!("Cut off before line {line}. {copy} contains the removed lines.\n")
        }
        None => format!(
            "`plan-inspect repair {name} --cut` cuts the log off before line {line} and keeps the removed lines in a file next to the log.\n"
        ),
    };
    let rows = lost_rows(damage, args.all, screen);
    format!("{found}\nIntact before it: {whole}\nFrom there on:    {lost}\n\n{rows}\n{next}")
}

/// Lists the lines that a cut removes, with their record numbers if they are whole.
fn lost_rows(damage: &LogDamage, all: bool, screen: &Screen) -> String {
    let columns =
        [("line", Align::Right), ("bytes", Align::Right), ("record", Align::Right), ("text", Align::Left)];
    let mut table = Table::new(&columns).within(screen.limit()).in_colour(screen.colour());
    let listed = if all { damage.lost.len() } else { LISTED };
    for lost in damage.lost.iter().take(listed) {
        let no_record = if damage.detail.is_some() { "damaged" } else { "incomplete" };
        let record = lost.record.map_or_else(|| no_record.into(), |record| record.to_string());
        table.row([lost.line.to_string(), report::grouped(lost.bytes), record, report::brief(&lost.text)]);
    }
    match damage.lost.len().saturating_sub(listed) {
        0 => table.to_string(),
        more => format!("{table}... and {} (--all)\n", counted(more, "line")),
    }
}

fn as_json(checked: &LogState) -> Result<String> {
    let damage = checked.damage.as_ref().map(|damage| {
        let lost = damage.lost.iter().map(
            |lost| json!({"line": lost.line, "bytes": lost.bytes, "record": lost.record, "text": lost.text}),
        );
        json!({
            "line": damage.line,
            "first_line": damage.is_first_line,
            "second": damage.second.as_ref().map(|(line, detail)| json!({"line": line, "detail": detail})),
            "unfinished": damage.detail.is_none(),
            "detail": damage.detail,
            "lost": lost.collect::<Vec<_>>(),
        })
    });
    json::indented(&json!({
        "messages": checked.messages,
        "events": checked.events,
        "damage": damage,
        "copy": checked.copy.as_ref().map(|copy| copy.display().to_string()),
    }))
}

fn counted(count: usize, what: &str) -> String {
    plural(count as u64, what)
}

fn plural(count: u64, what: &str) -> String {
    format!("{} {what}{}", report::grouped(count), if count == 1 { "" } else { "s" })
}
