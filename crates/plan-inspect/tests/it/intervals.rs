//! Compares every interval of `explain` with planning, for real conversations with real passages. Plans are
//! made at the edges of each step and at a sample of the budgets between them (at every budget with
//! `FULL=1`), through the library and through the tool's JSON. Needs `CONTEXT_WINDOW_DATA` and reports a skip
//! without it.

use crate::support::{data, generate};
use context_window::analysis::Explanation;
use context_window::{
    ContextPlan, ContextWindowManager, ExcludedReason, ItemKind, Model, Section, Source,
    analysis::{BudgetMap, Interval},
    plan::{Kind, NoticeCode, Reason},
};
use context_window_formats::Session;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

/// The largest planned budget, in tokens.
const MOST: u64 = 3_000;

/// Distance of the sampled budgets between the edges of steps.
const EVERY: u64 = 50;

/// Returns the number of sessions to check: few by default, all with `FULL=1`.
fn count() -> usize {
    if generate::is_full() { 500 } else { 60 }
}

/// Pseudo-random numbers from a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// Returns real conversations with real passages: the end of a conversation, some passages of one query, and
/// a few messages pinned or kept as notes. The limits leave a budget of at most `MOST`.
fn sessions() -> Vec<Value> {
    fn lines(texts: &[String]) -> Vec<&str> {
        texts.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()).collect()
    }
    let (talks, queries) = (data::texts(&["conv_", "long_"]), data::texts(&["rag_"]));
    let (talks, queries) = (lines(&talks), lines(&queries));
    if talks.is_empty() {
        return Vec::new();
    }
    let (mut dice, mut sessions) = (Dice(15), Vec::new());
    let mut at = 0;
    while sessions.len() < count() {
        // Only the used lines are parsed, which are a small part.
        let talk: Value = serde_json::from_str(talks[(at * 7) % talks.len()]).unwrap();
        let query: Value = serde_json::from_str(queries[(at * 11) % queries.len()]).unwrap();
        at += 1;
        let messages = talk["messages"].as_array().unwrap();
        let bytes = |message: &Value| message.to_string().len();
        // Messages small enough for such a budget.
        let mut kept: Vec<Value> =
            messages.iter().filter(|message| bytes(message) < 2_500).cloned().collect();
        let most = 3 + dice.below(12);
        kept.drain(..kept.len().saturating_sub(most));
        if kept.is_empty() {
            continue;
        }
        for message in &mut kept {
            let message = message.as_object_mut().unwrap();
            message.remove("id");
            if dice.below(8) == 0 {
                message.insert("pinned".into(), true.into());
            }
        }
        let mut passages: Vec<Value> = query["passages"].as_array().unwrap().clone();
        passages.retain(|passage| bytes(passage) < 2_500);
        passages.truncate(dice.below(10));
        let notes: Vec<Value> = (0..dice.below(6))
            .map(|nth| {
                let text: String = messages[dice.below(messages.len())]["content"]
                    .as_str()
                    .unwrap_or("a note")
                    .chars()
                    .take(40 + dice.below(300))
                    .collect();
                let mut note = json!({"id": format!("note{nth}"), "text": format!("{text}."),
                    "priority": (["high", "normal", "low"][dice.below(3)])});
                if dice.below(3) == 0 {
                    note["ttl"] = "unlimited".into();
                }
                note
            })
            .collect();
        let models =
            ["gpt-4o", "gpt-4o", "gpt-4o", "claude-sonnet-5", "gemini-2.5-pro", "mistral-large-latest"];
        sessions.push(json!({
            "id": format!("{at}"),
            "model": (models[dice.below(models.len())]),
            "limits": {"context_len": MOST, "max_completion": 0, "safety_buffer": 0,
                "prompt_budget": 1 + dice.below(MOST as usize - 1)},
            "pinned": notes, "messages": kept, "rag": passages,
        }));
    }
    sessions
}

/// Returns the budgets at which a map is compared with planning: the first and last of each step, one to
/// either side of them, one in `EVERY` between them, and the session's own. With `FULL=1` it returns every
/// budget.
fn budgets(map: &BudgetMap, own: u64) -> BTreeSet<u64> {
    if generate::is_full() {
        return (1..=MOST).collect();
    }
    let mut dice = Dice(own);
    let edges = map.steps.iter().flat_map(|step| [step.from, step.to]).chain([1, MOST, own]);
    let sides = edges.flat_map(|edge| edge.saturating_sub(1)..=edge.saturating_add(1));
    let between = (1..=MOST).step_by(EVERY as usize).map(|from| from + dice.below(EVERY as usize) as u64);
    sides.chain(between).filter(|budget| (1..=MOST).contains(budget)).collect()
}

