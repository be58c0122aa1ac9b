//! Diffs confirmed by hand: the same sessions are planned again with only the named input changed.

use crate::support::{
    data,
    generate::{self, Before, Session},
};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Model, PlanRequest, Priority, RequestLimits, Section,
    TokenCounter, Ttl,
    analysis::{Cause, Diff, Evidence, ItemState},
    config::RagFill,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// One input of a session to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mutation {
    Model,
    Config,
    Items,
    Pin,
    Priority,
    Expiry,
    Score,
    LastPrompt,
    Budget,
}

const ALL: [Mutation; 9] = [
    Mutation::Model,
    Mutation::Config,
    Mutation::Items,
    Mutation::Pin,
    Mutation::Priority,
    Mutation::Expiry,
    Mutation::Score,
    Mutation::LastPrompt,
    Mutation::Budget,
];

fn mutation_for(cause: Cause) -> Mutation {
    match cause {
        Cause::NewItem | Cause::RemovedItem | Cause::ChangedItem | Cause::Repair => Mutation::Items,
        Cause::Expiry => Mutation::Expiry,
        Cause::Budget => Mutation::Budget,
        Cause::Pin => Mutation::Pin,
        Cause::Priority => Mutation::Priority,
        Cause::Score => Mutation::Score,
        Cause::Model => Mutation::Model,
        Cause::Config => Mutation::Config,
        Cause::LastPrompt => Mutation::LastPrompt,
        other => panic!("{other:?}"),
    }
}

/// The values that the inputs are changed to.
#[derive(Debug, Clone)]
struct Numbers {
    budget: u64,
    at: usize,
    score: i32,
    other: Session,
}

/// Returns a session with these inputs changed, and true if its model is changed.
fn mutated(session: &Session, what: &[Mutation], with: &Numbers) -> (Session, bool) {
    let mut session = session.clone();
    for mutation in what {
        match mutation {
            Mutation::Model => {}
            Mutation::Config => {
                session.config.rag.fill = match session.config.rag.fill {
                    RagFill::Backfill => RagFill::Prefix,
                    _ => RagFill::Backfill,
                };
                session.config.sections = with.other.config.sections;
            }
            Mutation::Items => {}
            Mutation::Pin => {
                let count = session.lines.len();
                if let Some(line) = session.lines.get_mut(with.at % count.max(1)) {
                    line.life.pin = if line.life.pin.is_some() { None } else { Some(Priority::Normal) };
                }
            }
            Mutation::Priority => {
                for note in session.notes.iter_mut().take(2) {
                    note.1 = match note.1 {
                        Priority::High => Priority::Low,
                        _ => Priority::High,
                    };
                }
            }
            Mutation::Expiry => {
                let count = session.lines.len();
                if let Some(line) = session.lines.get_mut(with.at % count.max(1)) {
                    line.life.ttl = match line.life.ttl {
                        Some(Ttl::NoneRemaining) => None,
                        _ => Some(Ttl::NoneRemaining),
                    };
                }
            }
            Mutation::Score => {
                // The last document is spared, because `Items` removes it together with this change.
                let count = session.rag.len().saturating_sub(1);
                if count > 0 {
                    session.rag[with.at % count].score = with.score;
                }
            }
            Mutation::LastPrompt => {
                session.before = match session.before {
                    None => Some(Before {
                        start: with.at % 4,
                        set: Vec::new(),
                        ranks: Vec::new(),
                        joined: Vec::new(),
                        same_question: false,
                        cleared: None,
                        forms: Vec::new(),
                        variants: Vec::new(),
                    }),
                    Some(_) => None,
                };
            }
            Mutation::Budget => session.budget = with.budget,
        }
    }
    // Applied last, so that the inputs changed above exist on both sides.
    if what.contains(&Mutation::Items) {
        session.lines.extend(with.other.lines.iter().take(2).cloned());
        if let Some(line) = session.lines.first_mut().filter(|_| with.at % 2 == 1) {
            line.size += 7;
        }
        session.rag.truncate(session.rag.len().saturating_sub(1));
    }
    (session, what.contains(&Mutation::Model))
}

struct Planned {
    manager: ContextWindowManager,
    log: Conversation,
    session: Session,
}

impl Planned {
    fn new((session, other_model): (Session, bool)) -> Self {
        let counter = if other_model { TokenCounter::chars_per_4() } else { generate::bytes() };
        let model = Model::custom(if other_model { "another" } else { "test" });
        let manager = ContextWindowManager::new(model, counter, session.config.clone()).unwrap();
        Self { manager, log: session.log(), session }
    }

    fn request(&self) -> PlanRequest<'_> {
        self.session.request(&self.log)
    }

    fn plan(&self) -> ContextPlan {
        self.manager.build_plan(&self.request()).unwrap()
    }
}

