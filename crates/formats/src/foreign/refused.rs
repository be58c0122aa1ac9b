//! Tools whose files are known and not read: each is refused by its name, with what to do.

use super::shape::Shape;

/// Returns why a file is not read although its tool is known, with what to do. Returns `None` for any other file.
pub(super) fn refusal(shape: &Shape) -> Option<String> {
    let _ = shape;
    None
}
