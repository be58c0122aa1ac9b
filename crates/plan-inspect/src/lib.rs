//! A command-line tool that shows the planned prompt of a session: the included items, the excluded items,
//! and the reasons.

mod wrap;
#[cfg(not(all(feature = "html", feature = "chat-template")))]
mod missing_feature;
mod interrupt;
mod secrets;
mod json;
mod stored;
mod progress;
mod input;
mod output;
mod prompt;
mod message_text;
mod stdout;
mod stderr;
mod table;
mod args;
mod prepared;
mod listed;
mod web_page;
#[cfg(feature = "html")]
mod live;
mod compaction;
mod tui;
mod run;

use anyhow::{Context, Error};
use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

/// Runs the tool and returns the exit code of the process. The first argument is the name of the program.
///
/// The tool writes to standard output and standard error, and may end the process on a termination signal.
#[must_use]
pub fn run_with(arguments: Vec<OsString>) -> u8 {
    log_to_stderr();
    let done = match args::Cli::from_arguments(arguments) {
        Ok(cli) => run::run(&cli.command, &cli.screen),
        Err(instead) => shown(&instead),
    };
    match done {
        Ok(code) => to_number(code),
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            stderr::error(&error);
            2
        }
    }
}

/// Returns the number of an exit code, which the standard library only passes on to the operating system.
fn to_number(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(2)
}

/// Prints help or the version to standard output, or an error in the arguments to standard error.
fn shown(instead: &clap::Error) -> Result<ExitCode, Error> {
    if instead.use_stderr() {
        let said = instead.render().to_string();
        let masked = secrets::masked(&said);
        if masked == said {
            // Printing the error itself keeps its colours, if any.
            drop(instead.print());
        } else {
            drop(write!(io::stderr(), "{masked}"));
        }
        return Ok(ExitCode::from(2));
    }
    let written = instead.print().and_then(|()| io::stdout().flush());
    written.context("standard output cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

/// Sends log records to standard error if `RUST_LOG` is set.
fn log_to_stderr() {
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).without_time().init();
    }
}

/// Checks if an error is a closed output pipe. The reader has ended, for example `head`, which is not an
/// error of this tool.
fn is_broken_pipe(error: &Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
