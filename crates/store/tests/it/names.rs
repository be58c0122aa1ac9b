//! File names: files deleted or replaced during use, private permissions, and refused pipes.

use crate::support::stores::places::Folder;
use context_window::*;
use context_window_store::{Error, ErrorKind, Journal, create_part, save_whole, save_whole_public};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

fn talk() -> Conversation {
    Conversation::from([Message::user("a"), Message::assistant("b")])
}

/// A way in which a file loses its name, with its function and the expected error text.
type Change = (&'static str, fn(&Path), &'static str);

const CHANGES: [Change; 5] = [
    ("deleted", |path| fs::remove_file(path).unwrap(), "was deleted or moved"),
    ("moved", |path| fs::rename(path, path.with_extension("old")).unwrap(), "was deleted or moved"),
    (
        "replaced by a copy",
        |path| {
            let copy = path.with_extension("copy");
            fs::copy(path, &copy).unwrap();
            fs::rename(copy, path).unwrap();
        },
        "was replaced by another file",
    ),
    (
        "deleted and made again",
        |path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "").unwrap();
        },
        "was replaced by another file",
    ),
    (
        "replaced by a link",
        |path| {
            let moved = path.with_extension("moved");
            fs::copy(path, &moved).unwrap();
            fs::remove_file(path).unwrap();
            symlink(moved, path).unwrap();
        },
        "was replaced by another file",
    ),
];

fn refused(error: &Error, kind: ErrorKind, words: &str) {
    let said = error.to_string();
    assert!(error.kind() == kind && said.contains(words) && said.contains("nothing was written"), "{said}");
}

#[test]
fn log_that_lost_its_name_confirms_nothing() {
    for (name, change, words) in CHANGES {
        let folder = Folder::new();
        let path = folder.path("talk.log");
        let (mut journal, mut log) = Journal::open(&path).unwrap();
        log.push(Message::user("confirmed"));
        journal.save(&log).unwrap();
        let (length, moved) = (fs::metadata(&path).unwrap().len(), path.with_extension("old"));
        change(&path);
        refused(&journal.save(&log).unwrap_err(), ErrorKind::Journal, words);
        log.push(Message::user("lost"));
        for _ in 0..2 {
            refused(&journal.save(&log).unwrap_err(), ErrorKind::Journal, words);
        }
        if name == "moved" {
            assert_eq!(fs::metadata(&moved).unwrap().len(), length, "refused means not written");
            // Once it has its name again, writing continues.
            fs::rename(&moved, &path).unwrap();
            journal.save(&log).unwrap();
            drop(journal);
            assert_eq!(Journal::open(&path).unwrap().1, log);
        } else {
            drop(Journal::create(folder.path("new.log"), &log).unwrap());
        }
    }
}

/// A link can lose its own name or its target's.
#[test]
fn link_to_another_log_confirms_nothing() {
    let folder = Folder::new();
    let [link, one, two] = ["talk.log", "one.log", "two.log"].map(|name| folder.path(name));
    for path in [&one, &two] {
        drop(Journal::create(path, &Conversation::new()).unwrap());
    }
    symlink(&one, &link).unwrap();
    let (mut journal, mut log) = Journal::open(&link).unwrap();
    log.push(Message::user("a"));
    journal.save(&log).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    log.push(Message::user("b"));
    refused(&journal.save(&log).unwrap_err(), ErrorKind::Journal, "was replaced by another file");
}

#[cfg(feature = "sqlite")]
#[test]
fn store_that_lost_its_name_confirms_nothing() {
    use context_window_store::SessionStore;
    for end in ["", "-wal", "-shm"] {
        for (name, change, words) in CHANGES {
            let folder = Folder::new();
            let address = folder.sqlite("sessions.db");
            drop(SessionStore::open(&address).unwrap());
            let mut store = SessionStore::open(&address).unwrap();
            let mut log = talk();
            let revision = store.save("ada", &mut log, 0).unwrap();
            change(&folder.path(&format!("sessions.db{end}")));
            refused(&store.save("ada", &mut log, revision).unwrap_err(), ErrorKind::Store, words);
            log.push(Message::user("lost"));
            for _ in 0..2 {
                let error = store.save("ada", &mut log, revision).unwrap_err();
                refused(&error, ErrorKind::Store, words);
                assert!(store.archive("ada").is_err() && store.fork("ada", 1, "bob").is_err());
            }
            // A reopened store accepts all of it if no other file has its name.
            if end.is_empty() && name == "deleted" {
                drop(store);
                let mut store = SessionStore::open(&address).unwrap();
                store.import("ada", &log).unwrap();
                assert_eq!(store.load("ada").unwrap().0, log);
            }
        }
    }
}

/// A process may change its folder. Relative names refer to the folder at opening. The test starts itself to
/// check this.
#[test]
fn relative_names_refer_to_the_folder_at_opening() {
    const TEST: &str = "names::relative_names_refer_to_the_folder_at_opening";
    if let Some(folder) = std::env::var_os("NAMES_TEST_FOLDER") {
        std::env::set_current_dir(folder).unwrap();
        let (mut journal, mut log) = Journal::open("talk.log").unwrap();
        std::env::set_current_dir("/").unwrap();
        log.push(Message::user("a"));
        journal.save(&log).unwrap();
        return;
    }
    let folder = Folder::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST]).env("NAMES_TEST_FOLDER", folder.path(""));
    assert!(command.output().unwrap().status.success());
    assert_eq!(Journal::open(folder.path("talk.log")).unwrap().1.messages().len(), 1);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Checks logs, stores and saved files under several umasks. The test starts itself with each.
