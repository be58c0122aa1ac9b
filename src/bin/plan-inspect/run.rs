//! One file a subcommand.

use crate::args::Command;
use anyhow::{Context, Result};
use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

mod compact;
mod config;
mod diff;
mod explain;
mod history;
mod models;
mod plan;
mod vectors;

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Compact(args) => compact::run(args),
        Command::History(args) => history::run(args),
        Command::Vectors(args) => vectors::run(args),
        Command::Config(args) => config::run(args),
        Command::Models(args) => models::run(args),
    }
}

/// Writes a whole result at once.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a file so that it is either the old one or the new one, never half of it.
fn save(path: &Path, text: &str) -> Result<()> {
    anyhow::ensure!(
        path.as_os_str() != "-",
        "`-` is standard output, which holds the result; expected a file"
    );
    context_window::save_whole(path, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}
