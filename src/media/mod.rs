//! Images, documents, audio and video of a message: their sizes, which determine the provider's token count
//! (rule N3).
//!
//! Sizes are read from the headers of inline data, and pages from the page tree of a PDF. No media are
//! decoded, and the work per file is limited by its length.

use serde_json::Value;

mod work;
mod base64;
mod duration;
mod boxes;
mod detail;
mod image;
mod pdf;
mod audio;
mod video;
mod payload;
mod redaction;
#[cfg(test)]
mod tests;

pub(crate) use detail::Detail;
pub(crate) use duration::Duration;
pub(crate) use image::Pixels;
#[doc(hidden)]
pub use redaction::{counted_text, redacted_data, redacted_url};

use base64::Base64;
use payload::{Kind, Payload};

/// Maximum number of pages counted. No provider accepts larger documents (Gemini accepts 1,000 pages,
/// Anthropic 600).
const MOST_PAGES: u64 = 1_000;

/// Bytes per page of a document whose pages cannot be counted. A scanned page has at least 50,000.
const PAGE_BYTES: u64 = 50_000;

/// Maximum size of an examined file. Providers accept at most 50 MB inline. Pages of a larger file are
/// estimated.
const FILE_BYTES: u64 = 64 << 20;

/// An image, document, audio or video with all properties that affect its token count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// An image. `pixels` is `None` if the image is referenced by address or id, or has an unknown header.
    Image { pixels: Option<Pixels>, detail: Detail },
    /// A document. `pages` is `None` if it is referenced by address or id.
    Document { pages: Option<PageCount>, detail: Detail },
    /// Audio. `duration` is `None` if it is referenced by address or id.
    Audio { duration: Option<Duration> },
    /// Video. `duration` is `None` if it is referenced by address or id.
    Video { duration: Option<Duration> },
}

/// The page count of a document, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageCount {
    pub(crate) pages: u64,
    /// True if the file states the count, false for an estimate.
    pub(crate) is_read: bool,
}

/// The media of one part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartMedia {
    pub(crate) media: Vec<Medium>,
    /// The text of the part without the data: titles, file names, and the JSON around media inside of another
    /// object.
    pub(crate) text: Box<str>,
}

impl PartMedia {
    /// Measures an image by its address or data URL and the requested detail.
    pub(crate) fn from_url(url: &str, detail: Option<&str>) -> Self {
        let detail = Detail::from_text(detail);
        let data = url.strip_prefix("data:").and_then(|url| url.split_once(','));
        let pixels = data.and_then(|(_, data)| image::pixels(Base64::new(data)));
        Self { media: vec![Medium::Image { pixels, detail }], text: "".into() }
    }

    /// Measures the media in the JSON of a part. Returns `None` if it has no media.
    pub(crate) fn from_json(json: &str) -> Option<Self> {
        let (value, payloads) = payload::split(json)?;
        let mut texts = vec![payload::beside(&value)];
        let mut media = Vec::new();
        for payload in payloads {
            match payload.measure() {
                Ok(medium) => media.push(medium),
                Err(text) => texts.push(text),
            }
        }
        texts.retain(|text| !text.is_empty());
        Some(Self { media, text: texts.join("\n").into() })
    }
}

/// Returns the number of media in the JSON of a part, without measuring them.
pub(crate) fn count(json: &str) -> u64 {
    payload::split(json).map_or(0, |(_, payloads)| payloads.len() as u64)
}

impl Payload {
    /// Measures the medium. Returns the text itself as the error value if it is a text file.
    fn measure(&self) -> Result<Medium, String> {
        let detail = self.detail;
        let Some(data) = &self.data else {
            return Ok(match self.kind(&[]) {
                Kind::Image => Medium::Image { pixels: None, detail },
                Kind::Document | Kind::Text => Medium::Document { pages: None, detail },
                Kind::Audio => Medium::Audio { duration: None },
                Kind::Video => Medium::Video { duration: None },
            });
        };
        let data = Base64::new(data);
        let head: [u8; 12] = data.head();
        match self.kind(&head) {
            Kind::Image => Ok(Medium::Image { pixels: image::pixels(data), detail }),
            Kind::Document => Ok(Medium::Document { pages: Some(pages(data)), detail }),
            Kind::Audio => Ok(Medium::Audio { duration: Some(audio::duration(data, &self.format)) }),
            Kind::Video => Ok(Medium::Video { duration: Some(video::duration(data)) }),
            Kind::Text => String::from_utf8(data.to_vec(FILE_BYTES))
                .map_err(|_| ())
                .map_or(Ok(Medium::Document { pages: Some(pages(data)), detail }), Err),
        }
    }
}

/// Counts the pages of a document, or estimates them from its size.
fn pages(data: Base64<'_>) -> PageCount {
    let head: [u8; 4] = data.head();
    let is_looked_at = head == *b"%PDF" && data.len() <= FILE_BYTES;
    let counted = if is_looked_at { pdf::count(&data.to_vec(FILE_BYTES)) } else { None };
    match counted {
        Some(pages) => PageCount {
            pages: pages.number.min(MOST_PAGES),
            is_read: pages.is_whole && pages.number <= MOST_PAGES,
        },
        None => PageCount { pages: data.len().div_ceil(PAGE_BYTES).clamp(1, MOST_PAGES), is_read: false },
    }
}

/// Maximum pages and seconds of one medium.
#[cfg(test)]
pub(crate) const MOST_EXTENT: (u64, u64) = (MOST_PAGES, duration::MOST_SECONDS);

/// Returns true if a JSON text may contain a medium. A cheap test, so that most parts of unknown types are
/// not parsed.
fn may_hold(json: &str) -> bool {
    ["image", "file", "document", "audio", "video", "Data", "_data"].iter().any(|word| json.contains(word))
}

/// Returns true for keys whose text values a model sees in addition to the data.
fn is_shown(key: &str) -> bool {
    ["title", "context", "filename", "name", "displayName", "display_name"].contains(&key)
}

/// Collects the texts that a model sees in addition to a medium.
fn shown<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if is_shown(key) => texts.push(text),
                    value => shown(value, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| shown(value, texts)),
        _ => {}
    }
}
