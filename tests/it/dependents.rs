//! Documents that are sent only beside others (rule S18).

use crate::support::documents::{ids as documents, item, manager, plan, question, second_question};
use context_window::{
    ContextPlan, Conversation, ErrorKind, ExcludedReason, Message, PlanRequest, RagItem, RequestLimits,
    config::Placement, plan::PolicyRule,
};

#[test]
fn dependents_take_only_tokens_left_over() {
    let (manager, log) = (manager(|_| {}), question());
    // The neighbour of `a` has the best score, and comes last nevertheless.
    let all = [item("next", 1.0).with_required("a"), item("a", 0.9), item("b", 0.8)];
    let mut before = 0;
    for budget in 1..1_000 {
        let plan = plan(&manager, &log, &all, budget);
        let sent = documents(&plan);
        assert!(!sent.contains(&"next") || sent.contains(&"a") && sent.contains(&"b"), "{budget}: {sent:?}");
        assert!(sent.len() >= before, "{budget}");
        before = sent.len();
    }
    assert_eq!(before, 3);
}

#[test]
fn dependents_are_sent_only_beside_a_required_document() {
    let (manager, log) = (manager(|rag| rag.near_duplicates = 0), question());
    let reason = |plan: &ContextPlan, id: &str| {
        plan.excluded.iter().find(|row| row.id.as_str() == id).map(|row| row.reason.clone())
    };
    let requires = |of: &str| Some(ExcludedReason::Policy(PolicyRule::Requires { of: of.into() }));
    let alone = plan(&manager, &log, &[item("next", 1.0).with_required("a").with_required("b")], 2_000);
    assert_eq!((documents(&alone), reason(&alone, "next")), (vec![], requires("a")));
    assert_eq!(reason(&alone, "next").unwrap().to_string(), "sent only beside a, which is not in the prompt");
    // One of several is enough, and a dependent may be required itself.
    let all = [
        item("parent", 1.0).with_required("a").with_required("b"),
        item("grandparent", 0.5).with_required("parent"),
        item("b", 0.1),
        item("other", 0.1).with_required("nobody"),
    ];
    let sent = plan(&manager, &log, &all, 2_000);
    assert_eq!(documents(&sent), ["parent", "grandparent", "b"]);
    assert_eq!(reason(&sent, "other"), requires("nobody"));
}

#[test]
fn duplicate_of_a_required_document_is_enough() {
    let log = question();
    let same = |id: &str, score| {
        RagItem::new(id, score, "Refunds take five days after the parcel has arrived here.")
    };
    let dependent = item("next", 0.5).with_required("a");
    // The same text under another id.
    let exact = plan(&manager(|_| {}), &log, &[same("first", 0.9), same("a", 0.8), dependent.clone()], 2_000);
    assert_eq!(documents(&exact), ["first", "next"]);
    // Almost the same text, and a text that the conversation has.
    let near = RagItem::new("a", 0.8, "Refunds take five days after the parcel has arrived here");
    let sent = plan(&manager(|_| {}), &log, &[same("first", 0.9), near.clone(), dependent.clone()], 2_000);
    assert_eq!(documents(&sent), ["first", "next"]);
    let said = Conversation::from([Message::user(near.text().to_owned())]);
    assert_eq!(documents(&plan(&manager(|_| {}), &said, &[near, dependent], 2_000)), ["next"]);
}

#[test]
fn retained_document_is_enough() {
    let (manager, log) = second_question(item("a", 0.9), "So.");
    let next = [item("next", 0.5).with_required("a"), item("far", 0.4).with_required("z")];
    assert_eq!(documents(&plan(&manager, &log, &next, 2_000)), ["a", "next"]);
    // It is retained from then on, and counts to the limit of its question.
    let limited = crate::support::documents::manager(|rag| {
        (rag.placement, rag.question_limit) = (Placement::WithQuestion, 1)
    });
    assert_eq!(documents(&plan(&limited, &log, &next, 2_000)), ["a"]);
}

