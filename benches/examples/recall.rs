//! Times the index of a long conversation: appending a message, a question, saving and opening; and its
//! memory beside the texts.
//!
//!     cargo run --release -p context-window-benches --example recall -- [MESSAGES [QUESTIONS]]
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench"
)]

use context_window::{Conversation, Message, PlanRequest};
use context_window_benches::RandomTexts;
use context_window_recall::Recall;
use std::time::Instant;

fn main() {
    let number = |nth, default| std::env::args().nth(nth).map_or(default, |text| text.parse().unwrap());
    let (messages, questions) = (number(1, 1_000_000), number(2, 300));
    let mut texts = RandomTexts::new(200_000, 2..11);
    let mut log = Conversation::new();
    let mut bytes = 0;
    for at in 0..messages {
        let text = texts.natural_text(60);
        bytes += text.len();
        log.push(if at % 2 == 0 { Message::user(text) } else { Message::assistant(text) });
    }
    let path = std::env::temp_dir().join(format!("context-window-recall-bench-{}", std::process::id()));
    let (mut recall, _) = Recall::open(&path, &Conversation::new()).unwrap();
    let start = Instant::now();
    recall.update(&log);
    let micros = start.elapsed().as_micros() as f64 / messages as f64;
    println!("append: {micros:.1} us a message");
    let start = Instant::now();
    recall.save().unwrap();
    let saved = std::fs::metadata(&path).unwrap().len();
    println!(
        "save:   {:.1} s, {:.2} of the text",
        start.elapsed().as_secs_f64(),
        saved as f64 / bytes as f64
    );
    let start = Instant::now();
    let (mut recall, opened) = Recall::open(&path, &log).unwrap();
    println!("open:   {:.1} s, {opened:?}", start.elapsed().as_secs_f64());
    std::fs::remove_file(&path).unwrap();
    let size = recall.index().size();
    println!("memory: {} MB for {} MB of text: {:.2}", size >> 20, bytes >> 20, size as f64 / bytes as f64);
    let mut times = Vec::new();
    for _ in 0..questions {
        log.push(Message::user(texts.natural_text(12)));
        let start = Instant::now();
        let request = recall.for_request(PlanRequest::new(&log));
        times.push(start.elapsed().as_micros());
        assert!(request.retrieved().iter().next().is_some());
    }
    times.sort_unstable();
    let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("query:  median {:.1} ms, p99 {:.1} ms", median as f64 / 1000.0, high as f64 / 1000.0);
}
