//! Operations that once took quadratic time, and those whose cost still grows. Each runs at a size and at
//! twice that size, so that two results of one run show the growth.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, Priority, RagItem,
    RequestLimits, Role, ToolCall, Ttl, plan::Anchor, render,
};
use context_window_formats::Session;
use criterion::{BenchmarkId, Criterion};
use std::hint::black_box;

fn talk(count: usize, roles: &[Role]) -> Conversation {
    let message = |at: usize| Message::new(roles[at % roles.len()], format!("message {at} of some words"));
    Conversation::from_iter((0..count).map(message))
}

fn notes(count: usize, ttl: Option<Ttl>) -> Conversation {
    let mut log = Conversation::from([Message::user("Who paid?")]);
    for at in 0..count {
        let note = PinnedItem::new(format!("n{at}"), "a note of some words here");
        log.pin(ttl.iter().fold(note, |note, ttl| note.with_ttl(*ttl)));
    }
    log
}

/// Creates a session file with a compaction after every second message.
fn compacted(count: usize) -> String {
    let one = |at: usize| {
        format!(
            r#"{{"role":"user","content":"question {at}"}},{{"role":"assistant","content":"answer"}},
            {{"role":"user","content":[{{"type":"context_compaction","summary":"s{at}","first_active":"m{}"}}]}}"#,
            2 * at + 2
        )
    };
    let all: Vec<String> = (0..count).map(one).collect();
    format!(r#"[{},{{"role":"user","content":"?"}}]"#, all.join(","))
}

fn documents(count: usize) -> Vec<RagItem> {
    let text = |at: usize| format!("document {at} {}", "some words about boats ".repeat(10 + at % 40));
    (0..count).map(|at| RagItem::new(format!("d{at}"), (at * 7_919 % count) as f64, text(at))).collect()
}

/// Creates a conversation with one message of many calls, and the result of each.
fn parallel_calls(count: usize) -> Conversation {
    let calls = (0..count).map(|at| ToolCall::new(format!("c{at}"), "f", "{}"));
    let mut log = Conversation::from([Message::user("Go."), Message::assistant("").with_tool_calls(calls)]);
    for at in 0..count {
        log.push(Message::tool(format!("c{at}"), "r"));
    }
    log
}

/// Measures many calls in one message, documents with one text, a note among notes, and a replay.
fn many_of_a_kind(criterion: &mut Criterion, manager: &ContextWindowManager, limits: RequestLimits) {
    let mut group = criterion.benchmark_group("many of a kind");
    let gemini = ContextWindowManager::for_model("gemini-2.5-pro").expect("the registry is built in");
    for count in [10_000, 20_000] {
        let log = parallel_calls(count);
        let plan = gemini.build_plan(&PlanRequest::new(&log)).expect("it plans");
        group.bench_function(BenchmarkId::new("a Gemini body of parallel calls", count), |bench| {
            bench.iter(|| serde_json::to_string(&render::gemini(black_box(&plan))));
        });
        let log = talk(1, &[Role::User]);
        let same = (0..count).map(|at| RagItem::new(format!("d{at}"), 0.5, "one text"));
        let request = PlanRequest::new(&log).with_rag(same).with_limits(limits).with_excluded_counts();
        group.bench_function(BenchmarkId::new("documents of one text, counted", count), |bench| {
            bench.iter(|| manager.build_plan(black_box(&request)));
        });
    }
    for count in [5_000, 10_000] {
        let log = notes(count, None);
        let request = PlanRequest::new(&log).with_limits(limits);
        group.bench_function(BenchmarkId::new("explain a note among notes", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&request)).explain("n5"));
        });
    }
    group.finish();
}

/// Pins every message of a conversation, with a priority by its position.
fn pinned(mut log: Conversation, count: usize, priority: impl Fn(usize) -> Priority) -> Conversation {
    for at in 0..count {
        log.pin_message(format!("m{at}"), priority(at)).expect("it is there");
    }
    log
}

/// Creates pinned messages, and a question with the results that its answer needs.
fn waiting_for_results(count: usize) -> Conversation {
    let mut log = talk(count, &[Role::User, Role::Assistant]);
    log.push(Message::user("And now?"));
    log.push(Message::assistant("").with_tool_calls([ToolCall::new("now", "f", "{}")]));
    log.push(Message::tool("now", "It is five o'clock."));
    pinned(log, count, |_| Priority::Normal)
}

