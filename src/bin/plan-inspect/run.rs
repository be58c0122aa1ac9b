//! One file a subcommand.

use crate::args::Command;
use anyhow::{Context, Result};
use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::{self, ExitCode},
};

mod config;
mod diff;
mod explain;
mod models;
mod plan;
mod vectors;

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Diff(args) => diff::run(args),
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

/// Writes a file so that it is either the old one or the new one, never half of it. What is there and is no file (a
/// pipe, a device) is written to as it is.
fn save(path: &Path, text: &str) -> Result<()> {
    anyhow::ensure!(
        path.as_os_str() != "-",
        "`-` is standard output, which holds the result; expected a file"
    );
    let cannot = || format!("{} cannot be written", path.display());
    // A link stays a link: the file it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        return fs::write(&path, text).with_context(cannot);
    }
    let mut name = path.file_name().with_context(cannot)?.to_owned();
    name.push(format!(".{}.part", process::id()));
    let part = path.with_file_name(name);
    write_through(&part, text).with_context(cannot)?;
    let renamed = fs::rename(&part, &path);
    if renamed.is_err() {
        // What went wrong is told; the part is ours and holds nothing that was confirmed.
        let _ = fs::remove_file(&part);
    }
    renamed.with_context(cannot)
}

/// Writes a file that nobody has yet.
fn write_through(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
