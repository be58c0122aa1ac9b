//! Providers' token prices of media, as data: `[media]` in `config/models.toml`.

use crate::{
    media::{Detail, Duration, Medium, Pixels},
    message::WireFormat,
    tokens::{Certainty, TokenCount},
};
use serde::Deserialize;

/// The size in pixels at which a page of a document is taken to be shown if its provider does not publish
/// one.
const PAGE: Pixels = Pixels { width: 1_024, height: 1_325 };

/// Prices of all models: of several rules that fit a model the first one holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaTable {
    reference: Reference,
    image: Vec<Rule<ImagePrice>>,
    page: Vec<Rule<PagePrice>>,
    second: Vec<Rule<SecondPrice>>,
}

/// The extent that a medium elsewhere is taken to have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    pages: u64,
    seconds: u64,
}

/// One price, and the models that it is for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule<T> {
    /// The beginnings of their names; none for models without a price of their own.
    #[serde(default)]
    begins: Vec<String>,
    /// The first version, major and minor.
    from: Option<(u32, u32)>,
    /// The wire format that models without a price of their own are spoken to in.
    wire_format: Option<WireFormat>,
    price: T,
}

/// A provider's count of an image.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
enum ImagePrice {
    /// `OpenAI`: a base, and each square of 512 pixels after scaling into 2,048 and a short side of 768
    /// pixels.
    Tiles { base: u64, tile: u64 },
    /// Squares of `side` pixels, times a factor, within the limits of a detail.
    Patches {
        side: u64,
        per_mille: u64,
        low: Option<PatchLimit>,
        high: PatchLimit,
        original: Option<PatchLimit>,
        /// True if a request that names no detail gets `original`.
        #[serde(default)]
        auto_is_original: bool,
        /// True if an image of too many squares counts the limit; otherwise it is scaled by `OpenAI`'s
        /// formula.
        #[serde(default)]
        caps: bool,
    },
    /// Gemini up to 2.5: squares of two thirds of the short side, of 256 to 768 pixels.
    Crops { tokens: u64 },
    /// Gemini from 3 on: a number for each resolution.
    Resolution { low: u64, medium: u64, high: u64, ultra_high: u64 },
}

/// The most squares and the longest side in pixels.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchLimit {
    patches: u64,
    pixels: u64,
}

/// A provider's count of a page of a document.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PagePrice {
    /// Its text; 0 if that is free.
    text: u64,
    /// Its image; `None` if it counts as another image does.
    image: Option<u64>,
    /// Its image at low and at high resolution, if they differ.
    low: Option<u64>,
    high: Option<u64>,
}

/// A provider's count of a second.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecondPrice {
    audio: u64,
    video: u64,
}

/// The prices of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MediaPrices {
    reference: Reference,
    image: ImagePrice,
    page: PagePrice,
    second: SecondPrice,
    /// True if the price of images is that of the model itself.
    is_own: bool,
}

impl<T: Copy> Rule<T> {
    /// Returns the first price for a model, and whether it is the model's own.
    fn find(
        rules: &[Self],
        name: &str,
        version: Option<(u32, u32)>,
        wire_format: WireFormat,
    ) -> Option<(T, bool)> {
        let rule = rules.iter().find(|rule| {
            let named = rule.begins.is_empty() || rule.begins.iter().any(|begin| name.starts_with(begin));
            let new_enough = rule.from.is_none() || version >= rule.from;
            named && new_enough && rule.wire_format.is_none_or(|of_rule| of_rule == wire_format)
        })?;
        Some((rule.price, !rule.begins.is_empty()))
    }
}

impl MediaTable {
    /// Returns the prices of a model; `None` if no rule is for it, which a test rules out.
    pub(crate) fn prices(
        &self,
        name: &str,
        version: Option<(u32, u32)>,
        wire_format: WireFormat,
    ) -> Option<MediaPrices> {
        let (image, is_own) = Rule::find(&self.image, name, version, wire_format)?;
        let (page, _) = Rule::find(&self.page, name, version, wire_format)?;
        let (second, _) = Rule::find(&self.second, name, version, wire_format)?;
        Some(MediaPrices { reference: self.reference, image, page, second, is_own })
    }
}

fn exact(n: u64) -> TokenCount {
    TokenCount { tokens: n, certainty: Certainty::Exact }
}

fn bound(n: u64) -> TokenCount {
    TokenCount { tokens: n, certainty: Certainty::UpperBound }
}

fn estimate(n: u64) -> TokenCount {
    TokenCount { tokens: n, certainty: Certainty::Estimate }
}

impl MediaPrices {
    /// Prices for a table that cannot be read, which a test rules out.
    pub(crate) fn none() -> Self {
        Self {
            reference: Reference { pages: 0, seconds: 0 },
            image: ImagePrice::Crops { tokens: 0 },
            page: PagePrice { text: 0, image: Some(0), low: None, high: None },
            second: SecondPrice { audio: 0, video: 0 },
            is_own: false,
        }
    }

    /// Returns the tokens of a medium.
    pub(crate) fn tokens(&self, medium: &Medium) -> TokenCount {
        match medium {
            Medium::Image { pixels, detail } => {
                let count = self.image.tokens(*pixels, *detail);
                if self.is_own { count } else { estimate(count.tokens) }
            }
            Medium::Document { pages, detail } => {
                let page = self.page_tokens(*detail);
                match pages {
                    // Only where the text is free, a page has one price.
                    Some(pages) if pages.is_read && self.page.text == 0 && self.is_own => {
                        bound(pages.pages.saturating_mul(page))
                    }
                    Some(pages) => estimate(pages.pages.saturating_mul(page)),
                    None => estimate(self.reference.pages.saturating_mul(page)),
                }
            }
            Medium::Audio { duration } => self.seconds(*duration, self.second.audio),
            Medium::Video { duration } => self.seconds(*duration, self.second.video),
        }
    }

