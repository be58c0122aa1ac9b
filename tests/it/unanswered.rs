//! User messages without an answer (rule S13).

use context_window::plan::NoticeCode;
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
};

fn manager() -> ContextWindowManager {
    ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), Config::default()).unwrap()
}

fn log(messages: Vec<Message>) -> Conversation {
    let mut log = Conversation::new();
    for message in messages {
        log.push(message);
    }
    log
}

fn spec() -> Vec<Message> {
    vec![
        Message::user("Hello"),
        Message::assistant("Hi"),
        Message::user(format!("Here is the spec: {}", "plank ".repeat(80))),
        Message::user("Use only blue."),
        Message::user("Now build it."),
    ]
}

/// Returns the ids and the text of the notice.
fn notice(log: &Conversation, budget: u64) -> Option<(Vec<String>, String)> {
    let request = PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget));
    let plan = manager().build_plan(&request).unwrap();
    let mut found = plan.notices.iter().filter(|notice| notice.code == NoticeCode::UnansweredLeftOut);
    let first = found
        .next()
        .map(|notice| (notice.ids.iter().map(ToString::to_string).collect(), notice.text.clone()));
    assert!(found.next().is_none());
    first
}

#[test]
fn budget_of_the_notice_is_the_least_that_holds_the_messages() {
    let log = log(spec());
    let (ids, text) = notice(&log, 200).unwrap();
    assert_eq!(ids, ["m2"]);
    let budget: u64 =
        text.split("budget of ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!(text.starts_with("`m2` is left out without a reply: "), "{text}");
    assert_eq!(notice(&log, budget), None, "{text}");
    assert!(notice(&log, budget - 1).is_some(), "{text}");
}

#[test]
fn several_messages_are_named_in_one_notice() {
    let mut messages = spec();
    messages.insert(2, Message::user("A first spec: ".to_owned() + &"plank ".repeat(90)));
    let (ids, text) = notice(&log(messages), 200).unwrap();
    assert_eq!(ids, ["m2", "m3"]);
    assert!(text.starts_with("`m2` and 1 more are left out"), "{text}");
}

#[test]
fn answered_messages_and_meetings_get_no_notice() {
    let mut answered = spec();
    answered.insert(3, Message::assistant("Read."));
    assert_eq!(notice(&log(answered), 200), None);
    // A meeting: all messages are by users, or they have names.
    let only_users = spec().into_iter().filter(|message| message.role() == context_window::Role::User);
    assert_eq!(notice(&log(only_users.collect()), 200), None);
    let named = spec().into_iter().enumerate().map(|(at, message)| match message.role() {
        context_window::Role::User => message.with_name(["Ida", "Bo"][at % 2]),
        _ => message,
    });
    assert_eq!(notice(&log(named.collect()), 200), None);
    assert_eq!(notice(&log(spec()), 5_000), None);
}
