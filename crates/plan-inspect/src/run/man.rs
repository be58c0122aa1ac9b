//! `plan-inspect man`: the manual, with one page per command.

use crate::stdout::print;
use crate::{
    args::{Cli, Man},
    output::save_public,
    stored,
};
use anyhow::{Context, Result, bail, ensure};
use clap::{Command, CommandFactory};
use context_window::text::plain;
use std::{fs, path::Path, process::ExitCode};

pub(crate) fn run(args: &Man) -> Result<ExitCode> {
    let mut tool = Cli::command().disable_help_subcommand(true);
    // The names of pages and commands are known only after the build.
    tool.build();
    if let Some(folder) = &args.output_dir {
        ensure!(stored::address(folder).is_none(), "a store is not a folder; expected a folder");
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        write(&tool, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &tool;
    for name in &args.command {
        let Some(inner) = command.find_subcommand(name) else {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let name = plain::short(name);
            bail!("`{}` has no command `{name}`; {}", title(command), expected(&known));
        };
        command = inner;
    }
    print(&page(command)?)?;
    Ok(ExitCode::SUCCESS)
}

fn expected(known: &[&str]) -> String {
    if known.is_empty() {
        "expected no further command".into()
    } else {
        format!("expected {}", known.join(", "))
    }
}

/// Returns the command as a user types it.
fn title(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// Writes the page of a command and those of its subcommands, each to a file.
fn write(command: &Command, folder: &Path) -> Result<()> {
    let name = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
    // Manual pages contain no private text, so other users can read them.
    save_public(&folder.join(name), &page(command)?)?;
    command.get_subcommands().try_for_each(|inner| write(inner, folder))
}

fn page(command: &Command) -> Result<String> {
    let version = concat!("plan-inspect ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).source(version).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}
