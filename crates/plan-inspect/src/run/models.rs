//! `plan-inspect models`: the registry, single entries of it, and the import of public catalogues.

use crate::stdout::print;
use crate::{
    args::{DataFormat, ModelsCommand, Screen},
    input, json,
    output::Outputs,
    table::{Align, Table},
    wrap::folded,
};
use anyhow::{Result, bail};
use context_window::{Registry, provider::ModelEntry, text::plain};
use context_window_report as report;
use std::{collections::BTreeMap, path::Path, process::ExitCode};

pub(crate) fn run(command: &ModelsCommand, screen: &Screen) -> Result<ExitCode> {
    match command {
        ModelsCommand::List { words, models, format } => list(words, models.registry()?, *format, screen),
        ModelsCommand::Show { name, models, format } => show(name, models.registry()?, *format, screen),
        ModelsCommand::Import { file, date, output } => import(file, date, output.as_deref()),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn list(words: &[String], registry: &Registry, format: DataFormat, screen: &Screen) -> Result<()> {
    let wanted = |entry: &&ModelEntry| {
        let names = format!("{} {} {}", entry.provider, entry.name, entry.aliases.join(" ")).to_lowercase();
        // Every word has to occur, so that more words narrow the list.
        words.iter().all(|word| names.contains(&word.to_lowercase()))
    };
    let entries: Vec<&ModelEntry> = registry.entries().iter().filter(wanted).collect();
    if format == DataFormat::Json {
        return print(&(json::indented(&BTreeMap::from([("models", entries)]))?));
    }
    if entries.is_empty() {
        bail!(
            "no model has `{}` in its name or provider; `plan-inspect models list` shows all of them",
            words.iter().map(|word| plain::short(word)).collect::<Vec<_>>().join("` and `")
        );
    }
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("provider", Align::Left),
        ("context", Align::Right),
        ("max input", Align::Right),
        ("max output", Align::Right),
        ("token counts", Align::Left),
        ("$ in / M", Align::Right),
        ("$ out / M", Align::Right),
    ])
    .within(screen.limit());
    for entry in &entries {
        table.row([
            entry.name.clone(),
            entry.provider.clone(),
            tokens(entry.context_len),
            tokens(entry.max_input),
            tokens(entry.max_output),
            counts(entry).into(),
            entry.price.as_ref().map(|price| dollars(price.input)).unwrap_or_default(),
            entry.price.as_ref().map(|price| dollars(price.output)).unwrap_or_default(),
        ]);
    }
    let models = if entries.len() == 1 { "model" } else { "models" };
    print(&format!("{table}\n{} {models}\n", entries.len()))
}

fn show(name: &str, registry: &Registry, format: DataFormat, screen: &Screen) -> Result<()> {
    let Some(entry) = registry.entry(name) else {
        let near = registry.nearest(name).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let name = plain::short(name);
        bail!("model `{name}` is not in the registry{near}\n`plan-inspect models list` shows all of them");
    };
    if format == DataFormat::Json {
        return print(&(json::indented(entry)?));
    }
    let mut lines = vec![
        ("model", entry.name.clone()),
        ("also called", entry.aliases.join(", ")),
        ("provider", entry.provider.clone()),
        ("context length", with_unit(entry.context_len)),
        ("max input", with_unit(entry.max_input)),
        ("max output", with_unit(entry.max_output)),
        ("tokenizer", format!("{} ({})", entry.tokenizer.as_deref().unwrap_or("the default"), counts(entry))),
        ("wire format", name_of(&entry.wire_format)?),
    ];
    if let Some(rule) = entry.cache_rule() {
        lines.push(("cache", rule.to_string()));
    }
    if let Some(price) = &entry.price {
        let text = prices(price.input, price.output, price.cache_read, price.cache_write);
        lines.push(("US$ a million", text));
        // A step replaces the price above a number of tokens or from a date on.
        for step in &price.steps {
            let above = step.above.map(|above| format!("above {} tokens", report::grouped(above)));
            let from = step.from.as_ref().map(|from| format!("from {from} on"));
            let when: Vec<String> = above.into_iter().chain(from).collect();
            let text = prices(step.input, step.output, step.cache_read, step.cache_write);
            lines.push(("", format!("{}: {text}", when.join(", "))));
        }
    }
    lines.push(("source", entry.source.clone()));
    lines.push(("verified", entry.date.clone()));
    let lines = lines.into_iter().filter(|(_, text)| !text.is_empty());
    let lines: Vec<String> =
        lines.map(|(what, text)| format!("{what:<15} {}\n", report::printable(&text))).collect();
    print(&folded(&lines.concat(), screen.limit()))
}

fn import(file: &Path, date: &str, output: Option<&Path>) -> Result<()> {
    // The output is checked first, so a wrong path fails before the catalogue is read.
    let to = Outputs::for_inputs([file]).claim("--output", output)?;
    let (name, text) = input::text(file)?;
    let registry = Registry::built_in()?.import(&text, &name, date)?;
    let name = report::printable(&name);
    let text =
        format!("# {} models, imported from {name}\n\n{}", registry.entries().len(), registry.to_toml()?);
    match (output, to) {
        (Some(path), Some(to)) => {
            to.save_public(&text)?;
            print(&format!(
                "{} models of {name} are in {}\n",
                registry.entries().len(),
                report::printable(&path.display().to_string())
            ))
        }
        _ => print(&text),
    }
}

/// Returns the name of a value in files.
fn name_of(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?.trim_matches('"').into())
}

fn counts(entry: &ModelEntry) -> &'static str {
    if entry.is_estimated() { "estimate" } else { "exact" }
}

fn tokens(n: Option<u64>) -> String {
    n.map(report::grouped).unwrap_or_default()
}

fn with_unit(n: Option<u64>) -> String {
    n.map(|n| format!("{} tokens", report::grouped(n))).unwrap_or_default()
}

fn prices(input: f64, output: f64, cache_read: Option<f64>, cache_write: Option<f64>) -> String {
    let part = |what: &str, price: Option<f64>| price.map(|price| format!(", {what} {}", dollars(price)));
    let cached = part("cached input", cache_read).unwrap_or_default();
    let written = part("written to the cache", cache_write).unwrap_or_default();
    format!("input {}, output {}{cached}{written}", dollars(input), dollars(output))
}

fn dollars(price: f64) -> String {
    let text = format!("{price:.4}");
    let text = text.trim_end_matches('0');
    // At least two decimals are shown, and up to four if they are not zero.
    let decimals = text.rsplit_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{text}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}
