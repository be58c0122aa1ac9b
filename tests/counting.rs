//! Counts against references and against proven bounds (rules N1, N2, N4, N5).
#![cfg(all(feature = "openai", feature = "hf"))]
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "a test"
)]

mod support;

use context_window::{Certainty, TokenCounter};
use proptest::prelude::*;
use std::path::Path;
use support::{data, texts, tokenizers};

/// Ordinary and hostile texts, and real ones where there is data.
fn every_text() -> Vec<(String, String)> {
    let ours = texts::of_every_kind().into_iter().chain(texts::hostile());
    let mut all: Vec<(String, String)> = ours.map(|(kind, text)| (kind.to_owned(), text)).collect();
    for seed in 0..if full() { 400 } else { 40 } {
        all.push((format!("seed {seed}"), texts::thrown_together(seed, 400)));
    }
    all.extend(real_texts());
    all
}

fn full() -> bool {
    std::env::var_os("FULL").is_some()
}

/// Messages of the real sessions: some of each file, or all with FULL=1.
fn real_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let most = if full() { 200_000 } else { 400 };
    for file in data::files(&["conv_", "long_memorybank", "rag_"]) {
        let mut taken = 0;
        for id in file.ids() {
            let Ok(session) = file.session(Some(&id)) else { continue };
            let of_log = session.log.messages().iter().map(|message| message.text().to_owned());
            let of_rag = session.rag.iter().map(|item| item.text().to_string());
            for (at, text) in of_log.chain(of_rag).enumerate() {
                if taken < most && !text.is_empty() {
                    taken += 1;
                    texts.push((format!("{id}, {at}"), text));
                }
            }
        }
    }
    texts
}

#[test]
fn openai_counts_equal_the_reference() {
    let pairs = [
        (TokenCounter::o200k_base(), tiktoken_rs::o200k_base().unwrap()),
        (TokenCounter::cl100k_base(), tiktoken_rs::cl100k_base().unwrap()),
    ];
    let mut compared = 0;
    for (kind, text) in every_text() {
        // The reference panics on long runs of blanks; the shorter ones here it survives.
        for (counter, reference) in &pairs {
            let expected = reference.encode_ordinary(&text).len() as u64;
            assert_eq!(counter.count(&text).unwrap().n, expected, "{} on {kind}", counter.name());
            compared += 1;
        }
    }
    eprintln!("{compared} counts are those of the reference");
}

#[test]
fn counts_of_a_tokenizer_json_equal_the_reference() {
    let texts = every_text();
    for folder in tokenizers::folders() {
        let counter = TokenCounter::huggingface(&folder).unwrap();
        let reference = reference(&folder);
        let mut compared = 0;
        for (kind, text) in &texts {
            // The reference is slow; it is not asked about everything unless there is time.
            if compared > 600 && !full() {
                break;
            }
            let expected = reference.encode_fast(text.as_str(), false).unwrap().len() as u64;
            assert_eq!(counter.count(text).unwrap().n, expected, "{} on {kind}", folder.display());
            compared += 1;
        }
        eprintln!("{}: {compared} counts are those of the reference", counter.name());
    }
}

/// Plain text to the released tokenizers, control tokens among it.
fn reference(folder: &Path) -> tokenizers_v0::Tokenizer {
    let mut reference = tokenizers_v0::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    reference.set_encode_special_tokens(true);
    reference.with_truncation(None).unwrap();
    reference
}

/// Every counter there is.
fn counters() -> Vec<TokenCounter> {
    let named = TokenCounter::NAMES.iter().map(|name| TokenCounter::named(name).unwrap());
    named.chain([TokenCounter::huggingface(&tokenizers::small()).unwrap()]).collect()
}

/// Counting up to a limit says what counting says, on both sides of the limit.
fn check_limits(counter: &TokenCounter, text: &str, limits: impl Iterator<Item = u64>) {
    let whole = counter.count(text).unwrap();
    for limit in limits {
        let upto = counter.count_up_to(text, limit).unwrap();
        if whole.n <= limit {
            assert_eq!(upto, whole, "{} up to {limit}", counter.name());
        } else {
            assert_eq!(upto.n, limit + 1, "{} up to {limit} of {}", counter.name(), whole.n);
            assert_ne!(upto.certainty, Certainty::Exact);
        }
    }
}

#[test]
fn counting_up_to_a_limit_is_counting() {
    for counter in counters() {
        for (_, text) in texts::of_every_kind().into_iter().chain(texts::hostile()) {
            let n = counter.count(&text).unwrap().n;
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
            let whole = counter.count(&text).unwrap().n;
            for limit in [0, 1, 2, 7, whole / 3, whole.saturating_sub(1), whole, whole + 1, u64::MAX] {
                let (prefix, count) = counter.prefix_within(&text, limit).unwrap();
                assert!(text.starts_with(prefix) && count.n <= limit, "{kind} within {limit}");
                assert_eq!(
                    counter.count(prefix).unwrap(),
                    count,
                    "{} on {kind} within {limit}",
                    counter.name()
                );
                if limit >= whole {
                    assert_eq!(prefix.len(), text.len(), "{} on {kind}", counter.name());
                } else {
                    // A token covers 128 bytes at most; what is left of the last word is less.
                    let more = text.ceil_char_boundary((prefix.len() + 400).min(text.len()));
                    let n = counter.count(&text[..more]).unwrap().n;
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
            let n = counter.count(&text).unwrap().n;
            // The small tokenizer composes characters first: Unicode lets that grow a text threefold.
            let grown = if counter.name().starts_with("small") { 3 * bound.n } else { bound.n };
            assert!(n <= grown, "{n} of {} for {} bytes of {kind}", counter.name(), bound.n);
        }
    }
}

#[test]
fn what_is_no_tokenizer_is_refused_and_named() {
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
        assert_eq!(error.kind(), context_window::ErrorKind::Count);
        shown += &error.to_string().replace(&format!("{}/", folder.display()), "");
        shown.push('\n');
    }
    let missing = TokenCounter::huggingface(&folder.join("nowhere")).unwrap_err().to_string();
    assert!(missing.contains("nowhere") && missing.contains("cannot be read"), "{missing}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_tokenizer_is_named_by_folder_and_content() {
    let counter = TokenCounter::huggingface(&tokenizers::small()).unwrap();
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
    fn any_text_counts_as_the_reference_counts_it(text in "\\PC{0,60}|[a-zA-Z' \\n\\r/é中]{0,80}|(?s:.){0,40}") {
        let o200k = tiktoken_rs::o200k_base_singleton().encode_ordinary(&text).len() as u64;
        let cl100k = tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len() as u64;
        prop_assert_eq!(TokenCounter::o200k_base().count(&text).unwrap().n, o200k);
        prop_assert_eq!(TokenCounter::cl100k_base().count(&text).unwrap().n, cl100k);
    }

    #[test]
    fn any_limit_is_kept(seed: u64, characters in 0usize..300, limit in 0u64..400) {
        let text = texts::thrown_together(seed, characters);
        for counter in [TokenCounter::o200k_base(), TokenCounter::cl100k_base()] {
            check_limits(&counter, &text, [limit].into_iter());
        }
    }
}
