//! The part of each prompt that repeats the one before it, and the reasoning that stays valid. The Markdown
//! tables are the same on every run.
//!
//! The rules of other tools are written again here from their documentation. "newest first" keeps the newest
//! messages that fit. "trim_messages" is LangChain's (`strategy="last"`, `start_on="human"`,
//! `include_system`), with the documents before the question. "clear results" keeps every message, and
//! replaces all but the newest three results once the prompt is too long.
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
    RequestLimits, Role, Section, WireFormat,
    config::{Leave, Placement, Sections},
    message::{Part, Reasoning},
    provider::Price,
};
use context_window_benches::data;
use std::collections::BTreeSet;

/// A generator of sizes for the trace, from 20 to 199 tokens.
struct Sizes(u64);

impl Sizes {
    fn next(&mut self) -> usize {
        self.0 = (self.0 * 1_103_515_245 + 12_345) & 0x7fff_ffff;
        usize::try_from(20 + self.0 % 180).unwrap_or(20)
    }
}

/// One turn of a conversation: a question with its documents, and the answer.
struct Turn {
    question: String,
    documents: Vec<RagItem>,
    answer: String,
}

/// Totals over prompts, in tokens.
#[derive(Default)]
struct Sum {
    prompts: u64,
    budget: u64,
    sent: u64,
    repeated: u64,
    fresh_documents: u64,
    /// Billed tokens in thousandths of a token, with cache writes at 1.25 times the price and cache reads
    /// at a tenth of it.
    with_writes: u64,
    /// Billed tokens in thousandths of a token, for providers on which only cache reads have another price.
    without_writes: u64,
}

impl Sum {
    /// Adds a prompt of `sent` tokens. It begins with `repeated` tokens of the last one, and `lasting` of its
    /// tokens are marked for the cache.
    fn add(&mut self, budget: u64, sent: u64, repeated: u64, lasting: u64, fresh: u64) {
        self.prompts += 1;
        self.budget += budget;
        self.sent += sent;
        self.repeated += repeated;
        self.fresh_documents += fresh;
        let read = if repeated >= 1_024 { repeated } else { 0 };
        let written = lasting.max(read) - read;
        self.with_writes += 100 * read + 1_250 * written + 1_000 * (sent - read - written);
        self.without_writes += 100 * read + 1_000 * (sent - read);
    }

    fn row(&self, name: &str) {
        let part = |part: u64, of: u64| format!("{}.{:02}", part / of.max(1), part * 100 / of.max(1) % 100);
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            part(self.repeated, self.sent),
            part(self.sent, self.budget),
            self.fresh_documents / self.prompts,
            self.with_writes / 1_000 / self.prompts,
            self.without_writes / 1_000 / self.prompts,
        );
    }
}

fn manager(placement: Placement, tweak: impl Fn(&mut Config)) -> ContextWindowManager {
    let mut config = Config::default();
    config.rag.placement = placement;
    tweak(&mut config);
    let mut model = Model::named("gpt-4o").expect("the registry is built in");
    model.tokenizer = Some("chars/4".into());
    // Billed as below: reading the cache costs a tenth of the input price, writing it 1.25 times.
    let mut price = Price::new(1.0, 5.0);
    (price.cache_read, price.cache_write) = (Some(0.1), Some(1.25));
    model.price = Some(price);
    ContextWindowManager::configured(model, config).expect("sound options")
}

/// Returns the tokens of the rows before the first that the next prompt does not have, which are moving
/// documents and state.
fn lasting(plan: &ContextPlan, stays: bool) -> u64 {
    let floats = |row: &&context_window::PlannedItem| !stays && row.section == Section::Rag;
    plan.included.iter().take_while(|row| !floats(row)).map(|row| row.token_estimate.tokens).sum()
}

