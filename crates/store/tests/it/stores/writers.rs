//! Many concurrent writers, and killed writers: no entry is lost, repeated or missing in the numbering.

use crate::places::{Place, both};
#[cfg(feature = "postgres")]
use crate::{support, support::stores::server::Server};
use context_window::*;
use context_window_store::SessionStore;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

fn full() -> bool {
    std::env::var_os("FULL").is_some()
}

/// Starts the test of this name as a separate process with a task.
fn myself(test: &str, task: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("stores::writers::{test}"), "--nocapture"])
        .env("STORE_TEST_TASK", task.join("\n"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn task() -> Option<Vec<String>> {
    let task = std::env::var_os("STORE_TEST_TASK")?;
    Some(task.to_str()?.lines().map(str::to_owned).collect())
}

/// Returns the result lines of a writer.
fn lines(out: ChildStdout) -> impl Iterator<Item = String> {
    BufReader::new(out).lines().map_while(Result::ok).filter(|line| line.contains("said"))
}

const WRITERS: u64 = 8;

/// Appends messages to sessions in turn, and reloads new entries after a conflict.
fn appends(address: &str, writer: u64, sessions: u64, messages: u64) {
    let mut store = SessionStore::open(address).unwrap();
    let mut conflicts = 0u64;
    let mut revisions = vec![0; sessions as usize];
    for at in 0..messages {
        // Each writer begins at another session.
        let session = (at + writer * sessions / WRITERS) % sessions;
        let id = format!("s{session}");
        let message = Message::user(format!("writer {writer} message {at}"));
        let event = || Conversation::from([message.clone()]).events().collect::<Vec<_>>();
        let revision = &mut revisions[session as usize];
        loop {
            match store.append(&id, *revision, event()) {
                Ok(next) => break *revision = next,
                Err(error) => {
                    let conflict = error.conflict().unwrap_or_else(|| panic!("{error}"));
                    assert!(conflict.found > *revision);
                    conflicts += 1;
                    let (new, now) = store.load_since(&id, *revision).unwrap();
                    assert_eq!(*revision + new.len() as u64, now);
                    *revision = now;
                }
            }
        }
    }
    println!("said {conflicts}");
}

#[test]
fn eight_processes_write_and_nothing_is_lost_or_twice() {
    if let Some(task) = task() {
        let number = |at: usize| task[at].parse::<u64>().unwrap();
        return appends(&task[0], number(1), number(2), number(3));
    }
    let messages = if full() { 1_000 } else { 250 };
    for place in both() {
        for sessions in [1, 1_000] {
            let write = |writer: u64| {
                let task =
                    [place.address.clone(), writer.to_string(), sessions.to_string(), messages.to_string()];
                let mut child = myself("eight_processes_write_and_nothing_is_lost_or_twice", &task);
                let out = child.stdout.take().unwrap();
                (child, out)
            };
            let children: Vec<_> = (0..WRITERS).map(write).collect();
            let mut conflicts = 0;
            for (mut child, out) in children {
                let said: Vec<String> = lines(out).collect();
                assert!(child.wait().unwrap().success());
                let [line] = said.as_slice() else { panic!("{said:?}") };
                conflicts += line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            }
            hold(&place, sessions, messages);
            eprintln!(
                "{}: {WRITERS} processes, {} appends to {sessions} sessions, {conflicts} conflicts",
                &place.address[..8],
                WRITERS * messages,
            );
            place.sql("DELETE FROM cw_session");
        }
    }
}

/// Checks that every message of every writer exists once, in its writer's order. Entries are numbered without
/// a gap, also in SQL.
fn hold(place: &Place, sessions: u64, messages: u64) {
    let mut store = SessionStore::open(&place.address).unwrap();
    let mut seen = vec![Vec::new(); WRITERS as usize];
    for session in 0..sessions.min(WRITERS * messages) {
        let id = format!("s{session}");
        let Some(summary) = store.summary(&id).unwrap() else { continue };
        let (log, revision) = store.load(&id).unwrap();
        assert_eq!((summary.revision, summary.messages), (revision, log.messages().len() as u64));
        assert_eq!(store.check(&id).unwrap().faults, Vec::<String>::new());
        let mut last = vec![None; WRITERS as usize];
        for message in log.messages() {
            let words: Vec<&str> = message.text().split(' ').collect();
            let (writer, at) = (words[1].parse::<usize>().unwrap(), words[3].parse::<u64>().unwrap());
            assert!(last[writer] < Some(at), "in its writer's order");
            last[writer] = Some(at);
            seen[writer].push(at);
        }
    }
    for mut one in seen {
        one.sort_unstable();
        assert_eq!(one, (0..messages).collect::<Vec<_>>());
    }
    let gaps = place.query(
        "SELECT id FROM cw_session WHERE next <> (SELECT count(*) FROM cw_entry WHERE session = key)
         OR next <> (SELECT max(n) + 1 FROM cw_entry WHERE session = key)",
    );
    assert_eq!(gaps.len(), 0);
    let rows = place.query("SELECT count(*) FROM cw_entry");
    assert_eq!(rows[0][0].as_deref(), Some(&*(WRITERS * messages).to_string()));
}

/// Runs as the process to be killed: continues the session, compacts it, and prints the confirmed entries.
fn writes_for_ever(address: &str) -> ! {
    let manager = super::appending::manager();
    let mut store = loop {
        match SessionStore::open(address) {
            Ok(store) => break store,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut out = std::io::stdout().lock();
    loop {
        let Ok((mut log, revision)) = store.load_or_new("s") else { continue };
        for _ in 0..1 + log.messages().len() % 3 {
            let n = log.messages().len();
            let text = format!("message {n} {}", "words ".repeat(n % 7));
            log.push(if n.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) });
        }
        manager.compactor().compact_if_due(&mut log, &[], RequestLimits::new()).unwrap();
        // Waits for a missing server, and prints only confirmed entries.
        if store.save("s", &mut log, revision).is_ok() {
            writeln!(out, "said {} {}", log.messages().len(), log.compactions().count()).unwrap();
            out.flush().unwrap();
        }
    }
}

/// The last confirmed state.
#[derive(Default)]
struct Confirmed {
    messages: usize,
    compactions: usize,
    times: u64,
}

impl Confirmed {
    fn take(&mut self, line: &str) {
        let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        if let [messages, compactions] = numbers[..] {
            (self.messages, self.compactions) = (messages, compactions);
            self.times += 1;
        }
    }

    /// Checks that no confirmed entry is missing, and at most one more write exists.
    fn holds(&mut self, store: &mut SessionStore) {
        let (log, _) = store.load("s").unwrap();
        let found = log.messages().len();
        assert!(found >= self.messages && found <= self.messages + 3, "{found} of {}", self.messages);
        for (n, message) in log.messages().iter().enumerate() {
            assert!(message.text().starts_with(&format!("message {n} ")), "{}", message.text());
        }
        let numbers: Vec<u32> = log.compactions().map(|record| record.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
        assert!(numbers.len() >= self.compactions && numbers.len() <= self.compactions + 1);
        assert_eq!(store.check("s").unwrap().faults, Vec::<String>::new());
        (self.messages, self.compactions) = (found, numbers.len());
        // Longer sessions only make the test slower.
        if found > 300 {
            store.delete("s").unwrap();
            (self.messages, self.compactions) = (0, 0);
        }
    }
}

/// Returns the next number of a pseudo-random sequence with a fixed seed.
fn roll(seed: &mut u64, sides: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % sides
}

#[test]
fn killed_at_any_moment_nothing_confirmed_is_lost() {
    if let Some(task) = task() {
        writes_for_ever(&task[0]);
    }
    let kills = if full() { 500 } else { 25 };
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let (mut confirmed, mut seed) = (Confirmed::default(), 0x2545_F491_4F6C_DD1D);
        for _ in 0..kills {
            let task = [place.address.clone()];
            let mut child = myself("killed_at_any_moment_nothing_confirmed_is_lost", &task);
            let mut lines = lines(child.stdout.take().unwrap());
            // After its first line, the process can be killed at any moment.
            let first = lines.next();
            std::thread::sleep(Duration::from_micros(roll(&mut seed, 12_000)));
            child.kill().unwrap();
            child.wait().unwrap();
            first.into_iter().chain(lines).for_each(|line| confirmed.take(&line));
            confirmed.holds(&mut store);
            // The next append works.
            let (messages, compactions) = (confirmed.messages, confirmed.compactions);
            store
                .update("s", |log| {
                    let n = log.messages().len();
                    log.push(Message::user(format!("message {n} after a kill")));
                    Ok(())
                })
                .unwrap();
            (confirmed.messages, confirmed.compactions) = (messages + 1, compactions);
        }
        eprintln!("{}: {kills} writers killed, {} confirmations", &place.address[..8], confirmed.times);
        assert!(confirmed.times >= kills);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_server_that_is_killed_loses_nothing_that_was_confirmed() {
    if let Some(task) = task() {
        writes_for_ever(&task[0]);
    }
    let Some(server) = Server::start() else {
        return support::skip(&support::running(), "PostgreSQL is not here: no server is killed");
    };
    let kills = if full() { 20 } else { 4 };
    let address = server.database();
    let mut store = SessionStore::open(&address).unwrap();
    let mut child = myself("a_server_that_is_killed_loses_nothing_that_was_confirmed", &[address]);
    let out = child.stdout.take().unwrap();
    // The pipe is read continuously, because a full one would block the writer.
    let (tell, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines(out).for_each(|line| drop(tell.send(line))));
    let (mut confirmed, mut seed) = (Confirmed::default(), 0x9E37_79B9_7F4A_7C15);
    for _ in 0..kills {
        // Waits until it writes.
        for _ in 0..5 {
            confirmed.take(&said.recv_timeout(Duration::from_secs(60)).unwrap());
        }
        std::thread::sleep(Duration::from_micros(roll(&mut seed, 20_000)));
        server.kill();
        assert!(server.resume(), "{}", std::fs::read_to_string(server.folder().join("log")).unwrap());
        // The writer continues meanwhile: all entries confirmed before this load are in it.
        said.try_iter().for_each(|line| confirmed.take(&line));
        let (log, _) = store.load("s").unwrap();
        assert!(log.messages().len() >= confirmed.messages);
        assert!(log.compactions().count() >= confirmed.compactions);
        for (n, message) in log.messages().iter().enumerate() {
            assert!(message.text().starts_with(&format!("message {n} ")), "{}", message.text());
        }
        assert_eq!(store.check("s").unwrap().faults, Vec::<String>::new());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    said.iter().for_each(|line| confirmed.take(&line));
    confirmed.holds(&mut store);
    eprintln!("server killed {kills} times, {} confirmations", confirmed.times);
}
