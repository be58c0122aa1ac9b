//! Refusals by a database: a clear error, no partial write, and no secret in the error.

use crate::places::{Folder, both, sqlite};
#[cfg(feature = "postgres")]
use crate::places::{Place, postgres};
use crate::support;
use context_window::*;
use context_window_store::{Error, ErrorKind};
use context_window_store::{ListOptions, SessionStore};
use std::{fs, process::Command};

fn log() -> Conversation {
    Conversation::from([Message::user("a"), Message::assistant("b")])
}

fn refused(address: &str) -> String {
    let error = SessionStore::open(address).expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    error.to_string()
}

#[test]
fn later_schema_is_unchanged() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        store.import("s", &log()).unwrap();
        place.sql("INSERT INTO cw_schema (version) VALUES (2)");
        drop(store);
        if place.is_sqlite() {
            // Even the journal mode of the file is unchanged.
            place.sql("PRAGMA journal_mode = delete");
        }
        let bytes = || place.is_sqlite().then(|| fs::read(place.file()).unwrap());
        let (before, file) = (place.query("SELECT * FROM cw_entry"), bytes());
        for said in
            [refused(&place.address), SessionStore::open_read_only(&place.address).unwrap_err().to_string()]
        {
            assert!(
                said.contains("tables have version 2; expected version 1 or lower")
                    && said.contains("Nothing was changed"),
                "{said}"
            );
        }
        assert_eq!(bytes(), file);
        assert_eq!(place.query("SELECT * FROM cw_entry"), before);
        assert_eq!(place.query("SELECT max(version) FROM cw_schema")[0][0].as_deref(), Some("2"));
    }
}

/// Version 0 is the oldest possible: the version table without a row. Only one of several processes migrates.
#[test]
fn tables_are_made_by_one_of_many() {
    for place in both() {
        place.sql("CREATE TABLE cw_schema (version BIGINT PRIMARY KEY); CREATE TABLE others (a INTEGER)");
        let said = SessionStore::open_read_only(&place.address).unwrap_err().to_string();
        assert!(said.contains("contains no sessions"), "{said}");
        let opened: Vec<Result<SessionStore, Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| SessionStore::open(&place.address))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for store in opened {
            store.unwrap_or_else(|error| panic!("{error}")).list(&ListOptions::new()).unwrap();
        }
        assert_eq!(place.query("SELECT version FROM cw_schema").len(), 1);
        assert_eq!(place.query("SELECT count(*) FROM others").len(), 1, "what is beside stays");
    }
}

