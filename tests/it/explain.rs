//! Compares every answer of `explain` with brute force: the same request planned at every budget of the
//! model. Most requests are planned at the edges of each step, at a sample of budgets between them, and at
//! every budget between two plans that differ; some with `FULL=1` at all budgets, because all would take
//! hours.

mod lives;

use crate::support::generate::{self, Session};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, ExcludedReason, IncludedReason, ItemId, Message, Model,
    PlanRequest, PlannedItem, RequestLimits, Section, Source,
    analysis::{Explanation, Interval},
    plan::{Decision, LimitedBy},
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The largest budget that is checked, in tokens: more than any session here needs.
const MOST: u64 = 1_500;

/// Messages required by a target (rule H5): they depend on the other included items.
const DEMANDED: [&str; 3] = ["item:synth:lead", "item:synth:continue", "item:synth:bridge:"];

fn is_demanded(id: &str) -> bool {
    DEMANDED.iter().any(|demanded| id.starts_with(demanded))
}

/// Returns the ids of the included items, with documents marked. Placeholder results are left out, because
/// they belong to their call.
fn within(plan: &ContextPlan) -> BTreeSet<String> {
    let is_item =
        |row: &&PlannedItem| row.source != Source::Synthetic || is_demanded(&format!("item:{}", row.id));
    let rows = plan.included.iter().filter(is_item);
    rows.map(|row| format!("{}{}", if row.kind.is_document() { "rag:" } else { "item:" }, row.id)).collect()
}

/// Returns true if results of the open exchange are sent without their middle (rule S7).
fn is_clipped(plan: &ContextPlan) -> bool {
    plan.notices
        .iter()
        .any(|notice| notice.rule() == "S7" && notice.text.starts_with("the middle is removed"))
}

/// With `FULL=1`, requests whose budget is a multiple of this are planned at every budget.
const EVERY_BUDGET: u64 = 50;

/// Returns the new document whose retained copy is in the prompt too (rule S10).
fn text_sent_twice(plan: &ContextPlan) -> Option<String> {
    // The line before a text may have another label.
    let text = |row: &PlannedItem| row.body.text().split_once(">\n").map(|(_, text)| text.to_owned());
    let documents = plan.included.iter().filter(|row| row.kind.is_document());
    let (new, retained): (Vec<_>, Vec<_>) = documents.partition(|row| row.section == Section::Rag);
    let copies: BTreeSet<_> =
        retained.iter().map(|row| (row.id.as_str().split('@').next(), text(row))).collect();
    let is_copied = |row: &&&PlannedItem| copies.contains(&(Some(row.id.as_str()), text(row)));
    new.iter().find(is_copied).map(|row| row.id.to_string())
}

/// Distance of the sampled budgets between the edges of steps.
const EVERY: usize = 15;

/// The ids of the items that are included from one budget to another.
struct Run {
    from: u64,
    to: u64,
    ids: BTreeSet<String>,
}

/// The included items at every budget.
struct Brute(Vec<Run>);

impl Brute {
    fn force(manager: &ContextWindowManager, request: &PlanRequest<'_>, limits: RequestLimits) -> Self {
        let plan = |budget: u64| {
            let mut limits = limits;
            limits.prompt_budget = Some(budget);
            let plan = manager.build_plan(&request.clone().with_limits(limits)).unwrap();
            assert_eq!(text_sent_twice(&plan), None, "{budget}");
            plan
        };
        let minimum = within(&plan(1));
        // With clipped results only the minimum counts as included, except in the present plan (rule E1).
        let at = |budget: u64| {
            let plan = plan(budget);
            if is_clipped(&plan) && limits.prompt_budget != Some(budget) {
                minimum.clone()
            } else {
                within(&plan)
            }
        };
        let is_sampled = limits.prompt_budget.is_some_and(|budget| budget % EVERY_BUDGET > 0);
        let budgets: BTreeSet<u64> = if generate::is_full() && !is_sampled {
            (1..=MOST).collect()
        } else {
            // The steps of the map are used only to choose the budgets to plan at, not as a result.
            let within_limits = request.clone().with_limits(limits);
            let map = manager.explainer(&within_limits).budget_map(usize::MAX).unwrap();
            let edges = map.steps.iter().flat_map(|step| [step.from, step.to]);
            let edges = edges.chain([1, MOST, limits.prompt_budget.unwrap()]);
            let sides = edges.flat_map(|edge| edge.saturating_sub(1)..=edge.saturating_add(1));
            let budgets = sides.chain((1..=MOST).step_by(EVERY));
            budgets.filter(|budget| (1..=MOST).contains(budget)).collect()
        };
        let mut runs: Vec<Run> = Vec::new();
        for budget in budgets {
            Self::extend(&mut runs, budget, at(budget), &at);
        }
        Self(runs)
    }

