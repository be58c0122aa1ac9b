//! Measures three values for each retention setting: the used share of the budget, the part of a prompt that
//! repeats the one before it, and the part of the evidence in the prompt. The Markdown tables are the same on
//! every run.
//!
//! `cargo bench -p context-window-benches --bench frontier -- windows` measures conversations alone.
//! `-- documents` measures conversations whose questions come with documents, for a model that checks the
//! prompt before its reasoning.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem,
    RequestLimits, Role, config::Leave,
};
use context_window_benches::data;
use serde_json::Value;
use std::collections::BTreeSet;

/// One question of a conversation: the messages before it, its documents, and the evidence for its answer.
struct Turn {
    messages: Vec<Message>,
    documents: Vec<RagItem>,
    gold: BTreeSet<String>,
}

/// A conversation, and the evidence for its last questions.
struct Talk {
    name: &'static str,
    turns: Vec<Turn>,
    /// Questions at the end, each with the ids of the messages that answer it.
    asked: Vec<(String, BTreeSet<String>)>,
}

#[derive(Default)]
struct Sum {
    /// Used share of the budget in per mille, for each prompt that did not hold everything.
    used: Vec<u64>,
    sent: u64,
    repeated: u64,
    cuts: u64,
    /// Number of evidence items in the prompts.
    found: u64,
    /// Number of all evidence items.
    gold: u64,
    /// Number of questions with all their evidence in the prompt.
    whole: u64,
    /// Number of all questions.
    questions: u64,
    thoughts: u64,
    made: u64,
}

impl Sum {
    fn add(&mut self, plan: &ContextPlan, budget: u64, all_is_in: bool) {
        if !all_is_in {
            self.used.push(plan.estimated_tokens_total.tokens * 1_000 / budget);
        }
        self.sent += plan.estimated_tokens_total.tokens;
        self.repeated += plan.repeated().map_or(0, |prefix| prefix.tokens);
        self.cuts += u64::from(plan.notices.iter().any(|notice| notice.text.contains("low mark")));
        self.thoughts += plan.thoughts.sent;
        self.made += plan.thoughts.sent + plan.thoughts.lost.len() as u64;
    }

    fn find(&mut self, plan: &ContextPlan, gold: &BTreeSet<String>) {
        if gold.is_empty() {
            return;
        }
        let is_in = |id: &&String| plan.included.iter().any(|row| row.id.as_str() == id.as_str());
        let found = gold.iter().filter(is_in).count() as u64;
        self.found += found;
        self.gold += gold.len() as u64;
        self.whole += u64::from(found == gold.len() as u64);
        self.questions += 1;
    }

