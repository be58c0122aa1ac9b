//! Tests of input lines, chunks and quotes.

use context_window::RagItem;
use rag_chat::{
    answerer::offline::quotes,
    chunks,
    command::{Line, help, read},
};
use std::collections::BTreeMap;

#[test]
fn lines_are_questions_or_commands() {
    assert_eq!(read("  "), None);
    assert_eq!(read(" Why? "), Some(Line::Question("Why?".into())));
    assert_eq!(read("//etc is what?"), Some(Line::Question("/etc is what?".into())));
    assert_eq!(read("/ttl  note-1 3"), Some(Line::Command("ttl", "note-1 3".into())));
    let Some(Line::Unknown(text)) = read("/peng x") else { panic!("unknown") };
    assert!(text.contains("Did you mean /pin?"), "{text}");
    assert!(matches!(read("/é"), Some(Line::Unknown(_))));
    assert!(help().contains("/ttl [ID] TURNS"));
}

#[test]
fn chunk_has_its_headings() {
    let words = "Words of it. ".repeat(60);
    let text = format!(
        "# Shop\n\n{words}\n\n## Hours\n\n```sh\n# no heading\n```\n\n{words}\n\n# Post\n\n{words}\n"
    );
    let found: Vec<String> =
        chunks::split_text("a.md", &text).into_iter().map(|chunk| chunk.heading).collect();
    assert_eq!(found.first().unwrap(), "Shop");
    assert!(found.contains(&"Shop > Hours".to_owned()), "{found:?}");
    assert_eq!(found.last().unwrap(), "Post");
}

#[test]
fn chunks_lose_no_text_and_are_bounded() {
    let sentences: String = (0..400).map(|at| format!("Sentence {at} follows another here. ")).collect();
    let text = sentences + &"x".repeat(5_000);
    let bare = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
    for path in ["a.txt", "a.md"] {
        let chunks = chunks::split_text(path, &text);
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() < 1_200));
        let mut whole = String::new();
        for chunk in chunks.iter().map(|chunk| bare(chunk.text)) {
            // Each chunk begins with the end of the one before, or right after it.
            let repeated = (0..=chunk.len().min(150)).rev().find(|bytes| whole.ends_with(&chunk[..*bytes]));
            whole += &chunk[repeated.unwrap()..];
        }
        assert_eq!(whole, bare(&text));
    }
}

#[test]
fn the_best_passage_is_quoted_with_its_source() {
    let documents = [
        RagItem::new(
            "shop.md#1",
            2.0,
            "[Shop]\nWe sell many kettles and cups here.\n\nWe are open from nine to six.",
        ),
        RagItem::new(
            "post.md#1",
            1.0,
            "A refund for kettles takes five days, by post.\n\n```\nrefund kettle take five days of code\n```",
        ),
    ];
    let said = quotes("How long does a refund for a kettle take?", &documents, &BTreeMap::new());
    assert!(said.starts_with("\"A refund for kettles takes five days, by post.\" [post.md#1]"), "{said}");
    assert!(!said.contains("code"), "{said}");
}

#[test]
fn a_question_that_no_document_answers_gets_no_document() {
    let documents =
        [RagItem::new("post.md#1", 1.0, "A refund for kettles takes five days.\n\nPostage is four crowns.")];
    for nonsense in ["Tigers?", "Zorblax quimfle fnord?", "?", "", "how is it that the"] {
        let said = quotes(nonsense, &documents, &BTreeMap::new());
        assert_eq!(
            said, "No document answers this: no passage in the prompt shares a word with the question.",
            "{nonsense}"
        );
        assert_eq!(quotes(nonsense, &[], &BTreeMap::new()), said);
    }
    // A word in common may be chance, so the passage is shown with its common words.
    assert_eq!(
        quotes("Which zorblax quimfle kettles fnord?", &documents, &BTreeMap::new()),
        "No document answers this. Of the words of the question, these passages have: kettle.\n\n\
         \"A refund for kettles takes five days.\" [post.md#1]"
    );
    assert!(
        quotes("What does a refund cost?", &documents, &BTreeMap::new()).starts_with("\"A refund"),
        "half of the words"
    );
}

#[test]
fn short_passages_and_rows_of_tables_are_quoted() {
    let text = "[Keys]\n# Keys\n\nDoor code is 4711.\n\n| thing | price |\n| --- | --- |\n| desk | 450 crowns |\n| lamp | 30 crowns |";
    let documents = [RagItem::new("a.md#1", 1.0, text)];
    assert_eq!(
        quotes("What is the door code?", &documents, &BTreeMap::new()),
        "\"Door code is 4711.\" [a.md#1]"
    );
    assert_eq!(
        quotes("What does the desk cost?", &documents, &BTreeMap::new()),
        "\"| desk | 450 crowns |\" [a.md#1]"
    );
}
