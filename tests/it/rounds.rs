//! Rounds of planning: an adjustment for one fault leaves the other adjustments valid.
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, ToolCall,
};

/// The provider requires a user message first, which is known only after the prompt is laid out. Its tokens
/// are reserved, and the result is clipped to the rest, not to its earlier length (rules S7, H5).
#[test]
fn a_clipped_result_makes_room_for_a_placeholder_message() {
    let mut model = Model::named("claude-fable-5-2").unwrap();
    model.tokenizer = Some("chars/4".into());
    let manager = ContextWindowManager::configured(model, Config::default()).unwrap();
    let log = Conversation::from([
        Message::assistant("").with_tool_calls([ToolCall::new("c1", "lookup", "{}")]),
        Message::tool("c1", "word ".repeat(2_000)),
    ]);
    let plans = (1..600).map(|budget| {
        let limits = RequestLimits::prompt_budget(budget);
        manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap()
    });
    let plans: Vec<_> = plans.skip_while(|plan| plan.overflow.is_some()).collect();
    assert!(plans.len() > 400, "{} budgets hold the clipped result", plans.len());
    for plan in plans {
        assert!(plan.overflow.is_none(), "at {}", plan.prompt_budget);
        assert!(plan.included.iter().any(|row| row.kind.name() == "lead"), "at {}", plan.prompt_budget);
        // A clip is as long as its text allows: the rest is smaller than one more character.
        assert!(plan.left_over() <= 12, "{} left at {}", plan.left_over(), plan.prompt_budget);
    }
}
