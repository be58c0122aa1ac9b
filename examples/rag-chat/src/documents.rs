//! The files of a folder, and their texts.

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};
use std::{fs, path::Path, time::UNIX_EPOCH};

/// Extensions of the files that are read.
const EXTENSIONS: [&str; 8] = ["md", "markdown", "mdx", "txt", "text", "rst", "adoc", "org"];
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 16 << 20;

/// The modification time of a file (nanoseconds since 1970) and its size. If either changes, the file is read
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub modified: u128,
    pub bytes: u64,
}

/// Files without a readable text: a path inside the folder, and an error.
pub type Unreadable = Vec<(String, String)>;

/// Returns the files of a folder by their paths inside it, and the entries that cannot be examined. Hidden
/// files and those excluded by `.gitignore` are skipped.
pub fn list(folder: &Path) -> (Vec<(String, Stamp)>, Unreadable) {
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for found in WalkBuilder::new(folder).require_git(false).sort_by_file_path(Path::cmp).build() {
        let stamped = found.and_then(|entry| {
            let end = entry.path().extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || !EXTENSIONS.contains(&end.as_str()) {
                return Ok(None);
            }
            let data = entry.metadata()?;
            let since = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let stamp = Stamp { modified: since.map_or(0, |since| since.as_nanos()), bytes: data.len() };
            let inside = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let parts: Vec<_> = inside.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            Ok(Some((parts.join("/"), stamp)))
        });
        match stamped {
            Ok(file) => files.extend(file),
            Err(error) => unreadable.push((folder.display().to_string(), error.to_string())),
        }
    }
    (files, unreadable)
}

/// Returns the text of a file, or an error with the reason.
pub fn read(folder: &Path, path: &str, stamp: Stamp) -> Result<String, String> {
    if stamp.bytes > LARGEST {
        return Err(format!("{} MB, more than the {} MB that are read", stamp.bytes >> 20, LARGEST >> 20));
    }
    let bytes = fs::read(folder.join(path)).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map(|text| text.replace("\r\n", "\n"));
    text.map_err(|error| format!("not UTF-8 at byte {}: expected text", error.utf8_error().valid_up_to()))
}
