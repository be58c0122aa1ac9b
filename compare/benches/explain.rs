//! What explanations cost beside the plan they explain: every row of a plan with many documents.

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

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let model = Model::named("gpt-4o").expect("the registry is built in");
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    let log = Conversation::from([Message::system("Answer from the documents."), Message::user("Who paid?")]);
    for count in [100, 1_000, 10_000] {
        let rag = documents(count);
        let request = PlanRequest::new(&log).with_rag(rag).with_limits(RequestLimits::budget(8_000));
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
    criterion.final_summary();
}
