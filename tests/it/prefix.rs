//! The comparison of a plan with the last prompt, checked against the two request bodies.

use crate::support::generate;
use context_window::{
    ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, RagItem, RequestLimits,
    Tool, Ttl, WireFormat,
    analysis::{Prefix, PrefixCause},
};
use proptest::prelude::*;

fn manager(model: Model) -> ContextWindowManager {
    ContextWindowManager::new(model, generate::bytes(), Default::default()).unwrap()
}

proptest! {
    #![proptest_config(generate::cases(1_000, 20_000))]

    /// Compares the texts of both prompts: the repeated items are exactly the equal leading messages.
    #[test]
    fn repeated_items_are_the_common_leading_messages(mut session in generate::session(), budget in 1u64..1_500) {
        // Tools would be an item before all rows.
        session.declares_recall = false;
        let log = session.log();
        let mut model = Model::custom("test");
        // Without merges every row is a separate text.
        model.wire_format = WireFormat::Plain;
        let manager = ContextWindowManager::new(model, generate::bytes(), session.config.clone()).unwrap();
        let before = manager.build_plan(&session.request(&log)).unwrap();
        let now = manager.build_plan(&session.request(&log).with_limits(RequestLimits::prompt_budget(budget))).unwrap();
        let prefix = now.prefix(&before.anchor()).unwrap();
        let rows = |plan: &context_window::ContextPlan| -> Vec<(String, String, u64)> {
            plan.included.iter().map(|row| (row.id.to_string(), row.hash(), row.token_estimate.tokens)).collect()
        };
        let (then, here) = (rows(&before), rows(&now));
        let same = then.iter().zip(&here).take_while(|(a, b)| a.0 == b.0 && a.1 == b.1).count();
        prop_assert_eq!(prefix.items, same as u64);
        prop_assert_eq!(prefix.tokens, then[..same].iter().map(|row| row.2).sum::<u64>());
        prop_assert_eq!(prefix.of, then.iter().map(|row| row.2).sum::<u64>());
        prop_assert_eq!(prefix.cause.is_some(), same < then.len());
        prop_assert_eq!(prefix.instead_of.as_ref().map(|id| id.to_string()), then.get(same).map(|row| row.0.clone()));
        // If every row is a separate message, these are the messages that both prompts begin with.
        if session.rag.is_empty() && session.states.is_empty() {
            let common = before.messages().iter().zip(now.messages()).take_while(|(a, b)| a == b).count();
            prop_assert!(before.messages().len() == then.len() && common >= same);
            prop_assert!(common == same || then[same].1 == here[same].1, "an equal text of another item");
        }
        // The remembered anchor gives the same result as an anchor in the request.
        let again = manager.build_plan(&session.request(&log).with_previous(before.anchor())).unwrap();
        prop_assert_eq!(again.repeated(), again.prefix(&before.anchor()));
    }
}

fn base() -> Conversation {
    let mut log = Conversation::from([
        Message::system("Answer from the documents."),
        Message::user("one").with_id("q1"),
        Message::assistant("two").with_id("a1"),
        Message::user("three").with_id("q2"),
    ]);
    log.pin(PinnedItem::new("note", "short answers"));
    log
}

fn parted(before: &PlanRequest<'_>, now: &PlanRequest<'_>, model: Model) -> Prefix {
    let first = manager(Model::custom("test")).build_plan(before).unwrap();
    let again = manager(model).build_plan(now).unwrap();
    again.prefix(&first.anchor()).unwrap()
}

#[test]
fn every_cause_is_named() {
    let log = base();
    let plain = || Model::custom("test");
    let cause = |before: &PlanRequest<'_>, now: &PlanRequest<'_>| parted(before, now, plain()).cause;
    let request = || PlanRequest::new(&log);
    assert_eq!(cause(&request(), &request()), None);
    let other = Model::named("claude-sonnet-5").unwrap();
    let prefix = parted(&request(), &request(), other);
    assert_eq!((prefix.cause, prefix.tokens), (Some(PrefixCause::Target), 0));
    assert_eq!(
        cause(&request().with_focus("boats"), &request().with_focus("tides")),
        Some(PrefixCause::Changed)
    );
    let tools = [Tool::new("f", "", "{}")];
    assert_eq!(cause(&request(), &request().with_tools(&tools)), Some(PrefixCause::Inserted));
    assert_eq!(cause(&request().with_tools(&tools), &request()), Some(PrefixCause::Removed));
    let small = request().with_limits(RequestLimits::prompt_budget(60));
    assert_eq!(cause(&request(), &small), Some(PrefixCause::Budget));
    let mut expired = base();
    expired.set_ttl("note", Ttl::NoneRemaining).unwrap();
    assert_eq!(cause(&request(), &PlanRequest::new(&expired)), Some(PrefixCause::Expired));
    let documents = |id: &str| {
        request().with_rag([RagItem::new(id, 1.0, "Boats pay."), RagItem::new("c", 0.5, "Tides.")])
    };
    assert_eq!(cause(&documents("b"), &documents("a")), Some(PrefixCause::Removed));
    let twice =
        documents("b").with_rag([RagItem::new("a", 2.0, "Boats pay."), RagItem::new("b", 1.0, "Boats pay.")]);
    assert_eq!(cause(&documents("b"), &twice), Some(PrefixCause::LeftOut));
}

/// If the conversation remembers its prompt, an item removed from the request is not mistaken for one without
/// room.
#[test]
fn a_note_that_is_unpinned_is_gone() {
    let talk = |at: usize| {
        if at.is_multiple_of(2) { Message::user("question") } else { Message::assistant("answer") }
    };
    let mut log: Conversation = (0..21).map(talk).collect::<Vec<Message>>().into();
    log.pin(PinnedItem::new("note", "short answers"));
    let manager = manager(Model::custom("test"));
    let limits = RequestLimits::prompt_budget(150);
    let before = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
    log.unpin("note");
    let request = PlanRequest::new(&log).with_limits(limits).with_previous(before.anchor());
    let again = manager.build_plan(&request).unwrap();
    assert!(again.excluded.iter().any(|row| row.count > 2), "a run of messages is out");
    assert_eq!(again.repeated().unwrap().cause, Some(PrefixCause::Removed));
    // A window that moves has another cause.
    log.pin(PinnedItem::new("note", "short answers"));
    for at in 21..29 {
        log.push(talk(at));
    }
    let later = manager
        .build_plan(&PlanRequest::new(&log).with_limits(limits).with_previous(before.anchor()))
        .unwrap();
    let prefix = later.repeated().unwrap();
    assert_eq!((prefix.cause, prefix.items), (Some(PrefixCause::Budget), 1), "{prefix:?}");
}

/// A conversation remembers only its last prompt.
#[test]
fn conversation_remembers_its_last_prompt() {
    let mut log = base();
    let manager = manager(Model::custom("test"));
    let first = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(first.repeated(), None);
    log.push_reply(&first, Message::assistant("four"), None);
    log.push(Message::user("five"));
    let second = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let prefix = second.repeated().unwrap();
    assert_eq!((prefix.items, prefix.tokens, prefix.cause), (first.included.len() as u64, prefix.of, None));
    log.push_reply(&second, Message::assistant("six"), None);
    let prompts = log.entries().filter(|entry| match entry {
        context_window::conversation::Entry::Event(context_window::conversation::Event::Sent {
            anchor,
            ..
        }) => anchor.sent_items().is_some(),
        _ => false,
    });
    assert_eq!(prompts.count(), 1);
}
