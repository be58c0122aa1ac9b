//! The file that keeps the result of each session, so that an interrupted evaluation continues.

use crate::interrupt::Writing;
use anyhow::{Context, Result, bail};
use context_window_eval::CaseResult;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

/// The hash of a session and of the settings of its evaluation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(settings: &str, session: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        // The version, because a later one may plan in another way.
        for part in [env!("CARGO_PKG_VERSION"), settings, session] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher.finalize().to_hex()[..32].into())
    }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    key: Key,
    result: R,
}

/// The results of earlier runs, by session and settings.
pub(super) type Known = BTreeMap<Key, CaseResult>;

/// The file to which results are added.
pub(super) struct Journal(Option<(PathBuf, File)>);

impl Journal {
    /// Opens a file, creates it if it does not exist, and reads the results in it. Without a file, nothing is
    /// kept.
    ///
    /// A last line without its end is removed: it was being written when an earlier run ended.
    pub(super) fn open(path: Option<&Path>) -> Result<(Self, Known)> {
        let Some(path) = path else { return Ok((Self(None), Known::new())) };
        let name = path.display();
        let cannot = |verb: &str| format!("{name} cannot be {verb}");
        let mut options = OpenOptions::new();
        // Only the owner can read a new file, because it has ids of sessions.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file =
            options.read(true).append(true).create(true).open(path).with_context(|| cannot("opened"))?;
        // Bytes, because the last line may end inside of a character.
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| cannot("read"))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut known = Known::new();
        for (line, number) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..) {
            let line: Line<CaseResult> = serde_json::from_slice(line).with_context(|| {
                format!("{name}:{number}: not a result of `eval`; expected a new file, or one of --journal")
            })?;
            known.insert(line.key, line.result);
        }
        // A file without a single whole line, such as a text of one line, is not one of this tool.
        if whole == 0 && !bytes.is_empty() && !bytes.starts_with(b"{\"key\":") {
            bail!("{name}:1: not a result of `eval`; expected a new file, or one of --journal");
        }
        file.set_len(whole as u64).with_context(|| cannot("written"))?;
        Ok((Self(Some((path.to_owned(), file))), known))
    }

    /// Adds a result. It is on disk when the function returns.
    pub(super) fn add(&mut self, key: Key, result: &CaseResult) -> Result<()> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        let line = serde_json::to_string(&Line { key, result })? + "\n";
        let _whole = Writing::begin();
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        written.with_context(|| format!("{} cannot be written", path.display()))
    }
}
