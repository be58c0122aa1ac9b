//! The subcommands, each in its own file.

use crate::{
    args::{Command, Screen},
    tui,
};
use anyhow::Result;
use std::process::ExitCode;

mod compact;
mod completions;
mod config;
mod diff;
mod eval;
mod explain;
mod history;
mod man;
mod models;
mod plan;
mod rag;
mod repair;
mod replay;
mod retrieval;
mod schema;
mod store;
mod vectors;

pub(crate) fn run(command: &Command, screen: &Screen) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan::run(args, screen),
        Command::Explain(args) => explain::run(args, screen),
        Command::Retrieval(args) => retrieval::run(args, screen),
        Command::Rag(args) => rag::run(args, screen),
        Command::Diff(args) => diff::run(args, screen),
        Command::Compact(args) => compact::run(args, screen),
        Command::History(args) => history::run(args, screen),
        Command::Tui(args) => tui::run(args, screen),
        Command::Replay(args) => replay::run(args, screen),
        Command::Eval(args) => eval::run(args, screen),
        Command::Repair(args) => repair::run(args, screen),
        Command::Store(command) => store::run(command, screen),
        Command::Vectors(args) => vectors::run(args),
        Command::Config(args) => config::run(args),
        Command::Models(args) => models::run(args, screen),
        Command::Schema { of } => schema::run(*of),
        Command::Completions { shell } => completions::run(*shell),
        Command::Man(args) => man::run(args),
    }
}
