//! Repeated compactions: no earlier summary is lost by any method of the next one (rules C6, C7, C8).

use super::*;
use context_window::{compaction::CompactionRequest, conversation::Compaction};
use context_window_testing::generate;
use proptest::prelude::*;

/// One step of a generated conversation: its new messages, and the method of the compaction after them.
#[derive(Debug, Clone)]
struct Step {
    turns: usize,
    calls: usize,
    bytes: usize,
    window: u64,
    by: By,
}

#[derive(Debug, Clone)]
enum By {
    /// A model whose summary has this number of bytes.
    Summary(usize),
    /// Another model: bytes of its summary, and its window.
    Other(usize, u64),
    Digest,
    Sliding,
    /// A manual range, in thousandths of the messages, summarised by a model.
    Range(usize, usize),
}

/// Generates a window of 1,000 to 200,000 tokens, small ones as often as large ones.
fn window() -> impl Strategy<Value = u64> {
    (0u32..8, 1_000u64..2_000).prop_map(|(doublings, from)| (from << doublings).min(200_000))
}

fn step() -> impl Strategy<Value = Step> {
    let by = prop_oneof![
        3 => (20usize..4_000).prop_map(By::Summary),
        2 => (20usize..4_000, window()).prop_map(|(bytes, window)| By::Other(bytes, window)),
        3 => Just(By::Digest),
        2 => Just(By::Sliding),
        1 => (0usize..1_000, 0usize..1_000).prop_map(|(from, to)| By::Range(from, to)),
    ];
    (1usize..12, 0usize..4, 10usize..3_000, window(), by).prop_map(|(turns, calls, bytes, window, by)| Step {
        turns,
        calls,
        bytes,
        window,
        by,
    })
}

fn manager(form: RequestForm, strategy: CompactionStrategy) -> ContextWindowManager {
    let options = config(|config| {
        config.compaction.summary.form = form;
        config.compaction.strategy = strategy;
        config.compaction.retain.messages = Some(2);
        config.tokens.calibrate = false;
    });
    let model = Model::custom("test").with_wire_format(WireFormat::OpenAiChat);
    ContextWindowManager::new(model, TokenCounter::chars_per_4(), options).unwrap()
}

fn text(name: &str, bytes: usize) -> String {
    format!("{name} {}", format!("{name}-word ").repeat(bytes / (name.len() + 6))).trim().to_owned()
}

fn summaries(log: &Conversation) -> Vec<Compaction> {
    let summary = |part| match part {
        HistoryRow::Compaction(record) => Some(record.clone()),
        _ => None,
    };
    log.active().filter_map(summary).filter(|record| record.summary.is_some()).collect()
}

/// Returns the summaries that a compaction replaced: sent before it, and no longer after it.
fn folded(log: &Conversation, after: &Conversation) -> Vec<String> {
    let stays: Vec<u32> = summaries(after).iter().map(|record| record.number).collect();
    let gone = summaries(log).into_iter().filter(|record| !stays.contains(&record.number));
    gone.filter_map(|record| record.summary).collect()
}

fn holds(messages: &[Message], text: &str) -> bool {
    messages.iter().flat_map(Message::texts).any(|said| said.contains(text.trim()))
}

/// Returns each request that a job can become: unchanged, for other windows, and halved as often as possible.
fn requests(job: &CompactionRequest, other: u64) -> Vec<CompactionRequest> {
    let mut requests = vec![job.clone()];
    for form in [RequestForm::Conversation, RequestForm::Transcript] {
        let mut model = Model::custom("other").with_wire_format(WireFormat::Anthropic);
        model.context_len = Some(other);
        let options = config(|config| config.compaction.summary.form = form);
        let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), options).unwrap();
        // A window without room for the answer is an error.
        match job.for_summariser(&manager) {
            Ok(job) => requests.push(job),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Budget, "{error}"),
        }
    }
    for at in 0..requests.len() {
        let mut next = requests[at].smaller().unwrap();
        while let Some(smaller) = next {
            next = smaller.smaller().unwrap();
            requests.push(smaller);
        }
    }
    requests
}

/// Number of times that each outcome occurred.
#[derive(Debug, Default)]
struct Seen {
    cut: usize,
    refused: usize,
    digests: usize,
    slid: usize,
}

