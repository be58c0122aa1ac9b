//! Reports and counts tests that cannot run.

use std::{fs::OpenOptions, io::Write as _};

/// Reports a test that is skipped, and adds a line (the test, a tab, the reason) to the file that
/// `CONTEXT_WINDOW_SKIPPED` names.
pub(crate) fn skip(test: &str, why: &str) {
    eprintln!("\n*** SKIPPED: {test}: {why} ***\n");
    if let Some(path) = std::env::var_os("CONTEXT_WINDOW_SKIPPED") {
        // Written at once, because other threads and processes write here too.
        let line = format!("{test}\t{}\n", why.replace(['\n', '\t'], " "));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