    /// Adds a budget. If its items differ from those of the last one, adds every change between the two as
    /// well.
    fn extend(runs: &mut Vec<Run>, to: u64, ids: BTreeSet<String>, at: &impl Fn(u64) -> BTreeSet<String>) {
        let Some(last) = runs.last_mut() else { return runs.push(Run { from: to, to, ids }) };
        if last.ids == ids {
            last.to = to;
        } else if last.to + 1 == to {
            runs.push(Run { from: to, to, ids });
        } else {
            let half = last.to.midpoint(to);
            Self::extend(runs, half, at(half), at);
            Self::extend(runs, to, ids, at);
        }
    }

    /// Renames the items. Items that get the same name become one.
    fn rename(&mut self, name: impl Fn(&str) -> String) {
        for run in &mut self.0 {
            run.ids = run.ids.iter().map(|id| name(id)).collect();
        }
    }

    fn at(&self, budget: u64) -> &BTreeSet<String> {
        &self.0[self.0.partition_point(|run| run.to < budget)].ids
    }

    /// Checks the explanation of an id against the plans.
    fn agrees(&self, id: &str, budget: u64, got: &Explanation) -> Result<(), String> {
        let is_in = |budget: u64| self.at(budget).contains(id);
        let mut intervals: Vec<Interval> = Vec::new();
        for run in self.0.iter().filter(|run| run.to >= budget && run.ids.contains(id)) {
            let from = run.from.max(budget);
            match intervals.last_mut() {
                Some(last) if last.to == Some(from - 1) => last.to = Some(run.to),
                _ => intervals.push(Interval { from, to: Some(run.to) }),
            }
        }
        for last in intervals.iter_mut().filter(|last| last.to == Some(MOST)) {
            last.to = None;
        }
        let stays_from = intervals.last().filter(|last| last.to.is_none()).map(|last| last.from);
        let enters_at = intervals.first().map(|first| first.from);
        let leaves_then: BTreeSet<String> = match enters_at {
            Some(at) if at > budget => self.at(budget).difference(self.at(at)).cloned().collect(),
            _ => BTreeSet::new(),
        };
        let leaves_then: BTreeSet<&str> = leaves_then
            .iter()
            .filter(|id| !is_demanded(id))
            .map(|id| id.split_once(':').unwrap().1)
            .collect();
        let without = self.0.iter().rfind(|run| run.from < budget && !run.ids.contains(id));
        let leaves_at = without.filter(|_| is_in(budget)).map(|run| run.to.min(budget - 1));
        let more = intervals.len().saturating_sub(16) as u64;
        intervals.truncate(16);
        // An item required by the target or sent again may be included at every smaller budget and leave at a
        // larger one.
        let always = is_in(budget) && leaves_at.is_none() && stays_from == Some(budget);
        let same = got.included == is_in(budget)
            && got.enters_at == enters_at
            && got.stays_from == stays_from
            && got.intervals == intervals
            && got.more == more
            && got.leaves_then.iter().map(|id| id.as_str()).collect::<BTreeSet<_>>() == leaves_then
            && got.leaves_at == leaves_at
            && got.never.is_some() == (enters_at.is_none() || always);
        let expected = || {
            format!(
                "{id}: {intervals:?} more {more} stays {stays_from:?} leaves then {leaves_then:?} leaves at {leaves_at:?}"
            )
        };
        if same { Ok(()) } else { Err(format!("{}\n{got:#?}", expected())) }
    }
}