fn ours(turns: &[Turn], budget: u64, manager: &ContextWindowManager, stays: bool) -> Sum {
    let mut log = Conversation::new();
    let mut sum = Sum::default();
    for turn in turns {
        log.push(Message::user(&*turn.question));
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        let plan = manager.build_plan(&request.with_rag(turn.documents.clone())).expect("a sound request");
        let repeated = plan.repeated().map_or(0, |prefix| prefix.tokens);
        let fresh = plan
            .included
            .iter()
            .filter(|row| row.section == Section::Rag)
            .map(|row| row.token_estimate.tokens)
            .sum();
        sum.add(budget, plan.estimated_tokens_total.tokens, repeated, lasting(&plan, stays), fresh);
        log.push_reply(&plan, Message::assistant(&*turn.answer), None);
        log.complete_turn(&plan);
    }
    sum
}

fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

/// Applies `trim_messages` to the history, after the best documents that fit three tenths of the budget.
fn trimmed(turns: &[Turn], budget: u64) -> Sum {
    let mut history: Vec<(String, u64, bool)> = Vec::new();
    let (mut before, mut sum): (Vec<(String, u64)>, Sum) = (Vec::new(), Sum::default());
    for turn in turns {
        history.push((turn.question.clone(), 4 + tokens(&turn.question), true));
        let (mut documents, mut of_documents) = (String::new(), 0);
        for document in &turn.documents {
            let size = tokens(document.text()) + 8;
            if of_documents + size <= budget * 3 / 10 {
                of_documents += size;
                documents.push_str(document.text());
            }
        }
        let (mut kept, mut left) = (history.len(), budget - of_documents);
        while kept > 0 && history[kept - 1].1 <= left {
            kept -= 1;
            left -= history[kept].1;
        }
        while kept < history.len() && !history[kept].2 {
            kept += 1;
        }
        let mut now: Vec<(String, u64)> =
            history[kept..].iter().map(|(text, size, _)| (text.clone(), *size)).collect();
        now.insert(now.len() - 1, (documents, of_documents));
        let same = before.iter().zip(&now).take_while(|(then, now)| then == now);
        let repeated = same.map(|(_, now)| now.1).sum();
        let sent: u64 = now.iter().map(|(_, size)| size).sum();
        sum.add(budget, sent, repeated, sent, of_documents);
        before = now;
        history.push((turn.answer.clone(), 4 + tokens(&turn.answer), false));
    }
    sum
}

/// Creates 400 turns. Questions, answers and the 40 documents per turn have 20 to 199 tokens each.
fn trace() -> Vec<Turn> {
    let (mut sizes, mut documents) = (Sizes(7), Sizes(99));
    let text = |name: String, tokens: usize| format!("{name} {}", "abc ".repeat(tokens));
    let turn = |at: usize| Turn {
        question: text(format!("q{at}"), sizes.next()),
        documents: (0..40)
            .map(|nth| {
                let score = 1.0 - f64::from(nth) / 100.0;
                RagItem::new(format!("d{at}-{nth}"), score, text(format!("d{at}-{nth}"), documents.next()))
            })
            .collect(),
        answer: text(format!("a{at}"), sizes.next()),
    };
    (0..400).map(turn).collect()
}

/// Reads the questions of a retrieval set as one conversation, each with its ten best passages.
fn talk(name: &str) -> Vec<Turn> {
    let mut turns = Vec::new();
    for file in data::files(&[name]) {
        for session in file.sessions().flatten().take(60) {
            let question = session.log.messages().iter().rev().find(|message| message.role() == Role::User);
            let question =
                question.map_or_else(|| "What is said of it?".into(), |message| message.text().to_owned());
            let mut documents = session.rag.to_vec();
            documents.truncate(10);
            let answer = documents.first().map_or("", |item| item.text()).chars().take(300).collect();
            turns.push(Turn { question, documents, answer });
        }
    }
    turns
}

