//! Files that are written whole: beside their place first, synced, then renamed.

use crate::named_file::create_private;
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The most partial files of one name and one process number that are passed over.
const MOST_PARTS: u32 = 1_000_000;
/// The longest name of a file, in bytes, that is repeated in that of its partial file: names have at most
/// 255.
const LONGEST_NAME: usize = 200;

/// Saves a whole file so that at every moment either the old or the new one is there: a file beside it,
/// synced, then renamed. A link stays a link; what is there and is no file (a pipe, a device) is written to
/// as it is. A new file is one that only its owner may read: texts of conversations are in it.
///
/// # Errors
///
/// The error of the disk; the old file is as it was then.
#[doc(hidden)]
pub fn save_whole(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    save(path.as_ref(), contents, create_private)
}

/// Saves a whole file like [`save_whole`], but of no conversation: a new one has the rights that the process
/// gives to all of its files.
///
/// # Errors
///
/// As [`save_whole`].
#[doc(hidden)]
pub fn save_whole_public(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    save(path.as_ref(), contents, |path| File::create_new(path))
}

type Create = fn(&Path) -> io::Result<File>;

fn save(path: &Path, contents: &[u8], create: Create) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        return fs::write(&path, contents);
    }
    let rights = fs::metadata(&path).map(|old| old.permissions()).ok();
    // Who may read the old file may read the new one, and nobody else, at no moment.
    let (beside, mut file) = create_beside(&path, if rights.is_some() { create_private } else { create })?;
    let written = rights
        .map_or(Ok(()), |rights| file.set_permissions(rights))
        .and_then(|()| file.write_all(contents))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path))
        .and_then(|()| sync_folder(&path));
    if written.is_err() {
        // The error is returned. The partial file is ours and holds nothing that was confirmed.
        drop(fs::remove_file(&beside));
    }
    written
}

/// Makes the partial file of `path` beside it, for this writer alone, readable by its owner alone.
///
/// A process that was killed leaves its partial file, and a process number comes again: in a container it is
/// 1 each time, and two machines that share a folder may have the same one. So a file that is there, of a
/// dead writer or of one that lives, is left as it is, and the next name is tried.
///
/// # Errors
///
/// The error of the disk.
#[doc(hidden)]
pub fn create_part(path: impl AsRef<Path>) -> io::Result<(PathBuf, File)> {
    let path = path.as_ref();
    create_beside(path, create_private)
}

fn create_beside(path: &Path, create: Create) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let process = std::process::id();
    let suffixes = (1..=MOST_PARTS).map(|number| match number {
        1 => format!(".{process}.part"),
        _ => format!(".{process}-{number}.part"),
    });
    create_first(path, name, suffixes, create)
}

/// Makes a new file beside another, for a copy of some of it: `NAME.SUFFIX`, or `NAME.2.SUFFIX` and so on if
/// that is there.
pub(crate) fn create_copy(path: &Path, suffix: &str) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let suffixes = (1..=MOST_PARTS).map(|number| match number {
        1 => format!(".{suffix}"),
        _ => format!(".{number}.{suffix}"),
    });
    create_first(path, name, suffixes, create_private)
}

fn create_first(
    path: &Path,
    name: &OsStr,
    suffixes: impl Iterator<Item = String>,
    create: Create,
) -> io::Result<(PathBuf, File)> {
    let name = if name.len() > LONGEST_NAME { OsStr::new("file") } else { name };
    for suffix in suffixes {
        let mut name = name.to_owned();
        name.push(suffix);
        let beside = path.with_file_name(name);
        match create(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (beside, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Syncs the folder of a file: a new name in it is on disk only when the folder is.
///
/// # Errors
///
/// The error of the disk.
#[doc(hidden)]
pub fn sync_folder(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
