//! Selection of documents by several lists and by the texts that contain each other, and their order (rules
//! S8, S9, S14, S15, O1).

use crate::support::recount;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest,
    RagItem, RequestLimits, TokenCounter, Tool, ToolCall,
};

/// Twenty words, without a number.
const REFUNDS: &str = "Refunds take five working days after the parcel arrives at our warehouse near the harbour, and we write to you then.";

/// Returns a manager with these options; what they do not set is off.
fn manager(rag: &str) -> ContextWindowManager {
    let mut config = Config::from_toml(&format!("[rag]\n{rag}"), "test").unwrap();
    config.rag.near_duplicates *= u8::from(rag.contains("near_duplicates"));
    config.rag.repeats *= u8::from(rag.contains("repeats"));
    config.rag.join_chunks &= rag.contains("join_chunks");
    ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), config).unwrap()
}

fn plan(rag: &str, log: &Conversation, documents: Vec<RagItem>) -> ContextPlan {
    manager(rag).build_plan(&PlanRequest::new(log).with_rag(documents)).unwrap()
}

fn question() -> Conversation {
    Conversation::from([Message::user("How long do refunds take?")])
}

/// Returns each document with its reason, as "id: reason", those in the prompt first and in its order.
fn reasons(plan: &ContextPlan) -> Vec<String> {
    let included = plan.included.iter().filter(|row| row.role.is_none());
    let included = included.map(|row| format!("{}: in", row.id));
    let excluded = plan.excluded.iter().filter(|row| row.section == context_window::Section::Rag);
    included.chain(excluded.map(|row| format!("{}: {}", row.id, row.reason))).collect()
}

fn chunks() -> Vec<RagItem> {
    let words: Vec<String> = (0..60)
        .map(|at| format!("word{}", char::from(b'a' + (at % 26) as u8).to_string().repeat(1 + at / 26)))
        .collect();
    let chunk = |id: &str, score: f64, from: usize, to: usize| {
        RagItem::new(id, score, words[from..to].join(" ")).with_origin("guide.md")
    };
    vec![chunk("one", 0.5, 0, 25), chunk("two", 0.9, 15, 40), chunk("three", 0.7, 30, 60)]
}

#[test]
fn lists_are_fused_by_rank() {
    let list = |ids: &[(&str, f64)]| -> Vec<RagItem> {
        ids.iter().map(|(id, score)| RagItem::new(*id, *score, format!("Text of {id}."))).collect()
    };
    let log = question();
    let request = PlanRequest::new(&log)
        .with_rag_list("words", list(&[("a", 31.0), ("b", 30.0), ("c", 2.0)]))
        .with_rag_list("meaning", list(&[("c", 0.9), ("b", 0.8), ("d", 0.1)]));
    let fused = manager("").build_plan(&request).unwrap();
    // 1/61 + 1/63 for c, 2/62 for b, 1/61 for a, 1/63 for d.
    assert_eq!(reasons(&fused), ["c: in", "b: in", "a: in", "d: in"]);
    let ranks = |id: &str| {
        let row = fused.included.iter().find(|row| row.id == *id).unwrap();
        row.ranks().iter().map(|rank| format!("{} {}", rank.list, rank.rank)).collect::<Vec<_>>()
    };
    assert_eq!(
        (ranks("b"), ranks("d")),
        (vec!["words 2".into(), "meaning 2".into()], vec!["meaning 3".into()])
    );
    let weighted = manager("lists.words.weight = 3\n").build_plan(&request).unwrap();
    assert_eq!(reasons(&weighted), ["b: in", "c: in", "a: in", "d: in"]);
    let limited = manager("lists.meaning.max_items = 1\n").build_plan(&request).unwrap();
    assert_eq!(
        reasons(&limited),
        ["c: in", "b: in", "a: in", "d: the limit of 1 documents of the list meaning is reached"]
    );
    // One list alone is ordered by its scores, whatever its name.
    let alone = PlanRequest::new(&log).with_rag_list("words", list(&[("a", 1.0), ("b", 2.0)]));
    let alone = manager("").build_plan(&alone).unwrap();
    assert_eq!(reasons(&alone), ["b: in", "a: in"]);
    assert!(alone.included[0].ranks().is_empty());
}

