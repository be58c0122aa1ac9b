//! Compares token counts with the counts that providers reported in real sessions, before and after
//! calibration by the reports of the same session (rule N6). With `FULL=1` this prints the table of
//! `docs/reference/counting.md`. Otherwise it reads one session in three.

use crate::support::{data, generate};
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
    Usage,
};
use context_window_formats::SessionFile;
use serde_json::Value;

fn lines(name: &str) -> Vec<Value> {
    let text = data::text(&format!("{name}.jsonl.gz")).unwrap_or_default();
    // There are few sessions with reports for their requests, so all of them are read.
    let every = if generate::is_full() || !name.starts_with("conv_") { 1 } else { 3 };
    text.lines().step_by(every).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The requests of one session: the sent messages with tools, and the input tokens that the provider
/// reported.
type Requests = Vec<(SessionFile, u64)>;

fn file(messages: &[Value], tools: &Value) -> SessionFile {
    let text = serde_json::json!({"messages": messages, "tools": tools}).to_string();
    SessionFile::new("request", text.into_bytes()).unwrap()
}

/// Returns the requests of each session in a data file that records usage reports.
fn sessions(name: &str) -> Vec<Requests> {
    let mut all = Vec::new();
    for line in lines(name) {
        let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or(0);
        let mut requests = Vec::new();
        for request in line["requests"].as_array().into_iter().flatten() {
            let messages = request["messages"].as_array().unwrap();
            requests.push((file(messages, &request["tools"]), number(&request["usage"], "prompt")));
        }
        let empty = Vec::new();
        let cuts: Vec<u64> = line["meta"]["compact_summary_at"]
            .as_array()
            .unwrap_or(&empty)
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        for usage in line["meta"]["usage"].as_array().unwrap_or(&empty) {
            let at = number(usage, "at");
            let from = cuts.iter().filter(|cut| **cut < at).max().copied().unwrap_or(0);
            let messages = &line["messages"].as_array().unwrap()[from as usize..at as usize];
            let cached = if name == "conv_claudecode" {
                number(usage, "cache_read") + number(usage, "cache_write")
            } else {
                0
            };
            requests.push((file(messages, &Value::Null), number(usage, "prompt") + cached));
        }
        all.push(requests);
    }
    all
}

/// Returns the median and the 95th percentile, in per mille.
fn summary(mut errors: Vec<u64>) -> (u64, u64) {
    errors.sort_unstable();
    (errors[errors.len() / 2], errors[(errors.len() - 1) * 95 / 100])
}

#[test]
fn reports_bring_estimates_near() {
    let mut table =
        String::from("| sessions | counter | requests | before: median, p95 | after: median, p95 |\n");
    for name in ["conv_miniswe", "conv_claudecode", "replay_copilot"] {
        let sessions = sessions(name);
        for counter in ["o200k_base", "chars/4"] {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for requests in &sessions {
                let counter = TokenCounter::named(counter).unwrap().into_estimate();
                let manager =
                    ContextWindowManager::new(Model::custom("m"), counter, Config::default()).unwrap();
                // A log that holds only the reports of this session.
                let mut reported = Conversation::from([Message::user("-")]);
                for (at, (file, tokens)) in requests.iter().enumerate() {
                    let session = file.session(None).unwrap();
                    let budget = RequestLimits::prompt_budget(10_000_000);
                    let plain = manager.build_plan(&session.request().with_limits(budget)).unwrap();
                    let learnt = manager.build_plan(&PlanRequest::new(&reported)).unwrap().calibration;
                    let mut request = session.request().with_limits(budget);
                    request =
                        learnt.map_or(request.clone(), |calibration| request.with_calibration(calibration));
                    let plan = manager.build_plan(&request).unwrap();
                    let error = |n: u64| n.abs_diff(*tokens) * 1_000 / tokens;
                    // The first request of a session has no earlier report to learn from, and 0 means that no
                    // report exists.
                    if at > 0 && *tokens > 0 {
                        before.push(error(plain.estimated_tokens_total.tokens));
                        after.push(error(plan.estimated_tokens_total.tokens));
                    }
                    reported.push_reply(&plan, Message::assistant("-"), Usage::openai(*tokens, 0, 1));
                }
            }
            if before.is_empty() {
                return;
            }
            let (n, before, after) = (before.len(), summary(before), summary(after));
            let percent = |n: u64| format!("{}.{} %", n / 10, n % 10);
            table += &format!(
                "| {name} | {counter} | {n} | {}, {} | {}, {} |\n",
                percent(before.0),
                percent(before.1),
                percent(after.0),
                percent(after.1)
            );
            assert!(
                after.0 * 10 <= before.0 && after.1 < before.1,
                "{name}, {counter}: {before:?} {after:?}"
            );
        }
    }
    eprintln!("{table}");
}
