//! The fill level of the window, and the events about it (rules U1 to U4, C10).

use super::*;

#[test]
fn each_level_crossing_is_reported_once_and_percent_is_exact() {
    let manager = bytes(config(|config| {
        config.tokens.calibrate = false;
        config.compaction.enabled = false;
    }));
    let mut log = Conversation::new();
    let mut told = Vec::new();
    for at in 0..14 {
        log.push(said(at, 100));
        let usage = manager.usage(&PlanRequest::new(&log).with_limits(limits(1_100))).unwrap();
        assert_eq!(usage.percent, (at as u64 + 1) * 10);
        for event in log.observe_usage(usage) {
            if let ContextEvent::LevelCrossed { from, to } = event {
                told.push((at + 1, from, to));
            }
        }
    }
    use Level::{Approaching, AtLimit, Normal};
    assert_eq!(told, [(8, Normal, Approaching), (10, Approaching, AtLimit)]);
    assert_eq!(log.level(), AtLimit);
    log.start_fresh();
    assert_eq!(log.level(), Normal);
}

#[test]
fn the_lights_of_a_window_of_200k_are_amber_at_150k_and_red_at_200k() {
    let options = Config::preset("lights").unwrap().usage;
    let log = Conversation::new();
    let request = PlanRequest::new(&log).with_limits(RequestLimits::new().with_model_context_len(200_000));
    let limits = bytes(Config::default()).build_plan(&request).unwrap().limits;
    let level = |tokens| Level::from_tokens(tokens, &limits, &options);
    assert_eq!([149_999, 150_000, 199_999, 200_000].map(level), {
        use Level::{Approaching, AtLimit, Normal};
        [Normal, Approaching, Approaching, AtLimit]
    });
}

#[test]
fn documents_count_in_no_trigger_and_no_warning_and_a_paste_does_at_once() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = talk(20, 20);
    let documents =
        || (0..50).map(|at| RagItem::new(format!("d{at}"), 1.0, format!("{at:04}{}", "y".repeat(396))));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(5_100)).with_rag(documents()));
    let plan = manager.build_plan(&request(&log)).unwrap();
    assert!(plan.estimated_tokens_total.tokens > 4_500, "the documents fill the window");
    let quiet = manager.usage(&request(&log)).unwrap();
    assert_eq!((quiet.level, quiet.conversation_tokens.tokens), (Level::Normal, 400));
    assert_eq!(plan.usage.conversation_tokens.tokens, 400);
    // The provider's report includes the documents, so their tokens are subtracted.
    log.push_reply(&plan, said(21, 20), Usage::openai(plan.estimated_tokens_total.tokens, 0, 20));
    let reported = manager.usage(&request(&log)).unwrap();
    assert!(reported.reported);
    assert_eq!((reported.level, reported.conversation_tokens.tokens), (Level::Normal, 420));
    assert_eq!(manager.compactor().state(&request(&log)).unwrap(), CompactionState::NotDue);
    log.push(Message::user("z".repeat(4_000)));
    let pasted = manager.usage(&request(&log)).unwrap();
    assert_eq!((pasted.conversation_tokens.tokens, pasted.level), (4_420, Level::Approaching));
    assert_eq!(manager.compactor().state(&request(&log)).unwrap(), CompactionState::Due(Trigger::Percent));
}

#[test]
fn reports_replace_estimates_and_implausible_reports_are_ignored() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(10_100)));
    let mut log = talk(11, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(11, 100), Usage::anthropic(200, 300, 900, 130));
    let conversation_tokens =
        |log: &Conversation| manager.usage(&request(log)).unwrap().conversation_tokens.tokens;
    assert_eq!(conversation_tokens(&log), 1_530, "input, both caches and the reply");
    log.push(said(12, 100));
    assert_eq!(conversation_tokens(&log), 1_630, "and what came after");
    for usage in
        [None, Some(Usage::default()), Some(Usage::openai(9_999_999, 0, 1)), Some(Usage::openai(9, 0, 1))]
    {
        let plan = manager.build_plan(&request(&log)).unwrap();
        log.push_reply(&plan, said(13, 100), usage);
        assert_eq!(
            conversation_tokens(&log),
            1_630 + 100 * (log.messages().len() as u64 - 13),
            "{usage:?} is not believed"
        );
    }
    // The billed total of the whole conversation is a separate number.
    assert_eq!(log.billed().cache_read, 900);
    let stats = manager.stats(&request(&log)).unwrap();
    assert_eq!((stats.messages, stats.active, stats.archived, stats.compactions), (17, 17, 0, 0));
}

