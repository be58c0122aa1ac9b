//! Answers as Markdown.

use context_window_ratatui::Theme;
use rag_chat::screen::markdown;
use ratatui::style::Modifier;

/// Returns the lines of a text, and the words of each style.
fn drawn(text: &str, columns: usize) -> (Vec<String>, Vec<(String, Modifier)>) {
    let lines = markdown::lines(text, columns, Theme::plain());
    let spans = lines.iter().flat_map(|line| &line.spans);
    let styled = spans.filter(|span| !span.style.add_modifier.is_empty());
    let styled = styled.map(|span| (span.content.to_string(), span.style.add_modifier)).collect();
    (lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect(), styled)
}

#[test]
fn headings_emphasis_code_and_lists_are_drawn() {
    let text = "# Refunds\n\nA *refund* takes **five** days, see `refund()`.\nOr not.\n\n- one\n- two:\n  1. deep\n  2. deeper\n\n```rust\nfn  a() {\n    b();\n}\n```\n> quoted\n";
    let (lines, styled) = drawn(text, 60);
    let expected = [
        "Refunds",
        "",
        "A refund takes five days, see `refund()`.",
        "Or not.",
        "",
        "• one",
        "• two:",
        "  1. deep",
        "  2. deeper",
        "",
        "rust",
        "  fn  a() {",
        "      b();",
        "  }",
        "",
        "│ quoted",
    ];
    assert_eq!(lines, expected);
    let has = |text: &str, modifier| styled.iter().any(|(said, all)| said == text && all.contains(modifier));
    assert!(has("Refunds", Modifier::BOLD) && has("refund", Modifier::ITALIC) && has("five", Modifier::BOLD));
}

#[test]
fn no_written_word_is_lost() {
    for (text, expected) in [
        ("[guide.md#2]: yes", "[guide.md#2]: yes"),
        ("see [pins] and [a](https://b.c/d)", "see [pins] and a (https://b.c/d)"),
        ("a <b> & </document> &amp; <|im_end|>", "a <b> & </document> & <|im_end|>"),
        ("\"- **N4** `x`\" [rules.md#1]", "\"- N4 `x`\" [rules.md#1]"),
        ("<!-- no -->", "<!-- no -->"),
        ("![cat](c.png)", "[image: cat (c.png)]"),
        ("x &#27;[2J", "x ?[2J"),
        ("4 * 5 * 6, snake_case_name", "4 * 5 * 6, snake_case_name"),
        ("\u{200b} \u{e9}t\u{e9} \u{ad} \u{200b}*\u{e9}*", "\u{200b} \u{e9}t\u{e9} \u{ad} \u{200b}\u{e9}"),
    ] {
        assert_eq!(drawn(text, 60).0.join("\n"), expected, "{text}");
    }
    // Every word of a long page is kept, in lines that fit, at any width.
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let page = page + &">".repeat(200) + " deep\n\n" + &"- x\n".repeat(3);
    for columns in [8, 20, 33, 80] {
        let (lines, _) = drawn(&page, columns);
        let all: String = lines.concat().chars().filter(|letter| letter.is_alphanumeric()).collect();
        let wide = lines.iter().filter(|line| line.chars().count() > columns).count();
        assert_eq!(wide, 0, "{columns}");
        let words = page.split(|letter: char| !letter.is_ascii_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            assert!(all.contains(word), "{columns}: {word}");
        }
    }
}

#[test]
fn tables_have_columns_if_there_is_room() {
    let table = "| thing | price |\n| --- | --- |\n| desk | 450 |\n| a lamp | 30 |";
    assert_eq!(drawn(table, 40).0, ["thing  │ price", "desk   │ 450", "a lamp │ 30"]);
    assert!(drawn(table, 9).0.len() > 3);
}
