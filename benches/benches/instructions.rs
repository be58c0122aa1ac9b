//! Instruction counts of eleven cases under valgrind: the same number on every run, independent of other load
//! on the machine. A case with over 3 % more than `instructions.in` states fails: `./check instructions`. A
//! change with intended extra cost writes its new counts there, with a reason.
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
    ContextPlan, ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits,
    TokenCounter, ToolCall,
};
use context_window_benches::texts;
use context_window_formats::{FileFormat, ReadOptions, Session, SessionFile};
use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use serde_json::json;
use std::hint::black_box;

/// Instructions of each case in the profile `dev`, after the name of the compiler they are valid for.
const LIMITS: [(&str, u64); 11] = include!("instructions.in");

/// Allowed excess, in per mille.
const TOLERANCE: u64 = 30;

fn limit(case: &str) -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    // Another compiler generates other code: its counts are shown, but not checked.
    if std::env::var_os("INSTRUCTIONS_OF_ANOTHER_COMPILER").is_some() {
        return config;
    }
    let (_, count) = LIMITS.iter().find(|(name, _)| *name == case).expect("every case has a limit");
    let most = count + count * TOLERANCE / 1_000;
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, most)]));
    config
}

const TEXT: &str = "The harbour office keeps a ledger of every boat that comes in, with its length, its cargo and the \
                    hour of the tide; whoever pays the fee signs on the same line. ";

struct Case {
    manager: ContextWindowManager,
    log: Conversation,
    documents: Vec<RagItem>,
    limits: RequestLimits,
}

impl Case {
    fn request(&self) -> PlanRequest<'_> {
        PlanRequest::new(&self.log).with_rag(self.documents.iter().cloned()).with_limits(self.limits)
    }

    fn plan(&self) -> ContextPlan {
        self.manager.build_plan(&self.request()).expect("a sound request")
    }
}

/// Creates an uncounted conversation of tool steps and answers; the counter itself is already loaded.
fn cold(budget: u64, documents: u32) -> Case {
    let one = |at: usize| match at % 4 {
        0 => Message::user(format!("Question {at}: {TEXT}")),
        1 => Message::assistant("").with_tool_calls([ToolCall::new(
            format!("c{at}"),
            "find_boat",
            format!("{{\"n\":{at}}}"),
        )]),
        2 => Message::tool(format!("c{}", at - 1), TEXT.repeat(4)),
        _ => Message::assistant(format!("Answer {at}: {}", TEXT.repeat(3))),
    };
    let document = |at: u32| {
        let text = format!("{at}: {}", TEXT.repeat(at as usize % 9 + 1));
        RagItem::new(format!("page-{at}"), 1.0 / f64::from(at + 1), text)
    };
    let case = Case {
        manager: ContextWindowManager::for_model("gpt-4o").expect("in the registry"),
        log: (0..2_001).map(one).collect(),
        documents: (0..documents).map(document).collect(),
        limits: RequestLimits::prompt_budget(budget),
    };
    case.manager.count_document(&RagItem::new("first", 0.5, TEXT)).expect("a counter that does not fail");
    case
}

/// Creates the same after several planned, sent and answered prompts, with one more question.
fn warm(budget: u64, documents: u32) -> Case {
    let mut case = cold(budget, documents);
    for at in 0..3 {
        let plan = case.plan();
        case.log.push_reply(&plan, Message::assistant("Done."), None);
        case.log.push(Message::user(format!("And boat {at}?")));
    }
    case
}

fn to_commit(budget: u64) -> (Case, ContextPlan) {
    let case = warm(budget, 0);
    let plan = case.plan();
    (case, plan)
}

