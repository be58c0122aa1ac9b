//! Documents that are sent together or not at all.

use crate::support::documents::{ids as documents, item, manager, plan, question, second_question};
use context_window::{
    ContextPlan, ErrorKind, ExcludedReason, PlanRequest, RagItem, RequestLimits, Ttl,
    config::Variants,
    plan::{LimitedBy, PolicyRule},
};

fn reason(plan: &ContextPlan, id: &str) -> Option<ExcludedReason> {
    plan.excluded.iter().find(|row| row.id.as_str() == id).map(|row| row.reason.clone())
}

fn without(of: &str) -> Option<ExcludedReason> {
    Some(ExcludedReason::Policy(PolicyRule::Group { of: of.into() }))
}

#[test]
fn group_is_sent_whole_or_not_at_all_at_every_budget() {
    let (manager, log) = (manager(|_| {}), question());
    let all = [item("a", 0.9).with_group("g"), item("x", 0.8), item("b", 0.1).with_group("g")];
    let (mut alone, mut whole) = (0, 0);
    for budget in 1..400 {
        let plan = plan(&manager, &log, &all, budget);
        let sent = documents(&plan);
        assert_eq!(sent.contains(&"a"), sent.contains(&"b"), "{budget}: {sent:?}");
        alone += usize::from(sent == ["x"]);
        whole += usize::from(sent == ["a", "x", "b"]);
        if sent == ["x"] {
            let reasons = ["a", "b"].map(|id| reason(&plan, id).unwrap());
            assert_eq!(reasons[0], reasons[1]);
            assert!(matches!(reasons[0], ExcludedReason::Budget { limited_by: LimitedBy::Group, .. }));
            assert!(reasons[0].to_string().starts_with("too large with its whole group; "), "{}", reasons[0]);
        }
    }
    // The group is tried with its best member, so `x` comes first only where the group does not fit.
    assert!(alone > 0 && whole > 0);
}

#[test]
fn policy_that_excludes_a_member_excludes_its_group_and_names_it() {
    let log = question();
    let all = [item("a", 0.9).with_group("g"), item("b", 0.1).with_group("g"), item("c", 0.5)];
    let sent = plan(&manager(|rag| rag.min_score = Some(0.2)), &log, &all, 2_000);
    assert_eq!((documents(&sent), reason(&sent, "a")), (vec!["c"], without("b")));
    assert_eq!(
        reason(&sent, "a").unwrap().to_string(),
        "sent only with its whole group, and b is not in the prompt"
    );
    // The member keeps its own reason.
    let own = reason(&sent, "b");
    assert!(matches!(own, Some(ExcludedReason::Policy(PolicyRule::MinScore { .. }))), "{own:?}");
    let two = plan(&manager(|rag| rag.max_items = Some(2)), &log, &all, 2_000);
    assert_eq!(documents(&two), ["a", "b"]);
    let one = plan(&manager(|rag| rag.max_items = Some(1)), &log, &all, 2_000);
    assert_eq!(documents(&one), ["c"]);
    let expired = [all[0].clone(), all[1].clone().with_ttl(Ttl::turns(0))];
    assert_eq!(reason(&plan(&manager(|_| {}), &log, &expired, 2_000), "a"), without("b"));
    // A document with the text of an excluded member is no duplicate of it.
    let again = RagItem::new("again", 0.3, all[0].text());
    let all = [expired, [again, item("d", 0.2)]].concat();
    assert_eq!(documents(&plan(&manager(|_| {}), &log, &all, 2_000)), ["again", "d"]);
}

#[test]
fn text_that_repeats_a_member_represents_it() {
    let (manager, log) = (manager(|_| {}), question());
    let text = "Refunds take five days after the parcel has arrived here.";
    let first = RagItem::new("first", 0.5, text);
    let (a, b) = (item("a", 0.9).with_group("g"), RagItem::new("b", 0.1, text).with_group("g"));
    // The document that `b` repeats is sent with `a`, and may be sent alone.
    let all = [a.clone(), first.clone(), b];
    for budget in 1..300 {
        let plan = plan(&manager, &log, &all, budget);
        let sent = documents(&plan);
        assert!(!sent.contains(&"a") || sent.contains(&"first"), "{budget}: {sent:?}");
        let alone = crate::support::documents::plan(&manager, &log, &all[1..2], budget);
        assert!(sent.contains(&"first") || documents(&alone).is_empty(), "{budget}: {sent:?}");
    }
    assert_eq!(documents(&plan(&manager, &log, &all, 300)), ["a", "first"]);
    // Almost the same text represents it too, if it is in the prompt.
    let near =
        RagItem::new("b", 0.1, "Refunds take five days after the parcel has arrived here").with_group("g");
    let sent = plan(&manager, &log, [RagItem { score: 0.95, ..first }, a.clone(), near], 300);
    assert_eq!(documents(&sent), ["first", "a"]);
    assert!(matches!(reason(&sent, "b"), Some(ExcludedReason::NearDuplicate { .. })));
    // Groups that share a text are one.
    let pair = [item("c", 0.8).with_group("h"), RagItem::new("d", 0.2, text).with_group("h")];
    let all = [vec![a, RagItem::new("b", 0.1, text).with_group("g")], pair.to_vec()].concat();
    for budget in 1..400 {
        let plan = plan(&manager, &log, &all, budget);
        assert!([0, 3].contains(&documents(&plan).len()), "{budget}: {:?}", documents(&plan));
    }
}

