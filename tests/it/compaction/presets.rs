//! Each shipped preset compacts and warns exactly at the sizes that its description names (rules C2, C4, U3).

use super::*;

const WINDOWS: [u64; 3] = [8_000, 200_000, 1_000_000];

/// Builds a manager for a preset, with the preset's counter if it names one, and one token per byte
/// otherwise.
fn manager(preset: &str) -> ContextWindowManager {
    let options = Config::preset(preset).unwrap();
    if options.default_model.tokenizer.starts_with("chars/") {
        ContextWindowManager::configured(Model::custom("test"), options).unwrap()
    } else {
        bytes(options)
    }
}

fn request(log: &Conversation, window: u64) -> PlanRequest<'_> {
    PlanRequest::new(log).with_limits(RequestLimits::new().with_model_context_len(window))
}

/// Returns the tokens left after the reply reserve, which is the smaller of 4,096 tokens and a quarter of the
/// window.
fn capacity(window: u64) -> u64 {
    window - 4_096.min(window / 4)
}

/// Creates a conversation whose first ten messages have `10 + first` bytes each, and the others 20.
fn long_talk(messages: usize, first: usize) -> Conversation {
    let size = |at: usize| if at < 10 { 10 + first } else { 20 };
    (0..messages).map(|at| said(at, size(at))).collect::<Vec<_>>().into()
}

/// Returns the longest conversation that is not due, and one that is longer by one byte in one message.
fn around_the_trigger(
    manager: &ContextWindowManager,
    messages: usize,
    window: u64,
) -> [(Conversation, u64, CompactionState); 2] {
    let mut whole = long_talk(messages, 0);
    let state = |log: &Conversation| manager.compactor().state(&request(log, window)).unwrap();
    let is_due = |log: &Conversation| matches!(state(log), CompactionState::Due(_));
    let [mut too_few, mut enough] = [0, usize::try_from(window).unwrap()];
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if is_due(&long_talk(messages, middle)) { enough = middle } else { too_few = middle }
    }
    // From there the search continues byte by byte, in the first message only.
    let from = long_talk(messages, too_few);
    let with = |more: usize| {
        let mut texts = from.messages().iter().cloned();
        let first = Message::user(format!("{}{}", texts.next().unwrap().text(), "x".repeat(more)));
        Conversation::from(std::iter::once(first).chain(texts).collect::<Vec<_>>())
    };
    let more = (1..60).find(|more| is_due(&with(*more))).unwrap();
    whole.clone_from(&with(more - 1));
    [whole, with(more)].map(|log| {
        let tokens = manager.usage(&request(&log, window)).unwrap().conversation_tokens.tokens;
        let state = state(&log);
        (log, tokens, state)
    })
}

#[test]
fn each_preset_compacts_exactly_at_the_size_it_names() {
    let mut presets: Vec<&str> = Config::presets().collect();
    presets.sort_unstable();
    for preset in presets {
        let manager = manager(preset);
        for window in WINDOWS {
            // The smallest number of tokens at which a compaction is due.
            let due_from = match preset {
                "summary-only" => (window * 85).div_ceil(100),
                "summary-tail" => window * 75 / 100 + 1,
                _ => (capacity(window) * 85).div_ceil(100),
            };
            let [(_, below, quiet), (_, at, fires)] = around_the_trigger(&manager, 30, window);
            assert_eq!(quiet, CompactionState::NotDue, "{preset} of {window}");
            assert_eq!(fires, CompactionState::Due(Trigger::Percent), "{preset} of {window}");
            // Above the input limit messages are excluded, and their tokens are an estimate.
            if due_from <= capacity(window) * 95 / 100 {
                assert_eq!((below, at), (due_from - 1, due_from), "{preset} of {window}");
            } else {
                assert!(below < due_from && due_from <= at && at - below < 9, "{preset}: {below}, {at}");
            }
        }
    }
}

