//! Logs with a flipped bit, a cut or foreign bytes: either an error is reported, or nothing is lost. `FULL=1`
//! checks all positions; otherwise a part of them.

use crate::support::generate::{is_full, session};
use context_window::*;
use context_window_store::{ErrorKind, Journal, check_log, cut_log};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{fs, path::PathBuf};

fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("context-window-{}-damage-{name}.log", std::process::id()));
    drop(fs::remove_file(&path));
    path
}

/// A log file and its conversation.
struct OnDisk {
    bytes: Vec<u8>,
    log: Conversation,
}

impl OnDisk {
    fn new(log: Conversation) -> Self {
        let path = fresh("written");
        drop(Journal::create(&path, &log).unwrap());
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        Self { bytes, log }
    }

    /// Returns the offset at which each line ends, after its line break.
    fn ends(&self) -> Vec<usize> {
        let breaks = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        breaks.map(|(at, _)| at + 1).collect()
    }

    /// Returns the offsets to test: all, or some of those before the last line and every line end.
    fn tried(&self) -> Vec<usize> {
        let ends = self.ends();
        let last = ends[ends.len().saturating_sub(2)];
        (0..self.bytes.len())
            .filter(|at| is_full() || *at + 1 >= last || at % 61 == 0 || ends.contains(&(at + 1)))
            .collect()
    }
}

/// Returns twenty logs (eight without `FULL=1`) with a prompt, a reply and characters of several bytes, and a
/// log without entries.
fn generated_logs() -> Vec<OnDisk> {
    let mut runner = TestRunner::deterministic();
    let made = (0..if is_full() { 20 } else { 8 }).map(|at| {
        let session = session().new_tree(&mut runner).unwrap().current();
        let mut log = session.log();
        let manager =
            ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), Config::default()).unwrap();
        log.push(Message::user(format!("水壶 {at}: \"J*\" \u{8a}\u{b}?\n")));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        // Logs end with a message, a prompt or a pin.
        if at % 3 > 0 {
            log.push_reply(&plan, Message::assistant("5 days."), Usage::openai(9, 0, 3));
        }
        if at % 3 > 1 {
            log.pin(PinnedItem::new("tone", "Formal."));
        }
        OnDisk::new(log)
    });
    let mut all: Vec<OnDisk> = made.collect();
    all.push(OnDisk::new(Conversation::new()));
    all
}

fn same(a: &Conversation, b: &Conversation) -> bool {
    a == b && a.events().eq(b.events())
}

#[test]
fn a_flipped_bit_is_an_error_and_loses_nothing() {
    let (mut errors, mut lost) = (0, Vec::new());
    for (number, on_disk) in generated_logs().into_iter().enumerate() {
        let mut bytes = on_disk.bytes.clone();
        for at in on_disk.tried() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                match Journal::read("talk.log", &bytes) {
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Journal);
                        errors += 1;
                    }
                    Ok((log, tail)) if tail.is_none() && same(&log, &on_disk.log) => {}
                    Ok((_, tail)) => lost.push((number, at, bit, tail)),
                }
                bytes[at] ^= 1 << bit;
            }
        }
    }
    assert!(lost.is_empty(), "{} of {}: {:?}", lost.len(), lost.len() + errors, &lost[..lost.len().min(5)]);
    assert!(errors > 5_000, "{errors}");
}

