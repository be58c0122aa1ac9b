//! The cost of a plan, over the sessions of the scale test. It has a plain `main` instead of criterion's
//! macros.
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
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits, ToolCall,
};
use criterion::{BenchmarkId, Criterion};
use std::hint::black_box;

const TEXT: &str = "The harbour office keeps a ledger of every boat that comes in, with its length, its cargo and the \
                    hour of the tide; whoever pays the fee signs on the same line. ";

fn conversation(messages: usize) -> Conversation {
    let one = |at: usize| match at % 4 {
        0 => Message::user(format!("Question {at}: {TEXT}")),
        1 => Message::assistant("").with_tool_calls([ToolCall::new(
            format!("c{at}"),
            "find_boat",
            format!("{{\"n\":{at}}}"),
        )]),
        2 => Message::tool(format!("c{}", at - 1), TEXT.repeat(4)),
        _ => Message::assistant(format!("Answer {at}: {}", TEXT.repeat(3))),
    };
    Conversation::from_iter((0..messages).map(one))
}

fn documents(count: u32) -> Vec<RagItem> {
    let one = |at: u32| {
        let text = format!("{at}: {}", TEXT.repeat(at as usize % 9 + 1));
        RagItem::new(format!("page-{at}"), 1.0 / f64::from(at + 1), text)
    };
    (0..count).map(one).collect()
}

/// Plans every step at 8,000 tokens. Returns the total number of sent tokens.
fn agent_turn(manager: &ContextWindowManager, remembers: bool) -> u64 {
    let mut log = Conversation::from([Message::user(format!("Look at every boat. {TEXT}"))]);
    let mut sent = 0;
    for step in 0..300 {
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(8_000));
        let plan = manager.build_plan(&request).expect("a sound request");
        sent += plan.estimated_tokens_total.tokens;
        let call =
            Message::assistant("").with_tool_calls([ToolCall::new(format!("c{step}"), "find_boat", "{}")]);
        if remembers {
            log.push_reply(&plan, call, None);
        } else {
            log.push(call);
        }
        log.push(Message::tool(format!("c{step}"), TEXT.repeat(4)));
    }
    sent
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let model = Model::named("gpt-4o").expect("the registry is built in");
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    let plan = |log: &Conversation, rag: &[RagItem], budget: u64| {
        let request = PlanRequest::new(log)
            .with_rag(rag.iter().cloned())
            .with_limits(RequestLimits::prompt_budget(budget));
        manager.build_plan(&request).expect("a sound request")
    };

    // The window alone at one budget over growing histories: with remembered counts ("warm") and without
    // ("cold").
    let mut group = criterion.benchmark_group("history");
    for messages in [1_000, 100_000, 1_000_000] {
        let log = conversation(messages);
        group.bench_function(BenchmarkId::new("warm 8k", messages), |bench| {
            bench.iter(|| plan(black_box(&log), &[], 8_000));
        });
    }
    for messages in [1_000, 10_000] {
        group.bench_function(BenchmarkId::new("cold 8k", messages), |bench| {
            bench.iter_batched_ref(
                || conversation(messages),
                |log| plan(black_box(log), &[], 8_000),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();

    // A whole agent turn: 300 steps, each planned and committed. The window is found again each time, or
    // continued.
    let mut group = criterion.benchmark_group("agent turn of 300 steps");
    for (name, remembers) in [("fresh", false), ("sticky_window", true)] {
        group.bench_function(name, |bench| bench.iter(|| agent_turn(&manager, remembers)));
    }
    group.finish();

    // Documents in addition to a history of 1,000 messages.
    let mut group = criterion.benchmark_group("documents");
    let log = conversation(1_000);
    for count in [20, 1_000, 20_000] {
        let rag = documents(count);
        group.bench_function(BenchmarkId::new("8k", count), |bench| {
            bench.iter(|| plan(&log, black_box(&rag), 8_000));
        });
    }
    group.finish();

    // Pushing alone, which counts nothing.
    criterion
        .bench_function("push 100,000 messages", |bench| bench.iter(|| conversation(black_box(100_000))));
    criterion.final_summary();
}
