//! The limits, tools and focus hint of the last prompt are remembered: `&log` as a request means a prompt
//! with the same settings (rule U2).

use super::*;
use crate::support::generate;
use context_window::{
    conversation::{Entry, Event},
    events::LogEvent,
};
use proptest::prelude::*;

fn tool(name: &str, size: usize) -> Tool {
    Tool::new(name, "d".repeat(size), "{}")
}

/// Returns one of the limits that a generated conversation switches between.
fn limits_of(which: u8) -> RequestLimits {
    match which {
        0 => RequestLimits::new(),
        1 => limits(3_100),
        2 => limits(9_100).with_max_input(2_500),
        3 => RequestLimits::prompt_budget(1_500),
        _ => RequestLimits::new().with_max_completion_tokens(7_000),
    }
}

fn tools_of(which: u8) -> Vec<Tool> {
    match which {
        0 => Vec::new(),
        1 => vec![tool("look", 300)],
        2 => vec![tool("look", 300), tool("run", 900)],
        _ => vec![tool("run", 900), tool("look", 300)],
    }
}

fn focus_of(which: u8) -> Option<&'static str> {
    [None, Some("kettles"), Some("refunds, and how long they take in other countries"), Some(" ")]
        [which as usize]
}

fn request<'a>(
    log: &'a Conversation,
    (limits, _, focus): (u8, u8, u8),
    tools: &'a [Tool],
) -> PlanRequest<'a> {
    let request = PlanRequest::new(log).with_limits(limits_of(limits)).with_tools(tools);
    match focus_of(focus) {
        Some(focus) => request.with_focus(focus),
        None => request,
    }
}

/// One step: its settings, message sizes, and the provider's report in per cent of the count.
#[derive(Debug, Clone)]
struct Step {
    settings: (u8, u8, u8),
    said: (usize, usize),
    reported: Option<u64>,
    documents: bool,
    compacts: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let settings = (0u8..5, 0u8..4, 0u8..4);
    let reported = prop_oneof![Just(None), (90u64..140).prop_map(Some), Just(Some(9_000))];
    (settings, (1usize..600, 1usize..600), reported, any::<bool>(), prop::bool::weighted(0.3)).prop_map(
        |(settings, said, reported, documents, compacts)| Step {
            settings,
            said,
            reported,
            documents,
            compacts,
        },
    )
}

fn lives() -> impl Strategy<Value = Vec<Step>> {
    // Settings stay the same for several steps, as in an application.
    (prop::collection::vec(step(), 1..14), 1usize..5).prop_map(|(mut steps, stay)| {
        for at in 0..steps.len() {
            steps[at].settings = steps[at - at % stay].settings;
        }
        steps
    })
}

