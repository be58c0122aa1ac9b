//! Measures the share of prompts with a passage that answers the question. It compares the chat with the best
//! documents by score in the same budget, after the whole conversation. Questions with their passages come as
//! JSON lines on standard input, such as
//! `{"query": ..., "passages": [{"id", "text", "gold"}], "messages": [...]}`.
//!
//! `zcat rag_musique.jsonl.gz | cargo run --release -p rag-chat --example recall -- offline-4k`
#![allow(clippy::disallowed_methods, reason = "it says how long it took")]

use clap::Parser;
use context_window::{Config, ContextWindowManager, ItemKind, Message, Role, TokenCounter};
use rag_chat::{
    args::Args,
    chat::{Chat, Turn},
    event::Tasks,
};
use serde::Deserialize;
use std::{collections::BTreeMap, fs, io::stdin, sync::Arc, time::Instant};

#[derive(Deserialize)]
struct Question {
    query: String,
    passages: Vec<Passage>,
    #[serde(default)]
    messages: Vec<Said>,
}

#[derive(Deserialize)]
struct Passage {
    text: String,
    gold: bool,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    content: String,
}

fn main() -> anyhow::Result<()> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "offline".into());
    let lines = stdin().lines().map(|line| Ok(serde_json::from_str(&line?)?));
    let questions: Vec<Question> = lines.collect::<anyhow::Result<_>>()?;
    let (folder, data) = (tempfile::tempdir()?, tempfile::tempdir()?);
    // One file per text: the same text under two ids is one file with both ids.
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for passage in questions.iter().flat_map(|question| &question.passages) {
        let number = files.len();
        files.entry(&passage.text).or_insert_with(|| format!("p{number:05}.txt"));
    }
    for (text, name) in &files {
        fs::write(folder.path().join(name), text)?;
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (sender, events) = std::sync::mpsc::channel();
    let tasks = Tasks { runtime: runtime.handle().clone(), sender };
    let args = Args::parse_from(["rag-chat", folder.path().to_str().unwrap_or("."), "--model", &model]);
    let begun = Instant::now();
    let mut chat = Chat::open(args, data.path(), Arc::new(|_| None), tasks)?;
    while chat.is_busy() {
        chat.handle(events.recv()?);
    }
    let counter = TokenCounter::named("o200k_base")?;
    let manager = ContextWindowManager::configured(chat.choice.model.clone(), Config::default())?;
    let (indexed, begun) = (begun.elapsed(), Instant::now());
    let (mut of, mut planned, mut by_score) = (0, 0, 0);
    for (number, question) in questions.iter().enumerate() {
        let gold: Vec<&str> = question
            .passages
            .iter()
            .filter(|passage| passage.gold)
            .map(|passage| files[passage.text.as_str()].as_str())
            .collect();
        if gold.is_empty() {
            continue;
        }
        of += 1;
        chat.enter(&format!("/sessions q{number}"));
        for said in &question.messages {
            let role = if said.role == "user" { Role::User } else { Role::Assistant };
            chat.log.push(Message::new(role, said.content.as_str()));
        }
        chat.ask(&question.query);
        while !matches!(chat.turn, Turn::Answering(_)) {
            chat.handle(events.recv()?);
        }
        let is_gold = |id: &str| gold.iter().any(|name| id.split('#').next() == Some(name));
        let mut included = chat.plan.included.iter().filter(|item| item.kind == ItemKind::Document);
        planned += usize::from(included.any(|item| is_gold(item.id.as_str())));

        // The whole conversation, then the best documents while there is room.
        let told: u64 = chat
            .log
            .messages()
            .iter()
            .map(|message| counter.count(message.text()).map_or(0, |count| count.tokens + 4))
            .sum();
        let mut left = chat.plan.prompt_budget.saturating_sub(told);
        let fitting = chat.documents.iter().take_while(|document| {
            // Includes the delimiter lines with its id, which both variants have.
            let tokens = manager.count_document(document).map_or(u64::MAX, |count| count.tokens);
            left.checked_sub(tokens).map(|rest| left = rest).is_some()
        });
        by_score += usize::from(fitting.into_iter().any(|document| is_gold(document.id().as_str())));
        chat.interrupt();
        while chat.is_busy() {
            chat.handle(events.recv()?);
        }
    }
    let share = |n: usize| format!("{:.1} %", n as f64 * 100.0 / f64::from(of));
    println!(
        "{model}: {of} questions, {} files indexed in {indexed:.1?}, asked in {:.1?}",
        files.len(),
        begun.elapsed()
    );
    println!(
        "a gold passage in the prompt: {} planned ({planned}), {} by score alone ({by_score})",
        share(planned),
        share(by_score)
    );
    runtime.shutdown_background();
    Ok(())
}