#[test]
fn newer_of_equal_scores_and_of_versions_comes_first() {
    let item = |id: &str, score: f64, text: &str, date: i64| RagItem::new(id, score, text).with_date(date);
    let equal = vec![item("a", 0.5, "Old.", 10), item("b", 0.5, "New.", 20)];
    assert_eq!(reasons(&plan("", &question(), equal)), ["b: in", "a: in"]);
    let versions = vec![item("a", 0.9, "First edition.", 10), item("a", 0.5, "Second edition.", 20)];
    let plan = plan("", &question(), versions);
    assert_eq!(plan.included[0].body.text().lines().nth(1), Some("Second edition."));
    assert_eq!(reasons(&plan), ["a: in", "a: duplicate of a"]);
}

#[test]
fn near_duplicate_of_an_included_document_is_excluded() {
    let log = question();
    let documents = || {
        vec![
            RagItem::new("best", 0.9, REFUNDS),
            RagItem::new("dot", 0.8, REFUNDS.replace(", and", ". And")),
            RagItem::new("longer", 0.7, format!("{REFUNDS} Shoes are different.")),
            RagItem::new("number", 0.6, REFUNDS.replace("five", "5")),
        ]
    };
    let found = plan("near_duplicates = 75\n", &log, documents());
    assert_eq!(
        reasons(&found),
        ["best: in", "longer: in", "number: in", "dot: near duplicate of best, 100 %"]
    );
    assert_eq!(plan("", &log, documents()).included.len(), 5);
    // If the better document does not fit, the other one is tried.
    let request = PlanRequest::new(&log)
        .with_rag(vec![
            RagItem::new("best", 0.9, format!("{REFUNDS}{}", " ".repeat(200))),
            RagItem::new("dot", 0.8, REFUNDS),
        ])
        .with_limits(RequestLimits::prompt_budget(300));
    let tight = manager("near_duplicates = 75\n").build_plan(&request).unwrap();
    assert_eq!(reasons(&tight)[0], "dot: in");
}

#[test]
fn text_that_is_sent_anyway_is_not_sent_as_a_document() {
    let rag = "repeats = 90\n";
    let quoted = Conversation::from([
        Message::user(format!("They wrote: {REFUNDS}")),
        Message::assistant("I see."),
        Message::user("How long do refunds take?"),
    ]);
    let document = || vec![RagItem::new("refunds", 0.9, REFUNDS)];
    assert_eq!(reasons(&plan(rag, &quoted, document())), ["refunds: repeats m0, 100 %"]);
    assert_eq!(reasons(&plan("", &quoted, document())), ["refunds: in"]);

    let mut result = question();
    result.push(Message::assistant("").with_tool_calls([ToolCall::new("c1", "search", "{}")]));
    result.push(Message::tool("c1", format!("1. {REFUNDS}\n2. Nothing.")));
    assert_eq!(reasons(&plan(rag, &result, document())), ["refunds: repeats m2, 100 %"]);

    let mut pinned = question();
    pinned.pin(PinnedItem::new("policy", REFUNDS));
    assert_eq!(reasons(&plan(rag, &pinned, document())), ["refunds: repeats policy, 100 %"]);

    // A document that only quotes the question is no repeat of it.
    let short = vec![RagItem::new("faq", 0.9, "How long do refunds take? Five days.")];
    assert_eq!(reasons(&plan(rag, &question(), short)), ["faq: in"]);
}

