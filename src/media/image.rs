//! Width and height of an image, read from its header without decoding the image.

use super::base64::Base64;
use std::io::BufReader;

/// Maximum bytes decoded to find the size. In a JPEG, the size comes after preview and metadata.
const HEADER_BYTES: u64 = 1 << 20;

/// Number of bytes decoded at a time.
const BLOCK: usize = 64;

/// The size of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// Returns the size in the header, or `None` if it has none. Supports PNG, JPEG, GIF, WebP, HEIC and AVIF.
pub(super) fn pixels(data: Base64<'_>) -> Option<Pixels> {
    let reader = BufReader::with_capacity(BLOCK, data.reader(HEADER_BYTES));
    let size = imagesize::reader_size(reader).ok()?;
    let (width, height) = (size.width as u64, size.height as u64);
    (width > 0 && height > 0).then_some(Pixels { width, height })
}