#[test]
fn each_summary_preset_keeps_its_stated_messages() {
    for window in WINDOWS {
        // Only the summary stays, and an unanswered question.
        for (messages, kept) in [(30, vec![]), (31, vec!["m30".to_owned()])] {
            let manager = manager("summary-only");
            let [_, (mut log, ..)] = around_the_trigger(&manager, messages, window);
            let job = manager.compactor().due(&request(&log, window)).unwrap().unwrap();
            let record = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
            assert!(record.progress, "{window}");
            assert_eq!(ids(&log), [vec!["#1".to_owned()], kept].concat(), "{window}");
        }
        // The newest ten messages stay, or 40 % if that is fewer.
        for (messages, kept) in [(30, 10), (40, 10), (20, 8), (14, 4)] {
            let manager = manager("summary-tail");
            let [_, (mut log, ..)] = around_the_trigger(&manager, messages, window);
            let job = manager.compactor().due(&request(&log, window)).unwrap().unwrap();
            let record = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
            assert!(record.progress, "{window}");
            let tail = range(messages - kept, messages);
            assert_eq!(ids(&log), [vec!["#1".to_owned()], tail].concat(), "{window}, {messages} messages");
        }
    }
}

#[test]
fn dropping_drops_until_each_of_its_thresholds_holds() {
    let manager = manager("dropping");
    for window in WINDOWS {
        let state = |log: &Conversation| manager.compactor().state(&request(log, window)).unwrap();
        // 100 messages in 34 turns, and 50 turns in 50 messages.
        let turn =
            |at: usize| [said(2 * at, 20), call(&format!("c{at}")), Message::tool(format!("c{at}"), "o")];
        let messages = |n: usize| -> Conversation {
            (0..n.div_ceil(3)).flat_map(turn).take(n).collect::<Vec<_>>().into()
        };
        let turns = |n: usize| -> Conversation {
            let mut log: Conversation = (0..n).map(|at| said(2 * at, 20)).collect::<Vec<_>>().into();
            log.push(said(1, 20));
            log
        };
        assert_eq!(state(&messages(99)), CompactionState::NotDue);
        assert_eq!(state(&turns(49)), CompactionState::NotDue);
        let [_, (long, _, fires)] = around_the_trigger(&manager, 30, window);
        assert_eq!(fires, CompactionState::Due(Trigger::Percent));
        for (mut log, trigger) in
            [(messages(102), Trigger::Messages), (turns(50), Trigger::Turns), (long, Trigger::Percent)]
        {
            assert_eq!(state(&log), CompactionState::Due(trigger), "{window}");
            let job = manager.compactor().due(&request(&log, window)).unwrap().unwrap();
            let before = ids(&log);
            let record = manager.compactor().compact_without_model(&mut log, &job).unwrap();
            assert_eq!((record.kind, record.progress), (CompactionKind::SlidingWindow, true));
            assert_eq!(
                ids(&log)[..],
                before[before.len() - ids(&log).len()..],
                "no summary, the newest stay"
            );
            // With one turn more, a threshold would be exceeded.
            let dropped = before.len() - ids(&log).len();
            assert!(dropped <= 3, "{trigger:?} of {window}: {dropped}");
        }
    }
}

#[test]
fn levels_change_at_their_share_of_the_context_length() {
    let manager = manager("lights");
    for window in WINDOWS {
        let level = |tokens: u64| {
            let log = Conversation::from([Message::user("x".repeat(usize::try_from(tokens).unwrap()))]);
            let usage = manager.usage(&request(&log, window)).unwrap();
            assert_eq!(usage.conversation_tokens.tokens, tokens);
            usage.level
        };
        let amber = window * 75 / 100;
        assert_eq!([amber - 1, amber].map(level), [Level::Normal, Level::Approaching], "{window}");
        assert_eq!([window - 1, window].map(level), [Level::Approaching, Level::AtLimit], "{window}");
    }
}

/// The share is of a base above the input limit, so `on_drop` fires first.
#[test]
fn a_share_of_the_context_length_waits_for_no_window_that_is_full() {
    let mut options = Config::preset("summary-only").unwrap();
    options.compaction.on_drop = true;
    let manager = ContextWindowManager::configured(Model::custom("test"), options).unwrap();
    let [(_, below, _), (_, at, fires)] = around_the_trigger(&manager, 30, 8_000);
    assert_eq!(fires, CompactionState::Due(Trigger::OnDrop));
    assert!(below < 6_000 && at <= 6_000, "{below} {at}: no more than the input takes");
}
