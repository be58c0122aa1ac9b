//! One file a subcommand.

use crate::args::Command;
use anyhow::{Context, Result};
use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

mod config;
mod models;
mod plan;

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan::run(args),
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
    let mut name =
        path.file_name().with_context(|| format!("{}: is no file name", path.display()))?.to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let written = write_through(&part, text).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // What went wrong is told; a part that stays behind would be in the way of the next try.
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn write_through(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