/// Returns the items of a request with a unique id.
fn ids(session: &Session) -> Vec<String> {
    let mut ids: Vec<String> = (0..session.lines.len()).map(|at| format!("item:m{at}")).collect();
    ids.extend((0..session.notes.len()).map(|at| format!("item:n{at}")));
    let mut documents: BTreeMap<String, u32> = BTreeMap::new();
    for id in session.rag_ids() {
        *documents.entry(id).or_default() += 1;
    }
    ids.extend(documents.into_iter().filter(|(_, times)| *times == 1).map(|(id, _)| format!("rag:{id}")));
    ids
}

fn model(at: u8) -> Model {
    match at {
        0 => Model::custom("test"),
        1 => Model::named("claude-sonnet-5").unwrap(),
        2 => Model::named("mistral-large-latest").unwrap(),
        3 => Model::named("gemini-2.5-pro").unwrap(),
        4 => Model::named("claude-3-opus").unwrap(),
        _ => Model::named("gpt-4o").unwrap(),
    }
}

/// Checks that the reason's code and numbers equal those of the row in the plan's JSON.
fn the_code_is_the_row_s(got: &Explanation, row: serde_json::Value) -> Result<(), String> {
    const OTHERS: [&str; 19] = [
        "form",
        "kind",
        "id",
        "last_id",
        "count",
        "source",
        "section",
        "role",
        "priority",
        "ttl",
        "reason",
        "token_estimate",
        "certainty",
        "hash",
        "relevance",
        "ranks",
        "continues",
        "messages",
        "label",
    ];
    let mut expected = row.as_object().unwrap().clone();
    let reason = expected["reason"].clone();
    // An item's kind may carry an id or a number of its own.
    match expected["kind"].as_str() {
        Some("placeholder_result") => drop(expected.remove("of")),
        Some("summary") => drop(expected.remove("compaction")),
        _ => {}
    }
    expected.retain(|key, _| !OTHERS.contains(&key.as_str()));
    expected.insert("code".into(), reason);
    let code = serde_json::to_value(&got.reason).unwrap();
    if code == serde_json::Value::Object(expected.clone()) {
        Ok(())
    } else {
        Err(format!("{}: {code} is not {expected:?}", got.id))
    }
}

/// Checks every answer about a session, one by one and all at once, against planning at every budget.
fn every_answer_agrees(
    manager: &ContextWindowManager,
    session: &Session,
    request: &PlanRequest<'_>,
    limits: RequestLimits,
) -> Result<(), String> {
    let brute = Brute::force(manager, request, limits);
    let budget = limits.prompt_budget.unwrap();
    let mut one_by_one = BTreeMap::new();
    for id in ids(session) {
        let got = manager.explainer(request).explain(&id).unwrap();
        brute.agrees(&id, budget, &got)?;
        one_by_one.insert((got.document, got.id.clone()), got);
    }
    let plan: serde_json::Value =
        serde_json::from_str(&manager.build_plan(request).unwrap().to_json()).unwrap();
    let rows = ["included", "excluded"].map(|list| plan[list].as_array().unwrap().clone()).concat();
    for (all, row) in manager.explainer(request).explain_all().unwrap().into_iter().zip(rows) {
        the_code_is_the_row_s(&all, row)?;
        let id = format!("item:{}", all.id);
        if is_demanded(&id) {
            brute.agrees(&id, budget, &all)?;
        }
        let section = if all.document { "rag" } else { "item" };
        if all.document && session.rag_ids().iter().filter(|id| all.id.as_str() == *id).count() > 1 {
            continue; // Its id is that of another document.
        }
        let one = match one_by_one.remove(&(all.document, all.id.clone())) {
            Some(one) => one,
            None => manager.explainer(request).explain(&format!("{section}:{}", all.id)).unwrap(),
        };
        if one != all {
            return Err(format!("alone {one:#?}, among all {all:#?}"));
        }
    }
    Ok(())
}

