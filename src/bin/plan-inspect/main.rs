//! Shows what a planner makes of a session: what goes into the prompt, what does not, and why.

#![expect(clippy::print_stderr, reason = "that is where a command line tool says what is wrong")]

mod args;
mod body;
mod input;
mod prepared;
mod run;
mod table;

use context_window::report;
use std::process::ExitCode;

fn main() -> ExitCode {
    log_to_stderr();
    match run::run(&args::Cli::from_process().command) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // An error may quote the file it is about, and a file may hold anything.
            for line in format!("plan-inspect: {error:#}").lines() {
                eprintln!("{}", report::printable(line));
            }
            ExitCode::from(2)
        }
    }
}

/// Log records go to standard error, and only when `RUST_LOG` asks for them.
fn log_to_stderr() {
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    }
}

/// The reader of our output went away: that is its business, and no error of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
