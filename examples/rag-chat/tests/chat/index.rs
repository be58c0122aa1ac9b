//! The index on disk: changed, damaged and unreadable files.

use crate::support::{Place, Run};
use rag_chat::index::Index;
use std::fs;

fn open(place: &Place) -> Index {
    Index::open(place.folder.path(), &place.data.path().join("index")).unwrap()
}

#[test]
fn only_changed_files_are_read_again() {
    let place = Place::shop();
    let mut index = open(&place);
    let mut steps = Vec::new();
    let first = index.refresh(|done, of| steps.push((done, of))).unwrap();
    assert_eq!((first.files, first.read, first.gone), (4, 4, 0));
    assert_eq!(steps, [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]);
    let again = index.refresh(|_, _| panic!("nothing is read")).unwrap();
    assert_eq!((again.files, again.chunks, again.read), (4, first.chunks, 0));
    drop(index);

    // Windows line ends are line ends.
    place.write("hours.md", b"# Hours\r\n\r\nThe shop is closed for the winter.");
    place.write("new.md", b"A new page about teapots.");
    fs::remove_file(place.folder.path().join("kettles.md")).unwrap();
    let mut index = open(&place);
    let third = index.refresh(|_, _| {}).unwrap();
    assert_eq!((third.files, third.read, third.gone, third.rebuilt), (4, 2, 1, None));
    let found = |question| -> Vec<String> {
        let hits = index.search(question, "", 9).unwrap();
        hits.iter().map(|hit| hit.id().to_string()).collect()
    };
    assert_eq!(found("Is the shop closed in winter?"), ["hours.md#1"]);
    assert_eq!(found("teapot"), ["new.md#1"]);
    assert!(found("whistles").is_empty(), "what is gone is not found");
    assert!(found("the of ?!").is_empty(), "nothing is asked for");
}

#[test]
fn previous_question_helps_retrieval_for_a_follow_up() {
    let place = Place::shop();
    let mut index = open(&place);
    index.refresh(|_, _| {}).unwrap();
    let ids = |question, before| -> Vec<String> {
        let found = index.search(question, before, 1).unwrap();
        let by_text = found.lists().find(|(name, _)| *name == "text");
        by_text.into_iter().flat_map(|(_, hits)| hits).map(|hit| hit.id().to_string()).collect()
    };
    assert!(ids("And how long?", "").is_empty());
    assert_eq!(ids("And how long?", "What about a refund?"), ["terms/refunds.md#1"]);
    // The previous question does not outweigh the current one.
    assert_eq!(ids("When are you open on Saturdays?", "What about a refund?"), ["hours.md#1"]);
}

#[test]
fn a_damaged_index_is_made_again() {
    let place = Place::shop();
    open(&place).refresh(|_, _| {}).unwrap();
    let folder = place.data.path().join("index");
    let files = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let ends = |end: &'static str| {
        move |path: &std::path::PathBuf| path.extension().is_some_and(|found| found == end)
    };
    // A flipped byte in its terms, a truncated list of files, and random bytes.
    let damages: [&dyn Fn(); 3] = [
        &|| {
            let path = files().find(ends("term")).unwrap();
            let mut bytes = fs::read(&path).unwrap();
            bytes[3] ^= 0x55;
            fs::write(path, bytes).unwrap();
        },
        &|| {
            let path = folder.join("meta.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, &text[..text.len() / 2]).unwrap();
        },
        &|| files().for_each(|path| fs::write(path, b"garbage").unwrap()),
    ];
    for damage in damages {
        damage();
        let mut index = open(&place);
        let done = index.refresh(|_, _| {}).unwrap();
        assert!(done.rebuilt.is_some(), "it says so");
        assert_eq!((done.files, done.read), (4, 4));
        assert_eq!(index.search("whistles", "", 5).unwrap().len(), 1);
    }
    // The chat reports it too.
    fs::write(folder.join("meta.json"), b"{").unwrap();
    assert!(Run::offline(&place, &[]).has_said("The index was damaged"));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_indexed() {
    let place = Place::shop();
    place.write("bad.md", b"caf\xe9");
    place.write("picture.png", b"\x89PNG");
    place.write(".hidden/secret.md", b"hidden");
    place.write("build/out.md", b"ignored");
    place.write(".gitignore", b"build/\n");
    let run = Run::offline(&place, &[]);
    assert!(
        run.has_said("Files that could not be read: 1.\nbad.md: not UTF-8 at byte 3: expected text"),
        "{:?}",
        run.chat.remarks
    );
    assert_eq!(run.chat.indexed.files, 5);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rag-chat"))
        .arg(place.folder.path())
        .args(["--ask", "kettles?", "--data"])
        .arg(place.data.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("Files that could not be read: 1.\nbad.md: not UTF-8 at byte 3: expected text\n"),
        "{said}"
    );
    // The file is named again in the next run, although it is not tried again.
    drop(run);
    let mut run = Run::offline(&place, &[]);
    assert!(run.has_said("could not be read: 1.\nbad.md"), "{:?}", run.chat.remarks);
    // After a repair it is read.
    place.write("bad.md", "A café in the shop sells teacakes.".as_bytes());
    run.enter("Who sells teacakes?");
    assert!(run.last().contains("A café in the shop sells teacakes."), "{}", run.last());
}

#[test]
fn empty_folder_is_reported_and_two_chats_index_one_folder() {
    let place = Place::with(&[]);
    let run = Run::offline(&place, &[]);
    assert!(run.has_said("There is no document in"), "{:?}", run.chat.remarks);

    // Both start on a folder without an index.
    for _ in 0..10 {
        let place = Place::shop();
        std::thread::scope(|threads| {
            let begin = || open(&place).refresh(|_, _| {}).unwrap();
            let both = [threads.spawn(begin), threads.spawn(begin)];
            let read: usize = both.map(|thread| thread.join().unwrap().read).iter().sum();
            assert!(read >= 4, "{read}");
        });
        assert_eq!(open(&place).refresh(|_, _| {}).unwrap().read, 0);
    }

    let place = Place::shop();
    let (mut one, mut two) = (open(&place), open(&place));
    // The writer's lock is held while the first one indexes.
    let done = one.refresh(|done, of| {
        if done < of {
            assert!(two.refresh(|_, _| {}).unwrap().is_busy);
        }
    });
    assert_eq!(done.unwrap().read, 4);
    assert_eq!(two.refresh(|_, _| {}).unwrap().read, 0, "it has what the other one read");
    assert_eq!(two.search("whistles", "", 5).unwrap().len(), 1);
}

/// Checks the index, the conversations and their folders under several umasks.
#[cfg(unix)]
#[test]
fn index_and_conversations_are_readable_by_their_owner_only() {
    use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};
    fn check(folder: &Path, umask: &str) -> usize {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.map(|path| {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "umask {umask}: {}: {mode:o}", path.display());
            if path.is_dir() { check(&path, umask) } else { 1 }
        });
        files.sum()
    }
    for umask in ["000", "022", "277"] {
        let place = Place::shop();
        let data = place.data.path().join("new/folder");
        for question in ["kettles?", "refunds?"] {
            let run = format!("umask {umask}; exec \"$0\" \"$@\"");
            let mut command = Command::new("sh");
            command.args(["-c", &run, env!("CARGO_BIN_EXE_rag-chat")]).arg(place.folder.path());
            command.args(["--ask", question, "--session", "s", "--model", "offline-4k", "--data"]).arg(&data);
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            place.write("new.md", b"A new page about teapots.");
        }
        assert!(check(place.data.path(), umask) > 5);
    }
}
