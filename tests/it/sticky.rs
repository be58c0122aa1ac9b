//! The beginning of the prompt stays unchanged (rule S5): the tests measure its length over hundreds of turns
//! and tool steps. The last prompt is known from the conversation or from `previous`.

use crate::support::generate::bytes;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem,
    RequestLimits, Section, ToolCall, WireFormat, config::ToolResults, plan::Anchor,
};
use context_window_formats::Session;
use serde_json::{Value, json};

/// The sizes in the comparison with similar tools: 20 to 199 tokens from a linear congruential generator.
struct Sizes(u64);

impl Sizes {
    fn next(&mut self) -> usize {
        self.0 = (self.0 * 1_103_515_245 + 12_345) & 0x7fff_ffff;
        20 + (self.0 % 180) as usize
    }
}

/// Builds a manager for which a token is a byte and messages have no frame, as in that comparison.
fn manager(config: Config) -> ContextWindowManager {
    let mut model = Model::custom("trace");
    model.wire_format = WireFormat::Plain;
    ContextWindowManager::new(model, bytes(), config).unwrap()
}

/// Sums over a series of prompts: the tokens repeated from the one before, without its newest message.
#[derive(Default)]
struct Reuse {
    last: Option<Vec<(String, u64)>>,
    /// Repeated tokens from the first cut on.
    repeated: u64,
    /// Repeatable tokens from the first cut on.
    repeatable: u64,
    cuts: u32,
    prompts: u32,
    used: u64,
}

impl Reuse {
    fn add(&mut self, plan: &ContextPlan) {
        let rows = plan.included.iter().filter(|row| row.section != Section::Rag);
        let rows: Vec<(String, u64)> = rows.map(|row| (row.hash(), row.token_estimate.tokens)).collect();
        self.cuts += u32::from(plan.notices.iter().any(|notice| notice.rule() == "S5"));
        if let (Some(last), true) = (&self.last, self.cuts > 0) {
            let same = rows.iter().zip(last).take_while(|(new, old)| new == old);
            self.repeated += same.map(|((_, tokens), _)| tokens).sum::<u64>();
            let newest = rows.last().map_or(0, |(_, tokens)| *tokens);
            self.repeatable += rows.iter().map(|(_, tokens)| tokens).sum::<u64>() - newest;
            self.prompts += 1;
            self.used += plan.estimated_tokens_total.tokens;
        }
        self.last = Some(rows);
    }

    fn per_mille(&self) -> u64 {
        self.repeated * 1000 / self.repeatable
    }
}

fn request<'a>(log: &'a Conversation, budget: u64) -> PlanRequest<'a> {
    PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget))
}

/// Checks that the plan is equal if the conversation remembers the last prompt, the caller passes its anchor,
/// or a session file of the same messages contains it.
fn check_all_three_ways(
    manager: &ContextWindowManager,
    log: &Conversation,
    stateless: &Conversation,
    anchor: Option<&Anchor>,
    budget: u64,
) -> ContextPlan {
    let plan = manager.build_plan(&request(log, budget)).unwrap();
    let fed_back = match anchor {
        Some(anchor) => request(stateless, budget).with_previous(anchor.clone()),
        None => request(stateless, budget),
    };
    let other = manager.build_plan(&fed_back).unwrap();
    assert_eq!(plan.to_json(), other.to_json());
    assert_eq!(plan.anchor(), other.anchor());
    let again: Anchor = serde_json::from_str(&serde_json::to_string(&plan.anchor()).unwrap()).unwrap();
    assert_eq!(again, plan.anchor());
    plan
}

#[test]
fn the_trace_of_the_peers_keeps_its_prefix_and_every_question() {
    let mut reuse_at = Vec::new();
    for low_mark in [1000, 800, 600, 500] {
        let mut config = Config::default();
        config.conversation.low_mark = low_mark;
        let manager = manager(config);
        let (mut sizes, mut reuse) = (Sizes(7), Reuse::default());
        let (mut log, mut stateless) = (Conversation::new(), Conversation::new());
        let mut anchor = None;
        let mut kept = 0;
        for turn in 0..400 {
            let (question, answer) = (sizes.next(), sizes.next());
            let question = Message::user("u".repeat(question)).with_id(format!("u{turn}"));
            let answer = Message::assistant("a".repeat(answer)).with_id(format!("a{turn}"));
            log.push(question.clone());
            stateless.push(question);
            let plan = check_all_three_ways(&manager, &log, &stateless, anchor.as_ref(), 4_000);
            kept += u32::from(plan.included.last().unwrap().id.as_str() == format!("u{turn}"));
            assert!(plan.estimated_tokens_total.tokens <= 4_000);
            reuse.add(&plan);
            anchor = Some(plan.anchor());
            log.push_reply(&plan, answer.clone(), None);
            stateless.push(answer);
        }
        assert_eq!(kept, 400, "the newest user message");
        let use_ = reuse.used * 1000 / (u64::from(reuse.prompts) * 4_000);
        eprintln!(
            "low mark {low_mark}: reuse {} per mille, {} cuts, budget use {use_} per mille",
            reuse.per_mille(),
            reuse.cuts
        );
        reuse_at.push((low_mark, reuse.per_mille()));
    }
    assert!(reuse_at[2].1 >= 850, "{reuse_at:?}");
    assert!(reuse_at.is_sorted_by_key(|(_, reuse)| *reuse), "a lower mark repeats more: {reuse_at:?}");
}

