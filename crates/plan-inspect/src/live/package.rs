//! The files of the npm package `context-window` that a page contains.

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use context_window_report as report;
use std::{fs, path::Path};

/// The import of the one other module that the package's core needs.
const ERRORS: &str = "'./errors.js'";

/// The encodings that the package has as files of their own.
const ENCODINGS: [&str; 2] = ["o200k_base", "cl100k_base"];

/// The tokenizers that need no file.
const WITHOUT_FILE: [&str; 3] = ["bytes", "chars/3.5", "chars/4"];

/// The files that a page needs.
pub(super) struct Package {
    /// A JavaScript module without imports of other files.
    pub(super) code: String,
    /// The WebAssembly module.
    pub(super) module: Vec<u8>,
    /// The gzip files of the encodings by name: other models have other encodings.
    pub(super) encodings: Vec<(&'static str, Vec<u8>)>,
}

impl Package {
    /// Reads the files of the package in a folder, for a session that is counted with a tokenizer.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is not the package in this version, or if the package does not have the
    /// tokenizer.
    pub(super) fn read(folder: &Path, tokenizer: &str) -> Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            let about = || {
                format!(
                    "--live: {}: expected the folder of the npm package, such as node_modules/context-window",
                    path.display()
                )
            };
            fs::read(&path).with_context(about)
        };
        check_version(folder, &file("package.json")?)?;
        let text = |name: &str| {
            String::from_utf8(file(name)?).map_err(|_| anyhow!("--live: {name} of the package is not UTF-8"))
        };
        let (core, errors) = (text("dist/core.js")?, text("dist/errors.js")?);
        ensure!(
            core.matches(ERRORS).count() == 1,
            "--live: dist/core.js of the package does not import {ERRORS}; expected the package as npm has it"
        );
        let errors = format!("'data:text/javascript;base64,{}'", BASE64_STANDARD.encode(errors));
        if !ENCODINGS.contains(&tokenizer) && !WITHOUT_FILE.contains(&tokenizer) {
            bail!(
                "--live: a page cannot load the tokenizer `{}`; expected --tokenizer with o200k_base, cl100k_base \
                 or an estimate, such as chars/4",
                report::brief(tokenizer)
            );
        }
        let with_file = |name| Ok::<_, anyhow::Error>((name, file(&format!("dist/encodings/{name}.gz"))?));
        Ok(Self {
            code: core.replace(ERRORS, &errors),
            module: file("dist/core_bg.wasm")?,
            encodings: ENCODINGS.into_iter().map(with_file).collect::<Result<_>>()?,
        })
    }
}

/// Checks that a manifest is that of the package in the version of this tool, so that the page plans like it.
fn check_version(folder: &Path, manifest: &[u8]) -> Result<()> {
    let manifest: serde_json::Value = serde_json::from_slice(manifest)
        .with_context(|| format!("--live: {} is not JSON", folder.join("package.json").display()))?;
    let own = env!("CARGO_PKG_VERSION");
    let [name, version] = ["name", "version"].map(|key| manifest[key].as_str().unwrap_or_default());
    ensure!(
        (name, version) == ("context-window", own),
        "--live: {} is the package `{}` {}; expected `context-window` {own}, as this tool",
        folder.display(),
        report::brief(name),
        report::brief(version)
    );
    Ok(())
}