#[test]
fn overlapping_chunks_are_sent_as_one_text() {
    let (log, all) = (question(), chunks());
    let joined = plan("join_chunks = true\n", &log, all.clone());
    assert_eq!(reasons(&joined), ["one: in", "two: in", "three: in"]);
    let continues: Vec<_> =
        joined.included[..3].iter().map(|row| row.continues().map(|id| id.as_str())).collect();
    assert_eq!(continues, [None, Some("one"), Some("two")]);
    let text: String = joined.included[..3].iter().map(|row| row.body.text()).collect();
    assert!(text.starts_with("<document id=\"one, two, three\" source=\"guide.md\">\nworda "), "{text}");
    for chunk in &all {
        assert!(text.contains(chunk.text()), "{} in {text}", chunk.id());
    }
    let apart = plan("", &log, all);
    let saved = apart.estimated_tokens_total.tokens - joined.estimated_tokens_total.tokens;
    assert!(saved > 150, "{saved} bytes");
    let sent = joined.included.iter().map(|row| row.token_estimate.tokens as i64).sum::<i64>()
        + joined.overhead.iter().map(|line| line.tokens).sum::<i64>();
    assert_eq!(sent, joined.estimated_tokens_total.tokens as i64);
}

/// Copies of a document that state different places: the first one of their order is included, not of the
/// input.
#[test]
fn copies_at_other_places_are_joined_in_any_order() {
    let log = question();
    let before = RagItem::new("one", 0.9, "Refunds take").with_origin("faq.md").with_span(0..12);
    let copies = [12..23, 40..51]
        .map(|span| RagItem::new("two", 0.5, " five days.").with_origin("faq.md").with_span(span));
    let continues = |copies: Vec<RagItem>| {
        let documents = [before.clone()].into_iter().chain(copies).collect();
        let plan = plan("join_chunks = true\n", &log, documents);
        plan.included.iter().filter_map(|row| row.continues()).count()
    };
    let reversed = copies.iter().rev().cloned().collect();
    assert_eq!((continues(copies.to_vec()), continues(reversed)), (1, 1));
}

#[test]
fn a_budget_that_holds_the_joined_text_alone_is_enough() {
    let log = question();
    let joined = plan("join_chunks = true\n", &log, chunks());
    let needed = joined.estimated_tokens_total.tokens;
    let apart = plan("", &log, chunks()).estimated_tokens_total.tokens;
    assert!(needed < apart);
    let request = |budget| {
        let request =
            PlanRequest::new(&log).with_rag(chunks()).with_limits(RequestLimits::prompt_budget(budget));
        manager("join_chunks = true\n").build_plan(&request).unwrap()
    };
    // What pieces cost and what the whole costs differ by some tokens, so that many are kept free.
    assert_eq!(request(needed + 40).included.len(), 4);
    for budget in 100..needed {
        let plan = request(budget);
        assert!(plan.estimated_tokens_total.tokens <= budget, "{budget}");
    }
}

#[test]
fn order_is_layout_only() {
    let log = question();
    let documents = || -> Vec<RagItem> {
        [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5)]
            .map(|(id, score)| {
                let origin = if "be".contains(id) { "x" } else { "y" };
                let position = if id == "a" { 7 } else { 3 };
                RagItem::new(id, f64::from(score), format!("Text of {id}."))
                    .with_origin(origin)
                    .with_position(position)
            })
            .into()
    };
    let ids = |order: &str| {
        let plan = plan(&format!("order = \"{order}\"\n"), &log, documents());
        plan.included[..5].iter().map(|row| row.id.to_string()).collect::<String>()
    };
    assert_eq!(ids("relevance"), "abcde");
    assert_eq!(ids("relevance_last"), "edcba");
    assert_eq!(ids("edges"), "acedb");
    assert_eq!(ids("source"), "cdabe");
}

