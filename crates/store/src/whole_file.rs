//! Files that are replaced as a whole: written to a partial file in the same folder, synced, then renamed.

use crate::named_file::create_private;
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The maximum number of partial files with the same name and process id that are skipped.
const MOST_PARTS: u32 = 1_000_000;
/// The maximum length in bytes of a file name that is repeated in the name of its partial file. File names
/// have at most 255 bytes.
const LONGEST_NAME: usize = 200;

/// Replaces a file as a whole, so that at every moment either the old or the new content exists. Writes a
/// partial file, syncs it, and renames it.
///
/// A symbolic link stays a link. A pipe or device is written to directly. Only its owner may read a new file,
/// because it contains texts of conversations.
///
/// # Errors
///
/// Returns the error of the disk. The old file is unchanged then.
#[doc(hidden)]
pub fn save_whole(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    save(path.as_ref(), contents, create_private)
}

/// Replaces a file like [`save_whole`], but for content that is not private. A new file gets the default
/// permissions of the process.
///
/// # Errors
///
/// Returns the errors of [`save_whole`].
#[doc(hidden)]
pub fn save_whole_public(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    save(path.as_ref(), contents, |path| File::create_new(path))
}

/// A function that creates a new file.
type Create = fn(&Path) -> io::Result<File>;

fn save(path: &Path, contents: &[u8], create: Create) -> io::Result<()> {
    // The target of a link is replaced, so that the link itself stays.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        return fs::write(&path, contents);
    }
    let rights = fs::metadata(&path).map(|old| old.permissions()).ok();
    // The partial file is private until it has the old permissions. So at no moment can anyone read it who
    // may not read the old file.
    let (part_path, mut file) =
        create_part_file(&path, if rights.is_some() { create_private } else { create })?;
    let written = rights
        .map_or(Ok(()), |rights| file.set_permissions(rights))
        .and_then(|()| file.write_all(contents))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part_path, &path))
        .and_then(|()| sync_folder(&path));
    if written.is_err() {
        // The error is returned. The partial file belongs to this call and contains nothing confirmed.
        drop(fs::remove_file(&part_path));
    }
    written
}

/// Creates the partial file of `path` in the same folder, for this writer only and readable by its owner
/// only.
///
/// A killed process leaves its partial file, and process ids repeat. In a container the id is always 1, and
/// two machines that share a folder may have the same ids. An existing partial file is therefore left alone,
/// even if its writer is dead, and the next name is tried.
///
/// # Errors
///
/// Returns the error of the disk.
#[doc(hidden)]
pub fn create_part(path: impl AsRef<Path>) -> io::Result<(PathBuf, File)> {
    let path = path.as_ref();
    create_part_file(path, create_private)
}

fn create_part_file(path: &Path, create: Create) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let process = std::process::id();
    let suffixes = (1..=MOST_PARTS).map(|number| match number {
        1 => format!(".{process}.part"),
        _ => format!(".{process}-{number}.part"),
    });
    create_first(path, name, suffixes, create)
}

/// Creates a new file in the folder of another, for a copy of a part of it. The name is `NAME.SUFFIX`, or
/// `NAME.2.SUFFIX` and so on if that exists.
pub(crate) fn create_copy(path: &Path, suffix: &str) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let suffixes = (1..=MOST_PARTS).map(|number| match number {
        1 => format!(".{suffix}"),
        _ => format!(".{number}.{suffix}"),
    });
    create_first(path, name, suffixes, create_private)
}

/// Creates the first file of these suffixes that does not exist yet.
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
        let part_path = path.with_file_name(name);
        // Creating fails if the file exists, so two writers never get the same file.
        match create(&part_path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (part_path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Syncs the folder of a file. A new or renamed file is on disk only after its folder is synced.
///
/// # Errors
///
/// Returns the error of the disk.
#[doc(hidden)]
pub fn sync_folder(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
