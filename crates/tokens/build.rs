//! Writes the vocabularies of the `OpenAI` encodings as tables that the program reads in place, without
//! loading them, or with the features `compact` and `loadable` as the merges that it expands. The tokens come
//! from the crate `tiktoken-rs`; `src/openai/vocabulary.rs` defines the tables, and `src/openai/table.rs` the
//! merges.
#![allow(clippy::disallowed_types, reason = "maps are looked up here, never walked")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/openai/hash.rs");
    println!("cargo::rerun-if-changed=src/openai/table.rs");
    #[cfg(feature = "encodings")]
    {
        std::thread::scope(|scope| {
            scope.spawn(|| tables::write("o200k_base", tiktoken_rs::o200k_base()));
            scope.spawn(|| tables::write("cl100k_base", tiktoken_rs::cl100k_base()));
            classes::write();
        });
    }
}

#[cfg(feature = "encodings")]
#[path = "src/openai/hash.rs"]
mod hash;
#[cfg(feature = "encodings")]
#[path = "src/openai/table.rs"]
mod table;

/// Writes the class of each character, by the numbers of `src/openai/classes.rs`: first the index of a page
/// of classes for every 256 characters (16 bits), then those pages with one byte per character.
#[cfg(feature = "encodings")]
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

#[cfg(feature = "encodings")]
mod tables {
    use super::table::{Merges, NONE};
    use std::{collections::HashMap, env, fmt::Debug, fs, path::Path};
    use tiktoken_rs::CoreBPE;

    pub(super) fn write<E: Debug>(name: &str, encoding: Result<CoreBPE, E>) {
        let encoding = encoding.expect("an encoding that the crate brings");
        // Ids are ranks without gaps. Control tokens follow the last one.
        let tokens = (0..).map_while(|id| encoding.decode_bytes(&[id]).ok());
        let controls = encoding.special_tokens();
        let is_control = |token: &[u8]| controls.iter().any(|control| control.as_bytes() == token);
        let tokens: Vec<Vec<u8>> = tokens.take_while(|token| !is_control(token)).collect();
        let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
        let merges = merges(&tokens);
        let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
        let path = Path::new(&folder).join(name);
        let embeds_merges = cfg!(feature = "compact");
        if embeds_merges || cfg!(feature = "loadable") {
            fs::write(path.with_extension("merges"), &merges).expect("OUT_DIR can be written");
        }
        #[cfg(feature = "loadable")]
        fs::write(path.with_extension("hash"), blake3::hash(&merges).as_bytes())
            .expect("OUT_DIR can be written");
        if cfg!(feature = "openai") && !embeds_merges {
            let merges = Merges::new(&merges);
            let mut table = vec![0; merges.table_size()];
            merges.write_table(&mut table);
            fs::write(path.with_extension("table"), table).expect("OUT_DIR can be written");
        }
    }

    /// Returns the vocabulary as `src/openai/table.rs` reads it.
    fn merges(tokens: &[&[u8]]) -> Vec<u8> {
        assert!(tokens.len() < 1 << 18, "18 bits hold every id and one more");
        assert!(
            tokens.iter().map(|token| token.len()).sum::<usize>() < 1 << 24,
            "24 bits hold every position"
        );
        assert!(tokens.iter().all(|token| token.len() < 1 << 8), "8 bits hold every length");
        let (bytes, longer) = tokens.split_at(256);
        assert!(bytes.iter().all(|token| token.len() == 1), "the bytes come first");
        let ids: HashMap<&[u8], u32> = tokens.iter().zip(0..).map(|(token, id)| (*token, id)).collect();
        let splits: Vec<[u32; 2]> = longer.iter().map(|token| split(token, &ids)).collect();
        // This excludes `NONE`, too.
        let is_earlier = |(split, id): (&[u32; 2], u32)| split.iter().all(|part| *part < id);
        assert!(splits.iter().zip(256..).all(is_earlier), "a token is merged from two earlier ones");
        let planes = (0..2).flat_map(|part| (0..3).map(move |byte| (part, byte)));
        let pairs =
            planes.flat_map(|(part, byte)| splits.iter().map(move |split| split[part].to_le_bytes()[byte]));
        bytes.concat().into_iter().chain(pairs).collect()
    }

    /// Returns the two tokens that the last merge joins into this token. Returns `[NONE, NONE]` if merging
    /// its bytes gives other tokens.
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
}
