//! Documents of session files: several ranked lists, and the place and date of each document.

use context_window::{
    Config, ContextWindowManager, ItemId, Model, PlanRequest, RagItem, RetrievedItems, TokenCounter,
};
use context_window_formats::{Session, SessionTexts, session_json};
use context_window_testing::generate;
use proptest::prelude::*;

/// Reads a session with these values of keys.
fn session(keys: &str) -> Session {
    Session::from_json(&format!(r#"{{"query": "How long?", {keys}}}"#)).unwrap()
}

/// Returns the names of the lists, each with the ids of its documents.
fn lists(items: &RetrievedItems) -> Vec<String> {
    let ids = |list: &[RagItem]| list.iter().map(|item| item.id().to_string()).collect::<Vec<_>>().join(" ");
    items.lists().map(|(name, list)| format!("{name}: {}", ids(&list))).collect()
}

fn ids(items: &[RagItem]) -> Vec<&str> {
    items.iter().map(|item| item.id().as_str()).collect()
}

const LISTS: &str = r#"{"words": [{"id": "a", "text": "A", "score": 9}, {"id": "b", "text": "B", "score": 8}],
    "meaning": [{"id": "b", "text": "B", "score": 0.9}, {"id": "c", "text": "C", "score": 0.1}]}"#;

#[test]
fn object_of_arrays_is_read_as_ranked_lists() {
    for key in ["rag", "passages"] {
        let read = session(&format!(r#""{key}": {LISTS}"#));
        assert_eq!(lists(&read.rag), ["words: a b", "meaning: b c"]);
        assert_eq!(ids(&read.rag), ["a", "b", "c"]);
        let manager =
            ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default());
        let plan = manager.unwrap().build_plan(&read.request()).unwrap();
        let row = plan.included.iter().find(|row| row.id == "b").unwrap();
        let ranks: Vec<String> =
            row.ranks().iter().map(|rank| format!("{} {}", rank.list, rank.rank)).collect();
        assert_eq!(ranks, ["words 2", "meaning 1"]);
    }
    let one = session(r#""rag": [{"id": "a", "text": "A", "score": 9}]"#);
    assert_eq!((one.rag.list_names().count(), one.rag.len()), (0, 1));
    let named = session(r#""rag": {"words": [{"id": "a", "text": "A", "score": 9}]}"#);
    assert_eq!(lists(&named.rag), ["words: a"]);
    assert!(session(r#""rag": null"#).rag.is_empty() && session(r#""rag": {}"#).rag.is_empty());
}

#[test]
fn documents_of_several_keys_keep_their_lists() {
    let more = r#"[{"id": "d", "text": "D", "score": 1}]"#;
    let both = session(&format!(r#""rag": {more}, "passages": {LISTS}"#));
    assert_eq!(lists(&both.rag), ["documents: d", "words: a b", "meaning: b c"]);
    let both = session(&format!(r#""rag": {LISTS}, "passages": {more}"#));
    assert_eq!(lists(&both.rag), ["words: a b", "meaning: b c", "documents: d"]);
    let sent = |documents: &str, rest: &str| {
        let message = format!(r#"{{"role": "user", "content": "Hi", "documents": {documents}}}"#);
        Session::from_json(&format!(r#"{{"messages": [{message}]{rest}}}"#)).unwrap()
    };
    assert_eq!(lists(&sent(LISTS, "").rag), ["words: a b", "meaning: b c"]);
    let own = format!(r#", "rag": {more}"#);
    assert_eq!(lists(&sent(LISTS, &own).rag), ["documents: d", "words: a b", "meaning: b c"]);
    // The documents of the session replace those of the message with the same ids.
    let own = format!(r#", "rag": {LISTS}"#);
    assert_eq!(lists(&sent(more, &own).rag), ["words: a b", "meaning: b c", "documents: d"]);
    assert_eq!(lists(&sent(LISTS, &own).rag), ["words: a b", "meaning: b c"]);
}

#[test]
fn place_and_date_of_a_document_are_read() {
    let document = |keys: &str| {
        let text = format!(r#""rag": [{{"id": "a", "text": "A", "score": 1, {keys}}}]"#);
        session(&text).rag[0].clone()
    };
    let expected = RagItem::new("a", 1.0, "A").with_span(4..9).with_position(2).with_date(1_795_773_600);
    for date in ["1795773600", "1795773600.75", "\"2026-11-27T10:00:00Z\"", "\"2026-11-27T11:00:00+01:00\""] {
        assert_eq!(document(&format!(r#""span": [4, 9], "position": 2, "date": {date}"#)), expected);
    }
    let bare = document(r#""span": null, "position": null, "date": null"#);
    assert_eq!(bare, RagItem::new("a", 1.0, "A"));
}

#[test]
fn wrong_documents_are_named_with_their_place() {
    let error = |rag: &str| Session::from_json(&format!(r#"{{"query":"q","rag":{rag}}}"#)).unwrap_err();
    let with = |keys: &str| error(&format!(r#"{{"words":[{{"id":"a","text":"A","score":1,{keys}}}]}}"#));
    let shown = [
        with(r#""date":"yesterday""#),
        with(r#""date":true"#),
        with(r#""date":1e300"#),
        with(r#""span":[9,4]"#),
        with(r#""span":[9]"#),
        with(r#""position":-1"#),
        with(r#""messages":[4,2]"#),
        with(r#""messages":"m4""#),
        error(r#"{"words":3}"#),
        error("\"a\""),
        error(r#"{"words":[{"id":"a"}]}"#),
    ];
    let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    session:1:78: rag.words[0].date: invalid value: string "yesterday", expected seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z
    session:1:71: rag.words[0].date: invalid type: boolean `true`, expected seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z
    session:1:72: rag.words[0].date: invalid value: number `1e+300`, expected seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z
    session:1:73: rag.words[0].span: expected [start, end], with the start first
    session:1:70: rag.words[0].span: invalid length 1, expected an array of size 2
    session:1:73: rag.words[0].position: invalid value: integer `-1`, expected a whole number, 0 or more
    session:1:77: rag.words[0].messages: expected [start, end], with the position of the first message, and that after the last one
    session:1:75: rag.words[0].messages: invalid type: string "m4", expected an array of size 2
    session:1:29: rag.words: invalid type: integer `3`, expected an array
    session:1:22: rag: invalid type: string "a", expected an array of documents, or an object with an array for each list
    session:1:39: rag.words[0]: missing field `text`
    "#);
}

fn document() -> impl Strategy<Value = RagItem> {
    let messages = prop::option::of((0..4usize, 0..4usize));
    let place = (prop::option::of(0..50u64), prop::option::of(0..9u64), prop::option::of(-9..9i64), messages);
    let variants = prop::collection::vec("[xy]{0,2}", 0..3);
    let others = (variants, prop::collection::vec("[a-e]", 0..2), prop::option::of("[gh]"));
    ("[a-e]", -3..3i32, "[xy]{1,2}", prop::option::of("[pq]"), place, others).prop_map(
        |(id, score, text, origin, (start, position, date, messages), (variants, requires, group))| {
            let mut item = RagItem::new(ItemId::from(id), f64::from(score), text);
            item.origin = origin.map(Into::into);
            item.span = start.map(|start| start..start + 7);
            (item.position, item.date) = (position, date);
            for (at, variant) in variants.into_iter().enumerate() {
                item = item.with_variant(at.to_string(), variant);
            }
            item = requires.into_iter().fold(item, RagItem::with_required);
            item.group = group.map(Into::into);
            match messages {
                Some((start, end)) => item.with_messages(start..end),
                None => item,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..generate::cases(300, 10_000) })]

    /// A written session has the same documents in the same lists.
    #[test]
    fn written_documents_are_read_back(names in prop::sample::subsequence(vec!["", "b", "a", "c"], 0..4), lists in prop::collection::vec(prop::collection::vec(document(), 0..5), 4), is_one in any::<bool>()) {
        let mut items = RetrievedItems::default();
        for (name, list) in names.into_iter().zip(lists) {
            items = if is_one { RetrievedItems::from(list) } else { items.with_list(name, list) };
        }
        let session = session(r#""limits": {}"#);
        let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default()).unwrap();
        let request = PlanRequest::new(&session.log).with_retrieved(items.clone());
        let written = session_json(&manager, &request, SessionTexts::Kept).unwrap();
        let read = Session::from_json(&written).unwrap();
        prop_assert_eq!(&read.rag, &items);
        let redacted = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
        let redacted = Session::from_json(&redacted).unwrap().rag;
        let names = |items: &RetrievedItems| items.lists().map(|(name, list)| (name.to_owned(), list.len())).collect::<Vec<_>>();
        prop_assert_eq!(names(&redacted), names(&items));
    }
}
