//! What a `tokenizer.json` says about itself that counting needs: the longest token, what its normaliser does, which
//! tokens are control tokens. What is not known to be harmless proves nothing.

use super::list;
use crate::bounds::Bounds;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::fmt;

/// The pattern of `o200k_base`, which leaves no character of a text unmatched.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What counting needs of the file.
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

/// The lengths of a vocabulary; its tokens themselves are not kept.
#[derive(Default)]
struct Vocabulary {
    longest_in_bytes: u64,
    longest_in_characters: u64,
    /// Tokens of one character each, and the 256 tokens `<0x00>` to `<0xFF>`.
    characters: u32,
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

/// Whether a character is one of the 256 that represent bytes in byte-level vocabularies: the visible ones of Latin-1
/// for themselves, the rest from U+0100 on.
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
                f.write_str("a vocabulary: an object of tokens, or a list of tokens with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
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
    /// Reads it, or says why the file cannot be used.
    pub(super) fn read(json: &str) -> Result<Self, String> {
        let form: Self = serde_json::from_str(json)
            .map_err(|error| format!("{error}; expected a tokenizer.json of Hugging Face"))?;
        match form.model.dropout.filter(|dropout| *dropout > 0.0) {
            Some(dropout) => Err(format!(
                "its model drops merges at random (`dropout` {dropout}); counts would not repeat"
            )),
            None => Ok(form),
        }
    }

    /// Returns the control tokens, as they are spelt.
    pub(super) fn control_tokens(&self) -> Vec<String> {
        let control = self.added_tokens.iter().filter(|token| token.special);
        control.map(|token| token.content.clone()).collect()
    }

    /// The bounds of this vocabulary; none where a part of the file is not known to keep every byte.
    pub(super) fn bounds(&self) -> Bounds {
        self.proven().unwrap_or_default()
    }

    fn proven(&self) -> Option<Bounds> {
        let model = &self.model;
        let affix = |affix: &Option<String>| affix.as_ref().is_none_or(String::is_empty);
        let known = matches!(model.kind.as_deref(), None | Some("BPE" | "Unigram"))
            && affix(&model.continuing_subword_prefix)
            && affix(&model.end_of_word_suffix);
        // A token that takes the blanks beside it covers any number of bytes.
        let greedy = self.added_tokens.iter().any(|token| !token.special && (token.lstrip || token.rstrip));
        if !known || greedy {
            return None;
        }
        let split = split(&self.pre_tokenizer)?;
        let normal = normal(&self.normalizer)?;
        let added =
            self.added_tokens.iter().filter(|token| !token.special).map(|token| token.content.len() as u64);
        let longest = match (split.byte_level, model.byte_fallback) {
            (true, _) if model.vocab.characters == 256 => model.vocab.longest_in_characters,
            (false, Some(true)) if model.vocab.raw_bytes == 256 => model.vocab.longest_in_bytes,
            _ => return None,
        };
        Some(Bounds {
            longest: Some(longest.max(added.max().unwrap_or_default()).max(1)),
            composes: normal.composes,
            // What is put in front of a text is no multiple of its bytes.
            per_byte: Some(normal.per_byte).filter(|_| !normal.prepends && !split.prepends),
        })
    }
}

/// What a pre-tokenizer does to a text.
struct Split {
    byte_level: bool,
    prepends: bool,
}

/// None where it may leave something out.
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

/// What a normaliser does to a text.
struct Normal {
    composes: bool,
    per_byte: u64,
    prepends: bool,
}

/// None where it may take something away. A text grows at most threefold in NFC and elevenfold in NFKC (UTF-8;
/// Unicode Standard Annex 15, "Stability of normalization forms", read 2026-11-21).
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
            let grows = !pattern.is_empty() && content.len() >= pattern.len();
            grows.then(|| Normal { per_byte: content.len().div_ceil(pattern.len()) as u64, ..kept })
        }
        Some("Sequence") => {
            let mut all = kept;
            for part in list(value, "normalizers") {
                let part = normal(part)?;
                all = Normal {
                    composes: all.composes || part.composes,
                    per_byte: all.per_byte.saturating_mul(part.per_byte),
                    prepends: all.prepends || part.prepends,
                };
            }
            Some(all)
        }
        _ => None,
    }
}
