//! Lost replies of a PostgreSQL server: an append is written once, or an error reports that its outcome is
//! unknown.

use crate::{
    places::{Folder, postgres},
    support::stores::server::{self, Server},
};
use context_window::*;
use context_window_store::SessionStore;
use std::{
    fs,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Handling of the next append by the proxy.
const PASS: usize = 0;
const CUT_BEFORE: usize = 1;
const CUT_AFTER: usize = 2;

/// A proxy between a store and its server. It may cut a connection right before the server gets an append, or
/// right after the server has done it.
struct Proxy {
    folder: Folder,
    next: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(server: &Server) -> Self {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.path(".s.PGSQL.5432")).unwrap();
        let (next, socket) = (Arc::new(AtomicUsize::new(PASS)), server.folder().join(".s.PGSQL.5432"));
        let plan = Arc::clone(&next);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (plan, server) = (Arc::clone(&plan), UnixStream::connect(&socket).unwrap());
                std::thread::spawn(move || pass_on(client, server, &plan));
            }
        });
        Self { folder, next }
    }

    fn address(&self, database: &str) -> String {
        let folder = self.folder.path("").display().to_string();
        format!("postgres://postgres@{}/{database}", folder.trim_end_matches('/').replace('/', "%2F"))
    }
}

fn pass_on(mut client: UnixStream, mut server: UnixStream, plan: &AtomicUsize) {
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let quiet = Arc::new(AtomicUsize::new(0));
    let hushed = Arc::clone(&quiet);
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(read) = answers.read(&mut buffer) {
            if read == 0 || hushed.load(Ordering::SeqCst) > 0 {
                // The server has replied, so the append is done.
                drop(back.shutdown(std::net::Shutdown::Both));
                break;
            }
            if back.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
    });
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let sent = &buffer[..read];
        if sent.windows(11).any(|bytes| bytes == b"WITH advanc") {
            match plan.swap(PASS, Ordering::SeqCst) {
                CUT_BEFORE => {
                    drop(client.shutdown(std::net::Shutdown::Both));
                    break;
                }
                CUT_AFTER => quiet.store(1, Ordering::SeqCst),
                _ => {}
            }
        }
        if server.write_all(sent).is_err() {
            break;
        }
    }
    drop(server.shutdown(std::net::Shutdown::Both));
}

#[test]
fn commit_with_a_lost_reply_is_written_once() {
    let (Some(server), Some(place)) = (server::shared(), postgres()) else { return };
    let database = place.address.rsplit('/').next().unwrap();
    let proxy = Proxy::start(server);
    let mut store = SessionStore::open(&proxy.address(database)).unwrap();
    let mut direct = SessionStore::open(&place.address).unwrap();
    let mut revision = 0;
    for (at, cut) in [CUT_BEFORE, CUT_AFTER, PASS, CUT_AFTER, CUT_BEFORE, CUT_AFTER].into_iter().enumerate() {
        proxy.next.store(cut, Ordering::SeqCst);
        let said = Conversation::from([Message::user(format!("{at} a")), Message::user(format!("{at} b"))]);
        assert_eq!(store.append("s", revision, said.events()).unwrap(), revision + 2, "{at}");
        revision += 2;
        assert_eq!(proxy.next.load(Ordering::SeqCst), PASS, "it was cut");
        let texts: Vec<String> =
            direct.load("s").unwrap().0.messages().iter().map(|message| message.text().to_owned()).collect();
        let expected: Vec<String> = (0..=at).flat_map(|at| [format!("{at} a"), format!("{at} b")]).collect();
        assert_eq!(texts, expected);
    }
    // An entry by another writer is not mistaken for the lost one.
    for cut in [CUT_BEFORE, CUT_AFTER] {
        let theirs =
            direct.append("s", revision, Conversation::from([Message::user("theirs")]).events()).unwrap();
        proxy.next.store(cut, Ordering::SeqCst);
        let error =
            store.append("s", revision, Conversation::from([Message::user("ours")]).events()).unwrap_err();
        assert_eq!(error.conflict().map(|conflict| conflict.found), Some(theirs), "{error}");
        revision = theirs;
    }
    assert!(direct.load("s").unwrap().0.messages().iter().all(|message| message.text() != "ours"));
    // If the server is gone, an error reports the unknown outcome, and the call does not wait for ever.
    assert!(Path::new(&proxy.folder.path(".s.PGSQL.5432")).exists());
    fs::remove_file(proxy.folder.path(".s.PGSQL.5432")).unwrap();
    proxy.next.store(CUT_BEFORE, Ordering::SeqCst);
    let error = store.append("s", revision, Conversation::from([Message::user("x")]).events()).unwrap_err();
    assert!(error.to_string().contains("The entries may or may not be stored"), "{error}");
}