#[test]
fn document_that_was_also_retrieved_for_itself_depends_on_nothing() {
    let (manager, log) = (manager(|_| {}), question());
    // Both neighbours of two hits that follow each other are hits themselves.
    let hits = [item("c4", 0.9), item("c5", 0.8)];
    let near = [item("c5", 0.0).with_required("c4"), item("c4", 0.0).with_required("c5")];
    let sent = plan(&manager, &log, [&hits[..], &near[..]].concat(), 2_000);
    assert_eq!(documents(&sent), ["c4", "c5"]);
    let lists = |first: &[RagItem], second: &[RagItem]| {
        let request =
            PlanRequest::new(&log).with_rag(first.to_vec()).with_rag_list("neighbours", second.to_vec());
        manager.build_plan(&request).unwrap()
    };
    for plan in [lists(&hits[..1], &near[..1]), lists(&near[..1], &hits[..1])] {
        assert_eq!(documents(&plan).len(), 2);
    }
    let alone = [item("c5", 0.1)];
    for plan in [lists(&alone, &near[..1]), lists(&near[..1], &alone)] {
        assert_eq!(documents(&plan), ["c5"]);
    }
    // A better copy that depends on another does not hide it, nor does one under another name.
    let better = item("c5", 0.9).with_required("nobody");
    assert_eq!(documents(&plan(&manager, &log, &[better, item("c5", 0.1)], 2_000)), ["c5"]);
    let text = "Refunds take five days.";
    let pair = [RagItem::new("d", 0.9, text).with_required("x"), RagItem::new("x", 0.1, text)];
    assert_eq!(documents(&plan(&manager, &log, &pair, 2_000)), ["d"]);
}

#[test]
fn retained_document_outside_the_prompt_is_not_enough() {
    let (manager, log) = second_question(item("a", 0.9), &"So. ".repeat(60));
    let next = [item("next", 0.5).with_required("a")];
    for budget in 100..800 {
        let plan = plan(&manager, &log, &next, budget);
        let sent = documents(&plan);
        assert!(!sent.contains(&"next") || sent.contains(&"a"), "{budget}: {sent:?}");
    }
}

#[test]
fn explanation_of_a_shorter_form_has_its_tokens() {
    let (manager, log) = (manager(|_| {}), question());
    let long = RagItem::new("long", 0.9, "long ".repeat(100)).with_variant("title", "A title of it");
    let request = PlanRequest::new(&log).with_rag([long, item("next", 0.5).with_required("long")]);
    let request = request.with_limits(RequestLimits::prompt_budget(70));
    let explainer = manager.explainer(&request);
    let explained = explainer.explain("long").unwrap();
    assert!(!explained.included);
    // "This item needs" the tokens of its shortest form, of which the first budget is the least.
    let tokens = explained.tokens.unwrap();
    let row = |budget| plan(&manager, &log, &*request.rag, budget).included[0].clone();
    let entered = row(explained.enters_at.unwrap());
    assert_eq!((entered.form(), entered.token_estimate.tokens), (Some("title"), tokens));
    assert!(explainer.explain("next").unwrap().displaced_by.is_empty());
}

#[test]
fn documents_that_require_each_other_are_an_error() {
    let (manager, log) = (manager(|_| {}), question());
    let error = |documents: Vec<RagItem>| {
        manager.build_plan(&PlanRequest::new(&log).with_rag(documents)).unwrap_err()
    };
    let cycle = error(vec![
        item("a", 1.0).with_required("b"),
        item("b", 1.0).with_required("c"),
        item("c", 1.0).with_required("a"),
        item("d", 1.0).with_required("a"),
    ]);
    assert_eq!(cycle.kind(), ErrorKind::Input);
    assert_eq!(
        cycle.to_string(),
        "RAG items require each other: a -> b -> c -> a; expected one that requires none of the others (rule S18)"
    );
    let own = error(vec![item("a", 1.0).with_required("a")]);
    assert!(own.to_string().starts_with("RAG items require each other: a -> a;"), "{own}");
    // A long chain is none, and takes no deep stack.
    let chain = (0..20_000).map(|at| item(&at.to_string(), 0.5).with_required((at + 1).to_string()));
    let chain: Vec<RagItem> = chain.chain([item("20000", 0.4)]).collect();
    let sent = plan(&manager, &log, &chain, 1_000);
    assert_eq!(documents(&sent)[documents(&sent).len() - 1], "20000");
}
