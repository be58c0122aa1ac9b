//! Measures how much of the previous prompt the next one repeats, with recall and without, over the last
//! questions of each conversation of a file.
//!
//!     cargo run --release -p context-window-benches --example recall_prefix -- FILE [QUESTIONS [BUDGET]]
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench"
)]

use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, RequestLimits, Role};
use context_window_formats::SessionFile;
use context_window_recall::Recall;

fn main() {
    let path = std::env::args().nth(1).expect("a file of sessions");
    let number = |nth, default| std::env::args().nth(nth).map_or(default, |text| text.parse().unwrap());
    let (questions, budget) = (number(2, 60usize), number(3, 8_192usize) as u64);
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let (mut kept, mut prompts, mut recalled) = ([0u64; 2], [0u64; 2], [0u64; 2]);
    let file = SessionFile::new(&path, std::fs::read(&path).unwrap()).unwrap();
    for session in file.sessions() {
        let session = session.unwrap();
        let messages = session.log.messages();
        let asked: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].role() == Role::User).collect();
        let from = asked.len().saturating_sub(questions);
        for with_recall in [false, true] {
            let (mut log, mut recall) = (Conversation::new(), Recall::new());
            for (at, message) in messages.iter().enumerate() {
                if message.role() != Role::User || !asked[from..].contains(&at) {
                    // A reply to a question was pushed with its plan.
                    let is_pushed =
                        at > 0 && asked[from..].contains(&(at - 1)) && message.role() == Role::Assistant;
                    if !is_pushed {
                        log.push(message.clone());
                    }
                    continue;
                }
                log.push(message.clone());
                let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
                let request = if with_recall { recall.for_request(request) } else { request };
                let plan = manager.build_plan(&request).unwrap();
                let slot = usize::from(with_recall);
                if let Some(prefix) = log.anchor().and_then(|anchor| plan.prefix(anchor)) {
                    kept[slot] += prefix.tokens;
                    prompts[slot] += plan.estimated_tokens_total.tokens;
                    let rows = plan.included.iter().filter(|row| row.quoted_messages().is_some());
                    recalled[slot] += rows.map(|row| row.token_estimate.tokens).sum::<u64>();
                }
                // The reply of the file, or a short one where people only talk.
                let reply = match messages.get(at + 1) {
                    Some(next) if next.role() == Role::Assistant => next.clone(),
                    _ => Message::assistant("Yes."),
                };
                log.push_reply(&plan, reply, None);
            }
        }
    }
    for (at, name) in ["without recall", "with recall"].into_iter().enumerate() {
        let share = |of: u64| kept[at] as f64 * 100.0 / of.max(1) as f64;
        let (all, rest) = (share(prompts[at]), share(prompts[at] - recalled[at]));
        println!(
            "{name}: {} tokens kept, {all:.1} % of the prompts; without recalled messages {rest:.1} %",
            kept[at]
        );
    }
}
