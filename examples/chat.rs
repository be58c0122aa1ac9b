//! A chat loop that may go on for ever: a pinned note that lives for three turns, warnings, compaction, and a log on disk that
//! the next run goes on with. The model is a stand-in that repeats the question.
//!
//! `printf 'Hello\nWhat is new?\n' | cargo run --example chat`
#![allow(clippy::print_stdout, reason = "an example prints")]

use context_window::{
    ContextWindowManager, Error, Message, PinnedItem, PlanRequest, RequestLimits, Ttl, io::Journal, report,
    usage::ContextEvent,
};

fn main() -> Result<(), Error> {
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let (mut journal, mut log) = Journal::open(std::env::temp_dir().join("librarian.log"))?;
    if log.messages().is_empty() {
        log.push(Message::system("You are a librarian."));
        log.pin(PinnedItem::new("tone", "Answer in rhyme.").with_ttl(Ttl::turns(3)));
    }
    for line in std::io::stdin().lines().map_while(Result::ok) {
        log.push(Message::user(line));
        let plan = manager.build_plan(&PlanRequest::new(&log))?;
        println!("{}", report::text(&plan));
        let reply = ask_a_model(plan.messages());
        log.push_reply(&plan, reply, None);
        log.complete_turn(&plan);
        let usage = manager.usage(&log)?;
        for event in log.observe(usage) {
            if let ContextEvent::LevelCrossed { to, .. } = event {
                println!("the window is {to:?} now");
            }
        }
        // Hand `compaction_due` to a model where there is one; this is what is done without.
        if let Some(record) = manager.compactor().without_model(&mut log, &[], RequestLimits::new())? {
            println!("{} messages archived, {} tokens freed", record.messages_archived, record.freed());
        }
        journal.save(&log)?;
    }
    Ok(())
}

fn ask_a_model(prompt: &[Message]) -> Message {
    let question = prompt.last().map_or("", Message::text);
    Message::assistant(format!("You asked: {question}"))
}
