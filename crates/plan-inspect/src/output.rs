//! Files that are written: none that is read, and none for two results. Whatever is to be written is claimed before
//! anything is.

use crate::{input, interrupt::Writing, stored};
use anyhow::{Context, Result, bail, ensure};
use context_window::Conversation;
use context_window_store::{Journal, create_part, save_whole, save_whole_public, sync_folder};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};
use tempfile::TempPath;

/// What a run reads, and what it is going to write.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// Files and folders: of a folder, every file in it.
    read: Vec<PathBuf>,
    claimed: Vec<(&'static str, PathBuf)>,
}

/// A file that may be written.
#[derive(Debug)]
pub(crate) struct Output(PathBuf);

impl Outputs {
    /// Of a run that reads these.
    pub(crate) fn beside(read: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let mut files = Vec::new();
        for path in read {
            match stored::address(path.as_ref()) {
                // What stands beside a store's file is part of it: confirmed sessions may be there alone.
                Some(address) => {
                    let file = stored::file(address).into_iter();
                    let all =
                        file.flat_map(|file| ["", "-wal", "-shm", "-journal"].map(|end| with_end(file, end)));
                    files.extend(all.map(|file| whole(&file)));
                }
                None => files.extend(path.as_ref().canonicalize()),
            }
        }
        Self { read: files, claimed: Vec::new() }
    }

    /// The file that a flag names for its result, where it names one.
    ///
    /// # Errors
    ///
    /// Where that file is read, or is another flag's, or is standard output.
    pub(crate) fn claim(&mut self, flag: &'static str, path: Option<&Path>) -> Result<Option<Output>> {
        self.claim_over(flag, path, None)
    }

    /// Like [`Outputs::claim`], but the result may replace a file that is read, such as the anchor.
    pub(crate) fn claim_over(
        &mut self,
        flag: &'static str,
        path: Option<&Path>,
        old: Option<&Path>,
    ) -> Result<Option<Output>> {
        let Some(path) = path else { return Ok(None) };
        ensure!(
            path.as_os_str() != "-",
            "{flag} -: `-` is standard output, which holds the result; expected a file"
        );
        ensure_no_store(path)?;
        // What is no file (a pipe, a device) is nobody's, and is written to as often as anybody likes.
        if path.exists() && !path.is_file() {
            return Ok(Some(Output(path.into())));
        }
        let (whole, name) = (whole(path), path.display());
        let may_go = old.and_then(|old| old.canonicalize().ok());
        let is_read = |read: &PathBuf| *read == whole || whole.exists() && whole.parent() == Some(read);
        if self.read.iter().any(is_read) && may_go.as_ref() != Some(&whole) {
            bail!("{flag}: {name} is read, and what is read is never changed; expected another file");
        }
        if let Some((other, _)) = self.claimed.iter().find(|(_, claimed)| *claimed == whole) {
            bail!("{other} and {flag} both name {name}; expected a file for each");
        }
        self.claimed.push((flag, whole));
        Ok(Some(Output(path.into())))
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A store is written by `store import` alone, and by no result.
fn ensure_no_store(path: &Path) -> Result<()> {
    ensure!(
        stored::address(path).is_none(),
        "{} is a store, which only `plan-inspect store import` writes to; expected a file",
        input::name(path)
    );
    ensure!(
        !input::is_sqlite(path),
        "{} is an SQLite file, and may hold a store; expected another file",
        path.display()
    );
    Ok(())
}

/// A file by a name that no other file has, whether it is there or not.
fn whole(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.into())
}

impl Output {
    /// Writes the file so that it is either the old one or the new one, never half of it.
    pub(crate) fn save(&self, text: &str) -> Result<()> {
        save(&self.0, text)
    }

    /// Writes the file like [`Output::save`], with nothing of a conversation in it.
    pub(crate) fn save_public(&self, text: &str) -> Result<()> {
        save_public(&self.0, text)
    }
}

/// Writes a file so that it is either the old one or the new one, never half of it. A new one can be read by
/// its owner alone: it holds texts of a conversation.
fn save(path: &Path, text: &str) -> Result<()> {
    save_by(path, |path| save_whole(path, text.as_bytes()))
}

/// Writes a file like [`save`] that holds nothing of a conversation.
pub(crate) fn save_public(path: &Path, text: &str) -> Result<()> {
    save_by(path, |path| save_whole_public(path, text.as_bytes()))
}

fn save_by(path: &Path, save: impl Fn(&Path) -> std::io::Result<()>) -> Result<()> {
    ensure_no_store(path)?;
    // A pipe or a device takes its time, and cannot be left half-written.
    let _whole = (!path.exists() || path.is_file()).then(Writing::begin);
    save(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// Writes a file that is not there yet, whole or not at all. Of several processes that write it at once, one does.
pub(crate) fn create(path: &Path, contents: &[u8]) -> Result<()> {
    create_by(path, |_, mut file| {
        file.write_all(contents)?;
        Ok(file.sync_all()?)
    })
}

/// Writes a new log, atomically. Fails where the file exists.
pub(crate) fn create_log(path: &Path, log: &Conversation) -> Result<()> {
    create_by(path, |beside, file| Ok(Journal::begin(file, beside, log).map(drop)?))
}

fn create_by(path: &Path, write: impl Fn(&Path, File) -> Result<()>) -> Result<()> {
    ensure!(path.as_os_str() != "-", "`-` is standard output, which holds the result; expected a new file");
    ensure_no_store(path)?;
    let _whole = Writing::begin();
    ensure!(path.file_name().is_some(), "{} is no file", path.display());
    let cannot = || format!("{} cannot be written", path.display());
    let (beside, file) = create_part(path).with_context(cannot)?;
    // It is removed where it does not get the name: it holds nothing that was confirmed.
    let part = TempPath::try_from_path(&beside).with_context(cannot)?;
    write(&beside, file).with_context(cannot)?;
    match part.persist_noclobber(path) {
        Ok(()) => sync_folder(path).with_context(cannot),
        Err(refused) if refused.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(refused) => Err(refused.error).with_context(cannot),
    }
}

/// A file that should be new is there.
pub(crate) fn exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists; expected a new file", path.display())
}
