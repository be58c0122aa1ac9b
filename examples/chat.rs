//! A chat loop with a pinned note that lives for three turns; the model is a stand-in that repeats the question.
//!
//! `printf 'Hello\nWhat is new?\n' | cargo run --example chat`
#![allow(clippy::print_stdout, reason = "an example prints")]

use context_window::{
    ContextWindowManager, Conversation, Error, Message, PinnedItem, PlanRequest, Ttl, report,
};

fn main() -> Result<(), Error> {
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let mut log = Conversation::from([Message::system("You are a librarian.")]);
    log.pin(PinnedItem::new("tone", "Answer in rhyme.").ttl(Ttl::turns(3)));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        log.push(Message::user(line));
        let plan = manager.build_plan(&PlanRequest::new(&log))?;
        println!("{}", report::text(&plan));
        let reply = ask_a_model(plan.messages());
        log.push_reply(&plan, reply, None);
        log.complete_turn(&plan);
    }
    Ok(())
}

fn ask_a_model(prompt: &[Message]) -> Message {
    let question = prompt.last().map_or("", Message::text);
    Message::assistant(format!("You asked: {question}"))
}
