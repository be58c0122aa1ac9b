//! A disk that cannot sync: if the outcome of a write is unknown, the error reports this.
//!
//! The test starts itself with a library loaded before the system's. Its syncs fail while a certain file
//! exists.

use crate::{places::Folder, support};
use context_window::*;
use context_window_store::{Error, Journal, SessionStore};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A library whose syncs fail while the file that `SYNC_FAILS` names exists; with `SYNC_FAILS_DATA_ONLY` only
/// those of data. With `SYNC_DELETES` they delete the named file instead.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *name = getenv("SYNC_FAILS");
    if (!name || access(name, F_OK)) return 0;
    const char *deleted = getenv("SYNC_DELETES");
    if (deleted) return unlink(deleted), 0;
    errno = EIO;
    return 1;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return fails() ? -1 : real(fd);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    const char *name = getenv("SYNC_FAILS_DATA_ONLY");
    return !name && fails() ? -1 : real(fd);
}
"#;

/// Builds the library, or reports a skip.
fn library(folder: &Folder) -> Option<PathBuf> {
    let (source, built) = (folder.path("syncs.c"), folder.path("syncs.so"));
    fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    let done = compiler.args(["-shared", "-fPIC", "-o"]).args([&built, &source]).arg("-ldl").output();
    if done.is_ok_and(|done| done.status.success()) {
        return Some(built);
    }
    support::skip(&support::running(), "no C compiler is here: no sync fails");
    None
}

