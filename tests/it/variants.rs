//! Shorter forms of documents (rule S17).

use crate::support::documents::{self, plan, question};
use context_window::{
    ContextPlan, ContextWindowManager, ErrorKind, ExcludedReason, Message, PlanRequest, RagItem,
    RequestLimits, Section,
    config::{Placement, RagOptions, Variants},
    plan::{Anchor, LimitedBy, PolicyRule},
};
use serde_json::json;

/// The reason why a document that was sent before gets no fuller form.
const SENT_BEFORE: ExcludedReason =
    ExcludedReason::Budget { room: 0, limited_by: LimitedBy::StickyDocuments };

fn manager(change: impl FnOnce(&mut RagOptions)) -> ContextWindowManager {
    documents::manager(|rag| {
        (rag.near_duplicates, rag.repeats) = (0, 0);
        change(rag);
    })
}

/// Returns the included documents with the names of their forms.
fn forms(plan: &ContextPlan) -> Vec<(&str, Option<&str>)> {
    let documents = plan.included.iter().filter(|row| row.kind.is_document());
    documents.map(|row| (row.id.as_str(), row.form())).collect()
}

/// Returns the smallest budget at which a plan is accepted.
fn least(is_good: impl Fn(u64) -> bool) -> u64 {
    (1..3_000).find(|budget| is_good(*budget)).unwrap()
}

/// The example of rule S17: `a` in full, or `a` shorter and `b`.
fn two() -> Vec<RagItem> {
    let title = "a".repeat(10);
    vec![
        RagItem::new("a", 0.9, "a".repeat(100)).with_variant("title", title),
        RagItem::new("b", 0.8, "b".repeat(50)),
    ]
}

#[test]
fn depth_sends_the_best_documents_in_full() {
    let (manager, log) = (manager(|_| {}), question());
    let at = |budget| plan(&manager, &log, two(), budget);
    let both = least(|budget| forms(&at(budget)).len() == 2);
    assert_eq!(forms(&at(both)), [("a", Some("title")), ("b", None)]);
    let alone = least(|budget| forms(&at(budget)).contains(&("a", None)));
    assert!(alone > both);
    assert_eq!(forms(&at(alone)), [("a", None)]);
    assert_eq!(forms(&at(2_000)), [("a", None), ("b", None)]);
    // The row says how many tokens the whole text was offered.
    let shorter = at(alone - 1);
    let row = shorter.included.iter().find(|row| row.id.as_str() == "a").unwrap();
    let room =
        at(alone).included.iter().find(|row| row.id.as_str() == "a").unwrap().token_estimate.tokens - 1;
    assert_eq!(row.form_reason(), Some(&ExcludedReason::Budget { room, limited_by: LimitedBy::Size }));
    let wire: serde_json::Value = serde_json::from_str(&shorter.to_json()).unwrap();
    let expected = json!({"name": "title", "reason": "budget", "room": room, "held_by": "size"});
    let rows = wire["included"].as_array().unwrap();
    assert_eq!(rows.iter().find(|row| row["id"] == "a").unwrap()["form"], expected);
}

#[test]
fn breadth_sends_more_documents_and_lets_the_best_grow() {
    let (manager, log) = (manager(|rag| rag.variants = Variants::Breadth), question());
    let three: Vec<RagItem> = ["a", "b", "c"]
        .into_iter()
        .zip([0.9, 0.8, 0.7])
        .map(|(id, score)| {
            let text = |bytes: usize| id.repeat(bytes);
            RagItem::new(id, score, text(100))
                .with_variant("summary", text(40))
                .with_variant("title", text(5))
        })
        .collect();
    let at = |budget| plan(&manager, &log, &three, budget);
    let all = least(|budget| forms(&at(budget)).len() == 3);
    let [titles, grown] = [all, all + 100].map(|budget| {
        forms(&at(budget)).iter().map(|(_, form)| form.unwrap_or("")).collect::<Vec<_>>().join(" ")
    });
    assert_eq!((titles.as_str(), grown.as_str()), ("title title title", " title title"));
    // The tokens left are not enough for the whole text of `b`, but for its summary.
    assert_eq!(forms(&at(all + 95 + 40)), [("a", None), ("b", Some("summary")), ("c", Some("title"))]);
    assert_eq!(forms(&at(2_000)), [("a", None), ("b", None), ("c", None)]);
    // A larger budget loses none of them.
    let mut before = 0;
    for budget in 1..600 {
        let now = forms(&at(budget)).len();
        assert!(now >= before, "{budget}");
        before = now;
    }
}

