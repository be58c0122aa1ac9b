//! Times plans with many documents.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits,
};
use std::time::Instant;

fn main() {
    let mut seed = 7u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    let words: Vec<String> = (0..5000)
        .map(|_| {
            let n = 3 + next() % 7;
            (0..n).map(|_| char::from(b'a' + (next() % 26) as u8)).collect()
        })
        .collect();
    let count: usize = std::env::args().nth(1).map_or(20000, |n| n.parse().unwrap());
    let origins: usize = std::env::args().nth(2).map_or(2000, |n| n.parse().unwrap());
    let documents: Vec<RagItem> = (0..count)
        .map(|at| {
            let text: Vec<&str> = (0..150).map(|_| words[next() % 5000].as_str()).collect();
            RagItem::new(format!("d{at}"), 1.0 / (at as f64 + 1.0), text.join(" "))
                .with_origin(format!("o{}", at % origins))
        })
        .collect();
    let log = Conversation::from_iter(
        (0..400)
            .map(|at| {
                let text: Vec<&str> = (0..120).map(|_| words[next() % 5000].as_str()).collect();
                if at % 2 == 0 { Message::user(text.join(" ")) } else { Message::assistant(text.join(" ")) }
            })
            .chain([Message::user("How long do refunds take?")]),
    );
    for (budget, name, toml) in [8_000u64, 128_000].into_iter().flat_map(|b| [
        (b, "off", "near_duplicates = 0\nrepeats = 0\njoin_chunks = false"), (b, "near", "near_duplicates = 90\nrepeats = 0\njoin_chunks = false"), (b, "repeats", "near_duplicates = 0\nrepeats = 90\njoin_chunks = false"), (b, "join", "near_duplicates = 0\nrepeats = 0\njoin_chunks = true"),
        (b, "all", "near_duplicates = 90\nrepeats = 90\njoin_chunks = true\norder = \"edges\"\nmax_source_items = 5"),
    ]) {
        let config = Config::from_toml(&format!("[rag]\n{toml}\n"), "t").unwrap();
        let manager = ContextWindowManager::configured(Model::named("gpt-4o").unwrap(), config).unwrap();
        manager.build_plan(&PlanRequest::new(&Conversation::from([Message::user("warm")]))).unwrap();
        let mut times = Vec::new();
        for _ in 0..6 {
            let request = PlanRequest::new(&log).with_rag(documents.iter().cloned()).with_limits(RequestLimits::prompt_budget(budget));
            let start = Instant::now();
            let plan = manager.build_plan(&request).unwrap();
            times.push(start.elapsed().as_micros() as f64 / 1000.0);
            if times.len() == 1 { print!("{budget} {name}: {} docs in, {} tokens; cold {:.1} ms", plan.included.iter().filter(|r| r.role.is_none()).count(), plan.estimated_tokens_total.tokens, times[0]); }
        }
        times[1..].sort_by(f64::total_cmp);
        println!(", again {:.1} ms", times[1]);
    }
}
