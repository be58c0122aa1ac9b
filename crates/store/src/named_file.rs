//! Files with a stable name: regular files, private to their owner, and still the ones that were opened.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// The permissions to read and write for the owner only.
#[cfg(unix)]
const PRIVATE: u32 = 0o600;

/// A file name that must keep referring to the file that was opened by it.
///
/// An open file stays writable after it was deleted, and after another file took its name. Such writes are
/// lost as soon as the last process closes the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    path: PathBuf,
    /// The file's device and inode. `None` on systems without these numbers, which skips the comparison.
    identity: Option<(u64, u64)>,
}

impl NamedFile {
    /// Records the name and the identity of the file with these metadata.
    pub(crate) fn new(path: &Path, metadata: &Metadata) -> Self {
        // An absolute path stays valid if the process changes its working directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, identity: identity(metadata) }
    }

    /// Records the file that has this name now. Returns `None` if there is none.
    #[cfg(feature = "sqlite")]
    pub(crate) fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::new(path, &metadata))
    }

    /// Returns an error if the name no longer refers to the file. The error is the rest of a sentence about
    /// the file.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.identity.is_none() {
            return Ok(());
        }
        let path = self.path.display();
        match fs::metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => Ok(()),
            Ok(_) => Err(format!("{path} was replaced by another file while it was open")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("{path} was deleted or moved while it was open"))
            }
            Err(error) => Err(format!("{path} can no longer be found ({error})")),
        }
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such numbers")]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Checks that a path is a regular file or does not exist. Opening a pipe could block forever.
pub(crate) fn ensure_regular(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) => is_regular(&metadata),
        Err(_) => Ok(()),
    }
}

fn is_regular(metadata: &Metadata) -> Result<(), String> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(format!("it is {}, not a regular file; expected a file", kind_of(metadata.file_type())))
}

#[cfg(unix)]
fn kind_of(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn kind_of(kind: fs::FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "a device" }
}

/// Opens a regular file for reading and writing, or creates it with access for its owner only. Returns true
/// in addition to the file if it is new.
pub(crate) fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    let refused = |detail: String| io::Error::new(io::ErrorKind::InvalidInput, detail);
    ensure_regular(path).map_err(refused)?;
    let is_new = !path.exists();
    let file = private().create(true).truncate(false).open(path)?;
    // Checked again on the open file, because the path may have changed since the first check.
    is_regular(&file.metadata()?).map_err(refused)?;
    if is_new {
        keep_private(&file);
    }
    Ok((file, is_new))
}

/// Creates a new file that only its owner may read and write, whatever the umask.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = private().create_new(true).open(path)?;
    keep_private(&file);
    Ok(file)
}

/// Restricts a new file that another library created to its owner.
#[cfg(feature = "sqlite")]
pub(crate) fn keep_private_at(path: &Path) {
    #[cfg(unix)]
    drop(fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(PRIVATE)));
    #[cfg(not(unix))]
    let _ = path;
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    options
}

/// Restores the owner's permissions that a strict umask removed. Errors are ignored: some file systems have
/// no such permissions.
fn keep_private(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o777 != PRIVATE) {
            drop(file.set_permissions(fs::Permissions::from_mode(PRIVATE)));
        }
    }
    #[cfg(not(unix))]
    let _ = file;
}