#[test]
fn members_are_shortened_before_a_group_is_left_out() {
    let log = question();
    let long = |id: &str, score| item(id, score).with_variant("title", id).with_group("g");
    let all = [long("a", 0.9), long("b", 0.1)];
    for variants in [Variants::Depth, Variants::Breadth] {
        let manager = manager(|rag| rag.variants = variants);
        let mut seen = Vec::new();
        for budget in 1..300 {
            let plan = plan(&manager, &log, &all, budget);
            let forms: Vec<Option<&str>> =
                plan.included.iter().filter(|row| row.kind.is_document()).map(|row| row.form()).collect();
            if seen.last() != Some(&forms.iter().map(|form| form.is_some()).collect::<Vec<_>>()) {
                seen.push(forms.iter().map(|form| form.is_some()).collect());
            }
        }
        // None, both as titles, the better one in full, both in full.
        assert_eq!(seen, [vec![], vec![true, true], vec![false, true], vec![false, false]], "{variants:?}");
    }
}

#[test]
fn members_that_were_sent_stay_without_their_group() {
    let (manager, log) = (manager(|_| {}), question());
    let (a, b) = (item("a", 0.9), item("b", 0.8));
    let first = plan(&manager, &log, std::slice::from_ref(&a), 2_000);
    let plan = |all: &[RagItem]| {
        let request = PlanRequest::new(&log).with_rag(all.to_vec()).with_previous(first.anchor());
        manager.build_plan(&request.with_limits(RequestLimits::prompt_budget(2_000))).unwrap()
    };
    let now = [a.clone().with_group("g"), b.clone().with_group("g"), item("c", 0.1).with_group("g")];
    assert_eq!(documents(&plan(&now)), ["a", "b", "c"]);
    let without_c = [now[0].clone(), now[1].clone(), now[2].clone().with_ttl(Ttl::turns(0))];
    let sent = plan(&without_c);
    assert_eq!((documents(&sent), reason(&sent, "b")), (vec!["a"], without("c")));
}

#[test]
fn member_that_is_retained_counts_while_it_is_in_the_prompt() {
    let (manager, log) = second_question(item("a", 0.9), &"So. ".repeat(60));
    let all = [item("a", 0.9).with_group("g"), item("b", 0.5).with_group("g")];
    let mut both = 0;
    for budget in 100..800 {
        let plan = plan(&manager, &log, &all, budget);
        let sent = documents(&plan);
        assert!(!sent.contains(&"b") || sent.contains(&"a"), "{budget}: {sent:?}");
        both += usize::from(sent.len() == 2);
    }
    assert!(both > 0);
}

#[test]
fn document_that_requires_others_is_not_sent_for_a_group() {
    let (manager, log) = (manager(|_| {}), question());
    let text = "Refunds take five days.";
    let first = RagItem::new("a", 0.9, text).with_required("nobody");
    let all = [first, RagItem::new("a", 0.1, text).with_group("g"), item("c", 0.5).with_group("g")];
    // The copy with the same id makes it free of others.
    assert_eq!(documents(&plan(&manager, &log, &all, 2_000)), ["a", "c"]);
    let far = [
        RagItem::new("x", 0.9, text).with_required("nobody"),
        RagItem::new("y", 0.8, text).with_required("nobody"),
        item("c", 0.5).with_group("g"),
    ];
    for budget in 1..600 {
        let plan = plan(&manager, &log, &far, budget);
        for row in &plan.excluded {
            assert!(!documents(&plan).contains(&row.id.as_str()), "{budget}: {}", row.id);
        }
    }
    // The member was found for itself, so the document with its text depends on nothing.
    let repeated = [
        RagItem::new("x", 0.9, text).with_required("nobody"),
        RagItem::new("m", 0.1, text).with_group("g"),
        item("c", 0.5).with_group("g"),
    ];
    assert_eq!(documents(&plan(&manager, &log, &repeated, 2_000)), ["x", "c"]);
}

#[test]
fn document_with_a_group_that_requires_others_is_an_error() {
    let (manager, log) = (manager(|_| {}), question());
    let documents = [item("a", 1.0).with_group("g").with_required("b"), item("b", 1.0)];
    let error = manager.build_plan(&PlanRequest::new(&log).with_rag(documents)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(
        error.to_string(),
        "RAG item `a` has a group and requires others; expected one of the two (rule S19)"
    );
}

#[test]
fn large_groups_are_planned() {
    let (manager, log) = (manager(|_| {}), question());
    let all = (0..20_000).map(|at| {
        RagItem::new(at.to_string(), 0.5, format!("{at} says this.")).with_group((at / 2).to_string())
    });
    let all: Vec<RagItem> = all.collect();
    let sent = plan(&manager, &log, &all, 4_000);
    assert!(documents(&sent).len() > 50 && documents(&sent).len().is_multiple_of(2));
    // All pairs fit, and pairs that share a text are a chain of names.
    let whole = plan(&manager, &log, &all, 2_000_000);
    assert_eq!(documents(&whole).len(), 20_000);
    let chain = (0..10_000).rev().flat_map(|at| {
        let item = |id: &str, score| RagItem::new(format!("{id}{at}"), score, format!("text {at}"));
        let (own, next) = (format!("g{at:05}"), format!("g{:05}", at + 1));
        [item("a", 0.5).with_group(own), item("b", 0.4).with_group(next)]
    });
    let chain: Vec<RagItem> = chain.collect();
    assert!(documents(&plan(&manager, &log, &chain, 4_000)).is_empty());
    let one: Vec<RagItem> = all.into_iter().map(|item| item.with_group("all")).collect();
    assert!(documents(&plan(&manager, &log, &one, 4_000)).is_empty());
}
