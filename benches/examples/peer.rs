//! This crate as a program for the comparison with similar tools: `peer INPUT BUDGET chat|rag|warm` prints
//! one JSON line. `benches/peers` calls it.
//!
//! `chat` and `rag` plan the same request five times in a process that has counted one message before, so the
//! first call is cold. `warm` appends a turn and plans, 2,000 times, each continued from the last plan, and
//! reports the plan's time in microseconds.
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
    ContextPlan, ContextWindowManager, Conversation, ItemKind, Message, PlanRequest, RagItem, RequestLimits,
    ToolCall, plan::NoticeCode,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Instant};

const RUNS: usize = 5;
const TURNS: usize = 2_000;

struct Input {
    json: Value,
    log: Conversation,
    documents: Vec<RagItem>,
}

impl Input {
    fn read(path: &str) -> Self {
        let text = std::fs::read(path).expect("the harness's input");
        let json: Value = serde_json::from_slice(&text).expect("JSON of the harness");
        let mut log = Conversation::new();
        log.push_system("system", text_of(&json["system"], "content"));
        for message in list(&json["messages"]) {
            log.push(said(message));
        }
        let document = |item: &Value| {
            RagItem::new(
                text_of(item, "id"),
                item["score"].as_f64().unwrap_or_default(),
                text_of(item, "text"),
            )
        };
        let documents = list(&json["rag"]).iter().map(document).collect();
        Self { json, log, documents }
    }

