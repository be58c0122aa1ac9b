//! What once grew with the square of its size, at a size and at twice that: two figures of one run show how it grows now.

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, RequestLimits, Role,
    Ttl, io::Session, plan::Anchor,
};
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

/// A session file with a compaction after every second message.
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

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let model = Model::named("gpt-4o").expect("the registry is built in");
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    let limits = RequestLimits::budget(8_000);
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
        let mut anchor = Anchor::default();
        anchor.window_start = Some(format!("m{}", count / 2).into());
        let turn = PlanRequest::new(&assistant).with_limits(limits);
        let sticky = PlanRequest::new(&both).with_limits(limits).with_previous(anchor);
        for (name, request) in [("of one long turn", &turn), ("under a last prompt", &sticky)] {
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| manager.explainer(black_box(request)).explain("m10"));
            });
        }
    }
    group.finish();
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
