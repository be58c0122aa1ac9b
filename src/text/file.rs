//! Text files that people write: read whole, and never more of them than anybody would write.

use std::{fs::File, io::Read, path::Path};

/// The text of a file of at most `most` bytes; `expected` says what it should be.
///
/// # Errors
///
/// What is wrong, without the path: it cannot be read, is larger, or is not UTF-8.
pub(crate) fn text(path: &Path, most: u64, expected: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
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
    // A byte order mark is no TOML, and some editors write one.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