#[test]
fn documents_of_the_last_prompt_keep_their_order_and_leave_by_rank() {
    let log = question();
    let documents = |more: &[(&str, f64)]| {
        let all = [("a", 0.9), ("b", 0.8), ("c", 0.7)].iter().chain(more);
        all.map(|(id, score)| RagItem::new(*id, *score, format!("Text of {id}, {}", "x".repeat(60))))
            .collect::<Vec<_>>()
    };
    let manager = manager("order = \"relevance_last\"\n");
    let first = manager.build_plan(&PlanRequest::new(&log).with_rag(documents(&[]))).unwrap();
    assert_eq!(reasons(&first), ["c: in", "b: in", "a: in"]);
    let anchor = first.anchor();
    let next =
        PlanRequest::new(&log).with_rag(documents(&[("d", 0.95), ("e", 0.1)])).with_previous(anchor.clone());
    let next = manager.build_plan(&next).unwrap();
    assert_eq!(reasons(&next), ["c: in", "b: in", "a: in", "e: in", "d: in"]);
    // With fewer tokens, the lowest rank leaves, although it is the first in the prompt.
    let anchor: context_window::plan::Anchor = {
        let mut anchor = serde_json::json!(anchor);
        anchor.as_object_mut().unwrap().remove("limits");
        serde_json::from_value(anchor).unwrap()
    };
    let tight = PlanRequest::new(&log)
        .with_rag(documents(&[]))
        .with_previous(anchor)
        .with_limits(RequestLimits::prompt_budget(360));
    let tight = manager.build_plan(&tight).unwrap();
    assert_eq!(reasons(&tight)[..2], ["b: in", "a: in"]);
}

/// Regression test: the chunk between two others came last by rank, so both were priced as texts of their own
/// in the next prompt, although they had been sent as one text.
#[test]
fn joined_text_that_fitted_stays_as_a_whole() {
    let log = question();
    let mut documents = chunks();
    // The middle chunk has the lowest rank.
    documents.iter_mut().for_each(|item| item.score = if item.id == "two" { 0.1 } else { item.score });
    let manager = manager("join_chunks = true\n");
    let request = |budget| {
        let limits = RequestLimits::prompt_budget(budget);
        PlanRequest::new(&log).with_rag(documents.clone()).with_limits(limits)
    };
    // A better document would be included if those of the last prompt were given up.
    let better = RagItem::new("better", 2.0, "Refunds are quick.");
    let whole = manager.build_plan(&request(10_000)).unwrap();
    let needed = whole.estimated_tokens_total.tokens;
    let continues = |plan: &ContextPlan| {
        plan.included.iter().map(|row| row.continues().map(ToString::to_string)).collect::<Vec<_>>()
    };
    let expected = [None, Some("one".to_owned()), Some("two".to_owned()), None];
    assert_eq!(continues(&whole), expected);
    // The text needs fewer tokens than its chunks do one by one.
    let mut anchor = serde_json::json!(whole.anchor());
    anchor.as_object_mut().unwrap().remove("limits");
    let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
    let next = request(needed).with_rag(documents.iter().cloned().chain([better])).with_previous(anchor);
    let again = manager.build_plan(&next).unwrap();
    assert_eq!((continues(&again), again.estimated_tokens_total.tokens), (expected.into(), needed));
    assert!(again.overhead.iter().all(|line| line.tokens > 0), "{:?}", again.overhead);
}

#[test]
fn document_that_repeats_a_retained_one_is_not_sent() {
    let manager = manager("repeats = 90\nplacement = \"with_question\"\n");
    let mut log = question();
    let first = PlanRequest::new(&log).with_rag([RagItem::new("refunds", 0.9, REFUNDS)]);
    let first = manager.build_plan(&first).unwrap();
    log.push_reply(&first, Message::assistant("Five working days."), None);
    log.push(Message::user("And where do they go?"));
    let again = RagItem::new("copy", 0.9, REFUNDS.replace(", and", "; and"));
    let next = manager.build_plan(&PlanRequest::new(&log).with_rag([again])).unwrap();
    assert_eq!(reasons(&next), ["refunds: in", "copy: repeats refunds, 100 %"]);
}

