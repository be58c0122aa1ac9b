//! Texts to count, and a conversation of them.

use super::{data, texts};
use context_window::{Conversation, Message, ToolCall};

/// Returns ordinary and hostile texts, and real ones if the data exist.
pub fn every_text() -> Vec<(String, String)> {
    let ours = texts::of_every_kind().into_iter().chain(texts::hostile());
    let mut all: Vec<(String, String)> = ours.map(|(kind, text)| (kind.to_owned(), text)).collect();
    for seed in 0..if full() { 400 } else { 40 } {
        all.push((format!("seed {seed}"), texts::thrown_together(seed, 400)));
    }
    all.extend(real_texts());
    all
}

pub fn full() -> bool {
    std::env::var_os("FULL").is_some()
}

/// Returns a number of cases: for a quick check, for the gate (GATE=1), or in full (FULL=1).
pub fn cases(quick: u64, gate: u64, all: u64) -> u64 {
    match std::env::var_os("GATE") {
        _ if full() => all,
        Some(_) => gate,
        None => quick,
    }
}

/// Returns messages of the real sessions: some of each file, or all with FULL=1.
fn real_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let most = if full() { 200_000 } else { 400 };
    for file in data::files(&["conv_", "long_memorybank", "rag_"]) {
        let mut taken = 0;
        for id in file.ids() {
            let Ok(session) = file.session(Some(&id)) else { continue };
            let of_log = session.log.messages().iter().map(|message| message.text().to_owned());
            let of_rag = session.rag.iter().map(|item| item.text().to_string());
            for (at, text) in of_log.chain(of_rag).enumerate() {
                if taken < most && !text.is_empty() {
                    taken += 1;
                    texts.push((format!("{id}, {at}"), text));
                }
            }
        }
    }
    texts
}

/// Creates turns with tool calls, in many scripts.
pub fn conversation() -> Conversation {
    let mut log = Conversation::new();
    log.push_system("s0", "You know kettles.");
    let call = ToolCall::new("c1", "stock", r#"{"item": "finch", "café": [1, 2.5, null]}"#);
    for (_, text) in texts::of_every_kind() {
        log.push(Message::user(text.chars().take(300).collect::<String>()));
        log.push(Message::assistant("").with_tool_calls([call.clone()]));
        log.push(Message::tool("c1", "{\"in_stock\": 3}"));
        log.push(Message::assistant("  Three are left.\n"));
    }
    log.push(Message::user("And the Wren?"));
    log
}
