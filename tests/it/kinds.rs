//! The kind of a row is data: an id that looks like a generated one changes nothing.

use context_window::{ContextWindowManager, ItemKind, RequestLimits, plan::Decision};
use context_window_formats::Session;

/// Reads the session of a fixture.
fn fixture(name: &str) -> Session {
    let path = crate::support::root().join(format!("tests/fixtures/{name}.json"));
    let fixture: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    Session::from_json(&fixture["session"].to_string()).unwrap()
}

fn manager() -> ContextWindowManager {
    ContextWindowManager::for_model("gpt-4o").unwrap()
}

#[test]
fn the_placeholder_result_of_a_message_named_bridge_has_an_answer() {
    let session = fixture("o2_a_message_named_bridge");
    let request = session.request();
    let plan = manager().build_plan(&request).unwrap();
    let row =
        plan.included.iter().find(|row| matches!(row.kind, ItemKind::PlaceholderResult { .. })).unwrap();
    assert_eq!(row.kind, ItemKind::PlaceholderResult { of: "bridge".into() });
    let answer = manager().explainer(&request).explain(row.id.as_str()).unwrap();
    let of_its_call = manager().explainer(&request).explain("bridge").unwrap();
    assert!(answer.leaves_at.is_some(), "{answer:?}");
    assert_eq!(
        (answer.enters_at, answer.leaves_at, &answer.intervals),
        (of_its_call.enters_at, of_its_call.leaves_at, &of_its_call.intervals)
    );
    // Planning confirms it: the item is included down to the stated budget.
    let holds = |budget: u64| {
        let plan =
            manager().build_plan(&request.clone().with_limits(RequestLimits::prompt_budget(budget))).unwrap();
        plan.included.iter().any(|other| other.id == row.id)
    };
    let least = answer.leaves_at.unwrap() + 1;
    assert_eq!((holds(least), holds(least - 1)), (true, false));
}

#[test]
fn a_system_text_named_focus_is_a_system_text() {
    let session = fixture("o2_a_system_text_named_focus");
    let plan = manager().build_plan(&session.request()).unwrap();
    assert_eq!(plan.find("focus").map(Decision::kind), Some(&ItemKind::SystemText));
    let text = context_window_report::text(&plan).to_string();
    assert!(!text.contains("focus hint"), "{text}");
}

#[test]
fn a_message_named_like_a_summary_is_a_message() {
    let session = fixture("o2_a_message_named_like_a_summary");
    let plan = manager().build_plan(&session.request()).unwrap();
    assert_eq!(plan.find("summary:1").map(Decision::kind), Some(&ItemKind::Message));
}
