//! Images, documents, sound and video of a message: how large they are, and what a provider counts for them (rule N3).
//!
//! Sizes are read from the headers of inline data, and pages from the page tree of a PDF. Nothing is decoded, and the work on a
//! file is bounded by its length.

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

/// Pages that are counted at most: no provider takes a document of more (Gemini takes 1,000, Anthropic 600).
const MOST_PAGES: u64 = 1_000;

/// Bytes a page of a document whose pages cannot be counted. A scanned page takes 50,000 and more.
const PAGE_BYTES: u64 = 50_000;

/// Bytes of a file that are looked at: providers take 50 MB inline at most. Pages of a larger file are estimated.
const FILE_BYTES: u64 = 64 << 20;

/// One image, document, sound or video, and all that its price hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// An image; no size if it is elsewhere or has no header that is known.
    Image { pixels: Option<Pixels>, detail: Detail },
    /// A document; no pages if it is elsewhere.
    Document { pages: Option<PageCount>, detail: Detail },
    /// Sound; no duration if it is elsewhere.
    Audio { duration: Option<Duration> },
    /// Video; no duration if it is elsewhere.
    Video { duration: Option<Duration> },
}

/// The pages of a document, and whether its file states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageCount {
    pub(crate) pages: u64,
    pub(crate) is_read: bool,
}

/// The media of one part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartMedia {
    pub(crate) media: Vec<Medium>,
    /// The text of the part beside its media: titles, file names, and the JSON around media inside of something else.
    pub(crate) text: Box<str>,
}

impl PartMedia {
    /// Measures an image by its address or data URL, and the detail that is asked for.
    pub(crate) fn from_url(url: &str, detail: Option<&str>) -> Self {
        let detail = Detail::from_text(detail);
        let data = url.strip_prefix("data:").and_then(|url| url.split_once(','));
        let pixels = data.and_then(|(_, data)| image::pixels(Base64::new(data)));
        Self { media: vec![Medium::Image { pixels, detail }], text: "".into() }
    }

    /// Measures the media in the JSON of a part. Returns `None` if it has none.
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

/// Counts the media in the JSON of a part without measuring them.
pub(crate) fn count(json: &str) -> u64 {
    payload::split(json).map_or(0, |(_, payloads)| payloads.len() as u64)
}

impl Payload {
    /// Measures it. A text file is returned as its text.
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

/// Counts the pages of a document, or estimates them by its size.
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

/// The most pages and seconds of one medium.
#[cfg(test)]
pub(crate) const MOST_EXTENT: (u64, u64) = (MOST_PAGES, duration::MOST_SECONDS);

/// Whether a JSON text can hold a medium at all: most parts of unknown types are not parsed for it.
fn may_hold(json: &str) -> bool {
    ["image", "file", "document", "audio", "video", "Data", "_data"].iter().any(|word| json.contains(word))
}

/// The text values that a model sees of a part whose data are taken out.
fn is_shown(key: &str) -> bool {
    ["title", "context", "filename", "name", "displayName", "display_name"].contains(&key)
}

/// Collects the texts that a model sees beside a medium.
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