/// Plans at each of these budgets.
fn by_force(
    manager: &ContextWindowManager,
    session: &Session,
    budgets: BTreeSet<u64>,
) -> BTreeMap<u64, ContextPlan> {
    let plan = |budget: u64| {
        let mut limits = session.limits;
        limits.prompt_budget = Some(budget);
        (budget, manager.build_plan(&session.request().with_limits(limits)).unwrap())
    };
    budgets.into_iter().map(plan).collect()
}

/// The ids of the included items, with documents marked.
type Ids = BTreeSet<(bool, String)>;

fn ids(plan: &ContextPlan) -> Ids {
    plan.included.iter().map(|row| (row.source == Source::Rag, row.id.to_string())).collect()
}

/// The items that are included from one budget to another.
struct Span {
    from: u64,
    to: u64,
    ids: Ids,
}

/// Returns the map's items at every budget, or the first planned budget with a different plan: items with
/// their tokens, overhead, total or kinds.
fn spans(map: &BudgetMap, planned: &BTreeMap<u64, ContextPlan>) -> Result<Vec<Span>, String> {
    let (first, last) = (map.steps.first().map(|step| step.from), map.steps.last().map(|step| step.to));
    if (first, last, map.largest_budget) != (Some(1), Some(MOST), MOST) {
        return Err(format!("from {first:?} to {last:?}"));
    }
    let mut held: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let mut spans: Vec<Span> = Vec::new();
    for step in &map.steps {
        let from = spans.last().map_or(1, |last| last.to + 1);
        if step.from != from || step.to < from {
            return Err(format!("a step from {} to {} where {from} comes next", step.from, step.to));
        }
        held.retain(|at, _| !step.leaves.contains(at));
        held.extend(step.enters.iter().map(|item| (item.place, (item.tokens, item.reasoning))));
        let of_map = held.iter().map(|(at, (tokens, _))| {
            let item = &map.items[*at];
            (item.section, item.document, item.id.to_string(), *tokens)
        });
        let mut of_map: Vec<(Section, bool, String, u64)> = of_map.collect();
        of_map.sort();
        let in_step: Ids = of_map.iter().map(|(_, document, id, _)| (*document, id.clone())).collect();
        let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
        for (at, (tokens, thought)) in &held {
            *kinds.entry(map.items[*at].kind.clone()).or_default() += tokens - thought;
            *kinds.entry(Kind::Reasoning).or_default() += thought;
        }
        for (budget, plan) in planned.range(step.from..=step.to) {
            let of_plan = plan.included.iter();
            let mut of_plan: Vec<_> = of_plan
                .map(|row| {
                    (
                        row.section,
                        row.kind == ItemKind::Document,
                        row.id.to_string(),
                        row.token_estimate.tokens,
                    )
                })
                .collect();
            of_plan.sort();
            if of_map != of_plan
                || (step.total, &step.overhead) != (plan.estimated_tokens_total, &plan.overhead)
            {
                return Err(format!("at {budget}: {of_map:?} {}, planned {of_plan:?}", step.total.tokens));
            }
            if in_step != ids(plan) {
                return Err(format!("at {budget}: {in_step:?}, planned {:?}", ids(plan)));
            }
            let composed = plan.composition(0);
            let composed =
                composed.kinds.iter().filter(|(kind, _)| !matches!(kind, Kind::Overhead | Kind::Tools));
            for (kind, tokens) in composed {
                // Merge savings are subtracted from the largest kind.
                if kinds.get(kind).is_none_or(|own| own < tokens) {
                    return Err(format!("at {budget}: {kinds:?}, planned {kind:?} {tokens}"));
                }
            }
        }
        spans.push(Span { from, to: step.to, ids: in_step });
    }
    Ok(spans)
}

/// Returns the intervals from a budget up as in the tool's JSON, and the number of further ones.
fn intervals(spans: &[Span], item: &(bool, String), budget: u64) -> (Vec<Interval>, u64) {
    let mut found: Vec<Interval> = Vec::new();
    for span in spans.iter().filter(|span| span.to >= budget && span.ids.contains(item)) {
        let from = span.from.max(budget);
        match found.last_mut() {
            Some(last) if last.to == Some(from - 1) => last.to = Some(span.to),
            _ => found.push(Interval { from, to: Some(span.to) }),
        }
    }
    if let Some(last) = found.last_mut().filter(|last| last.to == Some(MOST)) {
        last.to = None;
    }
    let more = found.len().saturating_sub(16) as u64;
    found.truncate(16);
    (found, more)
}

/// Compares the explanations with those of the tool's JSON.
fn the_tool_says_the_same(session: &Value, answers: &[Explanation]) -> Result<(), String> {
    let name = format!("context-window-{}-{}.json", std::process::id(), session["id"].as_str().unwrap());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, session.to_string()).unwrap();
    let mut tool = std::process::Command::new(assert_cmd::cargo::cargo_bin("plan-inspect"));
    tool.env_remove("CONTEXT_WINDOW_CONFIG")
        .args(["explain".as_ref(), path.as_os_str()])
        .args(["--format", "json"]);
    let output = tool.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let said = said["explanations"].as_array().unwrap();
    if said.len() != answers.len() {
        return Err(format!("{} answers of the tool, {} of the library", said.len(), answers.len()));
    }
    for (answer, said) in answers.iter().zip(said) {
        if *said != serde_json::to_value(answer).unwrap() {
            return Err(format!("the tool says {said}, the library {answer:?}"));
        }
    }
    Ok(())
}

