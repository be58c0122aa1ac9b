//! Every interval that `explain` names for real conversations with real passages, against planning at every budget: through
//! the library, and through the tool's JSON (needs `CONTEXT_WINDOW_DATA`; skips loudly without it).

use crate::support::data;
use context_window::{
    ContextPlan, ContextWindowManager, ItemKind, Model, Section, Source,
    analysis::{BudgetMap, Interval},
    plan::{Kind, NoticeCode},
};
use context_window_formats::Session;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::Mutex,
};

/// The largest budget that is planned at, in tokens.
const MOST: u64 = 3_000;

/// Sessions that are checked: few by default, all with `FULL=1`.
fn count() -> usize {
    if std::env::var_os("FULL").is_some_and(|full| full == "1") { 500 } else { 60 }
}

/// Pseudo-random numbers from a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// Real conversations with real passages: the end of a conversation, some of the passages of one query, a few of its
/// messages pinned or kept as notes, under the model's own limits less whatever leaves `MOST`.
fn sessions() -> Vec<Value> {
    let lines = |prefixes: &[&str]| -> Vec<Value> {
        let texts = data::texts(prefixes);
        let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let talks = lines(&["conv_", "long_"]);
    let queries = lines(&["rag_"]);
    if talks.is_empty() {
        return Vec::new();
    }
    let (mut dice, mut sessions) = (Dice(15), Vec::new());
    let mut at = 0;
    while sessions.len() < count() {
        let talk = &talks[(at * 7) % talks.len()];
        let query = &queries[(at * 11) % queries.len()];
        at += 1;
        let messages = talk["messages"].as_array().unwrap();
        let bytes = |message: &Value| message.to_string().len();
        // Messages that a budget of this size can hold at all.
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

/// The plan at each budget from 1 on.
fn by_force(manager: &ContextWindowManager, session: &Session) -> Vec<ContextPlan> {
    let plan = |budget: u64| {
        let mut limits = session.limits;
        limits.prompt_budget = Some(budget);
        manager.build_plan(&session.request().with_limits(limits)).unwrap()
    };
    (1..=MOST).map(plan).collect()
}

/// What is in: ids, documents marked as such.
fn ids(plan: &ContextPlan) -> BTreeSet<(bool, String)> {
    plan.included.iter().map(|row| (row.source == Source::Rag, row.id.to_string())).collect()
}

/// The first budget at which the map is not what planning shows: items with their tokens, overhead, total, kinds.
fn differs(map: &BudgetMap, forced: &[ContextPlan]) -> Option<String> {
    let mut held: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let mut steps = map.steps.iter();
    let mut step = steps.next()?;
    held.extend(step.enters.iter().map(|(at, tokens, thought)| (*at, (*tokens, *thought))));
    if (step.from, map.steps.last()?.to, map.largest_budget) != (1, MOST, MOST) {
        return Some(format!("from {} to {:?}", step.from, map.steps.last()));
    }
    for (budget, plan) in (1..).zip(forced) {
        if budget > step.to {
            step = steps.next()?;
            held.retain(|at, _| !step.leaves.contains(at));
            held.extend(step.enters.iter().map(|(at, tokens, thought)| (*at, (*tokens, *thought))));
        }
        let of_map = held.iter().map(|(at, (tokens, _))| {
            let item = &map.items[*at];
            (item.section, item.document, item.id.to_string(), *tokens)
        });
        let mut of_map: Vec<(Section, bool, String, u64)> = of_map.collect();
        let of_plan = plan.included.iter();
        let mut of_plan: Vec<_> = of_plan
            .map(|row| (row.section, row.kind == ItemKind::Document, row.id.to_string(), row.tokens.n))
            .collect();
        of_map.sort();
        of_plan.sort();
        if of_map != of_plan || (step.total, &step.overhead) != (plan.total, &plan.overhead) {
            return Some(format!("at {budget}: {of_map:?} {}, planned {of_plan:?}", step.total.n));
        }
        let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
        for (at, (tokens, thought)) in &held {
            *kinds.entry(map.items[*at].kind.clone()).or_default() += tokens - thought;
            *kinds.entry(Kind::Reasoning).or_default() += thought;
        }
        let planned = plan.composition(0);
        let planned = planned.kinds.iter().filter(|(kind, _)| !matches!(kind, Kind::Overhead | Kind::Tools));
        for (kind, tokens) in planned {
            // What merging saves is taken from the largest.
            if kinds.get(kind).is_none_or(|own| own < tokens) {
                return Some(format!("at {budget}: {kinds:?}, planned {kind:?} {tokens}"));
            }
        }
    }
    None
}

/// The intervals from a budget up, as the tool's JSON has them, and how many more there are.
fn intervals(all: &[BTreeSet<(bool, String)>], item: &(bool, String), budget: u64) -> (Vec<Interval>, u64) {
    let mut found: Vec<Interval> = Vec::new();
    for at in budget..=MOST {
        if !all[at as usize - 1].contains(item) {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.to == Some(at - 1) => last.to = Some(at),
            _ => found.push(Interval { from: at, to: Some(at) }),
        }
    }
    if let Some(last) = found.last_mut().filter(|last| last.to == Some(MOST)) {
        last.to = None;
    }
    let more = found.len().saturating_sub(16) as u64;
    found.truncate(16);
    (found, more)
}

/// How many answers of a session were compared, or the first that is wrong.
fn check(value: &Value, number: usize) -> Result<u64, String> {
    let text = value.to_string();
    let session = Session::from_json(&text).map_err(|error| error.to_string())?;
    let model = Model::named(session.model.as_deref().unwrap()).unwrap();
    let manager = ContextWindowManager::configured(model, Default::default()).unwrap();
    let budget = session.limits.prompt_budget.unwrap();
    let plans = by_force(&manager, &session);
    let map =
        manager.explainer(&session.request()).budget_map(usize::MAX).map_err(|error| error.to_string())?;
    if let Some(wrong) = differs(&map, &plans) {
        return Err(format!("the map of {text}: {wrong}"));
    }
    let forced: Vec<_> = plans.iter().map(ids).collect();
    let answers = manager.explainer(&session.request()).explain_all().map_err(|error| error.to_string())?;
    let path = std::env::temp_dir().join(format!("context-window-{}-{number}.json", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    let mut tool = Command::new(assert_cmd::cargo::cargo_bin("plan-inspect"));
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
    let mut compared = 0;
    for (answer, said) in answers.iter().zip(said) {
        if *said != serde_json::to_value(answer).unwrap() {
            return Err(format!("the tool says {said}, the library {answer:?}"));
        }
        let item = (answer.document, answer.id.to_string());
        // Of two documents of one id the one that competes is meant; the other one repeats it.
        let repeats = said["reason_code"]["code"] == "duplicate" || item.1.starts_with("synth:");
        if repeats && !answer.included {
            continue;
        }
        compared += 1;
        let expected = intervals(&forced, &item, budget);
        if (&answer.intervals, answer.more) != (&expected.0, expected.1) {
            return Err(format!(
                "{} of {text}: {:?} and {}, planned {expected:?}",
                answer.id, answer.intervals, answer.more
            ));
        }
        let leaves = (1..budget).rev().find(|at| !forced[*at as usize - 1].contains(&item));
        if answer.included && answer.leaves_at != leaves {
            return Err(format!(
                "{} of {text}: leaves at {:?}, planned {leaves:?}",
                answer.id, answer.leaves_at
            ));
        }
    }
    Ok(compared)
}

/// Where results of the open exchange are clipped, the prompt is another one at each budget, and the map has each of them.
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
    let plans = by_force(&manager, &session);
    let clipped = plans
        .iter()
        .filter(|plan| plan.notices.iter().any(|notice| notice.code == NoticeCode::ResultsClipped));
    assert!(clipped.count() > 100);
    let map = manager.explainer(&session.request()).budget_map(usize::MAX).unwrap();
    assert_eq!(differs(&map, &plans), None);
    assert!(map.steps.len() > 100, "{}", map.steps.len());
    // A map of few steps is a part of it.
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
fn every_interval_of_real_sessions_is_what_planning_shows() {
    let sessions = sessions();
    let next = Mutex::new(sessions.iter().enumerate());
    let wrong = Mutex::new(Vec::new());
    let compared = Mutex::new(0);
    let work = || {
        loop {
            let Some((number, session)) = next.lock().unwrap().next() else { return };
            match check(session, number) {
                Ok(answers) => *compared.lock().unwrap() += answers,
                Err(why) => wrong.lock().unwrap().push(why),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let (wrong, compared) = (wrong.into_inner().unwrap(), compared.into_inner().unwrap());
    eprintln!(
        "{} real sessions at {MOST} budgets each: {compared} answers compared, {} wrong",
        sessions.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong[0]);
    assert!(compared >= 2_000u64.min(13 * sessions.len() as u64), "{compared}");
}
