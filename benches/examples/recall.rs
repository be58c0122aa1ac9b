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
use context_window_recall::Recall;
use std::time::Instant;

/// Pseudo-random texts, the same in each run. Words have the frequencies of a language: the n-th is n times
/// as rare as the first (Zipf).
struct Texts {
    seed: u64,
    words: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        let mut texts = Self { seed: 7, words: Vec::new() };
        for _ in 0..200_000 {
            let length = 2 + texts.next() % 9;
            let word = (0..length).map(|_| char::from(b'a' + (texts.next() % 26) as u8)).collect();
            texts.words.push(word);
        }
        texts
    }

    fn next(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize
    }

    fn word(&mut self) -> usize {
        // The inverse of the distribution's sum: logarithmic in the rank.
        let share = self.next() as f64 / (1u64 << 31) as f64;
        ((self.words.len() as f64).powf(share) as usize - 1).min(self.words.len() - 1)
    }

    fn text(&mut self, words: usize) -> String {
        let text: Vec<usize> = (0..words).map(|_| self.word()).collect();
        text.into_iter().map(|at| self.words[at].as_str()).collect::<Vec<_>>().join(" ")
    }
}

fn main() {
    let number = |nth, default| std::env::args().nth(nth).map_or(default, |text| text.parse().unwrap());
    let (messages, questions) = (number(1, 1_000_000), number(2, 300));
    let mut texts = Texts::new();
    let mut log = Conversation::new();
    let mut bytes = 0;
    for at in 0..messages {
        let text = texts.text(60);
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
        log.push(Message::user(texts.text(12)));
        let start = Instant::now();
        let request = recall.for_request(PlanRequest::new(&log));
        times.push(start.elapsed().as_micros());
        assert!(request.rag.iter().next().is_some());
    }
    times.sort_unstable();
    let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("query:  median {:.1} ms, p99 {:.1} ms", median as f64 / 1000.0, high as f64 / 1000.0);
}