/// Measures explanations among pinned messages.
fn pinned_messages(criterion: &mut Criterion, manager: &ContextWindowManager) {
    let mut group = criterion.benchmark_group("pinned messages");
    let both = [Role::User, Role::Assistant];
    let by_turns = |at: usize| [Priority::High, Priority::Normal, Priority::Low][at % 3];
    for count in [2_000, 4_000, 10_000, 20_000] {
        let limits = RequestLimits::prompt_budget(count as u64);
        let alike = pinned(talk(count, &both), count, |_| Priority::Normal);
        let questions = pinned(talk(count, &[Role::User]), count, |_| Priority::Normal);
        let mut one_turn = Conversation::from([Message::user("Go.")]);
        one_turn.extend((1..count).map(|at| Message::assistant(format!("message {at} of some words"))));
        one_turn.push(Message::user("And then?"));
        let one_turn = pinned(one_turn, count, |_| Priority::Normal);
        let priorities = pinned(talk(count, &both), count, by_turns);
        let mut large_first = talk(count, &both);
        large_first.push(Message::user("words about boats ".repeat(9_000)));
        large_first.push(Message::user("And then?"));
        let large_first = pinned(large_first, count + 1, |_| Priority::Normal);
        for (name, log) in [
            ("explain one", &alike),
            ("explain one, of questions alone", &questions),
            ("explain one, of one turn", &one_turn),
            ("explain one, of all priorities", &priorities),
            ("explain one, behind a large one", &large_first),
        ] {
            let request = PlanRequest::new(log).with_limits(limits);
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| manager.explainer(black_box(&request)).explain("m5"));
            });
        }
        let anchor = serde_json::json!({ "window_start": format!("m{}", count / 2) });
        let anchor: Anchor = serde_json::from_value(anchor).unwrap();
        let request = PlanRequest::new(&alike).with_limits(limits);
        let sticky = request.clone().with_previous(anchor);
        group.bench_function(BenchmarkId::new("explain one, under a last prompt", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&sticky)).explain("m5"));
        });
        for name in ["claude-sonnet-5", "mistral-large-latest", "gemini-2.5-pro"] {
            let manager = ContextWindowManager::for_model(name).expect("the registry is built in");
            group.bench_function(BenchmarkId::new(format!("explain one, {name}"), count), |bench| {
                bench.iter(|| manager.explainer(black_box(&request)).explain("m5"));
            });
        }
        let waiting = waiting_for_results(count);
        let waiting = PlanRequest::new(&waiting).with_limits(limits).with_state("time", "It is noon.");
        group.bench_function(BenchmarkId::new("explain one, with state behind results", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&waiting)).explain("m5"));
        });
        group.bench_function(BenchmarkId::new("explain all", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&request)).explain_all());
        });
    }
    group.finish();
}