fn placements() {
    let all: [(&str, Vec<Turn>, u64); 5] = [
        ("the trace, 6,000", trace(), 6_000),
        ("the trace, 60,000", trace(), 60_000),
        ("rag_musique, 6,000", talk("rag_musique"), 6_000),
        ("rag_mtragun, 16,000", talk("rag_mtragun"), 16_000),
        ("rag_cookcode, 16,000", talk("rag_cookcode"), 16_000),
    ];
    for (name, turns, budget) in all.into_iter().filter(|(_, turns, _)| !turns.is_empty()) {
        println!("\n{name}, {} turns\n", turns.len());
        println!(
            "| rule | repeated | of the budget used | tokens of new documents | billed, writes 1.25 | billed, no writes |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        trimmed(&turns, budget).row("`trim_messages`, documents before the question");
        ours(&turns, budget, &manager(Placement::BeforeQuestion, |_| ()), false).row("`before_question`");
        let narrow = manager(Placement::BeforeQuestion, |config| {
            config.sections = Sections::shares(50, 900, 50);
            config.conversation.low_mark = 720;
        });
        ours(&turns, budget, &narrow, false).row("`before_question`, 5 % for documents, low mark 720");
        for (limit, leave) in
            [(50, Leave::AtCut), (50, Leave::Weighed), (150, Leave::AtCut), (150, Leave::Weighed)]
        {
            let manager = manager(Placement::WithQuestion, |config| {
                config.rag.question_limit = limit;
                config.rag.leave = leave;
            });
            let weighed = if leave == Leave::Weighed { ", weighed" } else { "" };
            ours(&turns, budget, &manager, true).row(&format!("`with_question`, limit {limit}{weighed}"));
        }
    }
}

/// Numbers of reasoning blocks that prompts could send back and that were made, and of prompts that a model
/// would refuse.
#[derive(Default)]
struct Kept {
    valid: u64,
    made: u64,
    refused: u64,
    /// Number of prompts over their budget.
    over: u64,
    sum: Sum,
}

impl Kept {
    fn row(&self, budget: u64, name: &str) {
        println!(
            "| {budget} | {name} | {} % | {} | {} | {} % | {} % |",
            self.valid * 100 / self.made.max(1),
            self.refused,
            self.over,
            self.sum.repeated * 100 / self.sum.sent.max(1),
            self.sum.sent * 100 / self.sum.budget.max(1),
        );
    }
}

/// Plans a session with this crate, with reasoning added to each reply.
fn kept_here(session: &Conversation, budget: u64, manager: &ContextWindowManager, kept: &mut Kept) {
    let mut log = Conversation::new();
    for (at, message) in session.messages().iter().enumerate() {
        if message.role() != Role::Assistant || log.messages().is_empty() {
            log.push(message.clone());
            continue;
        }
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        let plan = manager.build_plan(&request).expect("a sound request");
        let made = log.messages().iter().filter(|message| !message.reasoning().is_empty()).count();
        kept.valid += plan.thoughts.sent;
        kept.over += u64::from(plan.estimated_tokens_total.tokens > budget);
        kept.made += made as u64;
        let repeated = plan.repeated().map_or(0, |prefix| prefix.tokens);
        kept.sum.add(
            budget,
            plan.estimated_tokens_total.tokens.min(budget),
            repeated,
            plan.estimated_tokens_total.tokens.min(budget),
            0,
        );
        let thought = Reasoning::signed(WireFormat::Anthropic, "", format!("seal{at}"));
        log.push_reply(&plan, message.clone().with_reasoning(thought), None);
    }
}

/// The part of a history that a rule sends: positions, each with true if it is a stub.
type Sent = Vec<(usize, bool)>;

/// A rule of another tool: from messages, their tokens and the budget.
type Rule = fn(&[Message], &[u64], u64) -> Sent;

/// Does the same with a rule of another tool, which sends all reasoning of the messages it keeps.
fn kept_by(session: &Conversation, budget: u64, rule: Rule, kept: &mut Kept) {
    let messages = session.messages();
    let sizes: Vec<u64> = messages
        .iter()
        .map(|message| {
            let calls = message.tool_calls().iter().map(|call| tokens(&call.arguments) + 8).sum::<u64>();
            let parts = message.parts().iter().map(size_of).sum::<u64>();
            4 + if message.parts().is_empty() { tokens(message.text()) } else { parts } + calls
        })
        .collect();
    let (mut before, mut births): (Sent, Vec<(usize, Sent)>) = (Vec::new(), Vec::new());
    for at in (1..messages.len()).filter(|at| messages[*at].role() == Role::Assistant) {
        let sent = rule(&messages[..at], &sizes[..at], budget);
        let size = |(at, stub): &(usize, bool)| if *stub { 20 } else { sizes[*at] };
        let total: u64 = sent.iter().map(size).sum();
        // A block is valid after the same prefix that it was made after, and then the blocks after it can be
        // too.
        let there = |reply: &usize| sent.iter().position(|(at, _)| at == reply);
        let good: BTreeSet<usize> = births
            .iter()
            .filter(|(reply, born)| there(reply).is_some_and(|before| sent[..before] == born[..]))
            .map(|(reply, _)| *reply)
            .collect();
        let sent_blocks = births.iter().filter(|(reply, _)| there(reply).is_some()).count();
        kept.over += u64::from(total > budget);
        kept.made += births.len() as u64;
        kept.valid += good.len() as u64;
        kept.refused += u64::from(sent_blocks > good.len());
        let same = before.iter().zip(&sent).take_while(|(then, now)| then == now);
        let repeated: u64 = same.map(|(_, now)| size(now)).sum();
        kept.sum.add(budget, total.min(budget), repeated.min(budget), total.min(budget), 0);
        births.push((at, sent.clone()));
        before = sent;
    }
}

fn size_of(part: &Part) -> u64 {
    match part {
        Part::Text(text) => tokens(text),
        _ => 0,
    }
}

fn head(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role() == Role::System).count()
}

