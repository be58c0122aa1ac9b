//! Files of this crate by their names: regular files, and private.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// The right to read and write for the owner alone.
#[cfg(unix)]
const PRIVATE: u32 = 0o600;

/// Checks that a path names a regular file or nothing: a pipe would be waited for without end.
pub(crate) fn ensure_regular(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) => is_regular(&metadata),
        Err(_) => Ok(()),
    }
}

fn is_regular(metadata: &Metadata) -> Result<(), String> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(format!("it is {}, no regular file; expected a file", kind_of(metadata.file_type()))),
    }
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

/// Opens a regular file for reading and writing, or makes it: then its owner alone may read it. Returns whether it is new.
pub(crate) fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    let refused = |detail: String| io::Error::new(io::ErrorKind::InvalidInput, detail);
    ensure_regular(path).map_err(refused)?;
    let is_new = !path.exists();
    let file = private().create(true).truncate(false).open(path)?;
    is_regular(&file.metadata()?).map_err(refused)?;
    if is_new {
        keep_private(&file);
    }
    Ok((file, is_new))
}

/// Makes a new file that its owner alone may read and write, whatever the umask.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = private().create_new(true).open(path)?;
    keep_private(&file);
    Ok(file)
}

/// Lets the owner alone read and write a new file that another library made.
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

/// Gives back to the owner what a strict umask took. Where a file system has no such rights, there are fewer or none to set.
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
