//! Real compactions compared with those of this crate: trigger, archived messages and retained messages. The
//! test prints the table of `docs/reference/compaction.md`.

use crate::support::data;
use context_window::{compaction::CompactionState, *};
use context_window_formats::SessionFile;
use serde_json::Value;

fn lines() -> Vec<Value> {
    let text = data::text("conv_claudecode.jsonl.gz").unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read(messages: &[Value]) -> Vec<Message> {
    let text = serde_json::json!({ "messages": messages }).to_string();
    let session = SessionFile::new("session", text.into_bytes()).unwrap().session(None).unwrap();
    session.log.messages().to_vec()
}

/// Replays each session request by request, with the provider's reports.
#[test]
fn real_compactions_compared_with_own_compactions() {
    let limits = RequestLimits::new().with_model_context_len(200_000).with_max_completion_tokens(32_000);
    let mut table = String::from(
        "| session | really | before, after | due by ours | archived, kept | before, after |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let lines = lines();
    for line in &lines {
        let meta = &line["meta"];
        let Some(cut) = meta["compact_summary_at"][0].as_u64().map(|cut| cut as usize) else { continue };
        let reports: Vec<(usize, Usage)> = meta["usage"]
            .as_array()
            .unwrap()
            .iter()
            .map(|usage| {
                let number = |key: &str| usage[key].as_u64().unwrap_or(0);
                let report = Usage::anthropic(
                    number("prompt"),
                    number("cache_write"),
                    number("cache_read"),
                    number("completion"),
                );
                (number("at") as usize, report)
            })
            .collect();
        let counter = TokenCounter::o200k_base().into_estimate();
        let model = Model::named("claude-opus-4-6").unwrap();
        let manager = ContextWindowManager::new(model, counter, Config::default()).unwrap();
        let messages = read(&line["messages"].as_array().unwrap()[..=cut]);
        let summary = messages[cut].text().to_owned();
        let mut log = Conversation::new();
        let mut due = None;
        for (at, message) in messages[..cut].iter().enumerate() {
            let request = PlanRequest::new(&log).with_limits(limits);
            match reports.iter().find(|(of, _)| *of == at) {
                Some((_, usage)) => {
                    let plan = manager.build_plan(&request).unwrap();
                    log.push_reply(&plan, message.clone(), *usage);
                }
                None => drop(log.push(message.clone())),
            }
            let request = PlanRequest::new(&log).with_limits(limits);
            if due.is_none()
                && matches!(manager.compactor().state(&request).unwrap(), CompactionState::Due(_))
            {
                due = Some((at, manager.usage(&request).unwrap().conversation_tokens.tokens));
            }
        }
        let request = PlanRequest::new(&log).with_limits(limits);
        let (archived, sizes) = match manager.compactor().now(&request).unwrap() {
            Some(job) => {
                // The real summary is used in place of a new one.
                let record = manager.compactor().apply_summary(&mut log, &job, &summary);
                match record {
                    Ok(record) => {
                        let active = manager.stats(&PlanRequest::like_last(&log)).unwrap().active;
                        (
                            format!("{}, {active}", record.messages_archived),
                            format!(
                                "{}, {}",
                                context_window_report::grouped(record.tokens_before),
                                context_window_report::grouped(record.tokens_after)
                            ),
                        )
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NotSmaller);
                        ("refused: not smaller".into(), "-".into())
                    }
                }
            }
            None => (
                format!("{:?}", manager.compactor().state(&PlanRequest::like_last(&log)).unwrap()),
                String::new(),
            ),
        };
        let after = reports.iter().find(|(at, usage)| *at > cut && usage.context_size() > 0);
        let after = after.map_or("-".into(), |(_, usage)| {
            context_window_report::grouped(usage.context_size() - usage.output)
        });
        let boundary = &meta["compact_boundary"][0];
        let id = line["id"].as_str().unwrap();
        table += &format!(
            "| {} | {} at {cut} | {}, {after} | {} | {archived} | {sizes} |\n",
            &id[..id.len().min(21)],
            boundary["trigger"].as_str().unwrap(),
            context_window_report::grouped(boundary["pre_tokens"].as_u64().unwrap()),
            due.map_or("not due".into(), |(at, pressure)| format!(
                "after {at}, at {}",
                context_window_report::grouped(pressure)
            )),
        );
    }
    eprintln!("{table}");
    let page = std::fs::read_to_string("docs/reference/compaction.md").unwrap_or_default();
    assert!(
        lines.is_empty() || page.contains(&table),
        "docs/reference/compaction.md shows another table than\n{table}"
    );
}
