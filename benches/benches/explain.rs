//! The cost of explanations compared with their plan: every row of a plan with many documents, of a long
//! conversation, and of both.
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
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits,
};
use criterion::Criterion;
use std::hint::black_box;

const TEXT: &str = "The harbour office keeps a ledger of every boat that comes in, with its length, its cargo and the \
                    hour of the tide; whoever pays the fee signs on the same line. ";

fn documents(count: u32) -> Vec<RagItem> {
    let one = |at: u32| {
        let words =
            TEXT.split(' ').cycle().take(20 + (at * 7_919 % 211) as usize).collect::<Vec<_>>().join(" ");
        RagItem::new(format!("page-{at}"), 1.0 / f64::from(at + 1), format!("{at}: {words}"))
    };
    (0..count).map(one).collect()
}

/// Creates a conversation of questions and answers, or of one question with everything else in its turn.
fn talk(count: usize, is_one_turn: bool) -> Conversation {
    let message = |at: usize| {
        let text = format!("message {at} of some words");
        if at == 0 || !is_one_turn && at.is_multiple_of(2) {
            Message::user(text)
        } else {
            Message::assistant(text)
        }
    };
    Conversation::from_iter((0..count).map(message))
}

/// Measures each conversation alone, and as the next question after a sent prompt.
fn conversations(criterion: &mut Criterion, manager: &ContextWindowManager) {
    let mut group = criterion.benchmark_group("conversations");
    for (name, log, rag) in [
        ("10,000 messages", talk(10_000, false), documents(0)),
        ("one turn of 10,000 messages", talk(10_000, true), documents(0)),
        ("1,000 messages and 1,000 documents", talk(1_000, false), documents(1_000)),
    ] {
        let of = |log| {
            PlanRequest::new(log).with_rag(rag.clone()).with_limits(RequestLimits::prompt_budget(8_000))
        };
        let request = of(&log);
        let plan = manager.build_plan(&request).expect("a plan");
        let mut next = log.clone();
        next.push(Message::assistant("an answer"));
        next.push(Message::user("a question"));
        let sticky = of(&next).with_previous(plan.anchor());
        for (when, request) in [("first prompt", &request), ("after a last prompt", &sticky)] {
            group.bench_function(format!("explain all, {name}, {when}"), |bench| {
                bench.iter(|| manager.explainer(black_box(request)).explain_all());
            });
        }
        if !rag.is_empty() {
            group.bench_function(format!("explain one document, {name}"), |bench| {
                bench.iter(|| manager.explainer(black_box(&request)).explain("page-99"));
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let model = Model::named("gpt-4o").expect("the registry is built in");
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    let log = Conversation::from([Message::system("Answer from the documents."), Message::user("Who paid?")]);
    for count in [100, 1_000, 10_000] {
        let rag = documents(count);
        let request = PlanRequest::new(&log).with_rag(rag).with_limits(RequestLimits::prompt_budget(8_000));
        let mut group = criterion.benchmark_group(format!("{count} documents"));
        group.bench_function("plan", |bench| bench.iter(|| manager.build_plan(black_box(&request))));
        group.bench_function("explain one", |bench| {
            bench.iter(|| manager.explainer(black_box(&request)).explain("page-99"));
        });
        group.bench_function("explain all", |bench| {
            bench.iter(|| manager.explainer(black_box(&request)).explain_all())
        });
        group.finish();
    }
    conversations(&mut criterion, &manager);
    criterion.final_summary();
}