#[test]
fn retained_forms_stay_at_every_budget() {
    for variants in [Variants::Depth, Variants::Breadth] {
        let manager = manager(|rag| {
            (rag.placement, rag.variants, rag.question_limit) = (Placement::WithQuestion, variants, 1000);
        });
        let mut log = question();
        let small = least(|budget| forms(&plan(&manager, &log, two(), budget)).len() == 2);
        let first = plan(&manager, &log, two(), small);
        assert_eq!(forms(&first), [("a", Some("title")), ("b", None)]);
        log.push_reply(&first, Message::assistant("So."), None);
        log.push(Message::user("And?"));
        for budget in (small + 50)..(small + 500) {
            let plan = plan(&manager, &log, two(), budget);
            assert_eq!(forms(&plan), [("a", Some("title")), ("b", None)], "{budget}");
            assert_eq!(plan.included[0].form_reason(), Some(&SENT_BEFORE));
        }
        // With another shorter text it is another document.
        let other = [two()[0].clone().with_variant("snippet", "a")];
        let plan = plan(&manager, &log, &other, small + 500);
        assert_eq!(forms(&plan)[0], ("a", Some("title")));
        let shorter = [RagItem::new("a", 0.9, "a".repeat(100)).with_variant("title", "aaa")];
        let limits = RequestLimits::prompt_budget(small + 500);
        let request = PlanRequest::new(&log).with_rag(shorter.to_vec()).with_limits(limits);
        let plan = manager.build_plan(&request).unwrap();
        assert_eq!(forms(&plan).iter().filter(|(id, _)| id.starts_with('a')).count(), 2);
    }
}

#[test]
fn sticky_documents_keep_their_forms_while_the_question_is_the_same() {
    let manager = manager(|rag| rag.placement = Placement::BeforeQuestion);
    let mut log = question();
    // State takes the tokens that the whole text needs, and leaves afterwards.
    let limits = RequestLimits::prompt_budget(500);
    let request = |state: usize| {
        PlanRequest::new(&log).with_rag(two()).with_limits(limits).with_state("s", "s".repeat(state))
    };
    let full = (1..400)
        .rev()
        .find(|state| forms(&manager.build_plan(&request(*state)).unwrap()).contains(&("a", Some("title"))))
        .unwrap();
    let first = manager.build_plan(&request(full)).unwrap();
    let anchor: Anchor = serde_json::from_str(&serde_json::to_string(&first.anchor()).unwrap()).unwrap();
    assert_eq!(anchor, first.anchor());
    let next = manager.build_plan(&request(1).with_previous(anchor)).unwrap();
    let row = next.included.iter().find(|row| row.id.as_str() == "a").unwrap();
    assert_eq!(row.form(), Some("title"));
    assert_eq!(row.form_reason(), Some(&SENT_BEFORE));
    // Without the last prompt, the whole text is sent.
    assert_eq!(forms(&manager.build_plan(&request(1)).unwrap())[0], ("a", None));
    // Another question chooses again.
    log.push(Message::user("And now?"));
    let request = PlanRequest::new(&log).with_rag(two()).with_limits(limits).with_previous(next.anchor());
    assert_eq!(forms(&manager.build_plan(&request).unwrap())[0], ("a", None));
}

#[test]
fn limits_of_tokens_apply_to_each_form() {
    let log = question();
    let limited = manager(|rag| rag.max_item_tokens = Some(60));
    let sent = plan(&limited, &log, &two()[..1], 2_000);
    assert_eq!(forms(&sent), [("a", Some("title"))]);
    let rule = PolicyRule::MaxItemTokens { limit: 60 };
    assert_eq!(sent.included[0].form_reason(), Some(&ExcludedReason::Policy(rule)));

    let limited = manager(|rag| rag.max_source_tokens = Some(160));
    let of_one_source: Vec<RagItem> = two().into_iter().rev().map(|item| item.with_origin("o")).collect();
    let scores = [("b", 0.9), ("a", 0.8)];
    let ranked = |item: RagItem| {
        let score = scores.iter().find(|(id, _)| item.id().as_str() == *id).unwrap().1;
        RagItem { score, ..item }
    };
    let sent = plan(&limited, &log, of_one_source.into_iter().map(ranked).collect::<Vec<_>>(), 2_000);
    assert_eq!(forms(&sent), [("b", None), ("a", Some("title"))]);
    let reason = sent.included.iter().find_map(|row| row.form_reason()).unwrap();
    assert!(
        matches!(reason, ExcludedReason::Policy(PolicyRule::MaxSourceTokens { limit: 160, .. })),
        "{reason}"
    );
}

