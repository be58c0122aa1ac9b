//! An endless chat loop: as many documents as fit, a pinned note that lives for three turns, warnings,
//! compaction, and a log on disk that the next run continues. The simulated model repeats the question, and
//! the retriever counts common words.
//!
//! `printf 'Hello\nWhen do you open?\n' | cargo run --example chat`
#![allow(clippy::print_stdout, reason = "an example prints")]

use context_window::{
    ContextWindowManager, Message, PinnedItem, PlanRequest, RagItem, RequestLimits, Ttl, usage::ContextEvent,
};
use context_window_report as report;
use context_window_store::Journal;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let (mut journal, mut log) = Journal::open(std::env::temp_dir().join("librarian.log"))?;
    if log.messages().is_empty() {
        log.push(Message::system("You are a librarian."));
        log.pin(PinnedItem::new("tone", "Answer in rhyme.").with_ttl(Ttl::turns(3)));
    }
    for line in std::io::stdin().lines().map_while(Result::ok) {
        log.push(Message::user(line.as_str()));
        // The number of passages of about 30 tokens with room in the prompt; no more are retrieved.
        let budget = manager.retrieval_budget(&PlanRequest::new(&log))?;
        let hits = search(&line, budget.top_k(30));
        let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(hits))?;
        println!("{}", report::text(&plan));
        let reply = ask_a_model(plan.messages());
        log.push_reply(&plan, reply, None);
        log.complete_turn(&plan);
        let usage = manager.usage(&PlanRequest::like_last(&log))?;
        for event in log.observe_usage(usage) {
            if let ContextEvent::LevelCrossed { to, .. } = event {
                println!("the window is {to:?} now");
            }
        }
        // With a model, pass it the request of `compaction_due`. This compacts without one.
        if let Some(record) = manager.compactor().compact_if_due(&mut log, &[], RequestLimits::new())? {
            println!("{} messages archived, {} tokens freed", record.messages_archived, record.freed());
        }
        journal.save(&log)?;
    }
    Ok(())
}

const PASSAGES: [(&str, &str); 3] = [
    ("hours", "The library is open from 9 to 18, and on Saturdays from 9 to 13."),
    ("loans", "A book may be kept for four weeks, and twice for two weeks more."),
    ("cards", "When you move, bring your card and a letter with the new address."),
];

/// Returns the passages with the most words in common with the question.
fn search(question: &str, top_k: u64) -> Vec<RagItem> {
    let words: Vec<String> = question.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let hit = |(id, text): &(&str, &str)| {
        let text_words = text.to_lowercase();
        let is_common = |word: &&str| words.iter().any(|one| one == word);
        let common = text_words.split_whitespace().filter(is_common).count();
        RagItem::new(*id, u32::try_from(common).unwrap_or(u32::MAX).into(), *text)
    };
    let mut hits: Vec<RagItem> = PASSAGES.iter().map(hit).filter(|item| item.score() > 0.0).collect();
    hits.sort_by(|a, b| b.score().total_cmp(&a.score()));
    hits.truncate(usize::try_from(top_k).unwrap_or(usize::MAX));
    hits
}

fn ask_a_model(prompt: &[Message]) -> Message {
    let question = prompt.last().map_or("", Message::text);
    Message::assistant(format!("You asked: {question}"))
}
