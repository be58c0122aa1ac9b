//! Tokenizers for comparison: the small one in the project, and real ones if `CONTEXT_WINDOW_TOKENIZERS`
//! names a folder. Each of its folders with a `tokenizer.json` is used.

use std::path::PathBuf;

pub fn small() -> PathBuf {
    super::root().join("tests/tokenizers/small")
}

/// Returns the folders, the small one first. Reports a skip if there is no other.
pub fn folders() -> Vec<PathBuf> {
    let mut all = vec![small()];
    let Some(given) = std::env::var_os("CONTEXT_WINDOW_TOKENIZERS").map(PathBuf::from) else {
        super::skip(&super::running(), "CONTEXT_WINDOW_TOKENIZERS is not set: the small tokenizer alone");
        return all;
    };
    let mut found = Vec::new();
    let mut open = vec![given.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("CONTEXT_WINDOW_TOKENIZERS names a folder") {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name == "tokenizer.json") {
                found.push(folder.clone());
            }
        }
    }
    assert!(!found.is_empty(), "{} holds no tokenizer.json", given.display());
    found.sort();
    all.extend(found);
    all
}