/// Returns the state of each item with its own row, and a hash of its sent text.
fn states(plan: &ContextPlan, lines: usize) -> BTreeMap<(bool, String), (String, String)> {
    let mut states = BTreeMap::new();
    for row in plan.included.iter() {
        let state = (format!("in: {}", row.reason.name()), row.hash());
        states.insert((row.section == Section::Rag, row.id.to_string()), state);
    }
    for row in &plan.excluded {
        let reason = (format!("out: {}", row.reason.name()), String::new());
        let number = |id: &str| id.strip_prefix('m').and_then(|at| at.parse::<usize>().ok());
        match (number(row.id.as_str()), row.section) {
            (Some(from), Section::Conversation | Section::SystemPinned) => {
                for at in from..(from + row.count as usize).min(lines) {
                    states.insert((false, format!("m{at}")), reason.clone());
                }
            }
            (_, section) => {
                states.entry((section == Section::Rag, row.id.to_string())).or_insert(reason);
            }
        }
    }
    states
}

proptest! {
    #![proptest_config(generate::cases(1_000, 20_000))]

    #[test]
    fn every_cause_is_confirmed_by_planning_again(
        session in generate::session(),
        other in generate::session(),
        what in prop::sample::subsequence(&ALL[..], 1..4),
        (budget, at, score) in (1u64..1_500, 0usize..20, 0i32..5),
    ) {
        let mut session = session;
        // The record of the last question is a separate input, which this test does not change.
        if let Some(before) = &mut session.before {
            before.same_question = false;
        }
        // Ids are made unique, because an id shared by two documents is ambiguous.
        let mut seen = BTreeSet::new();
        session.rag.retain(|document| seen.insert(document.id));
        let with = Numbers { budget, at, score, other };
        let side = |what: &[Mutation]| Planned::new(mutated(&session, what, &with));
        let (a, b) = (side(&[]), side(&what));
        let (before, after) = (a.plan(), b.plan());
        let (then, now) = (states(&before, a.session.lines.len()), states(&after, b.session.lines.len()));
        let diff = Diff::between(&a.manager.explainer(&a.request()), &b.manager.explainer(&b.request())).unwrap();
        let absent = ("absent".to_owned(), String::new());
        for change in &diff.changes {
            let key = (change.document, change.id.to_string());
            let (from, to) = (then.get(&key).unwrap_or(&absent), now.get(&key).unwrap_or(&absent));
            prop_assert_ne!(from, to);
            prop_assert_eq!(&from.0, &change.from.to_string());
            prop_assert_eq!(&to.0, &change.to.to_string());
            prop_assert_eq!(change.text_changed, from.0 == to.0);
            prop_assert_eq!(change.cause == Cause::RemovedItem, change.to == ItemState::Absent && mutation_for(change.cause) == Mutation::Items && change.cause != Cause::Repair);
            let cause = mutation_for(change.cause);
            prop_assert!(what.contains(&cause), "{change:?} by {what:?}");
            let again = |what: &[Mutation]| {
                let other = side(what);
                states(&other.plan(), other.session.lines.len()).get(&key).unwrap_or(&absent).clone()
            };
            let others: Vec<Mutation> = what.iter().copied().filter(|other| *other != cause).collect();
            match change.evidence {
                Evidence::Alone => prop_assert_eq!(&again(&[cause]), to, "{:?}", change),
                Evidence::Needed => prop_assert_eq!(&again(&others), from, "{:?}", change),
                _ => {
                    prop_assert!(what.iter().all(|one| again(&[*one]) != *to), "{change:?}");
                }
            }
        }
        // Each item with a different state is reported exactly once, also inside runs.
        for key in then.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
            let told = diff.changes.iter().filter(|change| change.document == key.0 && change.id.as_str() == key.1);
            let (from, to) = (then.get(key).unwrap_or(&absent), now.get(key).unwrap_or(&absent));
            prop_assert_eq!(told.count(), usize::from(from != to), "{:?} {:?} {:?}", key, from, to);
        }
    }
}

