//! Files of this crate by their names: private ones.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// The right to read and write for the owner alone.
#[cfg(unix)]
const PRIVATE: u32 = 0o600;

/// Opens a file for reading and writing, or makes it: then its owner alone may read it. Returns whether it is new.
pub(crate) fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    let is_new = !path.exists();
    let file = private().create(true).truncate(false).open(path)?;
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
    drop(std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(PRIVATE)));
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
            drop(file.set_permissions(std::fs::Permissions::from_mode(PRIVATE)));
        }
    }
    #[cfg(not(unix))]
    let _ = file;
}
