//! Times plans with many documents, with the comparisons of their texts turned on one by one: the first plan
//! of a manager, and the same plan again.
//!
//!     cargo run --release -p context-window-benches --example documents -- [DOCUMENTS [SOURCES]]
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench"
)]

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits,
};
use context_window_benches::RandomTexts;
use std::time::Instant;

const OPTIONS: [(&str, &str); 5] = [
    ("off", "near_duplicates = 0\nrepeats = 0\njoin_chunks = false"),
    ("near_duplicates", "near_duplicates = 90\nrepeats = 0\njoin_chunks = false"),
    ("repeats", "near_duplicates = 0\nrepeats = 90\njoin_chunks = false"),
    ("join_chunks", "near_duplicates = 0\nrepeats = 0\njoin_chunks = true"),
    (
        "all",
        "near_duplicates = 90\nrepeats = 90\njoin_chunks = true\norder = \"edges\"\nmax_source_items = 5",
    ),
];

fn main() {
    let number = |nth, default| std::env::args().nth(nth).map_or(default, |text| text.parse().unwrap());
    let (count, sources) = (number(1, 20_000), number(2, 2_000));
    let mut texts = RandomTexts::new(5_000, 3..10);
    let documents: Vec<RagItem> = (0..count)
        .map(|at| {
            let item = RagItem::new(format!("d{at}"), 1.0 / (at as f64 + 1.0), texts.text(150));
            item.with_origin(format!("source {}", at % sources))
        })
        .collect();
    let turns = (0..400).map(|at| {
        let text = texts.text(120);
        if at % 2 == 0 { Message::user(text) } else { Message::assistant(text) }
    });
    let log = Conversation::from_iter(turns.chain([Message::user("How long do refunds take?")]));
    for budget in [8_000, 128_000] {
        for (name, options) in OPTIONS {
            let config = Config::from_toml(&format!("[rag]\n{options}\n"), "options").unwrap();
            let manager = ContextWindowManager::configured(Model::named("gpt-4o").unwrap(), config).unwrap();
            // The vocabulary is read once a process, not in the first measured plan.
            let short = Conversation::from([Message::user("Hello.")]);
            manager.build_plan(&PlanRequest::new(&short)).unwrap();
            let mut times: Vec<u128> = Vec::new();
            let mut included = 0;
            for _ in 0..6 {
                let request = PlanRequest::new(&log)
                    .with_rag(documents.iter().cloned())
                    .with_limits(RequestLimits::prompt_budget(budget));
                let start = Instant::now();
                let plan = manager.build_plan(&request).unwrap();
                times.push(start.elapsed().as_micros());
                included = plan.included.iter().filter(|row| row.role.is_none()).count();
            }
            let again = times[1..].iter().min().unwrap();
            println!(
                "{budget:>7} {name:16} {included:>3} documents included; cold {:>6.1} ms, again {:>6.1} ms",
                times[0] as f64 / 1000.0,
                *again as f64 / 1000.0,
            );
        }
    }
}
