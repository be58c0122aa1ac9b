//! Counts compared with reference implementations (rules N1, N2).

use context_window::TokenCounter;
use context_window_benches::{
    corpus::{every_text, full},
    tokenizers,
};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn openai_counts_equal_the_reference() {
    let pairs = [
        (TokenCounter::o200k_base(), tiktoken_rs::o200k_base().unwrap()),
        (TokenCounter::cl100k_base(), tiktoken_rs::cl100k_base().unwrap()),
    ];
    let mut compared = 0;
    for (kind, text) in every_text() {
        // The reference panics on long runs of blanks; these are short enough.
        for (counter, reference) in &pairs {
            let expected = reference.encode_ordinary(&text).len() as u64;
            assert_eq!(counter.count(&text).unwrap().tokens, expected, "{} on {kind}", counter.name());
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} counts compared");
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
            // The reference is slow, so it counts only a part of the texts unless there is time.
            if compared > 600 && !full() {
                break;
            }
            let expected = reference.encode_fast(text.as_str(), false).unwrap().len() as u64;
            assert_eq!(counter.count(text).unwrap().tokens, expected, "{} on {kind}", folder.display());
            compared += 1;
        }
        assert!(compared > 100, "{}: {compared} counts compared", folder.display());
        eprintln!("{}: {compared} counts are those of the reference", counter.name());
    }
}

/// Loads a released tokenizer that treats control tokens in a text as plain text.
fn reference(folder: &Path) -> tokenizers_v0::Tokenizer {
    let mut reference = tokenizers_v0::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    reference.set_encode_special_tokens(true);
    reference.with_truncation(None).unwrap();
    reference
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if full() { 20_000 } else { 200 }))]

    #[test]
    fn any_text_has_the_count_of_the_reference(text in "\\PC{0,60}|[a-zA-Z' \\n\\r/é中]{0,80}|(?s:.){0,40}") {
        let o200k = tiktoken_rs::o200k_base_singleton().encode_ordinary(&text).len() as u64;
        let cl100k = tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len() as u64;
        prop_assert_eq!(TokenCounter::o200k_base().count(&text).unwrap().tokens, o200k);
        prop_assert_eq!(TokenCounter::cl100k_base().count(&text).unwrap().tokens, cl100k);
    }
}
