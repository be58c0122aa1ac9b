//! Tokenizers to compare with: the small one that is shipped, and real ones where `CONTEXT_WINDOW_TOKENIZERS` names a
//! folder of folders that hold a `tokenizer.json` each.

use std::path::PathBuf;

pub fn small() -> PathBuf {
    super::root().join("tests/tokenizers/small")
}

/// The folders, the small one first; says loudly where there is no other.
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