#[test]
fn a_store_that_is_only_read_is_not_made() {
    for place in both() {
        let said = SessionStore::open_read_only(&place.address).unwrap_err().to_string();
        assert!(!said.is_empty());
        if place.is_sqlite() {
            assert!(!place.file().exists(), "no file is begun");
        }
        let mut store = SessionStore::open(&place.address).unwrap();
        store.import("s", &log()).unwrap();
        let mut reader = SessionStore::open_read_only(&place.address).unwrap();
        assert_eq!(reader.load("s").unwrap().0, log());
        let error = reader.append("s", 2, log().events()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert_eq!(store.load("s").unwrap().1, 2);
    }
}

#[test]
fn no_address_and_no_database() {
    let folder = Folder::new();
    let text = folder.path("text.db");
    fs::write(&text, "this is a text file, and long enough to be looked at: ".repeat(100)).unwrap();
    for (address, words) in [
        ("sessions.db".to_owned(), "expected sqlite:FILE or postgres://"),
        ("sqlite:".to_owned(), "has no file name"),
        (format!("sqlite:{}", text.display()), "expected a file written by a store"),
        (format!("sqlite:{}", folder.path("").display()), "is a folder"),
        (folder.sqlite("nowhere/sessions.db"), "expected an existing folder"),
    ] {
        let said = refused(&address);
        assert!(said.contains(words), "{said}");
    }
    assert!(fs::read_to_string(&text).unwrap().starts_with("this is a text file"));
}

/// Names that SQLite would treat as a URI or as a database in memory are ordinary files.
#[test]
fn names_are_names_of_files() {
    let folder = Folder::new();
    let unlike_any = format!("file:context-window-{}.db?mode=memory", std::process::id());
    // Only a relative name can be mistaken for a URI.
    let relative = (format!("sqlite:{unlike_any}"), std::path::PathBuf::from(&unlike_any));
    let inside =
        [":memory:", "file:x.db", "a b#c%41?d.db"].map(|name| (folder.sqlite(name), folder.path(name)));
    for (address, path) in inside.into_iter().chain([relative]) {
        SessionStore::open(&address).unwrap().import("s", &log()).unwrap();
        assert!(path.exists(), "{address}");
        let read = SessionStore::open_read_only(&address).and_then(|mut store| store.load("s"));
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{end}", path.display())));
        }
        assert_eq!(read.unwrap().1, 2, "{address}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_can_be_read() {
    let (real, shown) = (Folder::new(), Folder::new());
    let (place, seen) = (real.sqlite("a b%20c.db"), shown.sqlite("a b%20c.db"));
    SessionStore::open(&place).unwrap().import("s", &log()).unwrap();
    // Root may write everything except a file system mounted read-only.
    let folder = shown.path("");
    let mount = |arguments: &[&std::ffi::OsStr]| {
        Command::new("mount").args(arguments).arg(&folder).status().is_ok_and(|done| done.success())
    };
    let mounted = mount(&["--bind".as_ref(), real.path("").as_os_str()])
        && mount(&["-o".as_ref(), "remount,bind,ro".as_ref()]);
    if !mounted {
        return support::skip(&support::running(), "nothing can be mounted here");
    }
    let tried = std::panic::catch_unwind(|| {
        let mut reader = SessionStore::open_read_only(&seen).unwrap();
        assert_eq!(reader.load("s").unwrap().0, log());
        let error = SessionStore::open(&seen).and_then(|mut store| store.import("t", &log())).unwrap_err();
        assert!(error.to_string().contains("writable"), "{error}");
        // Changes by the writer are visible, or reading reports that it is impossible while the writer is
        // active.
        let mut writer = SessionStore::open(&place).unwrap();
        for _ in 0..40 {
            let more = |log: &mut Conversation| {
                log.extend((0..50).map(|at| Message::user(format!("{at}").repeat(99))));
                Ok(())
            };
            writer.update("s", more).unwrap();
            match reader.load("s") {
                Ok((log, revision)) => assert_eq!(log.messages().len() as u64, revision),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("another program"), "{said}");
                }
            }
        }
        drop(writer);
        assert_eq!(reader.load("s").unwrap().1, 2_002);
    });
    assert!(Command::new("umount").arg(&folder).status().unwrap().success());
    if let Err(panic) = tried {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_file_that_another_program_keeps_locked() {
    let place = sqlite();
    let mut store = SessionStore::open(&place.address).unwrap();
    store.import("s", &log()).unwrap();
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Reading works; writing waits and then reports the reason.
    assert_eq!(store.load("s").unwrap().1, 2);
    let error = store.append("s", 2, log().events()).unwrap_err();
    assert!(error.to_string().contains("another program has locked it for 10 s"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.append("s", 2, log().events()).unwrap(), 4);
}

/// The same before there is a write-ahead log, whose creation needs its own lock.
#[test]
fn a_new_file_that_another_program_keeps_locked() {
    let place = sqlite();
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("CREATE TABLE others (a INTEGER); BEGIN EXCLUSIVE").unwrap();
    let said = refused(&place.address);
    assert!(said.contains("another program has locked it for 10 s"), "{said}");
    other.execute_batch("ROLLBACK").unwrap();
    SessionStore::open(&place.address).unwrap().import("s", &log()).unwrap();
}

#[cfg(feature = "postgres")]
#[test]
fn a_session_that_another_connection_keeps_locked() {
    let Some(place) = postgres() else { return };
    let mut store = SessionStore::open(&place.address).unwrap();
    store.import("s", &log()).unwrap();
    let mut other = ::postgres::Client::connect(&place.address, ::postgres::NoTls).unwrap();
    other.batch_execute("BEGIN; SELECT * FROM cw_session FOR UPDATE").unwrap();
    assert_eq!(store.load("s").unwrap().1, 2);
    let error = store.append("s", 2, log().events()).unwrap_err();
    assert!(error.to_string().contains("another writer has locked it for 10 s; try again"), "{error}");
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(store.append("s", 2, log().events()).unwrap(), 4);
}

/// Runs a test on a small disk, if this process may mount one.
fn small_disk(test: impl FnOnce(&Folder)) {
    let folder = Folder::new();
    let path = folder.path("");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(&path).status();
    if !mounted.is_ok_and(|done| done.success()) {
        return support::skip(&support::running(), "nothing can be mounted here: no disk is filled");
    }
    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&folder)));
    drop(Command::new("umount").arg("-l").arg(&path).status());
    if let Err(panic) = tried {
        std::panic::resume_unwind(panic);
    }
}

