//! An agent loop: plan, ask, run the open calls and push their results, until the model calls no more tools.
#![allow(clippy::print_stdout, reason = "an example prints")]

use context_window::{
    ContextWindowManager, Conversation, Error, Message, PlanRequest, Tool, ToolCall, Usage, render,
};

fn main() -> Result<(), Error> {
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let tools = [Tool::new("count", "Counts the files of a folder.", r#"{"type":"object","properties":{}}"#)];
    let mut log =
        Conversation::from([Message::system("Use the tools."), Message::user("How many files are there?")]);
    loop {
        let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&tools))?;
        let (reply, usage) = ask_a_model(&render::openai(&plan), plan.messages());
        log.push_reply(&plan, reply, usage);
        let calls: Vec<ToolCall> = log.open_calls().cloned().collect();
        if calls.is_empty() {
            log.complete_turn(&plan);
            break;
        }
        for call in calls {
            log.push(Message::tool(&call.id, "42"));
        }
    }
    for message in log.messages() {
        println!("{:<10} {}", message.role().name(), message.text());
    }
    Ok(())
}

/// Simulates a provider: calls the tool first, then answers.
fn ask_a_model(_body: &impl serde::Serialize, prompt: &[Message]) -> (Message, Usage) {
    let usage = Usage::openai(100, 0, 10);
    match prompt.last().map(Message::text) {
        Some("42") => (Message::assistant("There are 42 files."), usage),
        _ => (Message::assistant("").with_tool_calls([ToolCall::new("call_1", "count", "{}")]), usage),
    }
}