proptest! {
    #![proptest_config(generate::cases(100, 3_000))]

    /// After every reply, usage, state and job of `&log` equal those of the planned request with any
    /// settings. The level changes only by crossings.
    #[test]
    fn a_conversation_alone_is_measured_as_its_last_prompt(life in lives(), calibrates: bool) {
        let manager = bytes(config(|config| {
            config.tokens.calibrate = calibrates;
            config.compaction.min_messages = 2;
        }));
        let compactor = manager.compactor();
        let mut log = Conversation::from([Message::system("Be brief.")]);
        let mut stored: Vec<LogEvent> = Vec::new();
        for (at, Step { settings, said, reported, documents, compacts }) in life.into_iter().enumerate() {
            let tools = tools_of(settings.1);
            log.push(Message::user(format!("{at} {}", "u".repeat(said.0))));
            let documents = documents.then(|| RagItem::new("d", 1.0, "d".repeat(200)));
            let plan = manager.build_plan(&request(&log, settings, &tools).with_rag(documents)).unwrap();
            let reply = Message::assistant(format!("{at} {}", "a".repeat(said.1)));
            let input = reported.map(|percent| plan.counted() * percent / 100);
            log.push_reply(&plan, reply, input.map(|input| Usage::openai(input, 0, said.1 as u64)));

            let like = request(&log, settings, &tools);
            prop_assert_eq!(manager.usage(&PlanRequest::like_last(&log)).unwrap(), manager.usage(&like).unwrap());
            prop_assert_eq!(manager.stats(&PlanRequest::like_last(&log)).unwrap(), manager.stats(&like).unwrap());
            prop_assert_eq!(compactor.state(&PlanRequest::like_last(&log)).unwrap(), compactor.state(&like).unwrap());
            let jobs = [compactor.due(&PlanRequest::like_last(&log)).unwrap(), compactor.due(&like).unwrap()];
            let [alone, asked] = jobs.map(|job| job.map(|job| {
                (job.messages().to_vec(), job.tools().to_vec(), job.tokens(), job.archived_ids().to_vec())
            }));
            prop_assert_eq!(alone, asked);

            // A second call reports no new crossing.
            let told = log.observe_usage(manager.usage(&PlanRequest::like_last(&log)).unwrap());
            prop_assert!(told.len() <= 2);
            prop_assert_eq!(log.observe_usage(manager.usage(&PlanRequest::like_last(&log)).unwrap()).len(), 1);

            // Reads the log back from a store that is written entry by entry.
            stored.extend(log.events_from(stored.len()));
            let json = serde_json::to_string(&stored).unwrap();
            let again: Vec<LogEvent> = serde_json::from_str(&json).unwrap();
            let again = Conversation::from_events(again).unwrap();
            prop_assert_eq!(manager.usage(&PlanRequest::like_last(&again)).unwrap(), manager.usage(&PlanRequest::like_last(&log)).unwrap());
            if compacts && let Some(job) = compactor.due(&PlanRequest::like_last(&log)).unwrap() {
                let _ = compactor.compact_without_model(&mut log, &job);
            }
        }
        // Each tool is stored once.
        let held = log.entries().filter_map(|entry| match entry {
            Entry::Event(Event::PromptSettings { new_tools, .. }) => Some(new_tools.len()),
            _ => None,
        });
        prop_assert!(held.sum::<usize>() <= 2);
    }

    /// A conversation that only grows crosses each boundary once, measured either before the prompt with its
    /// request or after the reply without one. (A prompt of less than 200 bytes counts its excluded messages
    /// at 4 bytes per token, but a token is a byte here: rule U2.)
    #[test]
    fn levels_of_a_growing_conversation_never_flap(
        settings in (1u8..5, 0u8..4, 0u8..4),
        reported in prop_oneof![Just(None), (100u64..140).prop_map(Some)],
        sizes in prop::collection::vec(200usize..500, 1..30),
    ) {
        let manager = bytes(config(|config| config.compaction.enabled = false));
        let tools = tools_of(settings.1);
        let mut log = Conversation::new();
        let mut told = Vec::new();
        for size in sizes {
            log.push(Message::user("u".repeat(size)));
            let before = manager.usage(&request(&log, settings, &tools)).unwrap();
            told.extend(log.observe_usage(before));
            let plan = manager.build_plan(&request(&log, settings, &tools)).unwrap();
            let usage = reported.map(|percent| Usage::openai(plan.counted() * percent / 100, 0, size as u64));
            told.extend(log.push_reply(&plan, Message::assistant("a".repeat(size)), usage).events);
            let after = manager.usage(&PlanRequest::like_last(&log)).unwrap();
            told.extend(log.observe_usage(after));
        }
        let crossed: Vec<(Level, Level)> = told.into_iter().filter_map(|event| match event {
            ContextEvent::LevelCrossed { from, to } => Some((from, to)),
            _ => None,
        }).collect();
        prop_assert!(crossed.len() <= 2 && crossed.iter().all(|(from, to)| from < to), "{crossed:?}");
    }
}

/// Checks a log written before settings were stored, and a log whose last prompt went to another model.
#[test]
fn other_models_and_old_logs_use_the_models_own_limits() {
    let manager = bytes(Config::default());
    let mut log = talk(9, 100);
    let tools = tools_of(1);
    let request = PlanRequest::new(&log).with_limits(limits(1_100)).with_tools(&tools);
    let plan = manager.build_plan(&request).unwrap();
    log.push_reply(&plan, said(9, 100), None);
    assert_eq!(manager.usage(&PlanRequest::like_last(&log)).unwrap().limit, 1_000);
    assert_eq!(manager.usage(&PlanRequest::new(&log)).unwrap().limit, 123_904, "a request says its own");
    let wider = PlanRequest::like_last(&log).with_limits(limits(2_100));
    let wider = manager.usage(&wider).unwrap();
    assert_eq!(wider.limit, 2_000);
    let with_tools = PlanRequest::new(&log).with_limits(limits(2_100)).with_tools(&tools);
    assert_eq!(wider, manager.usage(&with_tools).unwrap(), "the tools are the last prompt's");

    let other = Model::custom("other").with_wire_format(WireFormat::Plain);
    let other = ContextWindowManager::new(other, manager.counter().clone(), Config::default()).unwrap();
    let usage = other.usage(&PlanRequest::like_last(&log)).unwrap();
    assert_eq!((usage.limit, usage.fixed_tokens), (123_904, wider.fixed_tokens));

    let old = log.events().filter(|event| event.kind() != "prompt_settings");
    let old = Conversation::from_events(old).unwrap();
    assert_eq!(manager.usage(&PlanRequest::like_last(&old)).unwrap().limit, 123_904);
}

#[test]
fn settings_that_name_no_tool_are_refused() {
    let entry = |text: &str| serde_json::from_str::<LogEvent>(text).unwrap();
    let mut log = talk(2, 20);
    let settings =
        r#"{"version":1,"entry":{"event":{"prompt_settings":{"new_tools":[{"name":"look"}],"tools":[0]}}}}"#;
    log.apply_event(entry(settings)).unwrap();
    let before = log.clone();
    let wrong = r#"{"version":1,"entry":{"event":{"prompt_settings":{"tools":[0,4294967295]}}}}"#;
    let error = log.apply_event(entry(wrong)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("refers to tool 4294967295 of 1"), "{error}");
    assert_eq!(log, before);
}
