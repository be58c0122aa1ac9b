//! The cost of a session store: bytes for 1,000 turns, saves, loads, and many writers at once.
//!
//! Run with `cargo bench -p context-window-benches --features stores --bench stores [-- PART]`, with `bytes`,
//! `turns`, `writers` or `entries` for PART. SQLite is measured in a temporary folder. PostgreSQL is measured
//! if `CONTEXT_WINDOW_POSTGRES` is the address of a database that may be filled.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
    Usage, events::LogEvent,
};
use context_window_store::SessionStore;
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A generator of the same words as in `benches/stores/measure.py`, which stores the conversation with other
/// libraries.
struct Words(u64);

impl Words {
    fn text(&mut self, head: &str, count: usize) -> String {
        let mut text = head.to_owned();
        for _ in 0..count {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!(" w{}ord", self.0 >> 58));
        }
        text
    }

    /// Creates a question and its answer, 0.9 KB together.
    fn turn(&mut self, at: usize) -> [String; 2] {
        [self.text(&format!("question {at}:"), 30), self.text(&format!("answer {at}:"), 100)]
    }
}

fn manager() -> ContextWindowManager {
    let mut config = Config::default();
    config.compaction.messages = Some(80);
    ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config)
        .expect("the options fit together")
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("context-window-bench-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns the address of a new SQLite store, and that of the server if one is configured.
fn addresses(folder: &Folder, name: &str) -> Vec<String> {
    let sqlite = format!("sqlite:{}", folder.0.join(format!("{name}.db")).display());
    let server = std::env::var_os("CONTEXT_WINDOW_POSTGRES").and_then(|address| address.into_string().ok());
    std::iter::once(sqlite).chain(server).collect()
}

fn open(address: &str) -> SessionStore {
    SessionStore::open(address).unwrap_or_else(|error| panic!("{error}"))
}

fn kind(address: &str) -> &str {
    if address.starts_with("sqlite:") { "SQLite" } else { "PostgreSQL" }
}

/// Returns the size of the store on disk, in bytes.
fn bytes_on_disk(address: &str) -> u64 {
    let Some(path) = address.strip_prefix("sqlite:") else {
        let sizes = "SELECT sum(pg_total_relation_size(c)) FROM (VALUES ('cw_session'::regclass), ('cw_entry'), ('cw_prompt'), ('cw_schema')) AS t (c)";
        let out = Command::new("psql").args([address, "-At", "-c", sizes]).output().expect("psql is here");
        return String::from_utf8_lossy(&out.stdout).trim().parse().unwrap_or_default();
    };
    let size = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    size(Path::new(path)) + size(Path::new(&format!("{path}-wal")))
}

/// Deletes a session, and frees the space of deleted rows on a server.
fn empty(address: &str, store: &mut SessionStore, id: &str) {
    drop(store.delete(id));
    if kind(address) == "PostgreSQL" {
        drop(
            Command::new("psql")
                .args([address, "-c", "VACUUM FULL cw_session, cw_entry, cw_prompt"])
                .output(),
        );
    }
}

/// Measures 1,000 turns: the messages alone, and with plans, reports and compactions, saved after each turn.
fn bytes() {
    let folder = Folder::new();
    for address in addresses(&folder, "bytes") {
        let mut store = open(&address);
        let (mut words, mut log, mut revision) = (Words(1), Conversation::new(), 0);
        for at in 0..1_000 {
            let [question, answer] = words.turn(at);
            log.extend([Message::user(question), Message::assistant(answer)]);
            revision = store.save("messages", &mut log, revision).expect("it is written");
        }
        drop(store);
        println!("{}: 1,000 turns, messages alone: {} bytes", kind(&address), bytes_on_disk(&address));
        empty(&address, &mut open(&address), "messages");
    }
    for address in addresses(&folder, "lived") {
        let (mut store, manager) = (open(&address), manager());
        let (mut words, mut log, mut revision) = (Words(1), Conversation::new(), 0);
        let mut saves = Vec::new();
        for at in 0..1_000 {
            revision = turn(&manager, &mut log, &mut words, at, &mut |log| {
                let started = Instant::now();
                let next = store.save("lived", log, revision).expect("it is written");
                saves.push(started.elapsed());
                next
            });
        }
        drop(store);
        println!(
            "{}: with plans, reports and {} compactions: {} bytes, a save {:?}",
            kind(&address),
            log.compactions().count(),
            bytes_on_disk(&address),
            median(&mut saves),
        );
        empty(&address, &mut open(&address), "lived");
    }
}

/// Runs one turn of an application, and returns the result of `save` after it.
fn turn(
    manager: &ContextWindowManager,
    log: &mut Conversation,
    words: &mut Words,
    at: usize,
    save: &mut dyn FnMut(&mut Conversation) -> u64,
) -> u64 {
    let [question, answer] = words.turn(at);
    log.push(Message::user(question));
    let plan = manager.build_plan(&PlanRequest::new(log)).expect("there is room");
    log.push_reply(&plan, Message::assistant(answer), Usage::openai(plan.counted(), 0, 200));
    log.complete_turn(&plan);
    manager.compactor().compact_if_due(log, &[], RequestLimits::new()).expect("it can be compacted");
    save(log)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the median of nine runs.
fn timed(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    median(&mut times)
}

/// Measures loading a long session, whole and without the texts of archived messages.
fn turns() {
    let folder = Folder::new();
    for (name, count, longer) in [("20,000 turns of 0.9 KB", 20_000, 1), ("5,000 turns of 7.2 KB", 5_000, 8)]
    {
        let (manager, mut words, mut log) = (manager(), Words(1), Conversation::new());
        for at in 0..count {
            let [question, answer] = words.turn(at);
            log.push(Message::user(question));
            log.push(Message::assistant(answer.repeat(longer)));
            if at % 40 == 39 {
                manager
                    .compactor()
                    .compact_if_due(&mut log, &[], RequestLimits::new())
                    .expect("it can be compacted");
            }
        }
        for address in addresses(&folder, name) {
            let mut store = open(&address);
            store.import("turns", &log).expect("it is new");
            let whole = timed(|| drop(store.load("turns").expect("it is there")));
            let active = timed(|| drop(store.load_active("turns").expect("it is there")));
            println!("{}: {name}: load {whole:?}, load_active {active:?}", kind(&address));
            empty(&address, &mut store, "turns");
        }
    }
}

/// Measures importing and loading a million entries.
fn entries() {
    let folder = Folder::new();
    let message = |at: u32| Message::user(format!("message {at} of many, with some words to it"));
    let log: Conversation = (0..1_000_000).map(message).collect();
    for address in addresses(&folder, "entries") {
        let mut store = open(&address);
        let started = Instant::now();
        store.import("long", &log).expect("it is new");
        let into = started.elapsed();
        let loaded = store.load("long").expect("it is there");
        println!("{}: 1,000,000 entries: in {into:?}, out {:?}", kind(&address), started.elapsed() - into);
        assert!(loaded.0 == log);
        empty(&address, &mut store, "long");
    }
}

const WRITERS: usize = 8;
const MESSAGES: usize = 1_000;

/// Runs one of the writers in its own process, which prints its number of conflicts.
fn writes(task: &str) {
    let [address, writer, sessions] = task.splitn(3, '\n').collect::<Vec<_>>()[..] else { return };
    let number = |text: &str| text.parse::<usize>().unwrap_or_default();
    let (writer, sessions) = (number(writer), number(sessions));
    let mut store = open(address);
    let (mut revisions, mut conflicts) = (vec![0; sessions], 0u64);
    for at in 0..MESSAGES {
        let session = (at + writer * sessions / WRITERS) % sessions;
        let id = format!("s{session}");
        let said = Conversation::from([Message::user(format!("writer {writer} message {at}"))]);
        let events: Vec<LogEvent> = said.events().collect();
        loop {
            match store.append(&id, revisions[session], events.iter().cloned()) {
                Ok(next) => break revisions[session] = next,
                Err(_) => {
                    conflicts += 1;
                    revisions[session] = store.load_since(&id, revisions[session]).expect("it is there").1;
                }
            }
        }
    }
    println!("{conflicts}");
}

/// Measures eight processes with 1,000 appends each, to one session and to 1,000. The simple alternative is a
/// file with a lock.
fn writers() {
    let folder = Folder::new();
    for sessions in [1, 1_000] {
        for address in addresses(&folder, &format!("writers-{sessions}")) {
            drop(open(&address));
            let started = Instant::now();
            let start = |writer: usize| {
                Command::new(std::env::current_exe().expect("this program has a file"))
                    .env("STORES_BENCH_TASK", format!("{address}\n{writer}\n{sessions}"))
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("a process can be started")
            };
            let children: Vec<_> = (0..WRITERS).map(start).collect();
            let mut conflicts = 0;
            for child in children {
                let out = child.wait_with_output().expect("it was started");
                assert!(out.status.success());
                conflicts +=
                    String::from_utf8_lossy(&out.stdout).trim().parse::<u64>().expect("it says a number");
            }
            let took = started.elapsed();
            println!(
                "{}: 8 processes, 8,000 appends, {sessions} sessions: {took:?}, {conflicts} conflicts",
                kind(&address)
            );
            let mut store = open(&address);
            let mut stored = 0;
            for session in 0..sessions {
                let id = format!("s{session}");
                stored += store.summary(&id).expect("it can be read").map_or(0, |summary| summary.messages);
                drop(store.delete(&id));
            }
            assert_eq!(stored, (WRITERS * MESSAGES) as u64);
        }
    }
    let path = folder.0.join("plain.log");
    let started = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                for at in 0..MESSAGES {
                    let mut file = fs::OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(path)
                        .expect("it can be written");
                    file.lock().expect("it can be locked");
                    writeln!(file, "writer {writer} message {at}").expect("there is room");
                    file.sync_data().expect("there is room");
                }
            });
        }
    });
    println!("a file with a lock, synced, 8 threads: {:?}", started.elapsed());
}

fn main() {
    if let Some(task) = std::env::var_os("STORES_BENCH_TASK") {
        return writes(&task.to_string_lossy());
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let all: [(&str, fn()); 4] =
        [("bytes", bytes), ("turns", turns), ("writers", writers), ("entries", entries)];
    for (name, measure) in all {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            measure();
        }
    }
}
