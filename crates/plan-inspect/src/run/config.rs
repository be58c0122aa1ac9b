//! `plan-inspect config show`: the effective options, and the layer that set each of them.

use crate::stdout::print;
use crate::{
    args::{ConfigCommand, DataFormat, Options},
    json,
};
use anyhow::Result;
use context_window::config::LoadedConfig;
use context_window_report as report;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _, process::ExitCode};
use unicode_width::UnicodeWidthStr;

pub(crate) fn run(command: &ConfigCommand) -> Result<ExitCode> {
    match command {
        ConfigCommand::Show { options, origin, format } => show(options, *origin, *format),
    }
}

fn show(options: &Options, origin: bool, format: DataFormat) -> Result<ExitCode> {
    let loaded = options.config()?;
    let settings = loaded.config.settings();
    print(&match format {
        DataFormat::Text => as_toml(loaded, &settings, origin)?,
        DataFormat::Json => as_json(loaded, &settings)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the options as TOML that can be loaded again. It contains every key; unset keys are comments.
fn as_toml(loaded: &LoadedConfig, settings: &BTreeMap<String, String>, origin: bool) -> Result<String> {
    let mut out = String::new();
    let mut table = "";
    let lines = LoadedConfig::keys().map(|key| {
        // Keys of one table are adjacent, so each table gets one heading.
        let (of, name) = key.rsplit_once('.').unwrap_or(("", key));
        let line = settings
            .get(key)
            .map_or_else(|| format!("#{name} is not set"), |value| format!("{name} = {value}"));
        (of, key, line)
    });
    let lines: Vec<(&str, &str, String)> = lines.collect();
    // The origins form a column, so the longest line determines their position.
    let widest = lines.iter().map(|(.., line)| line.width()).max().unwrap_or_default();
    for (of, key, line) in &lines {
        if *of != table {
            table = of;
            writeln!(out, "{}[{table}]", if out.is_empty() { "" } else { "\n" })?;
        }
        let line = report::printable(line);
        if origin {
            let fill = " ".repeat(widest.saturating_sub(line.width()));
            writeln!(out, "{line}{fill}  # {}", report::printable(&loaded.origin(key)))?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out)
}

fn as_json(loaded: &LoadedConfig, settings: &BTreeMap<String, String>) -> Result<String> {
    #[derive(serde::Serialize)]
    struct Setting<'a> {
        key: &'a str,
        /// The value, or null if it is not set.
        value: Option<Value>,
        origin: String,
    }
    let settings: Vec<Setting<'_>> = LoadedConfig::keys()
        .map(|key| Setting {
            key,
            value: settings.get(key).map(|toml| value(toml)),
            origin: loaded.origin(key),
        })
        .collect();
    let object = BTreeMap::from([("settings", settings)]);
    json::indented(&object)
}

/// Converts a TOML number or string to JSON. A value without a JSON form becomes a string.
fn value(toml: &str) -> Value {
    serde_json::from_str(toml).unwrap_or_else(|_| Value::String(toml.into()))
}
