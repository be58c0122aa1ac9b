//! Pins come before conversation and documents (rule S2), in a prompt of ordinary size.

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest,
    Priority, RagItem, RequestLimits, TokenCounter, ToolCall, plan::NoticeCode,
};

/// Creates a text of this number of tokens of four bytes, without the frame of its message.
fn text(tokens: usize) -> String {
    "word".repeat(tokens)
}

/// Plans about 1,300 tokens of system text, one pin of about 130, 53 messages and 8 documents.
fn plan(budget: u64, config: Config) -> ContextPlan {
    let mut log = Conversation::new();
    log.push_system("rules", text(1_300));
    log.pin(PinnedItem::new("decision", text(125)).with_priority(Priority::High));
    for at in 0..26 {
        log.push(Message::user(text(90 + at)));
        log.push(Message::assistant(text(100 + at)));
    }
    log.push(Message::user("What did we decide?"));
    let documents = (0..8).map(|at| RagItem::new(format!("d{at}"), f64::from(at), text(300)));
    let manager = ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config);
    let request =
        PlanRequest::new(&log).with_rag(documents).with_limits(RequestLimits::prompt_budget(budget));
    manager.unwrap().build_plan(&request).unwrap()
}

/// Regression test: the pin was excluded at 8,450, 8,500 and 8,700, and included at 8,000 and 8,600, because
/// it got only the tokens that other sections left.
#[test]
fn a_pin_is_in_at_every_budget_that_holds_it() {
    for budget in (1_500..9_000).step_by(25).chain([8_450, 8_500, 8_600, 8_700]) {
        let plan = plan(budget, Config::default());
        assert_eq!(plan.reason("decision").unwrap().to_string(), "pinned", "{budget}");
    }
}

#[test]
fn dropped_pin_reports_its_tokens_and_its_limit() {
    let mut config = Config::default();
    config.sections.pins_limit = 20;
    let plan = plan(2_500, config);
    assert_eq!(plan.reason("decision").unwrap().to_string(), "too large; 121 tokens left");
    let notices: Vec<_> =
        plan.notices.iter().filter(|notice| notice.code == NoticeCode::PinDropped).collect();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].ids, ["decision"]);
    insta::assert_snapshot!(notices[0].text, @"this pin does not fit: it needs about 130 tokens, 9 more than were left");
}

/// Builds a question with a call of about 110 tokens, a note of the same size, and a long turn after them.
fn call_and_note() -> Conversation {
    let mut log = Conversation::new();
    log.push(Message::user("Look it up."));
    log.push(Message::assistant("").with_tool_calls([ToolCall::new("c", "look", "{}")]));
    log.push(Message::tool("c", text(100)));
    log.push(Message::assistant("Done."));
    log.pin(PinnedItem::new("note", text(100)));
    log.push(Message::user(text(300)));
    log.push(Message::assistant(text(300)));
    log.push(Message::user("And now?"));
    log
}

/// Plans with room for one of the two pins, but not for the long turn. Returns true for each of call, result
/// and note that is included.
fn included_of_two_pins(log: &Conversation) -> [bool; 3] {
    let mut config = Config::default();
    config.sections.pins_limit = 1_000;
    let manager = ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config);
    let request = PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(200));
    let plan = manager.unwrap().build_plan(&request).unwrap();
    assert!(plan.overflow.is_none());
    ["m1", "m2", "note"].map(|id| plan.included.iter().any(|row| row.id == id))
}

#[test]
fn pinned_exchange_has_the_highest_priority_of_its_members() {
    let included = |call: Priority, result: Priority| {
        let mut log = call_and_note();
        log.pin_message("m1", call).unwrap();
        log.pin_message("m2", result).unwrap();
        included_of_two_pins(&log)
    };
    let (exchange, note) = ([true, true, false], [false, false, true]);
    assert_eq!(included(Priority::High, Priority::Low), exchange);
    assert_eq!(included(Priority::Low, Priority::High), exchange);
    assert_eq!(included(Priority::Low, Priority::Low), note);
}