fn live(steps: &[Step], form: RequestForm, seen: &mut Seen) -> Result<(), TestCaseError> {
    let mut log = Conversation::from([Message::system("Be brief.")]);
    // Summaries by a model that no later summary has covered.
    let mut written: Vec<String> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        for turn in 0..step.turns {
            log.push(Message::user(text(&format!("question{at}x{turn}"), step.bytes)));
            for number in 0..step.calls {
                let id = format!("c{at}x{turn}x{number}");
                log.push(call(&id));
                log.push(Message::tool(id, text("result", step.bytes)));
            }
            log.push(Message::assistant(text(&format!("answer{at}x{turn}"), step.bytes / 2)));
        }
        let strategy = match step.by {
            By::Sliding => CompactionStrategy::SlidingWindow,
            _ => CompactionStrategy::Summary,
        };
        let manager = manager(form, strategy);
        let asked = RequestLimits::new().with_model_context_len(step.window);
        let request = PlanRequest::new(&log).with_limits(asked);
        let job = match step.by {
            By::Range(from, to) => {
                let active: Vec<ItemId> = log
                    .active()
                    .filter_map(|part| match part {
                        HistoryRow::Message { id, .. } => Some(id),
                        _ => None,
                    })
                    .collect();
                let (from, to) = (active.len() * from / 1_000, active.len() * to / 1_000);
                let (from, to) = (from.min(to), from.max(to));
                manager.compactor().range(&request, Some(&active[from]), Some(&active[to])).ok().flatten()
            }
            _ => manager.compactor().now(&request).unwrap(),
        };
        let Some(mut job) = job else { continue };
        let other = if let By::Other(_, window) = step.by { window } else { step.window / 2 + 1_000 };
        let archive = |text: &str| {
            let mut after = log.clone();
            let done =
                manager.compactor().archive_by(&mut after, &job, CompactionKind::Summary, Some(text.into()));
            done.map(|_| after)
        };
        let replaced = archive("x").map(|after| folded(&log, &after)).unwrap_or_default();
        for request in requests(&job, other) {
            let messages = request.messages();
            if messages.is_empty() {
                continue;
            }
            for summary in &replaced {
                prop_assert!(
                    holds(messages, summary),
                    "{form:?}, {} of {} tokens lack {summary}: {messages:#?}",
                    step.window,
                    request.tokens().tokens
                );
            }
            let is_cut = holds(messages, "earlier lines are left out");
            seen.cut += usize::from(is_cut && !replaced.is_empty());
        }
        let digest = job.digest().unwrap();
        let is_folded = |text: &String| replaced.iter().any(|summary| summary.contains(text));
        let folds: Vec<String> = written.iter().filter(|text| is_folded(text)).cloned().collect();
        for text in &folds {
            prop_assert!(digest.contains(text), "{digest}\nlacks {text}");
        }
        if let By::Other(..) = step.by {
            let all = requests(&job, other);
            job = all.into_iter().find(|request| request.model() == "other").unwrap_or(job);
        }
        let before = log.clone();
        let done = match step.by {
            By::Summary(bytes) | By::Other(bytes, _) => {
                let summary = text(&format!("summary{at}"), bytes);
                let applied = manager.compactor().apply_summary(&mut log, &job, &summary);
                if job.messages().is_empty() && !replaced.is_empty() {
                    let error = applied.as_ref().unwrap_err();
                    prop_assert_eq!(error.kind(), ErrorKind::Budget);
                    prop_assert!(error.to_string().contains("nothing was archived"), "{}", error);
                    seen.refused += 1;
                }
                if applied.is_ok() {
                    written.retain(|text| !is_folded(text));
                    written.push(summary);
                }
                applied
            }
            _ => manager.compactor().compact_without_model(&mut log, &job),
        };
        let Ok(record) = done else {
            prop_assert_eq!(ids(&log), ids(&before));
            continue;
        };
        seen.digests += usize::from(record.kind == CompactionKind::Digest && !folds.is_empty());
        seen.slid += usize::from(record.kind == CompactionKind::SlidingWindow && !written.is_empty());
        let sent = summaries(&log);
        for text in &written {
            let is_sent = sent.iter().any(|one| one.summary.as_ref().is_some_and(|one| one.contains(text)));
            prop_assert!(is_sent, "after {record:?} nobody sends {text}");
        }
        // A digest of digests is no longer than one digest.
        if record.kind == CompactionKind::Digest {
            let count = |text: &str| TokenCounter::chars_per_4().count(text).unwrap().tokens;
            let carried: u64 = folds.iter().map(|text| count(text) + 4).sum();
            let summary = count(record.summary.as_ref().unwrap());
            prop_assert!(summary <= 1_500.max(carried + 750), "{summary} with {carried}");
        }
        let restored = Conversation::from_events(log.events()).unwrap();
        prop_assert_eq!(&restored, &log);
    }
    Ok(())
}

#[test]
fn no_earlier_summary_is_lost_by_any_request_digest_or_window() {
    let mut seen = Seen::default();
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        generate::cases(40, 5_000),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let cell = std::cell::RefCell::new(&mut seen);
    let lives = prop::collection::vec(step(), 2..7);
    let ran = runner.run(&lives, |steps| {
        for form in [RequestForm::Conversation, RequestForm::Transcript] {
            live(&steps, form, *cell.borrow_mut())?;
        }
        Ok(())
    });
    ran.unwrap();
    assert!(seen.cut > 10 && seen.refused > 1 && seen.digests > 10 && seen.slid > 5, "{seen:?}");
}