/// Generates the number of a model, usually of one without requirements.
fn target() -> impl Strategy<Value = u8> {
    prop_oneof![5 => Just(0u8), 1 => Just(1), 2 => Just(2), 1 => Just(3), 1 => Just(4), 1 => Just(5)]
}

/// Checks a session without changes.
fn agrees_as_it_is(session: Session, target: u8) -> Result<(), TestCaseError> {
    agrees_with(generate::bytes(), session, target)
}

fn agrees_with(
    counter: context_window::TokenCounter,
    mut session: Session,
    target: u8,
) -> Result<(), TestCaseError> {
    session.budget = session.budget.min(MOST);
    let config = session.config.clone();
    let manager = ContextWindowManager::new(model(target), counter, config).unwrap();
    let limits =
        RequestLimits::prompt_budget(session.budget).with_model_context_len(MOST).with_safety_buffer(0);
    let log = session.log();
    let request = session.request(&log).with_limits(limits);
    every_answer_agrees(&manager, &session, &request, limits).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(generate::cases(120, 20_000))]

    /// Several pins or documents compete for little room.
    #[test]
    fn counterfactuals_of_crowded_prompts_agree_with_planning_at_every_budget(
        (session, target) in (generate::crowded(), target()),
    ) {
        agrees_as_it_is(session, target)?;
    }

    /// The counts of documents add up with this counter, except those of joined texts.
    #[test]
    #[cfg(feature = "openai")]
    fn counterfactuals_agree_if_counts_add_up_at_delimiters(
        (mut session, target) in (generate::crowded(), target()),
    ) {
        session.budget = session.budget / 3 + 1;
        agrees_with(context_window::TokenCounter::o200k_base(), session, target)?;
    }

    /// Pinned messages compete, each together with its user message.
    #[test]
    fn counterfactuals_of_pinned_messages_agree_with_planning_at_every_budget(
        (session, target) in (generate::pinned(), target()),
    ) {
        agrees_as_it_is(session, target)?;
    }

    /// One message of a long conversation is explained, and most decisions do not concern it.
    #[test]
    fn counterfactuals_of_a_long_conversation_agree_with_planning_at_every_budget(
        (session, target) in (generate::talk(), target()),
    ) {
        agrees_as_it_is(session, target)?;
    }
}

