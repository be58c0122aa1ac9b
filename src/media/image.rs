//! Width and height of an image, read from its header: nothing is decoded.

use super::base64::Base64;
use std::io::BufReader;

/// Bytes that are decoded at most to find the size: a JPEG has it behind its preview and its metadata.
const HEADER_BYTES: u64 = 1 << 20;

/// Bytes that are decoded at once.
const BLOCK: usize = 64;

/// The size of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// Returns the size that the header states, or `None` if there is none in PNG, JPEG, GIF, WebP, HEIC or AVIF.
pub(super) fn pixels(data: Base64<'_>) -> Option<Pixels> {
    let reader = BufReader::with_capacity(BLOCK, data.reader(HEADER_BYTES));
    let size = imagesize::reader_size(reader).ok()?;
    let (width, height) = (size.width as u64, size.height as u64);
    (width > 0 && height > 0).then_some(Pixels { width, height })
}