#[library_benchmark]
#[bench::cold_8k(args = (8_000, 0), setup = cold, config = limit("cold_8k"))]
#[bench::cold_128k(args = (128_000, 0), setup = cold, config = limit("cold_128k"))]
#[bench::documents_cold(args = (8_000, 1_000), setup = cold, config = limit("documents_cold"))]
#[bench::warm_8k(args = (8_000, 0), setup = warm, config = limit("warm_8k"))]
#[bench::warm_128k(args = (128_000, 0), setup = warm, config = limit("warm_128k"))]
#[bench::documents_warm(args = (8_000, 1_000), setup = warm, config = limit("documents_warm"))]
fn plan(case: Case) -> (Case, ContextPlan) {
    let plan = black_box(&case).plan();
    (case, plan)
}

#[library_benchmark]
#[bench::commit_128k(args = (128_000), setup = to_commit, config = limit("commit_128k"))]
fn commit((mut case, plan): (Case, ContextPlan)) -> Case {
    case.log.push_reply(black_box(&plan), Message::assistant("Done."), None);
    case
}

fn mixed() -> (TokenCounter, String) {
    let counter = TokenCounter::o200k_base();
    counter.count(TEXT).expect("it does not fail");
    let all: String = texts::of_every_kind().into_iter().map(|(_, text)| text).collect();
    (counter, all)
}

#[library_benchmark]
#[bench::count(setup = mixed, config = limit("count"))]
fn count((counter, text): (TokenCounter, String)) -> u64 {
    black_box(&counter).count(&text).expect("it does not fail").tokens
}

/// Returns a logged body of `OpenAI` Chat with 2,001 messages and keys that only the log uses.
fn chat() -> String {
    let one = |at: usize| match at % 4 {
        0 => json!({ "role": "user", "content": format!("Question {at}: {TEXT}"), "timestamp": at }),
        1 => {
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": format!("c{at}"), "type": "function",
            "function": { "name": "find_boat", "arguments": format!("{{\"n\":{at}}}") } }] })
        }
        2 => json!({ "role": "tool", "tool_call_id": format!("c{}", at - 1), "content": TEXT.repeat(4) }),
        _ => json!({ "role": "assistant", "content": format!("Answer {at}: {}", TEXT.repeat(3)) }),
    };
    json!({ "model": "gpt-4o", "messages": (0..2_001).map(one).collect::<Vec<_>>() }).to_string()
}

/// Returns the same conversation as a body of Anthropic Messages.
fn blocks() -> String {
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    let one = |at: usize| match at % 4 {
        0 => json!({ "role": "user", "content": text(format!("Question {at}: {TEXT}")) }),
        1 => json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": format!("c{at}"),
            "name": "find_boat", "input": { "n": at } }] }),
        2 => {
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": format!("c{}", at - 1),
            "content": TEXT.repeat(4) }] })
        }
        _ => json!({ "role": "assistant", "content": text(format!("Answer {at}: {}", TEXT.repeat(3))) }),
    };
    json!({ "model": "claude-sonnet-4-5", "messages": (0..2_001).map(one).collect::<Vec<_>>() }).to_string()
}

// Reading. The case that names the format skips detection, so its difference to the first is the cost of
// detection.
#[library_benchmark]
#[bench::read_chat(args = (None), setup = with_chat, config = limit("read_chat"))]
#[bench::read_chat_by_name(args = (Some(FileFormat::Session)), setup = with_chat, config = limit("read_chat_by_name"))]
#[bench::read_anthropic(args = (None), setup = with_blocks, config = limit("read_anthropic"))]
fn read((text, format): (Vec<u8>, Option<FileFormat>)) -> Session {
    let options = format.map_or_else(ReadOptions::new, |format| ReadOptions::new().read_as(format));
    let file = SessionFile::with_options("talk.json", black_box(text), options).expect("a sound file");
    file.session(None).expect("a sound session")
}

fn with_chat(format: Option<FileFormat>) -> (Vec<u8>, Option<FileFormat>) {
    (chat().into_bytes(), format)
}

fn with_blocks(format: Option<FileFormat>) -> (Vec<u8>, Option<FileFormat>) {
    (blocks().into_bytes(), format)
}

library_benchmark_group!(name = cases, benchmarks = [plan, commit, count, read]);
main!(library_benchmark_groups = cases);
