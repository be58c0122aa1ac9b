//! Documents as they are sent: as text between delimiters, or as native blocks. A document that was sent
//! keeps its format, so both are read back whatever the options are.

use super::{native, wording};
use crate::message::Message;

/// Returns the message of documents, given as the pieces of which each was sent or is.
pub(crate) fn message<'t>(mut pieces: impl Iterator<Item = &'t str>) -> Message {
    let Some(first) = pieces.next() else { return Message::user("") };
    let pieces = std::iter::once(first).chain(pieces);
    if native::opens(first) {
        return native::message(pieces);
    }
    let lines = [wording::BLOCK_OPEN].into_iter().chain(pieces).chain([wording::BLOCK_CLOSE]);
    Message::user(lines.collect::<String>())
}

/// Checks if a text is the first piece of a document. No text of another piece is.
pub(crate) fn opens(text: &str) -> bool {
    wording::opens_document(text) || native::opens(text)
}

/// Checks if a text is the last piece of a document.
pub(crate) fn closes(text: &str) -> bool {
    wording::closes_document(text) || native::closes(text)
}

/// Returns the text of a document as it was before it was written for a prompt. Another text is returned as
/// it is.
pub(crate) fn text(sent: &str) -> String {
    if native::opens(sent) { native::text_of_document(sent) } else { wording::text_of_document(sent) }
}

/// Returns the labels of a document. Returns nothing if it has none, or is no document.
pub(crate) fn labels(sent: &str) -> Vec<u32> {
    if native::opens(sent) { native::labels_in(sent) } else { wording::labels_in(sent) }
}

/// Returns the text of one piece of a document, without its header and its end. `is_first` is true for the
/// first piece.
pub(crate) fn piece_text(piece: &str, is_first: bool) -> &str {
    if native::opens(piece) || native::closes(piece) {
        return native::beginning(piece);
    }
    let text = wording::without_close(piece);
    if is_first { text.split_once('\n').map_or("", |(_, text)| text) } else { text }
}

/// Checks if a sent document contains a text, as it is written there.
pub(crate) fn contains(sent: &str, text: &str) -> bool {
    let part =
        if native::opens(sent) { native::escaped(text) } else { wording::delimited_part(text, "document") };
    sent.contains(&part)
}

/// Checks if a document is sent as a block.
pub(crate) fn is_native(sent: &str) -> bool {
    native::opens(sent)
}