    fn row(&mut self, name: &str) {
        self.used.sort_unstable();
        let at = |per_mille: usize| {
            self.used
                .get((self.used.len() * per_mille / 1_000).min(self.used.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0)
        };
        let mean = self.used.iter().sum::<u64>() / (self.used.len() as u64).max(1);
        let part = |part: u64, of: u64| part * 1_000 / of.max(1);
        let poor = self.used.iter().filter(|used| **used < 250).count();
        println!(
            "| {name} | {} | {mean} | {} | {} | {poor} | {} | {} | {} | {} | {} |",
            self.used.len(),
            at(50),
            at(500),
            part(self.repeated, self.sent),
            self.cuts,
            part(self.found, self.gold),
            part(self.whole, self.questions),
            part(self.thoughts, self.made),
        );
    }
}

fn header() {
    println!(
        "| | prompts that are full | used, mean | used, 5 % | used, median | under a quarter | repeated | cuts | evidence | all of it | thoughts |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
}

fn manager(model: &str, tweak: impl Fn(&mut Config)) -> ContextWindowManager {
    let mut config = Config::default();
    config.compaction.enabled = false;
    tweak(&mut config);
    let mut model = Model::named(model).expect("the registry is built in");
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config).expect("sound options")
}

/// Plans a conversation prompt by prompt and adds the results to `sum`.
fn live(talk: &Talk, budget: u64, manager: &ContextWindowManager, thinks: bool, sum: &mut Sum) {
    let mut log = Conversation::new();
    for (at, turn) in talk.turns.iter().enumerate() {
        for message in &turn.messages {
            if message.role() != Role::Assistant || log.messages().is_empty() {
                log.push(message.clone());
                continue;
            }
            let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
            let plan = manager.build_plan(&request.with_rag(turn.documents.clone())).expect("sound");
            let messages = plan.included.iter().filter(|row| log.position_of(&row.id).is_some()).count();
            sum.add(&plan, budget, messages == log.messages().len());
            sum.find(&plan, &turn.gold);
            let mut reply = message.clone();
            if thinks {
                let thought = context_window::message::Reasoning::signed(
                    context_window::WireFormat::Anthropic,
                    "",
                    format!("seal{at}"),
                );
                reply = reply.with_reasoning(thought);
            }
            log.push_reply(&plan, reply, None);
            log.complete_turn(&plan);
        }
    }
    for (question, gold) in &talk.asked {
        let mut log = log.clone();
        log.push(Message::user(&**question));
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        sum.find(&manager.build_plan(&request).expect("sound"), gold);
    }
}

fn said(message: &Value) -> Message {
    let text = message["content"].as_str().unwrap_or_default().to_owned();
    let said = if message["role"] == "assistant" { Message::assistant(text) } else { Message::user(text) };
    match message["id"].as_str() {
        Some(id) => said.with_id(id),
        None => said,
    }
}

fn lines(name: &str) -> Vec<Value> {
    let texts = data::texts(&[name]);
    texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Reads conversations with questions at their ends.
fn conversations(name: &'static str, most: usize) -> Vec<Talk> {
    let talk = |line: Value| {
        let asked = line["qa"].as_array().into_iter().flatten().filter_map(|qa| {
            let gold =
                qa["evidence"].as_array()?.iter().filter_map(|id| Some(id.as_str()?.to_owned())).collect();
            Some((qa["question"].as_str()?.to_owned(), gold))
        });
        let messages = line["messages"].as_array().unwrap().iter().map(said).collect();
        let turns = vec![Turn { messages, documents: Vec::new(), gold: BTreeSet::new() }];
        Talk { name, asked: asked.collect(), turns }
    };
    lines(name).into_iter().take(most).map(talk).collect()
}

/// Reads agent sessions unchanged.
fn sessions(name: &'static str, most: usize) -> Vec<Talk> {
    let mut talks = Vec::new();
    for file in data::files(&[name]) {
        for session in file.sessions().flatten().take(most) {
            let turn = Turn {
                messages: session.log.messages().to_vec(),
                documents: Vec::new(),
                gold: BTreeSet::new(),
            };
            talks.push(Talk { name, turns: vec![turn], asked: Vec::new() });
        }
    }
    talks
}

/// Reads the questions of a retrieval set as one conversation, each with its ten best passages.
fn chained(name: &'static str) -> Talk {
    let turn = |(at, line): (usize, Value)| {
        let passages: Vec<&Value> = line["passages"].as_array().unwrap().iter().take(10).collect();
        let id = |passage: &Value| passage["id"].as_str().unwrap().to_owned();
        let gold =
            passages.iter().filter(|passage| passage["gold"] == true).map(|passage| id(passage)).collect();
        let document = |passage: &&Value| {
            RagItem::new(id(passage), passage["score"].as_f64().unwrap(), passage["text"].as_str().unwrap())
        };
        let documents: Vec<RagItem> = passages.iter().map(document).collect();
        let answer: String = documents[0].text().chars().take(300).collect();
        let question = line["query"].as_str().unwrap_or("Why?").to_owned();
        let messages = vec![
            Message::user(question).with_id(format!("q{at}")),
            Message::assistant(answer).with_id(format!("a{at}")),
        ];
        Turn { messages, documents, gold }
    };
    let turns = lines(name).into_iter().take(60).enumerate().map(turn).collect();
    Talk { name, turns, asked: Vec::new() }
}

fn windows() {
    let mut sets = vec![
        conversations("long_longmemeval", 22),
        conversations("long_memorybank", 19),
        conversations("long_qmsum", 35),
    ];
    sets.extend(["conv_taubench", "conv_claudecode", "conv_aider"].map(|name| sessions(name, 40)));
    for budget in [2_000, 8_000, 32_000] {
        for set in sets.iter().filter(|set| !set.is_empty()) {
            let lived = [300, 400, 500, 600, 700, 800, 900, 1_000].map(|low| {
                let manager = manager("gpt-4o", |config| config.conversation.low_mark = low);
                let mut sum = Sum::default();
                set.iter().for_each(|talk| live(talk, budget, &manager, false, &mut sum));
                (low, sum)
            });
            // If everything fits, no low mark is ever reached.
            if lived.iter().all(|(_, sum)| sum.used.is_empty()) {
                continue;
            }
            println!("\n{}, {budget} tokens\n", set[0].name);
            header();
            lived.into_iter().for_each(|(low, mut sum)| sum.row(&format!("low mark {low}")));
        }
    }
}

fn documents() {
    for budget in [2_000, 6_000, 8_000, 16_000, 32_000] {
        for name in ["rag_musique", "rag_mtragun", "rag_cookcode"] {
            let talk = chained(name);
            println!("\n{name}, {budget} tokens\n");
            header();
            for low in [400, 500, 600, 700, 800] {
                for limit in [50, 75, 100, 150, 200, 300] {
                    for leave in [Leave::AtCut, Leave::Weighed] {
                        let manager = manager("claude-fable-5-2", |config| {
                            config.conversation.low_mark = low;
                            config.rag.question_limit = limit;
                            config.rag.leave = leave;
                        });
                        let mut sum = Sum::default();
                        live(&talk, budget, &manager, true, &mut sum);
                        let leave = if leave == Leave::AtCut { "at cut" } else { "weighed" };
                        sum.row(&format!("low mark {low}, limit {limit}, {leave}"));
                    }
                }
            }
        }
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let all = asked.is_empty();
    if all || asked.iter().any(|name| name == "windows") {
        windows();
    }
    if all || asked.iter().any(|name| name == "documents") {
        documents();
    }
}