/// Benchmarks the calls of "Work that grows" in `docs/performance.md`.
fn bench_growing_costs(criterion: &mut Criterion, manager: &ContextWindowManager, limits: RequestLimits) {
    let mut group = criterion.benchmark_group("what still grows");
    for count in [5_000, 10_000] {
        let log = talk(count, &[Role::User, Role::Assistant]);
        let (mut expired, mut pinned) = (log.clone(), log.clone());
        for at in 0..count {
            expired.set_ttl(format!("m{at}"), Ttl::NoneRemaining).expect("it is there");
            pinned.pin_message(format!("m{at}"), Priority::Normal).expect("it is there");
        }
        for (name, log) in [("plan, expired messages", &expired), ("plan, pinned messages", &pinned)] {
            let request = PlanRequest::new(log).with_limits(limits);
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| manager.build_plan(black_box(&request)));
            });
        }
        let request = PlanRequest::new(&log).with_limits(limits);
        group.bench_function(BenchmarkId::new("a job of compaction", count), |bench| {
            bench.iter(|| manager.compactor().due(black_box(&request)));
        });
        group.bench_function(BenchmarkId::new("explain_all, messages", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&request)).explain_all());
        });
    }
    // Replies after the live question end the merging of state, so each selection visits every pin.
    for count in [500, 1_000] {
        let log = pinned(talk(count, &[Role::User, Role::Assistant]), count, |_| Priority::Normal);
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(count as u64));
        let with_state = request.with_state("time", "It is noon.");
        group.bench_function(BenchmarkId::new("explain a pin, with state and a reply", count), |bench| {
            bench.iter(|| manager.explainer(black_box(&with_state)).explain("m5"));
        });
    }
    for count in [500, 1_000, 2_000, 4_000] {
        let log = talk(2 * count, &[Role::User, Role::Assistant]);
        let request = PlanRequest::new(&log);
        let in_a_window = request.clone().with_limits(limits);
        for (name, request) in [("replay, turns", &request), ("replay, turns of a full window", &in_a_window)]
        {
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| manager.explainer(black_box(request)).replay().count());
            });
        }
    }
    let log = talk(1, &[Role::User]);
    for count in [1_000, 2_000, 20_000] {
        let request = PlanRequest::new(&log).with_rag(documents(count)).with_limits(limits);
        group.bench_function(BenchmarkId::new("plan, documents again", count), |bench| {
            bench.iter(|| manager.build_plan(black_box(&request)));
        });
        if count < 20_000 {
            group.bench_function(BenchmarkId::new("explain_all, documents", count), |bench| {
                bench.iter(|| manager.explainer(black_box(&request)).explain_all());
            });
        }
    }
    group.finish();
}

/// Measures two counters that plan the same conversation alternately.
fn two_models(criterion: &mut Criterion, manager: &ContextWindowManager) {
    let other = ContextWindowManager::for_model("gpt-4").expect("the registry is built in");
    let log = talk(10_000, &[Role::User, Role::Assistant]);
    let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(100_000));
    let mut group = criterion.benchmark_group("two models over one conversation");
    group.bench_function("one", |bench| bench.iter(|| manager.build_plan(black_box(&request))));
    group.bench_function("both, in turns", |bench| {
        bench.iter(|| (manager.build_plan(black_box(&request)), other.build_plan(black_box(&request))));
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let model = Model::named("gpt-4o").expect("the registry is built in");
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    let limits = RequestLimits::prompt_budget(8_000);
    let mut group = criterion.benchmark_group("plan, of notes");
    for count in [20_000, 40_000] {
        let (alive, expired) = (notes(count, None), notes(count, Some(Ttl::NoneRemaining)));
        let alive = PlanRequest::new(&alive).with_limits(limits);
        let expired = PlanRequest::new(&expired).with_limits(limits).with_excluded_counts();
        group.bench_function(BenchmarkId::new("without room", count), |bench| {
            bench.iter(|| manager.build_plan(black_box(&alive)));
        });
        group.bench_function(BenchmarkId::new("expired, counted", count), |bench| {
            bench.iter(|| manager.build_plan(black_box(&expired)));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("explain one message");
    for count in [5_000, 10_000] {
        let (assistant, both) =
            (talk(count, &[Role::Assistant]), talk(count, &[Role::User, Role::Assistant]));
        let anchor = serde_json::json!({ "window_start": format!("m{}", count / 2) });
        let anchor: Anchor = serde_json::from_value(anchor).unwrap();
        let turn = PlanRequest::new(&assistant).with_limits(limits);
        let sticky = PlanRequest::new(&both).with_limits(limits).with_previous(anchor);
        for (name, request) in [("of one long turn", &turn), ("under a last prompt", &sticky)] {
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| manager.explainer(black_box(request)).explain("m10"));
            });
        }
    }
    group.finish();
    many_of_a_kind(&mut criterion, &manager, limits);
    pinned_messages(&mut criterion, &manager);
    bench_growing_costs(&mut criterion, &manager, limits);
    two_models(&mut criterion, &manager);
    let mut group = criterion.benchmark_group("read a session of compactions");
    for count in [2_000, 4_000] {
        let text = compacted(count);
        group.bench_function(BenchmarkId::from_parameter(count), |bench| {
            bench.iter(|| Session::from_json(black_box(&text)));
        });
    }
    group.finish();
    criterion.final_summary();
}
