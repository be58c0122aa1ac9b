//! Output files. A result never replaces an input file, and two results never go into one file. All output
//! paths are checked before the first write.

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

/// The input files of a run, and its output files.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// Input files and folders. A folder includes all files in it.
    read: Vec<PathBuf>,
    claimed: Vec<(&'static str, PathBuf)>,
}

/// A checked output file.
#[derive(Debug)]
pub(crate) struct Output(PathBuf);

impl Outputs {
    /// Creates the outputs of a run that reads these paths.
    pub(crate) fn beside(read: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let mut files = Vec::new();
        for path in read {
            match stored::address(path.as_ref()) {
                // The files next to a SQLite database belong to it and can contain committed sessions.
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

    /// Checks the output file of a flag. Returns `None` if the flag names no file.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is an input file, the file of another flag, a store, or standard output.
    pub(crate) fn claim(&mut self, flag: &'static str, path: Option<&Path>) -> Result<Option<Output>> {
        self.claim_over(flag, path, None)
    }

    /// Checks an output file like [`Outputs::claim`], but permits it to replace the input file `old`, such as
    /// the anchor.
    pub(crate) fn claim_over(
        &mut self,
        flag: &'static str,
        path: Option<&Path>,
        old: Option<&Path>,
    ) -> Result<Option<Output>> {
        let Some(path) = path else { return Ok(None) };
        ensure!(
            path.as_os_str() != "-",
            "{flag} -: `-` is standard output, which receives the result; expected a file"
        );
        ensure_no_store(path)?;
        // Pipes and devices are not files. Several results can go to the same one.
        if path.exists() && !path.is_file() {
            return Ok(Some(Output(path.into())));
        }
        let (whole, name) = (whole(path), path.display());
        let may_go = old.and_then(|old| old.canonicalize().ok());
        // A new file in an input folder is permitted; an existing one may be an input.
        let is_read = |read: &PathBuf| *read == whole || whole.exists() && whole.parent() == Some(read);
        if self.read.iter().any(is_read) && may_go.as_ref() != Some(&whole) {
            bail!("{flag}: {name} is an input file, and inputs are never changed; expected another file");
        }
        if let Some((other, _)) = self.claimed.iter().find(|(_, claimed)| *claimed == whole) {
            bail!("{other} and {flag} both write to {name}; expected a different file for each");
        }
        self.claimed.push((flag, whole));
        Ok(Some(Output(path.into())))
    }
}

/// Appends `end` to the name of a path.
fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Checks that a path is not a store. Only `store import` writes to stores.
fn ensure_no_store(path: &Path) -> Result<()> {
    ensure!(
        stored::address(path).is_none(),
        "{} is a store, which only `plan-inspect store import` writes to; expected a file",
        input::name(path)
    );
    ensure!(
        !input::is_sqlite(path),
        "{} is an SQLite file, and may contain a store; expected another file",
        path.display()
    );
    Ok(())
}

/// Returns a unique path of a file, with links resolved. The file itself does not have to exist.
fn whole(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.into())
}

impl Output {
    /// Writes the file atomically: it has either the old or the new contents.
    pub(crate) fn save(&self, text: &str) -> Result<()> {
        save(&self.0, text)
    }

    /// Writes the file atomically, like [`Output::save`]. The contents are not private, so other users can
    /// read a new file.
    pub(crate) fn save_public(&self, text: &str) -> Result<()> {
        save_public(&self.0, text)
    }
}

/// Writes a file atomically: it has either the old or the new contents. A new file can be read only by its
/// owner, because it contains texts of a conversation.
fn save(path: &Path, text: &str) -> Result<()> {
    save_by(path, |path| save_whole(path, text.as_bytes()))
}

/// Writes a file atomically, like [`save`]. Its contents are not private.
pub(crate) fn save_public(path: &Path, text: &str) -> Result<()> {
    save_by(path, |path| save_whole_public(path, text.as_bytes()))
}

fn save_by(path: &Path, save: impl Fn(&Path) -> std::io::Result<()>) -> Result<()> {
    ensure_no_store(path)?;
    // A write to a pipe or device can block, and has no partial file to protect, so a signal may end it.
    let _whole = (!path.exists() || path.is_file()).then(Writing::begin);
    save(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// Writes a new file atomically. If several processes write the same file, one succeeds, and the others get
/// an error.
pub(crate) fn create(path: &Path, contents: &[u8]) -> Result<()> {
    create_by(path, |_, mut file| {
        file.write_all(contents)?;
        Ok(file.sync_all()?)
    })
}

/// Writes a new log atomically. Returns an error if the file exists.
pub(crate) fn create_log(path: &Path, log: &Conversation) -> Result<()> {
    create_by(path, |beside, file| Ok(Journal::begin(file, beside, log).map(drop)?))
}

fn create_by(path: &Path, write: impl Fn(&Path, File) -> Result<()>) -> Result<()> {
    ensure!(
        path.as_os_str() != "-",
        "`-` is standard output, which receives the result; expected a new file"
    );
    ensure_no_store(path)?;
    let _whole = Writing::begin();
    ensure!(path.file_name().is_some(), "{} is not a file name", path.display());
    let cannot = || format!("{} cannot be written", path.display());
    let (beside, file) = create_part(path).with_context(cannot)?;
    // The temporary file is removed if it does not get the final name. It contains no confirmed data.
    let part = TempPath::try_from_path(&beside).with_context(cannot)?;
    write(&beside, file).with_context(cannot)?;
    // The rename fails if the file exists, so no check before it can become outdated.
    match part.persist_noclobber(path) {
        Ok(()) => sync_folder(path).with_context(cannot),
        Err(refused) if refused.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(refused) => Err(refused.error).with_context(cannot),
    }
}

/// Returns the error for an existing file where a new one is expected.
pub(crate) fn exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists; expected a new file", path.display())
}
