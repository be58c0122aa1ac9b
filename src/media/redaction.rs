//! Meaningless data of the same size, which replace the media of a redacted session.

use super::{Medium, PartMedia, Payload, base64::Base64, payload};
use std::collections::BTreeMap;

/// Returns a replacement for the address of an image. Inline data become data of the same media type and
/// image size. Any other address becomes a fixed address.
#[doc(hidden)]
#[must_use]
pub fn redacted_url(url: &str) -> String {
    let Some((head, data)) = url.split_once(',').filter(|(head, _)| head.starts_with("data:")) else {
        return "https://redacted.invalid/image".into();
    };
    let pixels = super::image::pixels(Base64::new(data));
    let medium = Medium::Image { pixels, detail: super::Detail::Auto };
    format!("{head},{}", placeholder(&medium, data.len()))
}

/// Returns the base64 data in the JSON of a part, each with meaningless data that has the same measured size.
#[doc(hidden)]
#[must_use]
pub fn redacted_data(json: &str) -> BTreeMap<String, String> {
    let payloads = payload::split(json).map(|(_, payloads)| payloads).unwrap_or_default();
    let pair = |payload: Payload| {
        let medium = payload.measure();
        let data = payload.data?;
        let replaced = match medium {
            Ok(medium) => placeholder(&medium, data.len()),
            Err(text) => encoded(&vec![b' '; text.len()]),
        };
        Some((data, replaced))
    };
    payloads.into_iter().filter_map(pair).collect()
}

/// Returns the text of a part that is counted as text, or `None` if the whole JSON is counted.
#[doc(hidden)]
#[must_use]
pub fn counted_text(json: &str) -> Option<String> {
    PartMedia::from_json(json).map(|media| media.text.into())
}

/// Returns base64 with the same measured size as a medium. `characters` is the length of the replaced data.
fn placeholder(medium: &Medium, characters: usize) -> String {
    match medium {
        Medium::Image { pixels: Some(pixels), .. } => {
            // A PNG with only a header is enough, because nothing else is read.
            let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            for side in [pixels.width, pixels.height] {
                bytes.extend(u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes());
            }
            encoded(&bytes)
        }
        Medium::Image { pixels: None, .. } => "AAAA".into(),
        Medium::Document { pages: Some(pages), .. } if pages.is_read => encoded(&document(pages.pages)),
        // Estimated by its size, so the length is kept.
        Medium::Document { .. } => "A".repeat(characters / 4 * 4),
        Medium::Audio { duration } => {
            let seconds = duration.map_or(0, |duration| duration.seconds);
            // A WAV header with one byte per second, so that the file has as many bytes as seconds.
            let mut bytes =
                b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x01\0\0\0\x01\0\0\0\x01\0\x08\0data".to_vec();
            bytes.extend(u32::try_from(seconds).unwrap_or(u32::MAX).to_le_bytes());
            bytes.resize(bytes.len() + usize::try_from(seconds).unwrap_or(0), 0);
            encoded(&bytes)
        }
        Medium::Video { duration } => {
            let seconds = duration.map_or(1, |duration| duration.seconds);
            let mut bytes = b"\0\0\0\x08ftyp\0\0\0\x74moov\0\0\0\x6cmvhd".to_vec();
            bytes.extend([0; 12]);
            bytes.extend(1_u32.to_be_bytes());
            bytes.extend(u32::try_from(seconds).unwrap_or(u32::MAX).to_be_bytes());
            bytes.resize(bytes.len() + 80, 0);
            encoded(&bytes)
        }
    }
}

/// Returns a PDF with `pages` pages. All of them are the same object.
fn document(pages: u64) -> Vec<u8> {
    let kids = "3 0 R ".repeat(usize::try_from(pages).unwrap_or(0));
    let text = format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Count {pages}/Kids[{kids}]>>\n\
         endobj\n3 0 obj\n<</Type/Page>>\nendobj\ntrailer\n<</Root 1 0 R>>\n"
    );
    text.into_bytes()
}

/// Encodes bytes as base64, padded with zero bytes to whole groups.
fn encoded(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift & 63) as usize]))
    };
    bytes.chunks(3).flat_map(group).collect()
}
