//! The binary `plan-inspect`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    ExitCode::from(plan_inspect::run_with(env::args_os().collect()))
}