#[test]
fn after_a_compaction_the_shown_usage_is_the_new_estimate() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(4_100)));
    let mut log = talk(35, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(35, 100), Usage::openai(3_600, 0, 100));
    assert_eq!(manager.usage(&request(&log)).unwrap().conversation_tokens.tokens, 3_700);
    let job = manager.compactor().due(&request(&log)).unwrap().unwrap();
    let record = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    let usage = manager.usage(&request(&log)).unwrap();
    assert!(
        !usage.reported
            && usage.conversation_tokens.tokens == record.tokens_after
            && usage.conversation_tokens.tokens > 0
    );
    assert!(record.progress && record.tokens_before == 3_600 && record.tokens_after < 2_000, "{record:?}");
    assert_eq!(record.freed(), record.tokens_before - record.tokens_after);
    assert!(manager.compactor().due(&request(&log)).unwrap().is_none());
}

#[test]
fn plan_reports_expired_items() {
    let manager = bytes(config(|config| config.ttl_policy = TtlPolicy::Ask));
    let mut log = talk(3, 20);
    log.pin(PinnedItem::new("old", "A note.").with_ttl(Ttl::NoneRemaining));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.events().collect::<Vec<_>>(), [ContextEvent::TtlAsk { id: "old".into() }]);
}

#[test]
fn percentage_is_zero_if_either_side_is_zero() {
    let manager = bytes(Config::default());
    let usage = manager.usage(&PlanRequest::like_last(&Conversation::new())).unwrap();
    assert_eq!((usage.percent, usage.conversation_tokens.tokens, usage.level), (0, 0, Level::Normal));
}

#[test]
fn overflow_report_leads_to_a_smaller_plan() {
    let manager = bytes(Config::default());
    let log = talk(41, 100);
    let request = PlanRequest::new(&log).with_limits(limits(4_100));
    let mut plan = manager.build_plan(&request).unwrap();
    let mut sizes = vec![plan.estimated_tokens_total.tokens];
    while plan.overflow.is_none() {
        plan = manager.plan_after_overflow(&request, &plan).unwrap();
        assert_eq!(plan.included.last().unwrap().id.as_str(), "m40", "the question is in");
        sizes.push(plan.estimated_tokens_total.tokens);
    }
    assert!(
        sizes.len() < 20 && sizes.windows(2).all(|pair| pair[1] <= pair[0] / 4 * 3 || pair[1] == 100),
        "{sizes:?}"
    );
    assert_eq!(StopReason::named("max_tokens"), StopReason::MaxTokens);
}

/// After a provider refused a prompt for its size, no larger budget is advised. A minimum prompt that is
/// smaller than the refused one is sent.
#[test]
fn after_a_refusal_no_larger_prompt_is_advised() {
    let manager = bytes(Config::default());
    let mut log = talk(9, 100);
    log.pin(PinnedItem::new("rules", "r".repeat(600)).with_ttl(Ttl::Unlimited));
    let request = PlanRequest::new(&log).with_limits(limits(4_100));
    let refused = manager.build_plan(&request).unwrap();
    assert_eq!(refused.estimated_tokens_total.tokens, 1_500);
    let smaller = manager.plan_after_overflow(&request, &refused).unwrap();
    assert!(smaller.overflow.is_none() && smaller.estimated_tokens_total.tokens <= 1_125, "{smaller:?}");
    // Three quarters of 900 are less than the minimum of 700, which is less than 900.
    let refused =
        manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(900))).unwrap();
    assert_eq!(refused.estimated_tokens_total.tokens, 900);
    let minimum = manager.plan_after_overflow(&request, &refused).unwrap();
    assert!(minimum.overflow.is_none(), "{:?}", minimum.overflow);
    assert_eq!((minimum.estimated_tokens_total.tokens, minimum.prompt_budget), (700, 700));
    // The minimum itself was refused, with the budget that the overflow advised.
    let tight = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(650));
    let overflow = manager.build_plan(&tight).unwrap().overflow.unwrap();
    assert_eq!(overflow.remedies[0], Remedy::RaiseBudget { to: 700 });
    let raised = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(700));
    let refused = manager.build_plan(&raised).unwrap();
    let again = manager.plan_after_overflow(&raised, &refused).unwrap();
    let remedies = again.overflow.unwrap().remedies;
    assert!(!remedies.is_empty(), "what helps is said still");
    assert!(!remedies.iter().any(|remedy| matches!(remedy, Remedy::RaiseBudget { .. })), "{remedies:?}");
    assert!(remedies.contains(&Remedy::Unpin { id: "rules".into() }), "{remedies:?}");
}

