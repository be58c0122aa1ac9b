//! Long and broken texts: the search ends, and no place is inside a character.

use context_window::find_rules;

/// Parts that are repeated to long texts.
const PARTS: [&str; 28] = [
    "always ", "\"", " \"a", "'", " '", "`", "`` ", "```", "```\n", "~~~\n", ">", "<a>", "</a>", "<a><b>",
    "<", "<!--", "“", "”„", "「", "- ", "- a\n", "never, ", "if a, ", "#\n", "{", "。", "é", "**a**:\n",
];

#[test]
fn long_texts_are_searched_to_their_end() {
    for part in PARTS {
        let text = part.repeat(400_000 / part.len());
        let with_rule = format!("{text}\n\n---\n\nNever touch the migrations folder.");
        for range in find_rules(&with_rule) {
            assert!(!with_rule[range].trim().is_empty());
        }
    }
}

#[test]
fn every_cut_of_a_text_is_valid() {
    let text = "“Toujours” é…「常に」\u{fffc}<dоc>«ñ» — „ja“ 'ü' `ß` **é:** 1）必ず\n```\n>é\n\t– niemals…\n<é>x</é>\r\n1.é";
    let places: Vec<usize> = text.char_indices().map(|one| one.0).chain([text.len()]).collect();
    for start in &places {
        for end in places.iter().filter(|end| *end >= start) {
            let part = &text[*start..*end];
            for range in find_rules(part) {
                assert!(!part[range].trim().is_empty());
            }
        }
    }
}

#[test]
fn random_texts_give_ordered_sentences() {
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize;
            text.push_str(PARTS[at % PARTS.len()]);
            text.push_str([" ", "\n", ". ", "Never x", "\n\n", ""][at / 64 % 6]);
        }
        let found = find_rules(&text);
        assert!(found.is_sorted_by(|one, next| one.end <= next.start), "{text:?}");
        for range in &found {
            let rule = &text[range.clone()];
            assert!(!rule.is_empty() && rule == rule.trim(), "{text:?}");
        }
        assert_eq!(found, find_rules(&text));
    }
}