/// If turns are large, the low mark alone would leave only the question.
#[test]
fn window_cut_keeps_the_newest_answered_turn_if_it_fits() {
    let manager = manager(Config::default());
    let mut log = Conversation::new();
    for turn in 0..6 {
        log.push(Message::user("u".repeat(10)).with_id(format!("u{turn}")));
        let plan = manager.build_plan(&request(&log, 1_000)).unwrap();
        let is_in = |id: String| plan.included.iter().any(|row| row.id.as_str() == id);
        assert!(turn == 0 || is_in(format!("a{}", turn - 1)), "turn {turn}: {:?}", plan.included);
        // One such turn fits, and two do not.
        log.push_reply(&plan, Message::assistant("a".repeat(700)).with_id(format!("a{turn}")), None);
    }
}

#[test]
fn long_agent_turn_keeps_its_prefix() {
    for results in [ToolResults::Keep, ToolResults::Clear] {
        let mut config = Config::default();
        config.conversation.tool_results = results;
        config.conversation.clear_at_least = 400;
        let manager = manager(config);
        let (mut sizes, mut reuse) = (Sizes(7), Reuse::default());
        let mut log = Conversation::from([Message::user("t".repeat(60)).with_id("task")]);
        let mut stateless = log.clone();
        let mut anchor = None;
        for step in 0..300 {
            let plan = check_all_three_ways(&manager, &log, &stateless, anchor.as_ref(), 4_000);
            let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
            assert_eq!(ids[0], "task", "the task is in, whatever the step");
            assert!(plan.estimated_tokens_total.tokens <= 4_000 && plan.overflow.is_none());
            reuse.add(&plan);
            anchor = Some(plan.anchor());
            let call = Message::assistant("c".repeat(20)).with_tool_calls([ToolCall::new(
                format!("c{step}"),
                "run",
                "{}",
            )]);
            let result = Message::tool(format!("c{step}"), "r".repeat(sizes.next()));
            log.push_reply(&plan, call.clone(), None);
            stateless.push(call);
            log.push(result.clone());
            stateless.push(result);
        }
        eprintln!("{results:?}: reuse {} per mille, {} cuts", reuse.per_mille(), reuse.cuts);
        assert!(reuse.cuts >= 3, "{} cuts", reuse.cuts);
        assert!(reuse.per_mille() >= 850, "{results:?}: {}", reuse.per_mille());
    }
}

#[test]
fn documents_take_the_slack_and_do_not_disturb_the_history() {
    let manager = manager(Config::default());
    let (mut sizes, mut documents, mut reuse) = (Sizes(7), Sizes(99), Reuse::default());
    let mut log = Conversation::new();
    for turn in 0..400 {
        log.push(Message::user("u".repeat(sizes.next())));
        let items = (0..12).map(|at| {
            RagItem::new(format!("d{turn}-{at}"), f64::from(12 - at), "d".repeat(documents.next()))
        });
        let items: Vec<RagItem> = items.collect();
        let plan = manager.build_plan(&request(&log, 4_000).with_rag(items)).unwrap();
        reuse.add(&plan);
        log.push_reply(&plan, Message::assistant("a".repeat(sizes.next())), None);
    }
    let use_ = reuse.used * 1000 / (u64::from(reuse.prompts) * 4_000);
    eprintln!(
        "with documents: history reuse {} per mille, {} cuts, budget use {use_} per mille",
        reuse.per_mille(),
        reuse.cuts
    );
    assert!(reuse.per_mille() >= 800, "{}", reuse.per_mille());
}