/// A report far from the count is rejected (rule N6), and the application gets an event with both numbers.
#[test]
fn rejected_usage_report_is_an_event() {
    let manager = bytes(Config::default());
    let mut log = Conversation::from([Message::user("q".repeat(277))]);
    let reply = |log: &mut Conversation, usage: Option<Usage>| {
        let plan = manager.build_plan(&PlanRequest::new(log)).unwrap();
        (
            plan.estimated_tokens_total.tokens,
            log.push_reply(&plan, Message::assistant("a".repeat(23)), usage).events,
        )
    };
    let (counted, events) = reply(&mut log, Some(Usage::openai(175_000, 0, 23)));
    assert_eq!(
        (counted, &events[..]),
        (277, &[ContextEvent::ReportNotBelieved { reported: 175_000, counted: 277 }][..])
    );
    let before = manager.usage(&PlanRequest::like_last(&log)).unwrap();
    assert!(
        !before.reported && before.conversation_tokens.tokens == 300 && log.level() == Level::Normal,
        "{before:?}"
    );
    // A report of 0, one without the cached tokens, and one within the window but far above the count.
    for input in [0, 9, 100_000] {
        let (counted, events) = reply(&mut log, Some(Usage::openai(input, 0, 23)));
        assert_eq!(events, [ContextEvent::ReportNotBelieved { reported: input, counted }]);
    }
    assert_eq!(reply(&mut log, None).1, [], "nothing is reported");
    let (counted, events) = reply(&mut log, Some(Usage::openai(400, 0, 23)));
    assert!(counted < 800 && matches!(events[..], [ContextEvent::Usage(_)]), "{events:?}");
    // Something unknown is sent with every prompt: the report is accepted when it recurs.
    let doubted = reply(&mut log, Some(Usage::openai(25_000, 0, 23))).1;
    assert!(matches!(doubted[..], [ContextEvent::ReportNotBelieved { reported: 25_000, .. }]), "{doubted:?}");
    let believed = reply(&mut log, Some(Usage::openai(25_023, 0, 23))).1;
    assert!(matches!(believed[..], [ContextEvent::Usage(_)]), "{believed:?}");
}

/// Limits in the request are not default limits.
#[test]
fn default_limits_are_reported_if_they_apply() {
    let model = Registry::default().model("in-house-7");
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let log = talk(1, 20);
    let said = |limits| {
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
        plan.notices[0].text.clone()
    };
    let about = "model `in-house-7` is not in the registry";
    assert_eq!(said(RequestLimits::new()), format!("{about}: default limits apply, counts are estimates"));
    let completion = RequestLimits::new().with_max_completion_tokens(100);
    assert_eq!(said(completion), format!("{about}: default limits apply, counts are estimates"));
    assert_eq!(said(limits(9_000)), format!("{about}: counts are estimates"));
    assert_eq!(said(RequestLimits::prompt_budget(60_000)), format!("{about}: counts are estimates"));
}

#[test]
fn instructions_added_later_count_as_pressure() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(20_100)));
    let mut log = talk(11, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(11, 100), Usage::openai(1_100, 0, 100));
    assert_eq!(manager.usage(&request(&log)).unwrap().conversation_tokens.tokens, 1_200);
    log.pin(PinnedItem::new("long", "n".repeat(8_000)));
    log.push_system("rules", "r".repeat(8_000));
    let usage = manager.usage(&request(&log)).unwrap();
    assert_eq!((usage.conversation_tokens.tokens, usage.level), (17_200, Level::Approaching));
    log.unpin("long");
    assert_eq!(manager.usage(&request(&log)).unwrap().conversation_tokens.tokens, 9_200);
}

/// Messages excluded from a plan are not in the provider's report, but count toward the size of the whole
/// conversation (rule U2). Otherwise a conversation that no longer fits would look as small as its window.
#[test]
fn messages_excluded_from_a_reported_prompt_count_as_pressure() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(2_100)));
    let mut log = talk(51, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    assert!(
        plan.estimated_tokens_total.tokens <= 2_000 && plan.usage.dropped_tokens >= 3_000,
        "{:?}",
        plan.usage
    );
    log.push_reply(&plan, said(51, 100), Usage::openai(plan.estimated_tokens_total.tokens, 0, 100));
    let usage = manager.usage(&request(&log)).unwrap();
    assert!(usage.reported);
    assert_eq!(usage.conversation_tokens.tokens, 5_200, "all 52 messages, whatever of them was sent");
}

/// A reply arrives after a compaction, for a prompt planned before it. Its report describes a conversation
/// that is no longer sent, so the usage stays that of the compacted conversation (rule U2).
#[test]
fn report_on_a_prompt_before_a_compaction_is_rejected() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(10_100)));
    let mut log = talk(41, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    let compacted = manager.usage(&request(&log)).unwrap().conversation_tokens.tokens;
    assert!(compacted < 3_000, "{compacted}");
    log.push_reply(&plan, said(41, 100), Usage::openai(4_100, 0, 100));
    let usage = manager.usage(&request(&log)).unwrap();
    assert_eq!((usage.reported, usage.conversation_tokens.tokens), (false, compacted + 100));
}