#[test]
fn new_files_are_readable_by_their_owner_only() {
    const TEST: &str = "names::new_files_are_readable_by_their_owner_only";
    if let Some(folder) = std::env::var_os("NAMES_TEST_FOLDER") {
        let at = |name: &str| Path::new(&folder).join(name);
        let (mut journal, _) = Journal::open(at("opened.log")).unwrap();
        journal.save(&talk()).unwrap();
        drop(Journal::create(at("created.log"), &talk()).unwrap());
        save_whole(at("saved.json"), b"{}").unwrap();
        save_whole_public(at("public"), b"1").unwrap();
        create_part(at("part")).unwrap();
        #[cfg(feature = "sqlite")]
        {
            let address = format!("sqlite:{}", at("sessions.db").display());
            let mut store = context_window_store::SessionStore::open(&address).unwrap();
            store.import("ada", &talk()).unwrap();
            store.export_journal("ada", at("exported.log")).unwrap();
            for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
                assert_eq!(mode(&at(name)), 0o600, "{name}");
            }
        }
        return;
    }
    for umask in ["000", "022", "077", "277", "777"] {
        let folder = Folder::new();
        let run = format!("umask {umask}; exec \"$0\" --exact {TEST} --nocapture");
        let mut command = Command::new("sh");
        command.arg("-c").arg(run).arg(std::env::current_exe().unwrap());
        let done = command.env("NAMES_TEST_FOLDER", folder.path("")).output().unwrap();
        assert!(done.status.success(), "umask {umask}: {}", String::from_utf8_lossy(&done.stdout));
        for entry in fs::read_dir(folder.path("")).unwrap() {
            let path = entry.unwrap().path();
            let expected = match path.ends_with("public") {
                true => 0o666 & !u32::from_str_radix(umask, 8).unwrap(),
                false => 0o600,
            };
            assert_eq!(mode(&path), expected, "umask {umask}: {}", path.display());
        }
    }
    // An existing file keeps the permissions that its owner set.
    let folder = Folder::new();
    for (name, rights) in [("wide", 0o644), ("narrow", 0o400)] {
        let path = folder.path(name);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(rights)).unwrap();
        save_whole(&path, b"new").unwrap();
        assert_eq!(mode(&path), rights);
    }
}

/// A killed process leaves its partial file, and a later one may have the same process id.
#[test]
fn leftover_partial_file_is_no_hindrance() {
    let folder = Folder::new();
    let path = folder.path("saved");
    let own = std::process::id();
    let left = [format!("saved.{own}.part"), format!("saved.{own}-2.part")].map(|name| folder.path(&name));
    for left in &left {
        fs::write(left, "of a dead writer").unwrap();
    }
    for text in ["one", "two"] {
        save_whole(&path, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    for left in &left {
        assert_eq!(fs::read_to_string(left).unwrap(), "of a dead writer", "it is not ours");
    }
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 3, "nothing else is left");
    // The maximum length of a name.
    let long = folder.path(&"n".repeat(255));
    save_whole(&long, b"long").unwrap();
    assert_eq!(fs::read(&long).unwrap(), b"long");
}

/// Several writers of one name, also with one process id in two containers that share a folder: each has its
/// own partial file.
#[test]
fn writers_of_one_file_do_not_write_into_each_others() {
    let folder = Folder::new();
    let path = folder.path("saved");
    let texts: Vec<String> = (0..8).map(|writer| format!("{writer} ").repeat(20_000)).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| (0..10).for_each(|_| save_whole(&path, text.as_bytes()).unwrap()));
        }
    });
    assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing is left beside it");
    let parts: Vec<PathBuf> = (0..3).map(|_| create_part(&path).unwrap().0).collect();
    assert!(parts[0] != parts[1] && parts[1] != parts[2], "{parts:?}");
}

#[test]
fn pipes_and_devices_are_no_logs_and_no_stores() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let link = folder.path("link");
    symlink(&pipe, &link).unwrap();
    for (path, found) in [
        (pipe.as_path(), "a named pipe"),
        (&link, "a named pipe"),
        (Path::new("/dev/null"), "a device"),
        (&folder.path(""), "a folder"),
    ] {
        let words = format!("it is {found}, not a regular file");
        let error = Journal::open(path).unwrap_err();
        assert!(error.kind() == ErrorKind::Journal && error.to_string().contains(&words), "{error}");
        let error = context_window_store::check_log(path).unwrap_err();
        assert!(error.to_string().contains(&words), "{error}");
        #[cfg(feature = "sqlite")]
        {
            use context_window_store::SessionStore;
            let address = format!("sqlite:{}", path.display());
            for error in [SessionStore::open(&address), SessionStore::open_read_only(&address)] {
                let error = error.unwrap_err();
                assert!(error.kind() == ErrorKind::Store && error.to_string().contains(&words), "{error}");
            }
        }
    }
}
