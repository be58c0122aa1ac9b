//! Real sessions in the folder that `CONTEXT_WINDOW_DATA` names. None of them is copied into the project.

use context_window_formats::SessionFile;
use std::{io::Read, path::PathBuf};

/// Opens the session files with these prefixes. Without data it returns an empty list and reports a skip.
pub fn files(prefixes: &[&str]) -> Vec<SessionFile> {
    paths(prefixes).iter().map(|path| open(path)).collect()
}

/// Returns the texts of those files as JSON lines.
pub fn texts(prefixes: &[&str]) -> Vec<String> {
    paths(prefixes).iter().map(|path| String::from_utf8(unpacked(path)).unwrap()).collect()
}

/// Returns the folder of the data. Without one it returns `None` and reports a skipped test.
pub fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CONTEXT_WINDOW_DATA").map(PathBuf::from);
    if folder.is_none() {
        super::skip(&super::running(), "CONTEXT_WINDOW_DATA is not set: no real data");
    }
    folder
}

/// Returns the text of one compressed file in the folder.
pub fn text(name: &str) -> Option<String> {
    Some(String::from_utf8(unpacked(&folder()?.join(name))).unwrap())
}

fn paths(prefixes: &[&str]) -> Vec<PathBuf> {
    let Some(folder) = folder() else { return Vec::new() };
    let entries = std::fs::read_dir(&folder).expect("CONTEXT_WINDOW_DATA names a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        prefixes.iter().any(|prefix| name.starts_with(prefix)) && name.ends_with(".jsonl.gz")
    });
    assert!(!paths.is_empty(), "{} holds none of {prefixes:?}", folder.display());
    paths
}

fn open(path: &std::path::Path) -> SessionFile {
    SessionFile::new(&path.display().to_string(), unpacked(path)).unwrap()
}

fn unpacked(path: &std::path::Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap();
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    text
}