proptest! {
    #![proptest_config(generate::cases(60, 10_000))]

    #[test]
    fn counterfactuals_agree_with_planning_at_every_budget(
        session in generate::session(),
        target in target(),
        margin in prop_oneof![4 => Just(1_000u32), 1 => 700u32..1_400],
        (archived_at, how) in (0usize..14, prop_oneof![3 => Just(0u8), 1 => Just(1), 1 => Just(2), 2 => Just(3)]),
    ) {
        let mut session = session;
        session.budget = session.budget.min(MOST);
        session.config.tokens.calibration_per_mille = margin as _;
        let estimates = session.config.tokens.calibration_per_mille != 1_000;
        let counter = if estimates { generate::bytes().into_estimate() } else { generate::bytes() };
        let manager = ContextWindowManager::new(model(target), counter, session.config.clone()).unwrap();
        let limits = RequestLimits::prompt_budget(session.budget).with_model_context_len(MOST).with_safety_buffer(0);
        // Half of the conversations were started fresh, rewound or compacted at some point.
        let log = session.log_with(archived_at, |log| match how {
            1 => log.start_fresh(),
            2 => drop(log.rewind_before(format!("m{}", archived_at / 2))),
            3 => drop(manager.compactor().now(&PlanRequest::like_last(&*log)).unwrap().map(|job| manager.compactor().apply_summary(log, &job, "s"))),
            _ => {}
        });
        let request = session.request(&log).with_limits(limits);
        let plan = manager.build_plan(&request).unwrap();
        if let Err(difference) = every_answer_agrees(&manager, &session, &request, limits) {
            prop_assert!(false, "{}", difference);
        }
        // The items that displace another one free just enough tokens for it, or they are all that can be
        // freed (rule E2).
        for row in &plan.excluded {
            let id = if row.section == Section::Rag { format!("rag:{}", row.id) } else { format!("item:{}", row.id) };
            let Some(Decision::Excluded(row)) = plan.find(&id) else { continue };
            let ExcludedReason::Budget { room, limited_by } = row.reason else { continue };
            let got = manager.explainer(&request).explain(&id).unwrap();
            let (Some(tokens), true) = (got.tokens, limited_by != LimitedBy::Overflow) else { continue };
            // If the limit of pins excludes a pin, only other pins can make room for it.
            let counts = |row: &PlannedItem| match limited_by {
                LimitedBy::PinsLimit => row.section == Section::SystemPinned,
                LimitedBy::RecallShare => row.reason == IncludedReason::Recalled,
                _ => true,
            };
            let may_go = |row: &&PlannedItem| row.reason != IncludedReason::Required && counts(row);
            let cost = |id: &ItemId| plan.included.iter().filter(may_go).find(|row| row.id == *id).unwrap().token_estimate.tokens;
            let costs: Vec<u64> = got.displaced_by.iter().map(cost).collect();
            let (held, all): (u64, u64) =
                (costs.iter().sum(), plan.included.iter().filter(may_go).map(|row| row.token_estimate.tokens).sum());
            prop_assert!(room + held >= tokens || held == all, "{got:?}");
            prop_assert!(costs.last().is_none_or(|last| room + held - last < tokens), "{got:?}");
        }
    }
}

/// A row of the plan has one token count, and its explanation has the same under each of its names.
#[test]
fn a_run_is_explained_with_the_tokens_of_its_row() {
    let turn = |at: usize| [Message::user("q".repeat(20 + at)), Message::assistant("a".repeat(30 + at))];
    let mut log: Conversation = (0..20).flat_map(turn).collect();
    log.push(Message::user("And now?"));
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let request =
        PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(300)).with_excluded_counts();
    let plan = manager.build_plan(&request).unwrap();
    let [run] = &plan.excluded[..] else { panic!("{:?}", plan.excluded) };
    let last = run.last_id.as_ref().unwrap();
    let explainer = manager.explainer(&request);
    let named = explainer.explain(&format!("{}..{last}", run.id)).unwrap();
    assert_eq!(named, explainer.explain(last.as_str()).unwrap());
    assert_eq!((named.first_id.as_ref(), named.count), (Some(&run.id), run.count));
    assert_eq!(named.run_tokens, Some(run.token_estimate));
    assert!(named.tokens.is_some_and(|newest| newest < run.token_estimate.tokens));
    let said = context_window_report::explanation(&named).to_string();
    let tokens = context_window_report::grouped(run.token_estimate.tokens);
    assert!(said.contains(&format!("this run needs {tokens}\n")), "{said}");
    let all = explainer.explain_all().unwrap();
    assert_eq!(all.iter().find(|one| one.first_id.is_some()), Some(&named));
    // One message of the run is explained as a message.
    assert_eq!(explainer.explain("m1").unwrap().run_tokens, None);
    assert!(explainer.explain("m0..m1").is_err());
}

#[test]
fn unknown_id_is_an_error_with_a_hint() {
    let session =
        context_window::Conversation::from([context_window::Message::user("Who paid?").with_id("question")]);
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let error = manager.explainer(&PlanRequest::new(&session)).explain("qestion").unwrap_err();
    insta::assert_snapshot!(error, @"no item has the id `qestion`; expected the id of a message, note, document or system text; did you mean `question`?");
}