#[test]
fn switched_off_blank_and_recalled_forms_are_not_sent() {
    let log = question();
    let [depth, off] = [Variants::Depth, Variants::Off].map(|order| manager(|rag| rag.variants = order));
    let small = least(|budget| forms(&plan(&depth, &log, two(), budget)).len() == 2);
    assert_eq!(forms(&plan(&off, &log, two(), small)), [("b", None)]);
    let blank = [RagItem::new("a", 1.0, "a".repeat(900)).with_variant("blank", " \n")];
    let recalled = [blank[0].clone().with_variant("short", "a").with_messages(0..1)];
    for documents in [blank, recalled] {
        assert_eq!(forms(&plan(&depth, &log, &documents, 300)), []);
    }
}

#[test]
fn shorter_forms_are_not_joined_to_chunks() {
    let log = question();
    let chunk = |id: &str, score, text: &str, start: u64| {
        RagItem::new(id, score, text).with_origin("o").with_span(start..start + text.len() as u64)
    };
    let chunks = [
        chunk("c1", 0.9, "one two three four five", 0),
        chunk("c2", 0.8, &format!("four five {}", "six ".repeat(40)), 14)
            .with_variant("short", "six times forty"),
    ];
    let manager = manager(|_| {});
    let at = |budget| plan(&manager, &log, &chunks, budget);
    let small = least(|budget| forms(&at(budget)).len() == 2);
    let texts = |plan: &ContextPlan| plan.messages().iter().map(Message::text).collect::<String>();
    assert_eq!(forms(&at(small)), [("c1", None), ("c2", Some("short"))]);
    assert!(texts(&at(small)).contains("<document id=\"c2\" source=\"o\">\nsix times forty\n"));
    assert!(texts(&at(2_000)).contains("<document id=\"c1, c2\" source=\"o\">\none two three four five six"));
}

#[test]
fn later_offers_of_one_question_stay_within_its_limit() {
    let manager = manager(|rag| rag.placement = Placement::WithQuestion);
    let log = question();
    let limits = RequestLimits::prompt_budget(2_000);
    let item = |id: &str| RagItem::new(id, 0.5, id.repeat(60)).with_variant("title", id);
    let first = PlanRequest::new(&log).with_rag([item("a")]).with_limits(limits);
    let first = manager.build_plan(&first).unwrap();
    assert_eq!(forms(&first), [("a", None)]);
    // The question is planned again, with more documents. Their share is 300 ‰, the limit of a question 150.
    let more = ["a", "b", "c", "d", "e"].map(item);
    let near = ["f", "g"].map(|id| item(id).with_required("a"));
    let request = PlanRequest::new(&log).with_rag([&more[..], &near[..]].concat()).with_limits(limits);
    let again = manager.build_plan(&request.with_previous(first.anchor())).unwrap();
    let used = again.section(Section::Rag).used;
    assert!(forms(&again).len() > 1 && used <= 300, "{used} {:?}", forms(&again));
}

#[test]
fn too_many_variants_and_equal_names_are_errors() {
    let (manager, log) = (manager(|_| {}), question());
    let error = |names: &[&str]| {
        let item =
            names.iter().fold(RagItem::new("a", 1.0, "aa"), |item, name| item.with_variant(*name, "a"));
        let request = PlanRequest::new(&log).with_rag([item]);
        manager.build_plan(&request).map(|_| ()).map_err(|error| (error.kind(), error.to_string()))
    };
    let names: Vec<String> = (0..17).map(|at| at.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(error(&names[..16]), Ok(()));
    let too_many = "RAG item `a` has 17 variants; expected at most 16 (rule S17)".to_owned();
    assert_eq!(error(&names), Err((ErrorKind::Input, too_many)));
    let twice = "RAG item `a` has two variants named `s`; expected different names (rule S17)".to_owned();
    assert_eq!(error(&["s", "t", "s"]), Err((ErrorKind::Input, twice)));
}

/// A label belongs to a document with all of its texts, so a changed summary has a label of its own (rule
/// S16).
#[test]
fn changed_variant_gets_another_label() {
    let (manager, log) = (manager(|rag| rag.labels = true), question());
    let item = |summary: &str| RagItem::new("a", 0.9, "one two three").with_variant("summary", summary);
    let label = |plan: &ContextPlan| plan.included[0].label();
    let first = plan(&manager, &log, [item("one")], 2_000);
    let next = |item: RagItem| {
        let request = PlanRequest::new(&log).with_rag([item]).with_previous(first.anchor());
        label(&manager.build_plan(&request.with_limits(RequestLimits::prompt_budget(2_000))).unwrap())
    };
    assert_eq!((label(&first), next(item("one")), next(item("two"))), (Some(1), Some(1), Some(2)));
}
