//! The parts of a `tokenizer.json` that counting needs: the longest token, the effect of the normalizer, and
//! the control tokens. A part that is not known to keep every byte proves no bound.

use super::list;
use crate::bounds::Bounds;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::fmt;

/// The pattern of `o200k_base`, which matches every character of a text.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The fields of the file that counting needs.
#[derive(Deserialize)]
pub(super) struct Form {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    added_tokens: Vec<Added>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: Vocabulary,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default)]
    dropout: Option<f64>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
}

/// The size of the longest tokens of a vocabulary. The tokens themselves are not kept.
#[derive(Default)]
struct Vocabulary {
    longest_in_bytes: u64,
    longest_in_characters: u64,
    /// The number of tokens of one character that represents a byte; 256 in a complete byte-level vocabulary.
    characters: u32,
    /// The number of tokens from `<0x00>` to `<0xFF>`; 256 in a complete vocabulary with byte fallback.
    raw_bytes: u32,
}

impl Vocabulary {
    fn add(&mut self, token: &str) {
        let characters = token.chars().count() as u64;
        self.longest_in_bytes = self.longest_in_bytes.max(token.len() as u64);
        self.longest_in_characters = self.longest_in_characters.max(characters);
        self.characters += u32::from(characters == 1 && is_byte_letter(token));
        let raw = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        self.raw_bytes +=
            u32::from(raw.is_some_and(|hex| hex.len() == 2 && u8::from_str_radix(hex, 16).is_ok()));
    }
}

/// Returns true if every character represents a byte in byte-level vocabularies. There are 256 such
/// characters: visible Latin-1 characters represent themselves, and the other bytes use characters from
/// U+0100 on.
fn is_byte_letter(token: &str) -> bool {
    token
        .chars()
        .all(|c| matches!(c, '!'..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{ff}' | '\u{100}'..='\u{143}'))
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lengths;
        impl<'de> Visitor<'de> for Lengths {
            type Value = Vocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary: an object of tokens, or an array of tokens with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
                // Only lengths are recorded: a vocabulary may have hundreds of thousands of tokens.
                let mut vocabulary = Vocabulary::default();
                while let Some((token, _)) = map.next_entry::<std::borrow::Cow<'_, str>, IgnoredAny>()? {
                    vocabulary.add(&token);
                }
                Ok(vocabulary)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocabulary, A::Error> {
                let mut vocabulary = Vocabulary::default();
                while let Some((token, _)) = seq.next_element::<(String, f64)>()? {
                    vocabulary.add(&token);
                }
                Ok(vocabulary)
            }
        }
        deserializer.deserialize_any(Lengths)
    }
}

impl Form {
    /// Parses the file. Returns an error message if the file cannot be used.
    pub(super) fn read(json: &str) -> Result<Self, String> {
        let form: Self = serde_json::from_str(json)
            .map_err(|error| format!("{error}; expected a tokenizer.json of Hugging Face"))?;
        match form.model.dropout.filter(|dropout| *dropout > 0.0) {
            Some(dropout) => Err(format!(
                "its model drops merges at random (`dropout` {dropout}), and counts would differ between runs; expected a model without dropout"
            )),
            None => Ok(form),
        }
    }

    /// Returns the control tokens as they are spelled.
    pub(super) fn control_tokens(&self) -> Vec<String> {
        let control = self.added_tokens.iter().filter(|token| token.special);
        control.map(|token| token.content.clone()).collect()
    }

    /// Returns the bounds of this vocabulary. They are empty if some part of the file may drop bytes.
    pub(super) fn bounds(&self) -> Bounds {
        self.proven().unwrap_or_default()
    }

