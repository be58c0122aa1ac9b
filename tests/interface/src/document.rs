//! A crate's interface in the JSON that rustdoc writes.

use std::{path::Path, process::Command};

use public_api::PublicApi;
use rustdoc_types::{Crate, FORMAT_VERSION};

use crate::crates::Published;

/// The compiler whose JSON format is supported. A new one needs new versions of `public-api` and
/// `rustdoc-types`.
const COMPILER: &str = "rustc 1.95.0 ";

/// The compiler of this build.
pub(crate) struct Compiler {
    /// Its name and version.
    pub(crate) version: String,
    /// The target that it builds for.
    pub(crate) host: String,
}

impl Compiler {
    /// Reads the version of the compiler that Cargo uses.
    pub(crate) fn read() -> Self {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output =
            Command::new(rustc).arg("-vV").output().unwrap_or_else(|error| panic!("rustc -vV: {error}"));
        let said = String::from_utf8(output.stdout).expect("rustc -vV writes text");
        let host =
            said.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc -vV names the host");
        Self { version: said.lines().next().unwrap_or_default().to_owned(), host: host.to_owned() }
    }
}

/// The public items of a crate, as read from rustdoc's JSON.
pub(crate) struct Document {
    /// The items with their signatures.
    pub(crate) interface: PublicApi,
    /// The parts of the items, and the origin of types.
    pub(crate) json: Crate,
}

/// The result of documenting a crate.
pub(crate) enum Outcome {
    Documented(Box<Document>),
    /// The documentation cannot be built or read.
    Failed(String),
    /// The compiler writes another format, which is not a fault of the crate.
    OtherCompiler(String),
}

/// Builds the documentation of a crate with all its features and reads it.
pub(crate) fn build(published: &Published) -> Outcome {
    if let Err(why) = run_rustdoc(published) {
        return Outcome::Failed(why);
    }
    let path = published.target.join("doc").join(format!("{}.json", published.library));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(format!("{}: {error}", path.display())),
    };
    read(&path, &text, &published.compiler.version)
}

fn run_rustdoc(published: &Published) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(&published.workspace)
        .args(["rustdoc", "--quiet", "--lib", "--all-features", "-p", &published.name, "--target-dir"])
        .arg(&published.target)
        // Programs can use hidden items like any other, so they are part of the interface.
        .args(["--", "-Z", "unstable-options", "--output-format", "json", "--document-hidden-items"])
        // A stable compiler accepts unstable options only with this variable.
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .map_err(|error| format!("cargo rustdoc: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("cargo rustdoc failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Reads rustdoc's JSON if it has the format that the libraries support.
fn read(path: &Path, text: &str, compiler: &str) -> Outcome {
    let json: serde_json::Value = match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => return Outcome::Failed(format!("{}: {error}", path.display())),
    };
    let format = &json["format_version"];
    if format.as_u64() != Some(u64::from(FORMAT_VERSION)) {
        let why = format!(
            "{compiler} writes format {format} of rustdoc's JSON, and format {FORMAT_VERSION} is read"
        );
        return if compiler.starts_with(COMPILER) {
            Outcome::Failed(format!("{why}: change the versions of public-api and rustdoc-types"))
        } else {
            Outcome::OtherCompiler(why)
        };
    }
    let json: Crate = match serde_json::from_value(json) {
        Ok(json) => json,
        Err(error) => return Outcome::Failed(format!("{}: {error}", path.display())),
    };
    let interface =
        public_api::Builder::from_rustdoc_json(path).omit_blanket_impls(true).omit_auto_trait_impls(true);
    match interface.build() {
        Ok(interface) => Outcome::Documented(Box::new(Document { interface, json })),
        Err(error) => Outcome::Failed(format!("{}: {error}", path.display())),
    }
}