/// Fills a store until its disk is full. All confirmed entries are kept, no others exist, and after that
/// writing continues.
fn fill(address: &str, make_room: impl FnOnce()) {
    let mut store = SessionStore::open(address).unwrap();
    // Over two hundred entries at once, which at some point exceeds the free space.
    let text = |at: u64| -> String {
        let mut x = at * 2 + 1;
        let mut letter = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (x >> 40) as u8 % 90)
        };
        (0..2_000).map(|_| letter()).collect()
    };
    let batch =
        |first: u64| -> Conversation { (first..first + 100).map(|at| Message::user(text(at))).collect() };
    let (mut revision, mut full) = (0, None);
    for _ in 0..200 {
        match store.append("s", revision, batch(revision).events()) {
            Ok(next) => revision = next,
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let error = full.expect("the disk is small");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    let said = error.to_string().to_lowercase();
    assert!(said.contains("full") || said.contains("no space left"), "{said}");
    assert!(revision >= 100);
    make_room();
    let mut again = SessionStore::open(address).unwrap();
    let (log, found) = again.load("s").unwrap();
    assert_eq!((log.messages().len() as u64, found), (revision, revision));
    assert!(log.messages().iter().zip(0..).all(|(message, at)| message.text() == text(at)));
    assert_eq!(again.check("s").unwrap().faults, Vec::<String>::new());
    assert_eq!(again.append("s", revision, batch(revision).events().take(1)).unwrap(), revision + 1);
}

#[test]
fn a_full_disk_loses_nothing_that_was_confirmed() {
    small_disk(|folder| {
        let ballast = folder.path("ballast");
        fs::write(&ballast, vec![1; 4 << 20]).unwrap();
        fill(&folder.sqlite("full.db"), || fs::remove_file(&ballast).unwrap());
    });
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn a_full_disk_of_a_server_loses_nothing_that_was_confirmed() {
    let Some(server) = crate::support::stores::server::Server::start() else {
        return support::skip(&support::running(), "PostgreSQL is not here");
    };
    small_disk(|folder| {
        let tables = folder.path("tables");
        fs::create_dir(&tables).unwrap();
        drop(Command::new("chown").arg("postgres").arg(&tables).status());
        server.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", tables.display()));
        server.sql("postgres", "CREATE DATABASE small");
        let address = server.address("small");
        SessionStore::open(&address).unwrap();
        for table in ["cw_session", "cw_entry", "cw_prompt"] {
            server.sql("small", &format!("ALTER TABLE {table} SET TABLESPACE small"));
        }
        let ballast = folder.path("ballast");
        fs::write(&ballast, vec![1; 6 << 20]).unwrap();
        fill(&address, || fs::remove_file(&ballast).unwrap());
        server.sql("postgres", "DROP DATABASE small WITH (FORCE)");
    });
}

/// Returns a server's address with another user, password or database.
#[cfg(feature = "postgres")]
fn variant(place: &Place, user: &str, database: &str) -> String {
    let rest = place.address.strip_prefix("postgres://postgres@").unwrap();
    format!("postgres://{user}@{}/{database}", rest.split('/').next().unwrap())
}

#[cfg(feature = "postgres")]
#[test]
fn server_refusal_is_reported_without_the_password() {
    let Some(place) = postgres() else { return };
    let database = place.address.rsplit('/').next().unwrap();
    let secret = "s3cr3t";
    let gone = "postgres://ada:s3cr3t@%2Fnowhere/talks".to_owned();
    for (address, words) in [
        (variant(&place, "ada:s3cr3t", database), "role \"ada\" does not exist"),
        (variant(&place, "postgres:s3cr3t", "none"), "database \"none\" does not exist"),
        (gone, "/nowhere:5432/talks: cannot be connected to"),
        (format!("{}?sslmode=s3cr3t", place.address), "cannot be parsed"),
        ("postgres://ada:s3cr3t@host:port@x/y".to_owned(), "cannot be parsed"),
        ("postgres://ada:s3cr3t%zz@%2Fnowhere/d".to_owned(), "cannot be connected to"),
        ("postgres://ada:top@s3cr3t@127.0.0.1:1/d".to_owned(), "cannot be parsed"),
        ("postgres://ada:a@b/s3cr3t@127.0.0.1:1/d".to_owned(), "cannot be parsed"),
        ("postgres://ada:a/s3cr3t@127.0.0.1:1/d".to_owned(), "cannot be parsed"),
        ("postgres://127.0.0.1:1/d?user=ada&password=p@s3cr3t".to_owned(), "cannot be parsed"),
        ("POSTGRES://ada:s3cr3t@%2Fnowhere/d".to_owned(), "cannot be connected to"),
        (format!("{}?password=s3cr3t&unknown=s3cr3t", place.address), "cannot be parsed"),
    ] {
        let said = refused(&address);
        assert!(said.contains(words) && !said.contains(secret), "{said}");
    }
    let said = format!(
        "{:?}",
        SessionStore::open(&place.address.replacen("postgres@", "postgres:s3cr3t@", 1)).unwrap()
    );
    assert!(!said.contains(secret), "{said}");
}

/// Uses a server that requires passwords.
#[cfg(all(unix, feature = "postgres"))]
#[test]
fn a_wrong_password_is_refused() {
    let Some(server) = crate::support::stores::server::Server::start() else {
        return support::skip(&support::running(), "PostgreSQL is not here");
    };
    for sql in [
        "CREATE ROLE ada LOGIN PASSWORD 'right'",
        "CREATE DATABASE talks OWNER ada",
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    ] {
        server.sql("postgres", sql);
    }
    let rules = server.folder().join("data/pg_hba.conf");
    fs::write(&rules, "local all postgres trust\nlocal all all scram-sha-256\n").unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()");
    let address =
        |password: &str| server.address("talks").replacen("postgres@", &format!("ada:{password}@"), 1);
    let error = SessionStore::open(&address("wr0ng")).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("password authentication failed") && !said.contains("wr0ng"), "{said}");
    let mut store = SessionStore::open(&address("right")).unwrap();
    store.import("s", &log()).unwrap();
    assert_eq!(store.load("s").unwrap().1, 2);
    let said = refused(&server.address("latin"));
    assert!(said.contains("has the encoding LATIN1; expected a database in UTF8"), "{said}");
    if cfg!(not(feature = "postgres-tls")) {
        assert!(refused(&format!("{}?sslmode=require", server.address("talks"))).contains("postgres-tls"));
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_connection_that_broke_is_made_again() {
    let Some(place) = postgres() else { return };
    let mut store = SessionStore::open(&place.address).unwrap();
    store.import("s", &log()).unwrap();
    let database = place.address.rsplit('/').next().unwrap();
    let end = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND application_name = 'context-window'"
    );
    type Step = fn(&mut SessionStore, u64) -> u64;
    let steps: [Step; 8] = [
        |store, revision| store.append("s", revision, log().events()).unwrap(),
        |store, revision| {
            let mut loaded = store.load("s").unwrap();
            assert_eq!(loaded.1, revision);
            loaded.0.push(Message::user("more"));
            store.save("s", &mut loaded.0, revision).unwrap()
        },
        |store, revision| store.list(&ListOptions::new()).map(|list| list[0].revision).unwrap().max(revision),
        |store, revision| store.load_active("s").unwrap().1.max(revision),
        |store, revision| store.check("s").unwrap().entries.max(revision),
        |store, revision| store.fork("s", 1, "fork").map(|()| revision).unwrap(),
        |store, revision| store.delete("fork").map(|()| revision).unwrap(),
        |store, revision| store.archive("s").map(|()| revision).unwrap(),
    ];
    let mut revision = 2;
    for step in steps {
        place.query(&end);
        revision = step(&mut store, revision);
    }
    assert_eq!(store.load("s").unwrap().1, revision);
    assert_eq!(store.check("s").unwrap().faults, Vec::<String>::new());
}