    /// Returns the bounds, or `None` if some part of the file may drop bytes.
    fn proven(&self) -> Option<Bounds> {
        let model = &self.model;
        let affix = |affix: &Option<String>| affix.as_ref().is_none_or(String::is_empty);
        let known = matches!(model.kind.as_deref(), None | Some("BPE" | "Unigram"))
            && affix(&model.continuing_subword_prefix)
            && affix(&model.end_of_word_suffix);
        // A token that absorbs the white space around it covers any number of bytes.
        let greedy = self.added_tokens.iter().any(|token| !token.special && (token.lstrip || token.rstrip));
        if !known || greedy {
            return None;
        }
        let split = split(&self.pre_tokenizer)?;
        let normal = normal(&self.normalizer)?;
        let added =
            self.added_tokens.iter().filter(|token| !token.special).map(|token| token.content.len() as u64);
        // A vocabulary without all 256 bytes may replace unknown bytes by one unknown token of any length: no
        // bound.
        let longest = match (split.byte_level, model.byte_fallback) {
            (true, _) if model.vocab.characters == 256 => model.vocab.longest_in_characters,
            (false, Some(true)) if model.vocab.raw_bytes == 256 => model.vocab.longest_in_bytes,
            _ => return None,
        };
        Some(Bounds {
            longest: Some(longest.max(added.max().unwrap_or_default()).max(1)),
            composes: normal.composes,
            // Text that is added at the front is a constant, not a multiple of the bytes, so no factor bounds
            // it.
            per_byte: Some(normal.per_byte).filter(|_| !normal.prepends && !split.prepends),
        })
    }
}

/// The effect of a pre-tokenizer on a text.
struct Split {
    byte_level: bool,
    prepends: bool,
}

/// Returns the effect of a pre-tokenizer, or `None` if it may drop a part of the text.
fn split(value: &Value) -> Option<Split> {
    let kind = value.get("type").and_then(Value::as_str);
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let flag = |key: &str, default| value.get(key).and_then(Value::as_bool).unwrap_or(default);
    match kind {
        None if value.is_null() => Some(Split { byte_level: false, prepends: false }),
        Some("ByteLevel") => Some(Split { byte_level: true, prepends: flag("add_prefix_space", true) }),
        Some("Metaspace") => Some(Split { byte_level: false, prepends: true }),
        Some("Digits") => Some(Split { byte_level: false, prepends: false }),
        Some("Split" | "Punctuation") => {
            // With `invert`, the matches are kept and the rest is removed; only a pattern that matches
            // everything is safe.
            let pattern =
                value.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
            let keeps_all = flag("invert", false) && pattern == Some(O200K);
            (text("behavior") != Some("Removed") || keeps_all)
                .then_some(Split { byte_level: false, prepends: false })
        }
        Some("Sequence") => {
            let mut all = Split { byte_level: false, prepends: false };
            for part in list(value, "pretokenizers") {
                let part = split(part)?;
                all = Split {
                    byte_level: all.byte_level || part.byte_level,
                    prepends: all.prepends || part.prepends,
                };
            }
            Some(all)
        }
        _ => None,
    }
}

/// The effect of a normalizer on a text.
struct Normal {
    composes: bool,
    per_byte: u64,
    prepends: bool,
}

/// Returns the effect of a normalizer, or `None` if it may remove a part of the text. In UTF-8, NFC makes a
/// text at most 3 times as long, NFKC at most 11 times. Source: Unicode Standard Annex 15, "Stability of
/// normalization forms", read 2026-11-21.
fn normal(value: &Value) -> Option<Normal> {
    let kept = Normal { composes: false, per_byte: 1, prepends: false };
    match value.get("type").and_then(Value::as_str) {
        None if value.is_null() => Some(kept),
        Some("NFC") => Some(Normal { composes: true, per_byte: 3, ..kept }),
        Some("NFKC") => Some(Normal { composes: true, per_byte: 11, ..kept }),
        Some("Prepend") => Some(Normal { prepends: true, ..kept }),
        Some("Replace") => {
            let pattern = value.get("pattern")?.get("String")?.as_str()?;
            let content = value.get("content")?.as_str()?;
            // A shorter replacement would remove bytes, which breaks the lower bound.
            let grows = !pattern.is_empty() && content.len() >= pattern.len();
            grows.then(|| Normal { per_byte: content.len().div_ceil(pattern.len()) as u64, ..kept })
        }
        Some("Sequence") => {
            let mut all = kept;
            for part in list(value, "normalizers") {
                let part = normal(part)?;
                all = Normal {
                    composes: all.composes || part.composes,
                    // Each normalizer reads the output of the one before it, so their factors multiply.
                    per_byte: all.per_byte.saturating_mul(part.per_byte),
                    prepends: all.prepends || part.prepends,
                };
            }
            Some(all)
        }
        _ => None,
    }
}
