//! The composition of a prompt: the kinds sum to its total, and the listed items are its largest.

use crate::support::data;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest,
    RagItem, RequestLimits, Tool, ToolCall, WireFormat,
    message::Reasoning,
    plan::{Composition, Kind},
};
use context_window_report as report;

fn plan(log: &Conversation, model: &str, budget: u64) -> ContextPlan {
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    let manager = ContextWindowManager::configured(model, Config::default()).unwrap();
    let tools = [Tool::new("read", "Reads a file.", "{}")];
    let documents =
        [RagItem::new("a", 0.9, "Fact. ".repeat(20)).with_origin("wiki"), RagItem::new("b", 0.8, "Other.")];
    let request = PlanRequest::new(log).with_tools(&tools).with_rag(documents).with_state("clock", "Noon.");
    manager.build_plan(&request.with_limits(RequestLimits::prompt_budget(budget))).unwrap()
}

fn agent() -> Conversation {
    let mut log = Conversation::from([Message::system("Be brief."), Message::user("Where is it?")]);
    log.pin(PinnedItem::new("tone", "Short answers."));
    for at in 0..4 {
        let call =
            ToolCall::new(format!("c{at}"), "read", format!(r#"{{"limit": 3, "path": "/src/part{at}.rs"}}"#));
        let thought = Reasoning::signed(WireFormat::Anthropic, "I should look there. ".repeat(4), "seal");
        log.push(Message::assistant("Looking.").with_reasoning(thought).with_tool_calls([call]));
        log.push(Message::tool(format!("c{at}"), "fn main() {}\n".repeat(10 * (at + 1))));
    }
    log
}

fn tokens(composition: &Composition, is: impl Fn(&Kind) -> bool) -> u64 {
    composition.kinds.iter().filter(|(kind, _)| is(kind)).map(|(_, tokens)| tokens).sum()
}

/// Checks the properties that hold for every composition.
fn check(plan: &ContextPlan) {
    let composition = plan.composition(4);
    let sum: u64 = composition.kinds.iter().map(|(_, tokens)| tokens).sum();
    assert_eq!(
        (sum, composition.total),
        (plan.estimated_tokens_total.tokens, plan.estimated_tokens_total.tokens)
    );
    assert!(
        composition.kinds.is_sorted_by(|a, b| a.1 >= b.1) && composition.kinds.iter().all(|one| one.1 > 0)
    );
    assert_eq!(composition.free, plan.prompt_budget.saturating_sub(plan.estimated_tokens_total.tokens));
    let mut sizes: Vec<u64> = plan.included.iter().map(|row| row.token_estimate.tokens).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let largest: Vec<u64> = composition.largest.iter().map(|item| item.tokens.tokens).collect();
    assert_eq!(largest[..], sizes[..sizes.len().min(4)]);
    let groups = composition.by_group();
    assert_eq!(groups.kinds.iter().map(|(_, tokens)| tokens).sum::<u64>(), sum);
    assert!(groups.kinds.len() <= composition.kinds.len());
    for cells in [50, 100, 200] {
        let grid = groups.cells(cells);
        assert_eq!(grid.kinds.iter().sum::<usize>() + grid.free + grid.reply, cells);
        assert!(grid.kinds.iter().all(|cells| *cells > 0));
    }
}

#[test]
fn each_kind_has_its_tokens() {
    let plan = plan(&agent(), "claude-sonnet-4-5", 5_000);
    check(&plan);
    let composition = plan.composition(3);
    let results = tokens(&composition, |kind| *kind == Kind::ToolResults("read".into()));
    let rows =
        plan.included.iter().filter(|row| row.role.is_some_and(|role| role == context_window::Role::Tool));
    assert_eq!(results, rows.map(|row| row.token_estimate.tokens).sum::<u64>());
    // Reasoning is the larger part of the four replies.
    assert!(
        tokens(&composition, |kind| *kind == Kind::Reasoning)
            > tokens(&composition, |kind| *kind == Kind::Assistant)
    );
    for kind in [Kind::System, Kind::Tools, Kind::Pins, Kind::User, Kind::Documents("wiki".into())] {
        assert!(tokens(&composition, |one| *one == kind) > 0, "{kind:?}");
    }
    let item = &composition.largest[0];
    assert_eq!((item.id.as_str(), item.about.as_str()), ("m9", "part3.rs"));
    assert!(item.text.starts_with("fn main() {} fn main() {}"));
    let document = plan.composition(40).largest.into_iter().find(|item| item.id == "a").unwrap();
    assert!(document.text.starts_with("Fact. Fact."), "without its fence: {}", document.text);
}

#[test]
fn report_begins_with_the_largest_items() {
    let full = plan(&agent(), "claude-sonnet-4-5", 900);
    let said = report::advice(&full).unwrap();
    assert!(said.contains("the largest item is m9 (read part3.rs): "), "{said}");
    let text = report::text(&full).to_string();
    assert!(text.find("contents of the prompt").unwrap() < text.find("section ").unwrap());
    assert_eq!(report::advice(&plan(&agent(), "claude-sonnet-4-5", 50_000)), None);
    // An overflow is reported before everything else.
    let over = report::text(&plan(&agent(), "claude-sonnet-4-5", 60)).to_string();
    assert!(over.find("over budget by").unwrap() < over.find("contents of the prompt").unwrap(), "{over}");
    // A long list is shortened, with a line that reports it.
    let folded = report::text(&full).with_rows(4).to_string();
    assert!(folded.contains("more: --all shows them") && folded.len() < text.len());
}

#[test]
fn the_grid_has_a_cell_for_every_kind() {
    for (columns, cells) in [(79, 5), (80, 10)] {
        let grid = report::grid(&plan(&agent(), "gpt-4o", 5_000)).with_width(columns).to_string();
        let first: Vec<&str> = grid.lines().next().unwrap().split_whitespace().collect();
        assert!(first[..cells].iter().all(|cell| cell.chars().count() == 1), "{grid}");
        for sign in ["O Tool results", "A Assistant", "D Documents", "S System", "· Free"] {
            assert!(grid.contains(sign), "{sign}\n{grid}");
        }
    }
    // The reply reserve is shown next to the budget only if the budget is derived from it.
    assert!(!report::grid(&plan(&agent(), "gpt-4o", 5_000)).to_string().contains("Reply reserve"));
    let log = Conversation::from([Message::user("What is new?")]);
    let own = ContextWindowManager::for_model("gpt-4o").unwrap().build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(report::grid(&own).to_string().contains("░ Reply reserve"));
    let wide = report::grid(&plan(&agent(), "claude-opus-5-5", 5_000)).with_width(80).to_string();
    let first = wide.lines().next().unwrap().split_whitespace();
    assert_eq!(
        first.take_while(|cell| cell.chars().count() == 1).count(),
        21,
        "20 cells and a sign:\n{wide}"
    );
}

#[test]
fn tokens_by_kind_sum_to_the_total_in_real_sessions() {
    let files = data::files(&["conv_claudecode", "conv_tau2", "conv_reasontool", "conv_sweagent"]);
    for file in &files {
        for session in file.sessions().take(6) {
            let log = session.unwrap().log;
            for (model, budget) in [("claude-opus-5-5", 20_000), ("gpt-4o", 3_000)] {
                check(&plan(&log, model, budget));
            }
        }
    }
    assert!(files.len() == 4 || data::folder().is_none());
}
