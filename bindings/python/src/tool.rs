//! The command-line tool, for the console script of the wheel.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command-line tool and returns the exit code. The first argument is the name of the program.
#[pyfunction]
pub fn _run_tool(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| plan_inspect::run_with(arguments))
}
