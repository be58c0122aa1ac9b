//! Prints the digest of a conversation: `digest <most tokens> < lines.jsonl`. Each line is a JSON object with
//! `role` and `content`. A token is four characters. With `digest <most tokens> time`, it prints the time.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter, ToolCall,
};
use serde_json::Value;
use std::{io::BufRead as _, time::Instant};

fn content(line: &Value) -> String {
    match &line["content"] {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn message(line: &Value) -> Message {
    let calls = line["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let function = &call["function"];
        ToolCall::new(text(&call["id"]), text(&function["name"]), text(&function["arguments"]))
    });
    match line["role"].as_str().unwrap() {
        "assistant" => Message::assistant(content(line)).with_tool_calls(calls),
        "tool" => Message::tool(line["tool_call_id"].as_str().unwrap_or_default(), content(line)),
        _ => Message::user(content(line)),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let most: u64 = arguments[1].parse().unwrap();
    let lines: Vec<Value> =
        std::io::stdin().lock().lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let mut log = Conversation::new();
    let system = |line: &&Value| line["role"] == "system";
    lines
        .iter()
        .filter(system)
        .enumerate()
        .for_each(|(at, line)| log.push_system(format!("s{at}"), content(line)));
    log.extend(lines.iter().filter(|line| !system(line)).map(message));
    if log.messages().is_empty() {
        // A text that was compacted before is no conversation: it stays, cut to the limit.
        let text = lines.iter().map(content).collect::<Vec<_>>().join("\n");
        println!("{}", text.chars().take(most as usize * 4).collect::<String>());
        return;
    }
    // The newest two messages are never archived, so these two are none of the conversation.
    log.extend([Message::user("Next."), Message::assistant("Yes.")]);
    let mut config = Config::default();
    config.compaction.retain.messages = Some(2);
    config.compaction.digest_max_tokens = most;
    let manager =
        ContextWindowManager::new(Model::custom("any"), TokenCounter::chars_per_4(), config).unwrap();
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    let from = Instant::now();
    let digest = job.digest().unwrap();
    if arguments.get(2).is_some_and(|argument| argument == "time") {
        println!("{} messages: {} ms", lines.len(), from.elapsed().as_millis());
        return;
    }
    println!("{digest}");
}
