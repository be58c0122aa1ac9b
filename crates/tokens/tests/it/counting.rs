//! Counts compared with proven bounds (rules N1, N2, N4, N5). The comparisons with other crates are in
//! `benches/tests`.

use crate::support::{
    corpus::{every_text, full},
    texts, tokenizers,
};
use context_window::{TokenCounter, tokens::Certainty};
use proptest::prelude::*;
use std::path::Path;

/// Returns every available counter.
fn counters() -> Vec<TokenCounter> {
    let named = TokenCounter::NAMES.iter().map(|name| TokenCounter::named(name).unwrap());
    named.chain([TokenCounter::huggingface(tokenizers::small()).unwrap()]).collect()
}

/// Checks that counting up to a limit agrees with counting, on both sides of the limit.
fn check_limits(counter: &TokenCounter, text: &str, limits: impl Iterator<Item = u64>) {
    let whole = counter.count(text).unwrap();
    for limit in limits {
        let upto = counter.count_up_to(text, limit).unwrap();
        if whole.tokens <= limit {
            assert_eq!(upto, whole, "{} up to {limit}", counter.name());
        } else {
            assert_eq!(upto.tokens, limit + 1, "{} up to {limit} of {}", counter.name(), whole.tokens);
            assert_ne!(upto.certainty, Certainty::Exact);
        }
    }
}

#[test]
fn counting_up_to_a_limit_is_counting() {
    for counter in counters() {
        for (_, text) in texts::of_every_kind().into_iter().chain(texts::hostile()) {
            let n = counter.count(&text).unwrap().tokens;
            let near =
                (n.saturating_sub(40)..n + 3).chain([0, 1, 2, n / 2, n / 16, n / 128, n / 129, u64::MAX]);
            check_limits(&counter, &text, near);
        }
    }
}

#[test]
fn a_prefix_fits_and_a_word_more_would_not() {
    for counter in counters() {
        for (kind, text) in texts::of_every_kind().into_iter().chain(texts::hostile()) {
            let whole = counter.count(&text).unwrap().tokens;
            for limit in [0, 1, 2, 7, whole / 3, whole.saturating_sub(1), whole, whole + 1, u64::MAX] {
                let (prefix, count) = counter.prefix_within(&text, limit).unwrap();
                assert!(text.starts_with(prefix) && count.tokens <= limit, "{kind} within {limit}");
                assert_eq!(
                    counter.count(prefix).unwrap(),
                    count,
                    "{} on {kind} within {limit}",
                    counter.name()
                );
                if limit >= whole {
                    assert_eq!(prefix.len(), text.len(), "{} on {kind}", counter.name());
                } else {
                    // A token covers at most 128 bytes, so the incomplete last word has fewer.
                    let more = text.ceil_char_boundary((prefix.len() + 400).min(text.len()));
                    let n = counter.count(&text[..more]).unwrap().tokens;
                    assert!(n > limit, "{} on {kind}: {n} within {limit}", counter.name());
                }
            }
        }
    }
}

#[test]
fn an_upper_bound_never_counts_too_little() {
    let bytes = TokenCounter::bytes();
    let exact: Vec<TokenCounter> =
        counters().into_iter().filter(|counter| counter.certainty() == Certainty::Exact).collect();
    for (kind, text) in every_text() {
        let bound = bytes.count(&text).unwrap();
        assert_eq!(bound.certainty, Certainty::UpperBound);
        for counter in &exact {
            let n = counter.count(&text).unwrap().tokens;
            // The small tokenizer composes characters first, which in Unicode may grow a text threefold.
            let grown = if counter.name().starts_with("small") { 3 * bound.tokens } else { bound.tokens };
            assert!(n <= grown, "{n} of {} for {} bytes of {kind}", counter.name(), bound.tokens);
        }
    }
}

#[test]
fn invalid_tokenizer_file_is_refused_and_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-tokenizers");
    std::fs::create_dir_all(&folder).unwrap();
    let json = std::fs::read_to_string(tokenizers::small().join("tokenizer.json")).unwrap();
    let cases = [
        ("empty.json", String::new()),
        ("cut.json", json[..json.len() / 2].to_owned()),
        ("random.json", json.replace("\"dropout\":null", "\"dropout\":0.1")),
        ("other.json", "{\"chat_template\":\"x\"}".to_owned()),
        ("magic.json", json.replace("\"type\":\"BPE\"", "\"type\":\"Magic\"")),
        ("deep.json", "[".repeat(100_000)),
    ];
    let mut shown = String::new();
    for (name, text) in cases {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let error = TokenCounter::huggingface(&path).unwrap_err();
        assert_eq!(
            context_window::Error::from(TokenCounter::huggingface(&path).unwrap_err()).kind(),
            context_window::ErrorKind::Count
        );
        shown += &error.to_string().replace(&format!("{}/", folder.display()), "");
        shown.push('\n');
    }
    let missing = TokenCounter::huggingface(folder.join("nowhere")).unwrap_err().to_string();
    assert!(missing.contains("nowhere") && missing.contains("cannot be read"), "{missing}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_tokenizer_is_named_by_folder_and_content() {
    let counter = TokenCounter::huggingface(tokenizers::small()).unwrap();
    let bytes = std::fs::read(tokenizers::small().join("tokenizer.json")).unwrap();
    let same = TokenCounter::huggingface_bytes("small", &bytes).unwrap();
    assert_eq!(counter.name(), same.name());
    let file = TokenCounter::named(tokenizers::small().join("tokenizer.json").to_str().unwrap()).unwrap();
    assert_eq!(counter.name(), file.name());
    let other = String::from_utf8(bytes).unwrap().replace("<think>", "<thunk>");
    assert_ne!(TokenCounter::huggingface_bytes("small", other.as_bytes()).unwrap().name(), same.name());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if full() { 20_000 } else { 200 }))]

    #[test]
    fn any_limit_is_kept(seed: u64, characters in 0usize..300, limit in 0u64..400) {
        let text = texts::thrown_together(seed, characters);
        for counter in [TokenCounter::o200k_base(), TokenCounter::cl100k_base()] {
            check_limits(&counter, &text, [limit].into_iter());
        }
    }
}