#[test]
fn document_leaves_once_the_conversation_grows_onto_its_text() {
    let log = Conversation::from([
        Message::user(format!("They wrote: {REFUNDS}")),
        Message::assistant("I see."),
        Message::user("How long do refunds take?"),
    ]);
    let documents = [
        RagItem::new("refunds", 0.9, REFUNDS).with_origin("faq.md"),
        RagItem::new("hours", 0.5, "Open from 9 to 18.").with_origin("faq.md"),
    ];
    // The conversation has no share, so it includes its first messages only after the documents.
    let config = "[rag]\nrepeats = 90\nmax_source_items = 1\n[sections]\nsystem_pinned.share = 0\nconversation.share = 0\nrag.share = 1000\n";
    let config = Config::from_toml(config, "test").unwrap();
    let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), config).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(documents)).unwrap();
    // It does not count towards the limit of its source any more.
    assert_eq!(reasons(&plan), ["hours: in", "refunds: repeats m0, 100 %"]);
}

/// This counter is known to add up at delimiters, so what joining saves has a line of its own (rule N3).
#[test]
#[cfg(feature = "openai")]
fn rest_of_a_joined_text_is_counted_exactly() {
    let log = question();
    let counter = TokenCounter::o200k_base();
    let config = Config::from_toml("[rag]\njoin_chunks = true\n", "test").unwrap();
    let manager = ContextWindowManager::new(Model::custom("m"), counter.clone(), config).unwrap();
    let mut documents = chunks();
    // The middle chunk comes last, so both others were priced as texts of their own.
    documents.iter_mut().for_each(|item| item.score = if item.id == "two" { 0.1 } else { item.score });
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(documents)).unwrap();
    assert_eq!(plan.included.iter().filter(|row| row.continues().is_some()).count(), 2);
    assert!(plan.overhead.iter().any(|line| line.tokens < 0), "{:?}", plan.overhead);
    assert_eq!(plan.estimated_tokens_total.tokens, recount::messages(&plan, &counter));
}

/// A result that was cleared or offloaded stands in the window without its text, so it may come back; a short
/// one keeps its text (rules S7, S15).
#[test]
fn shortened_result_comes_back() {
    let config = Config::from_toml("[conversation]\ntool_results = \"clear\"\n", "test").unwrap();
    let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), config).unwrap();
    let call = |id: &str| Message::assistant("").with_tool_calls([ToolCall::new(id, "read", "{}")]);
    let long = "The spare key hangs behind the kitchen door. ".repeat(40);
    let log = Conversation::from([
        Message::user("Where is the key?"),
        call("a"),
        Message::tool("a", &*long),
        call("b"),
        Message::tool("b", "Yes."),
        Message::assistant("Behind the door."),
        Message::user("Behind which door is the key?"),
    ]);
    let anchor = serde_json::json!({"window_start": "m0", "live": "m0", "cleared_before": "m5"});
    let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
    let quote = |id: &str, text: &str, at: usize| RagItem::new(id, 1.0, text).with_messages(at..at + 1);
    let hits = [quote("long", &format!("read: {long}"), 2), quote("short", "read: Yes.", 4)];
    let request = PlanRequest::new(&log).with_recall(hits);
    let cleared = manager.build_plan(&request.clone().with_previous(anchor)).unwrap();
    assert_eq!(reasons(&cleared), ["long: in", "short: stands in the window as m4"]);
    let whole = manager.build_plan(&request).unwrap();
    assert_eq!(reasons(&whole), ["long: stands in the window as m2", "short: stands in the window as m4"]);

    // So does one that was never sent whole.
    let options = "[conversation]\ntool_results = \"offload\"\noffload_above = 500\noffload_keep = 100\n";
    let config = Config::from_toml(options, "test").unwrap();
    let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), config).unwrap();
    let tools = [Tool::new(Tool::RECALL, "", "{\"handle\":{}}")];
    let offloaded = manager.build_plan(&request.with_tools(&tools)).unwrap();
    assert_eq!(reasons(&offloaded), ["long: in", "short: stands in the window as m4"]);
}