/// The file stays unchanged, so that it can be restored or repaired.
#[test]
fn a_flipped_bit_of_the_last_line_is_not_cut_off() {
    let path = fresh("flipped");
    for on_disk in generated_logs() {
        let last = on_disk.bytes.len() - 1;
        for (at, bit) in (0..8).map(|bit| (last, bit)).chain([(last - 1, 0), (last - 9, 3)]) {
            let mut bytes = on_disk.bytes.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, &bytes).unwrap();
            let error = Journal::open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Journal, "{error}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
    fs::remove_file(path).unwrap();
}

/// A crash may cut a file at any byte: every complete record is kept, and the file opens.
#[test]
fn cut_at_any_byte_loses_only_the_incomplete_record() {
    let path = fresh("cut");
    for on_disk in generated_logs() {
        let ends = on_disk.ends();
        let events: Vec<_> = on_disk.log.events().collect();
        for end in on_disk.tried() {
            // A record without its line break is complete.
            let whole = ends.iter().filter(|line| **line <= end + 1).count();
            let (log, tail) = Journal::read("talk.log", &on_disk.bytes[..end]).unwrap();
            assert_eq!(log.events().collect::<Vec<_>>(), events[..whole.saturating_sub(1)], "{end}");
            assert_eq!(
                tail.is_some(),
                end > 0 && !ends.contains(&end) && !ends.contains(&(end + 1)),
                "{end}"
            );
        }
        let end = on_disk.bytes.len() - 3;
        fs::write(&path, &on_disk.bytes[..end]).unwrap();
        let (mut journal, mut log) = Journal::open(&path).unwrap();
        assert!(journal.truncated_tail().is_some());
        log.push(Message::user("more"));
        journal.save(&log).unwrap();
        drop(journal);
        assert!(same(&Journal::open(&path).unwrap().1, &log));
    }
    fs::remove_file(path).unwrap();
}

/// Bytes after the last record that no crash of a writer can leave are damage.
#[test]
fn a_tail_that_is_no_beginning_of_a_record_is_damage() {
    let on_disk = OnDisk::new(Conversation::from([Message::user("a"), Message::assistant("b")]));
    for tail in ["\0\0\0\0", "{\"n\":99,\"sum\":\"0\",\"rec", "\u{fffd}", "{\"n\":3\n", "\n", " "] {
        let bytes = [&on_disk.bytes, tail.as_bytes()].concat();
        let error = Journal::read("talk.log", &bytes).unwrap_err().to_string();
        assert!(
            error.starts_with("talk.log:4: ") && error.contains("plan-inspect repair"),
            "{tail:?}: {error}"
        );
    }
}

/// The first line is the same in every log, so it can be restored without loss.
#[test]
fn a_damaged_first_line_is_written_again() {
    let path = fresh("first");
    let on_disk = OnDisk::new(Conversation::from([Message::user("a"), Message::assistant("b")]));
    for at in 0..on_disk.ends()[0] {
        for bit in 0..8 {
            let mut bytes = on_disk.bytes.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, &bytes).unwrap();
            let damage = check_log(&path).unwrap().damage.unwrap();
            assert!(damage.is_first_line && damage.line == 1, "{at} {bit}: {damage:?}");
            let copy = cut_log(&path).unwrap().copy.unwrap();
            assert_eq!(fs::read(&path).unwrap(), on_disk.bytes);
            assert_eq!(fs::read(&copy).unwrap(), bytes[..on_disk.ends()[0]]);
            fs::remove_file(copy).unwrap();
        }
    }
    // A log of a later version is valid, and left unchanged.
    let record = "{\"context_window_log\":2}";
    let mut hash = blake3::Hasher::new();
    hash.update(&0u64.to_le_bytes()).update(record.as_bytes());
    let sum = &hash.finalize().to_hex()[..16];
    let later = format!("{{\"n\":0,\"sum\":\"{sum}\",\"record\":{record}}}\n");
    let later = [later.as_bytes(), &on_disk.bytes[on_disk.ends()[0]..]].concat();
    fs::write(&path, &later).unwrap();
    assert!(cut_log(&path).unwrap_err().to_string().contains("is a log with version 2; expected version 1"));
    assert_eq!(fs::read(&path).unwrap(), later);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_cut_keeps_a_copy_and_the_log_opens() {
    let path = fresh("repaired");
    let log: Conversation =
        (0..8).map(|at| Message::user(format!("message {at}"))).collect::<Vec<_>>().into();
    let on_disk = OnDisk::new(log);
    let ends = on_disk.ends();
    for (at, line) in [(ends[5] + 40, 7), (ends[8] - 1, 9)] {
        let mut bytes = on_disk.bytes.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let checked = check_log(&path).unwrap();
        assert_eq!((checked.messages, checked.events, &checked.copy), (line - 2, 0, &None));
        let damage = checked.damage.unwrap();
        let lines: Vec<usize> = damage.lost.iter().map(|lost| lost.line).collect();
        assert_eq!((damage.line, lines), (line, (line..=9).collect()));
        assert!(damage.lost[0].record.is_none() && damage.lost[0].text.contains("message"), "{damage:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "nothing is changed");
        let cut = cut_log(&path).unwrap();
        let copy = cut.copy.unwrap();
        let [kept, copied] = [&path, &copy].map(|path| fs::read(path).unwrap());
        assert_eq!(kept, on_disk.bytes[..ends[line - 2]]);
        assert_eq!([kept, copied].concat(), bytes, "every byte is in one of both");
        assert_eq!(Journal::open(&path).unwrap().1.messages().len(), line - 2);
        assert_eq!(cut_log(&path).unwrap().copy, None, "it is whole");
        // A second repair makes a second copy.
        fs::write(&path, &bytes).unwrap();
        let second = cut_log(&path).unwrap().copy.unwrap();
        assert_ne!(second, copy);
        [copy, second].iter().for_each(|copy| fs::remove_file(copy).unwrap());
    }
    let (_journal, _) = Journal::open(&path).unwrap();
    assert!(cut_log(&path).unwrap_err().to_string().contains("is open for writing in another process"));
    fs::remove_file(&path).unwrap();
    assert_eq!(check_log(&path).unwrap_err().kind(), ErrorKind::Journal);
    fs::write(&path, "no log\n").unwrap();
    assert!(cut_log(&path).unwrap_err().to_string().contains("is not a log"));
    fs::remove_file(path).unwrap();
}