/// Checks all ids of a small request against brute force.
fn agrees(manager: &ContextWindowManager, request: &PlanRequest<'_>, budget: u64, ids: &[&str]) {
    let limits = RequestLimits::prompt_budget(budget).with_model_context_len(MOST).with_safety_buffer(0);
    let request = request.clone().with_limits(limits);
    let brute = Brute::force(manager, &request, limits);
    for id in ids {
        brute.agrees(id, budget, &manager.explainer(&request).explain(id).unwrap()).unwrap();
    }
}

/// Checks all answers at once: they share the state of one walk through the conversation.
fn all_agree(manager: &ContextWindowManager, request: &PlanRequest<'_>, budget: u64) {
    let limits = RequestLimits::prompt_budget(budget).with_model_context_len(MOST).with_safety_buffer(0);
    let request = request.clone().with_limits(limits);
    let brute = Brute::force(manager, &request, limits);
    let all = manager.explainer(&request).explain_all().unwrap();
    assert!(all.len() > 1, "{all:#?}");
    for got in all {
        let kind = if got.document { "rag" } else { "item" };
        brute.agrees(&format!("{kind}:{}", got.id), budget, &got).unwrap();
    }
}

/// An item larger than every budget ends the walk. Its user message is included only if a newer part of its
/// turn is.
#[test]
fn nothing_older_than_an_item_too_large_for_every_budget_is_included() {
    use context_window::{Conversation, Message};
    let huge = || Message::assistant("x".repeat(2_000));
    let manager = ContextWindowManager::new(model(0), generate::bytes(), Default::default()).unwrap();
    let end = [Message::user("now what?"), Message::assistant("this"), Message::user("and then?")];
    for turn in [
        vec![Message::user("a question"), huge()],
        vec![
            Message::user("a question"),
            huge(),
            Message::assistant("an answer"),
            Message::assistant("more"),
        ],
        vec![huge(), Message::assistant("an answer without a question")],
    ] {
        let messages = [Message::user("older"), Message::assistant("oldest answer")];
        let log = Conversation::from_iter(
            messages.into_iter().skip(if turn.len() == 2 { 0 } else { 2 }).chain(turn).chain(end.clone()),
        );
        for budget in [20, 60, 200, 1_400] {
            // Each message is explained by itself, not as part of a run.
            all_agree(&manager, &PlanRequest::new(&log).with_excluded_messages(), budget);
        }
    }
}

/// Pinned messages are included from free tokens, between two steps of the walk.
#[test]
fn pins_included_late_are_part_of_every_explanation() {
    use context_window::{Conversation, Message, Priority, RagItem};
    let mut config = context_window::Config::default();
    config.sections.pins_limit = 100;
    let manager = ContextWindowManager::new(model(0), generate::bytes(), config).unwrap();
    let say = |at: usize| {
        let text = format!("message {at} {}", "x".repeat(at * 7 % 40));
        if at.is_multiple_of(3) { Message::user(text) } else { Message::assistant(text) }
    };
    let mut log = Conversation::from_iter((0..19).map(say));
    for at in [2, 4, 9, 13] {
        log.pin_message(format!("m{at}"), Priority::Normal).unwrap();
    }
    let documents = (0..4).map(|at| RagItem::new(format!("d{at}"), 1.0 / f64::from(at + 1), "y".repeat(90)));
    let request = PlanRequest::new(&log).with_rag(documents);
    for budget in [100, 300, 500, 900] {
        all_agree(&manager, &request, budget);
    }
    let before = manager.build_plan(&request.clone().with_limits(RequestLimits::prompt_budget(400))).unwrap();
    all_agree(&manager, &request.with_previous(before.anchor()), 400);
}