/// Runs a test of this program again, in a process whose syncs fail, with these variables.
fn run(test: &str, folder: &Folder, library: &Path, variables: &[(&str, PathBuf)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env("LD_PRELOAD", library).env("SYNC_FAILS", folder.path("fail"));
    command.env("SYNC_TEST_FOLDER", folder.path("")).envs(variables.iter().cloned());
    command.output().unwrap()
}

fn messages(count: usize) -> Conversation {
    (0..count).map(|at| Message::user(format!("message {at}"))).collect::<Vec<_>>().into()
}

/// A store after a commit that could not be synced: two messages were confirmed, and a third one was not.
struct FailedCommit {
    store: SessionStore,
    log: Conversation,
    revision: u64,
    error: Error,
}

impl FailedCommit {
    fn new(folder: &Path) -> Self {
        let address = format!("sqlite:{}", folder.join("sessions.db").display());
        let (mut store, mut log) = (SessionStore::open(&address).unwrap(), messages(2));
        let revision = store.save("ada", &mut log, 0).unwrap();
        fs::write(folder.join("fail"), "").unwrap();
        log.push(Message::user("not confirmed"));
        let error = store.save("ada", &mut log, revision).unwrap_err();
        Self { store, log, revision, error }
    }
}

/// A commit in the write-ahead log that could not be synced exists after a crash.
#[test]
fn failed_commit_is_reported_as_unknown() {
    const TEST: &str = "syncs::failed_commit_is_reported_as_unknown";
    if let Some(folder) = std::env::var_os("SYNC_TEST_FOLDER") {
        let failed = FailedCommit::new(Path::new(&folder));
        fs::write(Path::new(&folder).join("said"), failed.error.to_string()).unwrap();
        // Simulates a crash: nothing is closed.
        std::process::abort();
    }
    let folder = Folder::new();
    let Some(library) = library(&folder) else { return };
    run(TEST, &folder, &library, &[]);
    let said = fs::read_to_string(folder.path("said")).unwrap();
    assert!(said.contains("disk I/O error") && !said.contains("nothing was written"), "{said}");
    assert!(
        said.contains("The entries may or may not be stored") && said.contains("load the session"),
        "{said}"
    );
    let mut store = SessionStore::open(&folder.sqlite("sessions.db")).unwrap();
    let (log, revision) = store.load("ada").unwrap();
    assert_eq!(
        (log.messages().len(), revision),
        (3, 3),
        "it is there, which is why it may not be called refused"
    );
}

/// A retry on the same connection writes the entry once.
#[test]
fn failed_commit_can_be_tried_again() {
    const TEST: &str = "syncs::failed_commit_can_be_tried_again";
    if let Some(folder) = std::env::var_os("SYNC_TEST_FOLDER") {
        let at = |name: &str| Path::new(&folder).join(name);
        let FailedCommit { mut store, mut log, revision, .. } = FailedCommit::new(Path::new(&folder));
        fs::remove_file(at("fail")).unwrap();
        assert_eq!(store.load("ada").unwrap().1, 2);
        assert_eq!(store.save("ada", &mut log, revision).unwrap(), 3);
        fs::write(at("said"), "written").unwrap();
        std::process::abort();
    }
    let folder = Folder::new();
    let Some(library) = library(&folder) else { return };
    run(TEST, &folder, &library, &[]);
    assert_eq!(fs::read_to_string(folder.path("said")).unwrap(), "written");
    let mut store = SessionStore::open(&folder.sqlite("sessions.db")).unwrap();
    assert_eq!(store.load("ada").unwrap().0.messages().len(), 3);
    assert_eq!(store.check("ada").unwrap().faults, Vec::<String>::new());
}

/// A log record that could not be synced is removed again. If that fails too, the error reports it.
#[test]
fn failed_sync_of_a_log_is_undone_or_reported_as_unknown() {
    const TEST: &str = "syncs::failed_sync_of_a_log_is_undone_or_reported_as_unknown";
    if let Some(folder) = std::env::var_os("SYNC_TEST_FOLDER") {
        let at = |name: &str| Path::new(&folder).join(name);
        let (mut journal, mut log) = Journal::open(at("talk.log")).unwrap();
        log.extend([Message::user("a"), Message::assistant("b")]);
        journal.save(&log).unwrap();
        let length = fs::metadata(at("talk.log")).unwrap().len();
        fs::write(at("fail"), "").unwrap();
        log.push(Message::user("c"));
        let error = journal.save(&log).unwrap_err().to_string();
        assert_eq!(fs::metadata(at("talk.log")).unwrap().len(), length);
        fs::remove_file(at("fail")).unwrap();
        journal.save(&log).unwrap();
        fs::write(at("said"), error).unwrap();
        return;
    }
    for data_only in [false, true] {
        let folder = Folder::new();
        let Some(library) = library(&folder) else { return };
        let variables = [("SYNC_FAILS_DATA_ONLY", "1".into())];
        let done = run(TEST, &folder, &library, if data_only { &variables } else { &[] });
        let said = fs::read_to_string(folder.path("said"));
        let said = said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stdout)));
        assert!(said.contains("cannot be written: Input/output error"), "{said}");
        assert_eq!(said.contains("The entries may or may not be stored"), !data_only, "{said}");
        assert_eq!(Journal::open(folder.path("talk.log")).unwrap().1.messages().len(), 3);
    }
}

/// The file is deleted during a write: the name check passes before the deletion, and fails after it.
#[test]
fn file_deleted_while_it_is_written_confirms_nothing() {
    const TEST: &str = "syncs::file_deleted_while_it_is_written_confirms_nothing";
    if let Some(folder) = std::env::var_os("SYNC_TEST_FOLDER") {
        let at = |name: &str| Path::new(&folder).join(name);
        let error = if std::env::var_os("SYNC_DELETES")
            .is_some_and(|name| Path::new(&name).ends_with("sessions.db"))
        {
            FailedCommit::new(Path::new(&folder)).error.to_string()
        } else {
            let mut log = messages(2);
            let mut journal = Journal::create(at("talk.log"), &log).unwrap();
            fs::write(at("fail"), "").unwrap();
            log.push(Message::user("not confirmed"));
            journal.save(&log).unwrap_err().to_string()
        };
        fs::write(at("said"), error).unwrap();
        return;
    }
    for name in ["sessions.db", "talk.log"] {
        let folder = Folder::new();
        let Some(library) = library(&folder) else { return };
        let done = run(TEST, &folder, &library, &[("SYNC_DELETES", folder.path(name))]);
        let said = fs::read_to_string(folder.path("said"));
        let said = said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stdout)));
        assert!(said.contains("was deleted or moved while it was open; no write was confirmed"), "{said}");
    }
}
