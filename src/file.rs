//! Text files that people write: read whole, and never more of them than anybody would write.

use crate::error::{Error, Repr};
use std::{fs::File, io::Read, path::Path};

/// The text of a file of at most `most` bytes.
///
/// # Errors
///
/// `ErrorKind::Config` when it cannot be read, is larger, or is not UTF-8, with the path and what was expected.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, Error> {
    let fault = |detail: String| {
        let origin = path.display().to_string();
        Error::new(Repr::ConfigFile { origin, detail })
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > most {
        return Err(fault(format!(
            "is larger than {most} bytes; expected a TOML file written by hand or by `models import`"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        fault(format!("line {line}, byte {at}: is not UTF-8; expected TOML in UTF-8"))
    })?;
    // A byte order mark is no TOML, and some editors write one.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
