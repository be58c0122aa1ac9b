//! Writes the JavaScript side of a WebAssembly module: `context-window-node-builder MODULE FOLDER`.
//!
//! It is the library of the tool `wasm-bindgen`. As a member of this workspace, it has the version that
//! `Cargo.lock` names.

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (module, folder) = arguments.next().zip(arguments.next()).context("expected MODULE FOLDER")?;
    Bindgen::new()
        .input_path(module)
        .out_name("core")
        .web(true)?
        .typescript(true)
        // The package's own entry points load the module.
        .omit_default_module_path(true)
        .generate(folder)
}
