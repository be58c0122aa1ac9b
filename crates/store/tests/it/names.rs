//! Files by their names: partial ones of other writers.

use context_window_store::{create_part, save_whole};
use std::{fs, path::PathBuf};

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("context-window-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A process that was killed leaves its partial file, and the next one may have its number.
#[test]
fn leftover_partial_file_is_no_hindrance() {
    let folder = Folder::new("leftover");
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
    // As long as names can be.
    let long = folder.path(&"n".repeat(255));
    save_whole(&long, b"long").unwrap();
    assert_eq!(fs::read(&long).unwrap(), b"long");
}

/// Writers of one name, and of one process number where two containers share a folder: each has a partial file of its own.
#[test]
fn writers_of_one_file_do_not_write_into_each_others() {
    let folder = Folder::new("same-part");
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
