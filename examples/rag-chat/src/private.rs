//! Folders and files that only their owner may read: texts of documents and conversations are in them.

use std::{fs, io, path::Path};

/// Makes a folder and those above it that are not there, each for its owner alone. A folder that is there keeps its rights.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), create_folder)?;
    match fs::create_dir(path) {
        // Another chat was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| restrict(path, 0o700)),
    }
}

/// Lets only the owner read a file.
fn restrict_file(path: &Path) -> io::Result<()> {
    restrict(path, 0o600)
}

/// Locks a file of the owner alone, which is made if there is none, until it is closed.
pub fn lock(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::create(path)?;
    restrict_file(path)?;
    file.lock()?;
    Ok(file)
}

/// Lets only the owner read the files of a folder that another library writes.
pub fn restrict_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match restrict_file(&path) {
            // A file that was merged into another one, or that another chat removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(path: &Path, _: u32) -> io::Result<()> {
    fs::metadata(path).map(drop)
}