    fn messages(&self) -> &[Value] {
        list(&self.json["messages"])
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn said(message: &Value) -> Message {
    let content = text_of(message, "content");
    match text_of(message, "role") {
        "user" => Message::user(content),
        "tool" => Message::tool(text_of(message, "tool_call_id"), content),
        _ => {
            let call = |call: &Value| {
                ToolCall::new(text_of(call, "id"), text_of(call, "name"), text_of(call, "arguments"))
            };
            let calls = list(&message["tool_calls"]).iter().map(call);
            Message::assistant(content).with_tool_calls(calls)
        }
    }
}

/// Returns the CPU time of the process, in ms.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Returns the peak memory of the process, in MB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
}

/// Counts like the comparison's reference: `o200k_base`, 4 per message, 3 per call.
fn reference(message: &Value) -> usize {
    let count = |text: &str| bpe_openai::o200k_base().count(text);
    let calls = list(&message["tool_calls"]).iter();
    let calls: usize =
        calls.map(|call| 3 + count(text_of(call, "name")) + count(text_of(call, "arguments"))).sum();
    4 + count(text_of(message, "content")) + calls
}

/// Returns the checks of the comparison for the kept items.
fn checked(input: &Input, plan: &ContextPlan, budget: u64, with_documents: bool) -> Value {
    let messages = input.messages();
    let kept: Vec<usize> = plan
        .included
        .iter()
        .filter(|row| row.kind == ItemKind::Message)
        .filter_map(|row| row.id.as_str().strip_prefix('m')?.parse().ok())
        .collect();
    let have: BTreeSet<usize> = kept.iter().copied().collect();
    let documents: BTreeSet<&str> = plan
        .included
        .iter()
        .filter(|row| row.kind == ItemKind::Document)
        .map(|row| row.id.as_str())
        .collect();
    let mut tokens =
        reference(&input.json["system"]) + kept.iter().map(|at| reference(&messages[*at])).sum::<usize>();
    let rag = list(&input.json["rag"]);
    let is_kept = |item: &&Value| documents.contains(text_of(item, "id"));
    let score = |item: &Value| item["score"].as_f64();
    let worst_kept = rag.iter().filter(is_kept).filter_map(score).fold(f64::MAX, f64::min);
    let best_left = rag.iter().filter(|item| !is_kept(item)).filter_map(score).fold(f64::MIN, f64::max);
    let best_first = best_left <= worst_kept;
    let sent = rag.iter().filter(is_kept);
    tokens += sent.map(|item| bpe_openai::o200k_base().count(text_of(item, "text"))).sum::<usize>();
    let calls = |at: usize| list(&messages[at]["tool_calls"]).iter().map(|call| text_of(call, "id"));
    let pairs = (0..messages.len()).all(|at| {
        let mut ids = calls(at).peekable();
        ids.peek().is_none() || {
            let ids: BTreeSet<&str> = ids.collect();
            let answers =
                (at + 1..messages.len()).filter(|at| ids.contains(text_of(&messages[*at], "tool_call_id")));
            answers.take(ids.len()).all(|answer| have.contains(&answer) == have.contains(&at))
        }
    });
    let newest = (0..messages.len()).rev().find(|at| text_of(&messages[*at], "role") == "user");
    let mut flags = json!({
        "within_budget": tokens as u64 <= budget,
        "newest_user": newest.is_some_and(|at| have.contains(&at)),
        "pairs_intact": pairs,
        "starts_with_user": kept.first().is_some_and(|at| text_of(&messages[*at], "role") == "user"),
        "contiguous": kept.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "system_kept": plan.find("system").is_some(),
        "unmodified": !plan.notices.iter().any(|notice| {
            matches!(notice.code, NoticeCode::ResultsClipped | NoticeCode::ResultsCleared)
        }),
    });
    if with_documents {
        flags["rag_best_first"] = best_first.into();
    }
    json!({"kept": kept.len(), "kept_rag": documents.len(), "tokens": tokens, "valid_flags": flags})
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, budget, lane] = &arguments[..] else {
        println!("usage: peer INPUT BUDGET chat|rag|warm");
        std::process::exit(2);
    };
    let budget: u64 = budget.parse().expect("a number of tokens");
    let input = Input::read(path);
    let manager = ContextWindowManager::for_model("gpt-4o").expect("in the registry");
    let limits = RequestLimits::prompt_budget(budget).with_model_context_len(2_000_000);
    let hello = Conversation::from([Message::user("warm up")]);
    manager.build_plan(&PlanRequest::new(&hello).with_limits(limits)).expect("a plan");
    if lane == "warm" {
        return println!("{}", warm(&manager, input, limits, budget));
    }
    let with_documents = lane == "rag";
    let documents = || if with_documents { input.documents.clone() } else { Vec::new() };
    let base = peak();
    let (mut wall, mut cpu_times, mut rss, mut plans) = (Vec::new(), Vec::new(), 0.0, Vec::new());
    for run in 0..RUNS {
        let request = PlanRequest::new(&input.log).with_rag(documents()).with_limits(limits);
        let (from, cpu_from) = (Instant::now(), cpu());
        let plan = manager.build_plan(&request).expect("a plan");
        cpu_times.push(cpu() - cpu_from);
        wall.push(from.elapsed().as_secs_f64() * 1e3);
        if run == 0 {
            rss = peak();
        }
        plans.push(plan);
    }
    let mut later = wall[1..].to_vec();
    later.sort_by(f64::total_cmp);
    let mut line = json!({
        "peer": if with_documents { "context-window/rag" } else { "context-window" },
        "n": input.json["n"], "r": if with_documents { input.json["r"].clone() } else { 0.into() }, "budget": budget,
        "ms_cold": wall[0], "ms_median": later[later.len() / 2], "runs": RUNS,
        "cpu_cold": cpu_times[0], "cpu_min": cpu_times[1..].iter().copied().fold(f64::MAX, f64::min),
        "rss_mb": rss, "rss_base_mb": base,
    });
    let mut checked = checked(&input, &plans[0], budget, with_documents);
    let identical = plans.iter().all(|plan| plan.fingerprint() == plans[0].fingerprint());
    checked["valid_flags"]["identical"] = identical.into();
    if let (Value::Object(line), Value::Object(checked)) = (&mut line, checked) {
        line.extend(checked);
    }
    println!("{line}");
}

/// Adds turn after turn to the conversation. Returns the times of plan and commit, in microseconds.
fn warm(manager: &ContextWindowManager, mut input: Input, limits: RequestLimits, budget: u64) -> Value {
    let turn: Vec<Message> = input.messages().iter().take(TURNS).map(said).collect();
    let (mut plans, mut commits) = (Vec::new(), Vec::new());
    for message in turn.iter().filter(|message| !message.text().is_empty() && message.tool_calls().is_empty())
    {
        input.log.push(Message::user(message.text()));
        let request = PlanRequest::new(&input.log).with_limits(limits);
        let from = Instant::now();
        let plan = manager.build_plan(&request).expect("a plan");
        plans.push(from.elapsed().as_secs_f64() * 1e6);
        let from = Instant::now();
        input.log.push_reply(&plan, Message::assistant("Done."), None);
        commits.push(from.elapsed().as_secs_f64() * 1e6);
    }
    let of = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        json!({"p50": times[times.len() / 2].round(), "p99": times[times.len() * 99 / 100].round()})
    };
    json!({"peer": "context-window/warm", "n": input.json["n"], "budget": budget, "plans": plans.len(),
        "plan_us": of(&mut plans), "commit_us": of(&mut commits)})
}
