//! The token prices of media per provider, as data: `[media]` in `config/models.toml`.

use crate::{
    media::{Detail, Duration, Medium, Pixels},
    message::WireFormat,
    tokens::{Certainty, TokenCount},
};
use serde::Deserialize;

/// The assumed size in pixels of a document page, if the provider publishes none.
const PAGE: Pixels = Pixels { width: 1_024, height: 1_325 };

/// The price rules of all models. The first rule that matches a model applies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaTable {
    reference: Reference,
    image: Vec<Rule<ImagePrice>>,
    page: Vec<Rule<PagePrice>>,
    second: Vec<Rule<SecondPrice>>,
}

/// The assumed size of a medium whose content is not available.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    /// The number of pages of a document.
    pages: u64,
    /// The length of audio and video in seconds.
    seconds: u64,
}

/// A price with the models that it applies to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule<T> {
    /// The beginnings of the model names; empty for models without a price of their own.
    #[serde(default)]
    begins: Vec<String>,
    /// The first version that the rule applies to, major and minor.
    from: Option<(u32, u32)>,
    /// The wire format of the models without a price of their own.
    wire_format: Option<WireFormat>,
    price: T,
}

/// The rule by which a provider counts an image, in tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
enum ImagePrice {
    /// `OpenAI`: a base, and a price per tile of 512 pixels. The image is first scaled to at most 2,048
    /// pixels, and to a short side of at most 768 pixels.
    Tiles { base: u64, tile: u64 },
    /// Squares of `side` pixels times a factor, limited per detail.
    Patches {
        side: u64,
        per_mille: u64,
        low: Option<PatchLimit>,
        high: PatchLimit,
        original: Option<PatchLimit>,
        /// True if a request without a detail means `original`.
        #[serde(default)]
        auto_is_original: bool,
        /// True if an image with more squares than the limit counts the limit. Otherwise the image is scaled
        /// by `OpenAI`'s formula.
        #[serde(default)]
        caps: bool,
    },
    /// Gemini up to 2.5: square crops of two thirds of the short side, of 256 to 768 pixels.
    Crops { tokens: u64 },
    /// Gemini from version 3 on: a fixed number per resolution.
    Resolution { low: u64, medium: u64, high: u64, ultra_high: u64 },
}

/// The maximum number of squares, and the maximum length of a side in pixels.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchLimit {
    patches: u64,
    pixels: u64,
}

/// The rule by which a provider counts a page of a document, in tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PagePrice {
    /// The tokens of the page's text; 0 if it is free.
    text: u64,
    /// The tokens of the page's image, or `None` if it counts like any other image.
    image: Option<u64>,
    /// The tokens of the page's image at low and at high resolution, if they differ.
    low: Option<u64>,
    high: Option<u64>,
}

/// The rule by which a provider counts a second of audio or video, in tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecondPrice {
    audio: u64,
    video: u64,
}

/// The media prices of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MediaPrices {
    reference: Reference,
    image: ImagePrice,
    page: PagePrice,
    second: SecondPrice,
    /// True if the image price is specific to the model, so that counts are more than estimates.
    is_own: bool,
}

impl<T: Copy> Rule<T> {
    /// Returns the first matching price for a model, and true if its rule names the model.
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
    /// Returns the prices of a model, or `None` if no rule matches. A test ensures that one always does.
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
    /// Returns zero prices, for an unreadable built-in table. A test ensures that the table is readable.
    pub(crate) fn none() -> Self {
        Self {
            reference: Reference { pages: 0, seconds: 0 },
            image: ImagePrice::Crops { tokens: 0 },
            page: PagePrice { text: 0, image: Some(0), low: None, high: None },
            second: SecondPrice { audio: 0, video: 0 },
            is_own: false,
        }
    }

    /// Returns the token count of a medium.
    pub(crate) fn tokens(&self, medium: &Medium) -> TokenCount {
        match medium {
            Medium::Image { pixels, detail } => {
                let count = self.image.tokens(*pixels, *detail);
                if self.is_own { count } else { estimate(count.tokens) }
            }
            Medium::Document { pages, detail } => {
                let page = self.page_tokens(*detail);
                match pages {
                    // A page has a fixed price only if its text is free.
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
                    // Bills differ from the formula by a few squares.
                    estimate(count)
                } else if detail == Detail::Auto && low.is_some() {
                    // With detail `auto` the provider may choose the low resolution, which costs less.
                    bound(count)
                } else {
                    exact(count)
                }
            }
            Self::Crops { tokens } => {
                let Some(Pixels { width, height }) = pixels else { return bound(USUAL_CROPS * tokens) };
                // An image of up to 384 pixels per side is not cropped.
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

/// The maximum number of tiles of an image that is scaled to at most 2,048 by 768 pixels: four by two.
const MOST_TILES: u64 = 8;

/// The maximum number of crops that are counted: an image of 4,096 by 4,096 pixels has six by six.
const MOST_CROPS: u64 = 36;

/// The assumed number of crops of an image of unknown size: "256 + Pan & Scan (~2048)" tokens (ai.google.dev,
/// media resolution).
const USUAL_CROPS: u64 = 9;

/// Returns the number of tiles of 512 pixels of an image after scaling. Pixels are rounded to the nearest
/// number, halves down. Images of 2,049 x 513 and of 2,050 x 513 pixels were billed as eight and as four
/// tiles (community.openai.com, read 2026-11-27).
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

/// Returns `side * to / of`, rounded to the nearest number, halves down, and at least 1.
fn scaled(side: u64, to: u64, of: u64) -> u64 {
    (2 * side * to).saturating_sub(of).div_ceil(2 * of).max(1)
}

impl PatchLimit {
    /// Returns the number of squares of an image, and true if it has more than the limit.
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
        // By the published formula, the factor is the square root of the limit by the area. It is then
        // reduced until one side is a whole number of squares (developers.openai.com, images and vision).
        // Sides are counted in squares to stay in integers.
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