/// Compares consecutive turns of real sessions, and the same turn at another budget.
#[test]
fn causes_in_real_sessions_are_confirmed_by_planning_again() {
    let manager =
        ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Default::default())
            .unwrap();
    let (mut pairs, mut changes, mut shown) = (0, 0, BTreeMap::<String, u64>::new());
    let files = data::files(&["conv_", "long_memorybank"]);
    let none = files.is_empty();
    let sessions = files.iter().flat_map(|file| file.sessions()).map(Result::unwrap);
    for session in sessions.step_by(if full() { 1 } else { 4 }) {
        let messages = session.log.messages().to_vec();
        if messages.len() < 4 || messages.len() > 400 {
            continue;
        }
        let log = |count: usize| Conversation::from_iter(messages[..count].iter().cloned());
        let cut = messages.len() * 2 / 3;
        let (old, new) = (log(cut), log(messages.len()));
        let request = |log, budget| PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget));
        for (a, b, cause) in [
            (request(&old, 3_000), request(&new, 3_000), Some(Mutation::Items)),
            (request(&new, 3_000), request(&new, 2_000), Some(Mutation::Budget)),
            (request(&old, 2_000), request(&new, 3_000), None),
        ] {
            let diff = Diff::between(&manager.explainer(&a), &manager.explainer(&b)).unwrap();
            pairs += 1;
            for change in &diff.changes {
                changes += 1;
                *shown.entry(format!("{:?} {:?}", change.cause, change.evidence)).or_default() += 1;
                if let Some(cause) = cause {
                    assert_eq!(
                        (mutation_for(change.cause), change.evidence),
                        (cause, Evidence::Alone),
                        "{change:?}"
                    );
                    continue;
                }
                // Two inputs changed; each of them is changed alone here once more.
                let plan = |log, budget| manager.build_plan(&request(log, budget)).unwrap();
                let trial = match (mutation_for(change.cause), change.evidence) {
                    (Mutation::Items, Evidence::Alone) | (Mutation::Budget, Evidence::Needed) => {
                        plan(&new, 2_000)
                    }
                    (Mutation::Budget, Evidence::Alone) | (Mutation::Items, Evidence::Needed) => {
                        plan(&old, 3_000)
                    }
                    _ => continue,
                };
                let is_in = trial.included.iter().any(|row| row.id == change.id);
                let wanted = if change.evidence == Evidence::Alone { &change.to } else { &change.from };
                assert_eq!(is_in, matches!(wanted, ItemState::Included(_)), "{change:?}");
            }
        }
    }
    eprintln!("{pairs} pairs of plans of real sessions, {changes} changes: {shown:?}");
    assert!(pairs >= 1_000 || none, "{pairs}");
}

fn full() -> bool {
    std::env::var_os("FULL").is_some_and(|full| full == "1")
}

/// Two results of one message: dropped as part of a longer run, then expired. The message in the middle of
/// both runs is named too.
#[test]
fn a_message_inside_of_two_runs_is_named() {
    let call = |id: &str| context_window::ToolCall::new(id, "look", "{}");
    let log = |ttl: bool| {
        let mut log = Conversation::from([
            context_window::Message::user("Which of the two is the larger one, and why is that?")
                .with_id("u0"),
            context_window::Message::assistant("").with_tool_calls([call("c1"), call("c2")]).with_id("a1"),
            context_window::Message::tool("c1", "The first one is 12.").with_id("a2"),
            context_window::Message::tool("c2", "The second one is 11.").with_id("a3"),
            context_window::Message::user("Thanks.").with_id("u4"),
        ]);
        if ttl {
            log.set_ttl("a2", Ttl::NoneRemaining).unwrap();
        }
        log
    };
    let manager =
        ContextWindowManager::new(Model::custom("m"), generate::bytes(), Default::default()).unwrap();
    let (old, new) = (log(false), log(true));
    let request = |log, budget| PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget));
    let diff = Diff::between(&manager.explainer(&request(&old, 60)), &manager.explainer(&request(&new, 300)))
        .unwrap();
    let changed: Vec<String> = diff
        .changes
        .iter()
        .map(|change| format!("{}: {} -> {}", change.id, change.from, change.to))
        .collect();
    let expired = |id| format!("{id}: out: budget -> out: ttl_expired");
    let came = "u0: out: budget -> in: recent".to_owned();
    assert_eq!(changed, [came, expired("a1"), expired("a2"), expired("a3")]);
}

/// Two logs diverge inside a run. Messages that only one of them has are named, and shared ones are not.
#[test]
fn messages_after_two_logs_diverge_are_named() {
    let log = |other: &str| {
        let message = |at: usize| {
            let id = if at < 4 { format!("a{at}") } else { format!("{other}{at}") };
            let text = "words that have no room at all".to_owned();
            if at.is_multiple_of(2) {
                context_window::Message::user(text)
            } else {
                context_window::Message::assistant(text)
            }
            .with_id(id)
        };
        Conversation::from_iter((0..9).map(message).chain([context_window::Message::user("?").with_id("q")]))
    };
    let manager =
        ContextWindowManager::new(Model::custom("m"), generate::bytes(), Default::default()).unwrap();
    let (old, new) = (log("b"), log("c"));
    let request = |log| PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(20));
    let diff = Diff::between(&manager.explainer(&request(&old)), &manager.explainer(&request(&new))).unwrap();
    let mut changed: Vec<&str> = diff.changes.iter().map(|change| change.id.as_str()).collect();
    changed.sort_unstable();
    assert_eq!(changed, ["b4", "b5", "b6", "b7", "b8", "c4", "c5", "c6", "c7", "c8"]);
}
