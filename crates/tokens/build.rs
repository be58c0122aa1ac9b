//! Writes the vocabularies of the `OpenAI` encodings as tables that the program reads in place, without
//! loading them. The tokens come from the crate `tiktoken-rs`; `src/openai/vocabulary.rs` defines the tables.
#![allow(clippy::disallowed_types, reason = "maps are looked up here, never walked")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/openai/hash.rs");
    #[cfg(feature = "openai")]
    {
        std::thread::scope(|scope| {
            scope.spawn(|| tables::write("o200k_base", tiktoken_rs::o200k_base()));
            scope.spawn(|| tables::write("cl100k_base", tiktoken_rs::cl100k_base()));
            classes::write();
        });
    }
}

#[cfg(feature = "openai")]
#[path = "src/openai/hash.rs"]
mod hash;

/// Writes the class of each character, by the numbers of `src/openai/classes.rs`: first the index of a page
/// of classes for every 256 characters (16 bits), then those pages with one byte per character.
#[cfg(feature = "openai")]
mod classes {
    use regex_syntax::hir::{Class, HirKind};
    use std::{collections::HashMap, env, fs, path::Path};

    /// The classes have no character in common. Class 0 is any other character.
    const PATTERNS: [(u8, &str); 7] = [
        (1, r"[\p{Lu}\p{Lt}]"),
        (2, r"\p{Ll}"),
        (3, r"[\p{Lm}\p{Lo}]"),
        (4, r"\p{M}"),
        (5, r"\p{N}"),
        (6, r"[\s--[\r\n]]"),
        (7, r"[\r\n]"),
    ];

    pub(super) fn write() {
        let mut all = vec![0; char::MAX as usize + 1];
        for (class, pattern) in PATTERNS {
            let parsed = regex_syntax::parse(pattern).expect("a pattern of ours");
            let HirKind::Class(Class::Unicode(characters)) = parsed.kind() else {
                panic!("{pattern} is no class")
            };
            for range in characters.ranges() {
                all[range.start() as usize..=range.end() as usize].fill(class);
            }
        }
        let (mut places, mut pages, mut known) = (Vec::new(), Vec::new(), HashMap::new());
        for page in all.chunks(256) {
            let next = u16::try_from(known.len()).expect("few pages differ");
            let place = *known.entry(page).or_insert_with(|| {
                pages.extend_from_slice(page);
                next
            });
            places.extend(place.to_le_bytes());
        }
        places.append(&mut pages);
        let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
        fs::write(Path::new(&folder).join("classes.table"), places).expect("OUT_DIR can be written");
    }
}

#[cfg(feature = "openai")]
mod tables {
    use super::hash;
    use std::{collections::HashMap, env, fmt::Debug, fs, path::Path};
    use tiktoken_rs::CoreBPE;

    /// The id of no token.
    const NONE: u32 = u32::MAX;

    pub(super) fn write<E: Debug>(name: &str, encoding: Result<CoreBPE, E>) {
        let encoding = encoding.expect("an encoding that the crate brings");
        // Ids are ranks without gaps. Control tokens follow the last one.
        let tokens = (0..).map_while(|id| encoding.decode_bytes(&[id]).ok());
        let controls = encoding.special_tokens();
        let is_control = |token: &[u8]| controls.iter().any(|control| control.as_bytes() == token);
        let tokens: Vec<Vec<u8>> = tokens.take_while(|token| !is_control(token)).collect();
        let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
        let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
        let path = Path::new(&folder).join(format!("{name}.table"));
        fs::write(path, table(&tokens)).expect("OUT_DIR can be written");
    }

    fn table(tokens: &[&[u8]]) -> Vec<u8> {
        assert!(tokens.len() < 1 << 18, "18 bits hold every id and one more");
        assert!(tokens.iter().take(256).all(|token| token.len() == 1), "the bytes come first");
        let ids: HashMap<&[u8], u32> = tokens.iter().zip(0..).map(|(token, id)| (*token, id)).collect();
        let splits: Vec<[u32; 2]> = tokens.iter().map(|token| split(token, &ids)).collect();
        let made = |(token, split): (&&[u8], &[u32; 2])| token.len() == 1 || split[0] != NONE;
        assert!(tokens.iter().zip(&splits).all(made), "merging a token's bytes makes the token");
        // For each token: the longest shorter token that it begins with, and two bits that mark beginnings of
        // tokens and whole tokens.
        let mut shorter = vec![NONE; tokens.len()];
        let mut known = vec![0u32; 1 << (hash::KNOWN_BITS - 4)];
        for (token, id) in tokens.iter().zip(0u32..) {
            for length in (1..=token.len()).rev() {
                let place = hash::known(hash::hash_bytes(&token[..length]));
                known[place / 16] |= (if length == token.len() { 3 } else { 1 }) << (place % 16 * 2);
                if length < token.len() && shorter[id as usize] == NONE {
                    shorter[id as usize] = ids.get(&token[..length]).copied().unwrap_or(NONE);
                }
            }
        }
        let slots = slots(tokens);

        let mut out = Vec::new();
        let mut number = |n: u32| out.extend(n.to_le_bytes());
        number(tokens.len() as u32);
        number(slots.len().ilog2());
        // The alignment keeps every entry within one cache line of the processor.
        (2..16).for_each(|_| number(0));
        let mut start = 0;
        for ((token, split), shorter) in tokens.iter().zip(&splits).zip(&shorter) {
            assert!(start < 1 << 24 && token.len() < 1 << 8);
            for field in [start | (token.len() as u32) << 24, split[0], split[1], *shorter] {
                number(field);
            }
            start += token.len() as u32;
        }
        known.into_iter().for_each(number);
        out.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
        out.extend(tokens.iter().copied().flatten());
        // The padding lets a whole machine word be read at any offset.
        out.extend([0; hash::STEP]);
        out
    }

    /// Returns the two tokens that the last merge joins into this token. Returns `[NONE, NONE]` for one byte,
    /// or if merging its bytes gives other tokens.
    fn split(token: &[u8], ids: &HashMap<&[u8], u32>) -> [u32; 2] {
        let mut borders: Vec<usize> = (0..=token.len()).collect();
        while borders.len() > 3 {
            let rank = |at: &usize| ids.get(&token[borders[*at]..borders[at + 2]]).copied().unwrap_or(NONE);
            let Some(least) = (0..borders.len() - 2).min_by_key(rank).filter(|at| rank(at) != NONE) else {
                break;
            };
            borders.remove(least + 1);
        }
        match borders[..] {
            [from, middle, to] => [ids[&token[from..middle]], ids[&token[middle..to]]],
            _ => [NONE, NONE],
        }
    }

    /// Returns the tokens by hash. An entry holds the first 12 bytes, the length (8 bits) and the id plus one
    /// (18 bits); 0 is an empty entry.
    fn slots(tokens: &[&[u8]]) -> Vec<u128> {
        let size = (tokens.len() * 2).next_power_of_two();
        let mut slots = vec![0u128; size];
        for (token, id) in tokens.iter().zip(0u32..) {
            let mut place = (hash::hash_bytes(token) >> (64 - size.ilog2())) as usize;
            while slots[place] != 0 {
                place = (place + 1) % size;
            }
            let first = hash::word(&token[..token.len().min(12)]);
            slots[place] = first | (token.len() as u128) << 96 | u128::from(id + 1) << 104;
        }
        slots
    }
}
