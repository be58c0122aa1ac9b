//! Reports and counts tests that cannot run, which would otherwise pass unnoticed.

use std::{fs::OpenOptions, io::Write as _, path::Path};

/// Prints the name of a skipped test and the reason. If `CONTEXT_WINDOW_SKIPPED` names a file, a line is
/// added there: the test, a tab, the reason.
pub fn skip(test: &str, why: &str) {
    eprintln!("\n*** SKIPPED: {test}: {why} ***\n");
    if let Some(path) = std::env::var_os("CONTEXT_WINDOW_SKIPPED") {
        note(Path::new(&path), test, why);
    }
}

/// Writes the line at once, because other threads and processes write here too.
fn note(path: &Path, test: &str, why: &str) {
    let line = format!("{test}\t{}\n", why.replace(['\n', '\t'], " "));
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Returns the name of the running test: that of its thread, or the requested one if there is only one test.
pub fn running() -> String {
    let thread = std::thread::current();
    let asked = || std::env::args().skip(1).find(|word| !word.starts_with('-'));
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => asked().unwrap_or_else(|| "a test".to_owned()),
    }
}

#[test]
fn skipped_tests_are_noted_line_by_line() {
    // The test runs itself, once with the variable and once without.
    if std::env::var_os("SKIP_TEST").is_some() {
        skip(&running(), "no kettle\nis here");
        skip("another", "nor a\ttap");
        return;
    }
    let name = running();
    assert!(name.ends_with("skipped_tests_are_noted_line_by_line"), "{name}");
    let folder = std::env::temp_dir().join(format!("context-window-{}-skipped", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("skipped");
    let run = |noted: bool| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &name, "--nocapture"]).env("SKIP_TEST", "1");
        if noted {
            command.env("CONTEXT_WINDOW_SKIPPED", &path);
        } else {
            command.env_remove("CONTEXT_WINDOW_SKIPPED");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("*** SKIPPED: another: nor a\ttap ***"), "{said}");
    };
    run(false);
    assert!(!path.exists());
    run(true);
    run(true);
    let noted = std::fs::read_to_string(&path).unwrap();
    assert_eq!(noted, format!("{name}\tno kettle is here\nanother\tnor a tap\n").repeat(2));
    std::fs::remove_dir_all(&folder).unwrap();
}