    fn seconds(&self, duration: Option<Duration>, price: u64) -> TokenCount {
        let seconds = duration.map_or(self.reference.seconds, |duration| duration.seconds);
        estimate(seconds.saturating_mul(price))
    }

    fn page_tokens(&self, detail: Detail) -> u64 {
        let of_detail = match detail {
            Detail::Low => self.page.low,
            Detail::High | Detail::UltraHigh | Detail::Original => self.page.high,
            Detail::Auto | Detail::Medium => None,
        };
        let image = of_detail.or(self.page.image);
        self.page.text + image.unwrap_or_else(|| self.image.tokens(Some(PAGE), detail).tokens)
    }
}

impl ImagePrice {
    fn tokens(&self, pixels: Option<Pixels>, detail: Detail) -> TokenCount {
        match *self {
            Self::Tiles { base, tile } => {
                if detail == Detail::Low {
                    return exact(base);
                }
                let Some(pixels) = pixels else { return bound(base + MOST_TILES * tile) };
                let count = base + tiles(pixels) * tile;
                if detail == Detail::High { exact(count) } else { bound(count) }
            }
            Self::Patches { side, per_mille, low, high, original, auto_is_original, caps } => {
                let limit = match detail {
                    Detail::Low => low.unwrap_or(high),
                    Detail::Original | Detail::UltraHigh => original.unwrap_or(high),
                    Detail::Auto | Detail::Medium if auto_is_original => original.unwrap_or(high),
                    Detail::Auto | Detail::Medium | Detail::High => high,
                };
                let tokens = |patches: u64| patches.saturating_mul(per_mille).div_ceil(1_000);
                let Some(pixels) = pixels else { return bound(tokens(limit.patches)) };
                let (patches, is_scaled) = limit.patches_of(pixels, side, caps);
                let count = tokens(patches);
                if is_scaled && caps {
                    bound(count)
                } else if is_scaled {
                    // Bills differ from the formula by some squares.
                    estimate(count)
                } else if detail == Detail::Auto && low.is_some() {
                    bound(count)
                } else {
                    exact(count)
                }
            }
            Self::Crops { tokens } => {
                let Some(Pixels { width, height }) = pixels else { return bound(USUAL_CROPS * tokens) };
                if width <= 384 && height <= 384 {
                    return exact(tokens);
                }
                let side = (width.min(height) * 2 / 3).clamp(256, 768);
                let crops = width.div_ceil(side).saturating_mul(height.div_ceil(side));
                bound(crops.min(MOST_CROPS) * tokens)
            }
            Self::Resolution { low, medium, high, ultra_high } => bound(match detail {
                Detail::Low => low,
                Detail::Medium => medium,
                Detail::UltraHigh => ultra_high,
                Detail::Auto | Detail::High | Detail::Original => high,
            }),
        }
    }
}

/// The most squares of 512 pixels in an image that is scaled into 2,048 pixels and a short side of 768: four
/// times two.
const MOST_TILES: u64 = 8;

/// The most squares that are counted: an image of 4,096 pixels has six times six of them.
const MOST_CROPS: u64 = 36;

/// Squares of an image of unknown size: "256 + Pan & Scan (~2048)" tokens (ai.google.dev, media resolution).
const USUAL_CROPS: u64 = 9;

/// The number of squares of 512 pixels of an image after scaling. Pixels are rounded to the nearest, halves
/// down: images of 2,049 x 513 and of 2,050 x 513 pixels were billed as eight and as four squares
/// (community.openai.com, read 2026-11-27).
fn tiles(Pixels { width, height }: Pixels) -> u64 {
    let (mut long, mut short) = (width.max(height), width.min(height));
    if long > 2_048 {
        short = scaled(short, 2_048, long);
        long = 2_048;
    }
    if short > 768 {
        long = scaled(long, 768, short);
        short = 768;
    }
    long.div_ceil(512) * short.div_ceil(512)
}

/// `side * to / of`, rounded to the nearest, halves down, and at least 1.
fn scaled(side: u64, to: u64, of: u64) -> u64 {
    (2 * side * to).saturating_sub(of).div_ceil(2 * of).max(1)
}

impl PatchLimit {
    /// Returns the number of squares of an image, and whether it has more than the limit.
    fn patches_of(self, Pixels { mut width, mut height }: Pixels, side: u64, caps: bool) -> (u64, bool) {
        let long = width.max(height);
        if long > self.pixels {
            width = (width * self.pixels / long).max(1);
            height = (height * self.pixels / long).max(1);
        }
        let covering = |width: u64, height: u64| width.div_ceil(side).saturating_mul(height.div_ceil(side));
        let patches = covering(width, height);
        if patches <= self.patches {
            return (patches, false);
        }
        if caps {
            return (self.patches, true);
        }
        // The factor is the square root of limit by area, then less until one side is of whole squares
        // (developers.openai.com, images and vision). In whole numbers, sides are counted in squares.
        let columns = (width * self.patches / height).isqrt().max(1);
        let rows = (height * self.patches / width).isqrt().max(1);
        let (width, height) = if columns * height <= rows * width {
            (columns * side, height * columns * side / width)
        } else {
            (width * rows * side / height, rows * side)
        };
        (covering(width.max(1), height.max(1)).min(self.patches), true)
    }
}