fn newest_first(messages: &[Message], sizes: &[u64], budget: u64) -> Sent {
    let head = head(messages);
    let mut left = budget.saturating_sub(sizes[..head].iter().sum());
    let mut from = messages.len();
    while from > head && sizes[from - 1] <= left {
        from -= 1;
        left -= sizes[from];
    }
    (0..head).chain(from..messages.len()).map(|at| (at, false)).collect()
}

fn trim_messages(messages: &[Message], sizes: &[u64], budget: u64) -> Sent {
    let head = head(messages);
    let mut sent = newest_first(messages, sizes, budget);
    let human = sent[head..].iter().position(|(at, _)| messages[*at].role() == Role::User);
    drop(sent.drain(head..human.map_or(sent.len(), |human| head + human)));
    sent
}

fn clear_results(messages: &[Message], sizes: &[u64], budget: u64) -> Sent {
    let results: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].role() == Role::Tool).collect();
    let long = sizes.iter().sum::<u64>() > budget;
    let old = &results[..if long { results.len().saturating_sub(3) } else { 0 }];
    (0..messages.len()).map(|at| (at, old.contains(&at))).collect()
}

fn thoughts() {
    println!(
        "\n| budget | rule | blocks still valid | prompts refused | over the budget | repeated | of the budget used |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let sessions: Vec<Conversation> = data::files(&["conv_claudecode", "conv_miniswe"])
        .iter()
        .flat_map(|file| file.sessions().flatten().map(|session| session.log).take(30).collect::<Vec<_>>())
        .filter(|log| log.messages().len() >= 12)
        .collect();
    let mut model = Model::named("claude-fable-5-2").expect("the registry is built in");
    model.tokenizer = Some("chars/4".into());
    let manager = ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound");
    for budget in [8_000, 32_000, 100_000] {
        let mut here = Kept::default();
        sessions.iter().for_each(|log| kept_here(log, budget, &manager, &mut here));
        here.row(budget, "context-window");
        let rules: [(&str, Rule); 3] = [
            ("newest first", newest_first),
            ("`trim_messages`", trim_messages),
            ("clear results", clear_results),
        ];
        for (name, rule) in rules {
            let mut kept = Kept::default();
            sessions.iter().for_each(|log| kept_by(log, budget, rule, &mut kept));
            kept.row(budget, name);
        }
    }
    println!("\n{} sessions", sessions.len());
}

fn main() {
    placements();
    if std::env::args().all(|arg| arg != "placements") {
        thoughts();
    }
}
