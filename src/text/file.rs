//! Text files written by people: read as a whole, up to a size limit.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

/// Returns the text of a file of at most `most` bytes. `expected` describes the expected content in error
/// texts.
///
/// # Errors
///
/// An error text without the path, if the file is not a regular file, is not readable, is larger than `most`,
/// or is not UTF-8.
pub(crate) fn text(path: &Path, most: u64, expected: &str) -> Result<String, String> {
    ensure_ends(path, expected)?;
    let mut bytes = Vec::new();
    File::open(path)
        // One byte more than the limit is enough to detect a larger file.
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("is larger than {most} bytes; expected {expected}"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        format!("line {line}, byte {at}: is not UTF-8; expected UTF-8 text: {expected}")
    })?;
    // Some editors write a byte order mark, which TOML does not allow.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Checks that reading a file comes to an end on its own. A named pipe waits for a writer, and a terminal for
/// a person. A pipe opened by a shell for `<(command)` or standard input already has its writer, and the null
/// device is empty.
fn ensure_ends(path: &Path, expected: &str) -> Result<(), String> {
    // A missing file is reported when it is opened.
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let kind = metadata.file_type();
    if kind.is_file() || path == Path::new("/dev/null") || is_pipe(kind) && is_inherited(path) {
        return Ok(());
    }
    let found = match kind {
        kind if kind.is_dir() => "a folder",
        kind if is_pipe(kind) => "a named pipe",
        _ => "a device",
    };
    Err(format!("is {found}, not a regular file; expected a file: {expected}"))
}

#[cfg(unix)]
fn is_pipe(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: fs::FileType) -> bool {
    false
}

/// Returns true if a path refers to a file that this process inherited.
fn is_inherited(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|folder| path.starts_with(folder))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn named_pipe_is_refused_and_inherited_pipe_is_read() {
        let pipe = std::env::temp_dir().join(format!("context-window-{}-pipe", std::process::id()));
        drop(fs::remove_file(&pipe));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let refused = text(&pipe, 100, "options in TOML").unwrap_err();
        fs::remove_file(&pipe).unwrap();
        assert_eq!(refused, "is a named pipe, not a regular file; expected a file: options in TOML");
        let folder = text(&std::env::temp_dir(), 100, "options in TOML").unwrap_err();
        assert_eq!(folder, "is a folder, not a regular file; expected a file: options in TOML");
        assert_eq!(text(Path::new("/dev/null"), 100, "options").as_deref(), Ok(""));
        assert_eq!(text(Path::new("/nowhere"), 100, "options").unwrap_err().find("cannot be read"), Some(0));
    }
}
