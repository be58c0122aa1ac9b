//! Tests of usage, levels and compaction by behaviour: rules U1 to U4 and C1 to C10. Each file has one
//! subject.

mod by_provider;
mod digest;
mod due;
mod retention;
mod presets;
mod stacked;
mod records;
mod settings;
mod strategy;
mod summary;
mod unknown_limit;
mod usage;

use context_window::{
    analysis::{Cause, Diff, Evidence},
    compaction::{BlockedBy, CompactionOutcome, CompactionState, Compactor, ContextCall, Trigger},
    config::{
        CompactionOptions, CompactionOverrides, CompactionStrategy, RequestForm, ToolResults, TtlPolicy,
    },
    conversation::{CompactionKind, HistoryRow},
    plan::Remedy,
    usage::{ContextEvent, Level, StopReason},
    *,
};
use context_window_formats::Session;

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}

/// Builds a planner that counts one token per byte and no overhead, for round numbers.
fn bytes(config: Config) -> ContextWindowManager {
    let model = Model::custom("test").with_wire_format(WireFormat::Plain);
    ContextWindowManager::new(
        model,
        TokenCounter::from_fn("bytes", |text| Ok::<_, std::convert::Infallible>(text.len() as u64)),
        config,
    )
    .unwrap()
}

fn limits(context_len: u64) -> RequestLimits {
    RequestLimits::new()
        .with_model_context_len(context_len)
        .with_max_completion_tokens(100)
        .with_safety_buffer(0)
}

/// Returns the closure. Its bound makes the compiler accept a conversation of any lifetime.
fn asking<F: Fn(&Conversation) -> PlanRequest<'_>>(request: F) -> F {
    request
}

static TOOLS: std::sync::LazyLock<[Tool; 1]> =
    std::sync::LazyLock::new(|| [Tool::new("look", "Looks.", "{}")]);

/// Creates a conversation of `messages` messages with `size` bytes each, alternately by user and assistant.
fn talk(messages: usize, size: usize) -> Conversation {
    (0..messages).map(|at| said(at, size)).collect::<Vec<_>>().into()
}

fn said(at: usize, size: usize) -> Message {
    let text = format!("{at:04} {}", "x".repeat(size - 5));
    if at.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) }
}

fn ids(log: &Conversation) -> Vec<String> {
    log.active()
        .map(|part| match part {
            HistoryRow::Message { id, .. } => id.as_str().to_owned(),
            HistoryRow::Compaction(record) => format!("#{}", record.number),
            _ => unreachable!(),
        })
        .collect()
}

fn range(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|at| format!("m{at}")).collect()
}

fn call(id: &str) -> Message {
    Message::assistant("").with_tool_calls([ToolCall::new(id, "look", "{}")])
}