/// A call without a result is no error if no budget lets the walk reach it, because its section has a cap.
#[test]
fn unreachable_call_without_result_is_no_error() {
    use context_window::{Conversation, Message, ToolCall, config::Repair};
    let mut config = context_window::Config::default();
    config.sections.conversation.cap = Some(120);
    config.conversation.repair = Repair::Reject;
    let manager = ContextWindowManager::new(model(0), generate::bytes(), config).unwrap();
    let open = Message::assistant("").with_tool_calls([ToolCall::new("c", "read", "{}")]);
    let talk = (0..6).map(|at| Message::user(format!("message {at} of the talk")));
    let log = Conversation::from_iter([Message::user("older"), open].into_iter().chain(talk));
    all_agree(&manager, &PlanRequest::new(&log), 300);
    let limits = RequestLimits::prompt_budget(300).with_model_context_len(MOST).with_safety_buffer(0);
    let request = PlanRequest::new(&log).with_limits(limits);
    assert!(manager.explainer(&request).budget_map(50).is_ok());
}

/// Regression test: an older message that is included later can make the target require another one, which
/// displaces the explained one.
#[test]
fn target_demand_can_exclude_a_message_at_a_larger_budget() {
    let log = context_window::Conversation::from([
        context_window::Message::assistant("a"),
        context_window::Message::user("0123456789"),
        context_window::Message::assistant("0123456789"),
        context_window::Message::user("0123456789"),
    ]);
    for at in 0..3 {
        let manager = ContextWindowManager::new(model(at), generate::bytes(), Default::default()).unwrap();
        for budget in [30, 45, 90] {
            agrees(&manager, &PlanRequest::new(&log), budget, &["item:m0", "item:m1", "item:m2", "item:m3"]);
        }
    }
}