/// Checks a session. Returns the number of compared explanations, or the first difference.
fn check(value: &Value) -> Result<u64, String> {
    let text = value.to_string();
    let session = Session::from_json(&text).map_err(|error| error.to_string())?;
    let model = Model::named(session.model.as_deref().unwrap()).unwrap();
    let manager = ContextWindowManager::configured(model, Default::default()).unwrap();
    let budget = session.limits.prompt_budget.unwrap();
    let map =
        manager.explainer(&session.request()).budget_map(usize::MAX).map_err(|error| error.to_string())?;
    let plans = by_force(&manager, &session, budgets(&map, budget));
    let spans = spans(&map, &plans).map_err(|wrong| format!("the map of {text}: {wrong}"))?;
    let answers = manager
        .explainer(&session.request().with_excluded_counts())
        .explain_all()
        .map_err(|error| error.to_string())?;
    the_tool_says_the_same(value, &answers)?;
    let mut compared = 0;
    for answer in &answers {
        let item = (answer.document, answer.id.to_string());
        // Of two documents with one id, the competing one is meant; the other is its repeat.
        let is_duplicate = matches!(answer.reason, Reason::Excluded(ExcludedReason::Duplicate { .. }));
        let repeats = is_duplicate || item.1.starts_with("synth:");
        if repeats && !answer.included {
            continue;
        }
        compared += 1;
        let expected = intervals(&spans, &item, budget);
        if (&answer.intervals, answer.more) != (&expected.0, expected.1) {
            return Err(format!(
                "{} of {text}: {:?} and {}, planned {expected:?}",
                answer.id, answer.intervals, answer.more
            ));
        }
        let without = spans.iter().rfind(|span| span.from < budget && !span.ids.contains(&item));
        let leaves = without.map(|span| span.to.min(budget - 1));
        if answer.included && answer.leaves_at != leaves {
            return Err(format!(
                "{} of {text}: leaves at {:?}, planned {leaves:?}",
                answer.id, answer.leaves_at
            ));
        }
    }
    Ok(compared)
}

/// If results of the current tool call are truncated, the prompt differs at each budget, and the map has all
/// of these budgets.
#[test]
fn a_map_has_every_clip() {
    let result = "The kettle whistles when the water boils; take it off the stove, and pour. ".repeat(20);
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let session = json!({"model": "gpt-4o", "limits": {"context_len": MOST, "max_completion": 0, "safety_buffer": 0, "prompt_budget": 300},
    "messages": [
        {"role": "user", "content": "An older question about pots and pans, and what they are made of?"},
        {"role": "assistant", "content": "Of iron, of steel, and some of copper."},
        {"role": "user", "content": "How does a kettle work?"},
        {"role": "assistant", "content": "", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": result},
        {"role": "tool", "tool_call_id": "b", "content": result},
    ]});
    let session = Session::from_json(&session.to_string()).unwrap();
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let map = manager.explainer(&session.request()).budget_map(usize::MAX).unwrap();
    let plans = by_force(&manager, &session, budgets(&map, 300));
    let clipped = plans
        .values()
        .filter(|plan| plan.notices.iter().any(|notice| notice.code == NoticeCode::ResultsClipped));
    assert!(clipped.count() > 100);
    spans(&map, &plans).map(drop).unwrap();
    assert!(map.steps.len() > 100, "{}", map.steps.len());
    // A map with few steps is a part of the whole one.
    let part = manager.explainer(&session.request()).budget_map(5).unwrap();
    assert!(
        part.steps.len() <= 10
            && part.steps.iter().all(|step| {
                (step.from..=step.to)
                    .all(|budget| map.step(budget).is_some_and(|whole| whole.total == step.total))
            })
    );
}

#[test]
fn every_interval_of_real_sessions_agrees_with_planning() {
    let sessions = sessions();
    let next = Mutex::new(sessions.iter());
    let wrong = Mutex::new(Vec::new());
    let compared = Mutex::new(0);
    let work = || {
        loop {
            let Some(session) = next.lock().unwrap().next() else { return };
            match check(session) {
                Ok(answers) => *compared.lock().unwrap() += answers,
                Err(why) => wrong.lock().unwrap().push(why),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let (wrong, compared) = (wrong.into_inner().unwrap(), compared.into_inner().unwrap());
    eprintln!(
        "{} real sessions at budgets up to {MOST}: {compared} answers compared, {} wrong",
        sessions.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong[0]);
    assert!(compared >= 2_000u64.min(13 * sessions.len() as u64), "{compared}");
}
