//! One file a subcommand.

use crate::{
    args::{Command, Screen},
    interrupt::Writing,
    tui,
};
use anyhow::{Context, Result};
use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

mod compact;
mod completions;
mod config;
mod diff;
mod explain;
mod history;
mod man;
mod models;
mod plan;
mod replay;
mod schema;
mod vectors;

pub(crate) fn run(command: &Command, screen: &Screen) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan::run(args, screen),
        Command::Explain(args) => explain::run(args, screen),
        Command::Diff(args) => diff::run(args, screen),
        Command::Compact(args) => compact::run(args, screen),
        Command::History(args) => history::run(args, screen),
        Command::Tui(args) => tui::run(args, screen),
        Command::Replay(args) => replay::run(args, screen),
        Command::Vectors(args) => vectors::run(args),
        Command::Config(args) => config::run(args),
        Command::Models(args) => models::run(args, screen),
        Command::Schema { of } => schema::run(*of),
        Command::Completions { shell } => completions::run(*shell),
        Command::Man(args) => man::run(args),
    }
}

/// Writes a whole result at once.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("standard output cannot be written")
}

/// What is read is never changed: what is written goes to another file.
fn expect_another(to: Option<&Path>, read: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<()> {
    let Some(to) = to else { return Ok(()) };
    let Ok(whole) = to.canonicalize() else { return Ok(()) };
    let is_it = |path: &Path| path.canonicalize().is_ok_and(|path| path == whole);
    if whole.is_file() && read.into_iter().any(|path| is_it(path.as_ref())) {
        anyhow::bail!("{} is read, and what is read is never changed; expected another file", to.display());
    }
    Ok(())
}

/// Writes a file so that it is either the old one or the new one, never half of it.
fn save(path: &Path, text: &str) -> Result<()> {
    anyhow::ensure!(
        path.as_os_str() != "-",
        "`-` is standard output, which holds the result; expected a file"
    );
    // A pipe or a device takes its time, and cannot be left half-written.
    let _whole = (!path.exists() || path.is_file()).then(Writing::begin);
    context_window::save_whole(path, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}
