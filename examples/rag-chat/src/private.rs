//! Folders and files that only their owner may read, because they contain texts of documents and
//! conversations.

use std::{fs, io, path::Path};

/// Creates a folder and its missing parents, each readable by its owner only. An existing folder keeps its
/// permissions.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), create_folder)?;
    match fs::create_dir(path) {
        // Another chat created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| restrict(path, 0o700)),
    }
}

/// Restricts a file to its owner.
pub fn restrict_file(path: &Path) -> io::Result<()> {
    restrict(path, 0o600)
}

/// Locks a file of the owner until it is closed. The file is created if it does not exist.
pub fn lock(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::create(path)?;
    restrict_file(path)?;
    file.lock()?;
    Ok(file)
}

/// Restricts the files of a folder that another library writes to their owner.
pub fn restrict_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match restrict_file(&path) {
            // The file was merged into another one, or another chat removed it.
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