#[test]
fn while_the_question_is_the_same_the_documents_stay() {
    let manager = manager(Config::default());
    let mut log = Conversation::from([Message::user("u".repeat(50))]);
    let items = |best: usize| {
        (0..8).map(move |at| {
            RagItem::new(format!("d{at}"), if at == best { 9.0 } else { at as f64 }, "d".repeat(60 + at))
        })
    };
    let mut sets = Vec::new();
    for step in 0..30 {
        // The retriever returns other documents in every step.
        let plan = manager.build_plan(&request(&log, 1_000).with_rag(items(step % 8))).unwrap();
        let set: Vec<String> = plan
            .included
            .iter()
            .filter(|row| row.section == Section::Rag)
            .map(|row| row.id.to_string())
            .collect();
        sets.push(set);
        let call = ToolCall::new(format!("c{step}"), "run", "{}");
        log.push_reply(&plan, Message::assistant("").with_tool_calls([call]), None);
        log.push(Message::tool(format!("c{step}"), "r".repeat(20)));
    }
    assert!(sets[0].len() >= 5, "{sets:?}");
    for pair in sets.windows(2) {
        assert!(pair[0].starts_with(&pair[1]), "what goes, goes from the end: {pair:?}");
    }
    let changes = sets.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes <= 1, "in bulk, not one by one: {sets:?}");
    log.push(Message::user("Another question."));
    let plan = manager.build_plan(&request(&log, 1_000).with_rag(items(0))).unwrap();
    let first = plan.included.iter().find(|row| row.section == Section::Rag).unwrap();
    assert_eq!(first.id.as_str(), "d0", "another question, another set");
}

#[test]
fn another_model_or_other_limits_start_afresh() {
    let turns = (0..40).flat_map(|_| [Message::user("u".repeat(50)), Message::assistant("a".repeat(50))]);
    let mut log = Conversation::from_iter(turns);
    log.push(Message::user("now"));
    let manager = manager(Config::default());
    let mut anchor = json!(manager.build_plan(&request(&log, 1_000)).unwrap().anchor());
    anchor["window_start"] = json!("m70");
    let start = |anchor: &Value, budget: u64| {
        let anchor: Anchor = serde_json::from_value(anchor.clone()).unwrap();
        let plan = manager.build_plan(&request(&log, budget).with_previous(anchor)).unwrap();
        plan.window_start.unwrap().to_string()
    };
    let fresh = start(&json!(Anchor::default()), 1_000);
    assert_eq!(start(&anchor, 1_000), "m70");
    assert_eq!(start(&anchor, 1_001), fresh, "another budget");
    let mut unknown = anchor.clone();
    unknown["limits"].take();
    assert_eq!(start(&unknown, 1_001), "m70", "limits that were not written down count as unchanged");
    unknown["limits"] = json!({"prompt_budget": 1_000});
    assert_eq!(start(&unknown, 1_000), "m70", "and so does each of them");
    unknown["limits"].take();
    unknown["target"].take();
    assert_eq!(start(&unknown, 1_001), "m70");
    let mut other = anchor.clone();
    other["target"]["model"] = json!("another");
    assert_eq!(start(&other, 1_000), fresh, "another model");
    let mut lost = anchor.clone();
    lost["window_start"] = json!("m700");
    assert_eq!(start(&lost, 1_000), fresh, "an unknown start is ignored");
}

#[test]
fn session_file_carries_the_last_anchor() {
    let turn = |at: usize| {
        format!(
            r#"{{"role":"user","content":"question {at}"}},{{"role":"assistant","content":"answer {at}"}}"#
        )
    };
    let turns: Vec<String> = (0..30).map(turn).collect();
    let file = |previous: &str| {
        format!(r#"{{"messages":[{},{{"role":"user","content":"now"}}]{previous}}}"#, turns.join(","))
    };
    let manager = manager(Config::default());
    let plan = |text: &str| {
        let session = Session::from_json(text).unwrap();
        manager.build_plan(&session.request().with_limits(RequestLimits::prompt_budget(300))).unwrap()
    };
    let first = plan(&file(""));
    let saved = serde_json::to_string(&first.anchor()).unwrap();
    let second = plan(&file(&format!(r#","previous":{saved}"#)));
    assert_eq!(second.window_start, first.window_start);
    let moved = plan(&file(r#","previous":{"window_start":"m50"}"#));
    assert_eq!(moved.window_start, Some("m50".into()));
}

#[test]
fn overflowing_prompt_leaves_no_window() {
    let manager = manager(Config::default());
    let mut log = Conversation::from([Message::user("u".repeat(50)), Message::assistant("a".repeat(50))]);
    log.push(Message::user("q".repeat(900)));
    let plan = manager.build_plan(&request(&log, 500)).unwrap();
    assert!(plan.overflow.is_some() && plan.window_start.is_some());
    let anchor = json!(plan.anchor());
    assert_eq!((&anchor["window_start"], anchor.get("rag")), (&json!(null), None));
}