/// Regression test: with a counter that rounds, documents together cost more than the sum of their counts.
#[test]
fn explanations_use_the_joint_count_of_documents() {
    let counter = context_window::TokenCounter::from_fn("quarters", |text| {
        Ok::<_, std::fmt::Error>(text.len() as u64 / 4)
    });
    let manager = ContextWindowManager::new(model(0), counter, Default::default()).unwrap();
    let log = context_window::Conversation::from([context_window::Message::user("Who paid the fee?")]);
    let document =
        |at: usize| context_window::RagItem::new(format!("d{at}"), 9.0 - at as f64, "x".repeat(11 + at));
    let request = PlanRequest::new(&log).with_rag((0..6).map(document));
    let ids: Vec<String> = (0..6).map(|at| format!("rag:d{at}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for budget in [20, 60, 80, 100, 120] {
        agrees(&manager, &request, budget, &ids);
    }
}

/// The counts of this counter add up at delimiters, but a joined text has a line break that its chunks lack.
#[test]
#[cfg(feature = "openai")]
fn explanations_use_the_count_of_a_joined_text() {
    let mut config = context_window::Config::default();
    config.rag.join_chunks = true;
    let counter = context_window::TokenCounter::o200k_base();
    let manager = ContextWindowManager::new(model(0), counter, config).unwrap();
    let log = context_window::Conversation::from([context_window::Message::user("Who paid the fee?")]);
    let shared = "the fee is paid by the one who sends it\n";
    let chunk =
        |id: &str, score, text: String| context_window::RagItem::new(id, score, text).with_origin("guide.md");
    let other = context_window::RagItem::new("other", 0.1, "No fee here.");
    let documents = [
        chunk("one", 0.9, format!("First of all {shared}")),
        chunk("two", 0.8, format!("{shared}and nobody else")),
        other,
    ];
    let request = PlanRequest::new(&log).with_rag(documents);
    let plan = manager.build_plan(&request).unwrap();
    let joins = plan.overhead.iter().find(|line| line.what == context_window::plan::Overhead::Joins);
    assert!(joins.is_some_and(|line| line.tokens > 0), "{:?}", plan.overhead);
    for budget in 10..=plan.estimated_tokens_total.tokens {
        all_agree(&manager, &request, budget);
    }
}

/// Of two documents with one id, the one with the higher score is explained. The other one is a repeat at
/// every budget.
#[test]
fn a_repeated_id_has_no_part_in_the_answers_of_the_first() {
    let manager = ContextWindowManager::new(model(0), generate::bytes(), Default::default()).unwrap();
    let log = context_window::Conversation::from([context_window::Message::user("Who?")]);
    let document = |score, text: &str| context_window::RagItem::new("d", score, text);
    for documents in
        [[document(0.1, "low"), document(0.9, "high")], [document(0.9, "high"), document(0.1, "low")]]
    {
        let anchor = json!({"live": "m0", "rag": ["d"]});
        let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
        let fresh = PlanRequest::new(&log).with_rag(documents);
        for (request, budget) in [(&fresh, 20), (&fresh, 400), (&fresh.clone().with_previous(anchor), 400)] {
            agrees(&manager, request, budget, &["rag:d"]);
            let limits =
                RequestLimits::prompt_budget(budget).with_model_context_len(MOST).with_safety_buffer(0);
            let all = manager.explainer(&request.clone().with_limits(limits)).explain_all().unwrap();
            let repeat = all.iter().find(|one| one.reason.to_string() == "duplicate of d").unwrap();
            assert!(
                !repeat.included && repeat.intervals.is_empty() && repeat.enters_at.is_none(),
                "{repeat:?}"
            );
            assert_eq!(repeat.never.as_ref().map(ToString::to_string).as_deref(), Some("duplicate of d"));
        }
    }
}

/// Regression test: if the documents of the last prompt are given up, another one may come first. Its repeat
/// is identified by its text.
#[test]
fn duplicate_may_be_included_if_the_last_documents_are_given_up() {
    let manager = ContextWindowManager::new(model(0), generate::bytes(), Default::default()).unwrap();
    let log = context_window::Conversation::from([context_window::Message::user("x".repeat(31))]);
    let anchor = json!({"live": "m0", "rag": ["d2"]});
    let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
    let same = "D".repeat(57);
    let documents = [
        context_window::RagItem::new("d2", 0.0, same.as_str()).with_origin("o1"),
        context_window::RagItem::new("d3", 1.0, same.as_str()),
    ];
    let request = PlanRequest::new(&log).with_rag(documents).with_previous(anchor);
    agrees(&manager, &request, 1, &["rag:d2", "rag:d3"]);
    let limits = RequestLimits::prompt_budget(1).with_model_context_len(MOST).with_safety_buffer(0);
    assert!(manager.explainer(&request.with_limits(limits)).explain("d3").unwrap().enters_at.is_some());
}

/// If the user message of the turn in which the last window starts has expired, nothing of that turn is part
/// of the window, also if a pin includes the rest of the turn.
#[test]
fn a_window_that_starts_in_an_expired_turn_is_explained() {
    use context_window::Role::{Assistant, Tool, User};
    let line = |role, size| generate::Line {
        role,
        size,
        calls: vec![],
        answers: None,
        life: generate::Life { pin: None, ttl: None },
    };
    let mut asks = line(User, 1);
    asks.life.ttl = Some(context_window::Ttl::NoneRemaining);
    let calls = generate::Line { calls: vec!["y"], ..line(Assistant, 0) };
    let mut answers = generate::Line { answers: Some("y"), ..line(Tool, 0) };
    answers.life.pin = Some(context_window::Priority::High);
    let mut config = context_window::Config::default();
    let sections = &mut config.sections;
    let shares = [&mut sections.system_pinned, &mut sections.conversation, &mut sections.rag];
    shares.into_iter().zip([175, 139, 686]).for_each(|(section, share)| section.share = share);
    (config.sections.pins_limit, config.conversation.low_mark) = (0, 1);
    let session = Session {
        system: None,
        focus: None,
        states: vec![],
        notes: vec![],
        rules: vec![],
        lines: vec![asks, calls, line(User, 1), line(User, 6), answers, line(User, 1)],
        rag: vec![],
        has_lists: false,
        quotes: vec![],
        budget: 42,
        config,
        declares_recall: false,
        before: Some(generate::Before {
            start: 1,
            set: vec![],
            ranks: vec![],
            joined: vec![],
            same_question: false,
            cleared: None,
            forms: vec![],
            variants: vec![],
        }),
    };
    agrees_as_it_is(session, 0).unwrap();
}
