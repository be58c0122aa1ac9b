//! Random conversations with reasoning, checked by a simulated provider that remembers its requests.
//! `prefix_check` was written only from the providers' documentation, independently of the planner.

use super::{
    manager_for,
    prefix_check::{Rules, Server},
};
use crate::support::corpus::cases;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, PinnedItem, PlanRequest, Priority,
    RagItem, RequestLimits, Role, Section, Tool, ToolCall, Ttl, WireFormat,
    config::{Placement, RulePolicy},
    message::Reasoning,
    plan::Anchor,
    render,
};
use serde_json::Value;

/// A pseudo-random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn text(&mut self, most: u64) -> String {
        let words = "word ".repeat(usize::try_from(1 + self.below(most)).unwrap());
        // A lasting rule of the user enters the prompt once its message leaves it (rule R1).
        match self.below(4) {
            0 => format!("{words}. Never touch folder {}.", self.below(9)),
            _ => words,
        }
    }
}

/// The caller's way of storing replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// Each reply is committed.
    Committed,
    /// Replies are pushed as ordinary messages, and the anchor of each prompt is passed to the next request.
    Anchors,
    /// The same, but some anchors are older.
    OldAnchors,
    /// The first reply is committed, and some of the others.
    Some,
    /// A file: replies are ordinary messages, and questions name their documents.
    File,
}

/// One conversation with all inputs of its next prompt.
struct Life {
    dice: Dice,
    format: WireFormat,
    managers: Vec<ContextWindowManager>,
    manager: usize,
    log: Conversation,
    server: Server,
    limits: RequestLimits,
    tools: Vec<Tool>,
    documents: Vec<RagItem>,
    state: Option<String>,
    keeps: Keeps,
    anchor: Option<Anchor>,
    replies: u64,
    /// Number of sent blocks in all prompts.
    sent: u64,
    /// Number of lost blocks in all prompts.
    lost: u64,
    /// Number of blocks that the provider would refuse.
    refused: u64,
    /// The first prompt with such a block.
    first: Option<String>,
}

impl Life {
    fn new(seed: u64, format: WireFormat, budget: Option<u64>) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut config = Config::default();
        config.compaction.retain.messages = Some(1 + dice.below(6));
        config.compaction.rules =
            [RulePolicy::Off, RulePolicy::Ask, RulePolicy::Keep, RulePolicy::Keep][dice.below(4) as usize];
        config.rag.placement = match dice.below(4) {
            _ if budget.is_none() => Placement::Auto,
            0 => Placement::BeforeConversation,
            1 => Placement::BeforeQuestion,
            _ => Placement::Auto,
        };
        let models = match format {
            WireFormat::Anthropic => {
                &["claude-fable-5-2", "claude-mythos-5-2", "claude-fable-5-1", "claude-opus-5-5"][..]
            }
            _ => &["gpt-6.2-astra"][..],
        };
        let managers = models.iter().map(|model| manager_for(model, config.clone())).collect();
        let rules = if format == WireFormat::Anthropic { Rules::Anthropic } else { Rules::OpenAiResponses };
        let mut log = Conversation::new();
        if dice.below(2) == 0 {
            log.push_system("rules", "Be brief.");
        }
        for _ in 0..dice.below(6) {
            log.push(Message::user(dice.text(40)));
            log.push(Message::assistant(dice.text(40)));
        }
        log.push(Message::user("Where is it?"));
        Self {
            dice,
            format,
            managers,
            manager: 0,
            log,
            server: Server::new(rules),
            limits: budget.map_or_else(RequestLimits::new, RequestLimits::prompt_budget),
            tools: Vec::new(),
            documents: Vec::new(),
            state: None,
            keeps: Keeps::Committed,
            anchor: None,
            replies: 0,
            sent: 0,
            lost: 0,
            refused: 0,
            first: None,
        }
    }

    fn plan(&self) -> ContextPlan {
        let request = PlanRequest::new(&self.log).with_limits(self.limits).with_tools(&self.tools);
        let request = request.with_rag(self.documents.clone());
        let request = match &self.state {
            Some(text) => request.with_state("clock", text),
            None => request,
        };
        let request = match &self.anchor {
            Some(anchor) => request.with_previous(anchor.clone()),
            None => request,
        };
        self.managers[self.manager].build_plan(&request).unwrap()
    }

    fn body(&self, plan: &ContextPlan) -> Value {
        match self.format {
            WireFormat::Anthropic => serde_json::to_value(render::anthropic(plan)).unwrap(),
            _ => serde_json::to_value(render::openai_responses(plan)).unwrap(),
        }
    }

    /// Plans the next prompt, has the provider check it, and adds a reply.
    fn ask(&mut self, seed: u64, calls: bool) {
        let plan = self.plan();
        let body = self.body(&plan);
        let refused = self.server.check(&body);
        if !refused.is_empty() {
            self.refused += refused.len() as u64;
            self.first.get_or_insert_with(|| {
                format!(
                    "seed {seed}, {:?}, {:?}: {refused:?}\n{:#?}\n{body:#}",
                    self.format, self.keeps, plan.thoughts
                )
            });
        }
        self.sent += plan.thoughts.sent;
        self.lost += plan.thoughts.lost.len() as u64;
        if std::env::var_os("SHOW").is_some() && !plan.thoughts.lost.is_empty() {
            let rows: Vec<_> =
                plan.included.iter().map(|r| (r.id.as_str(), r.token_estimate.tokens)).collect();
            panic!(
                "{:#?}\n{rows:?}\n{:?}\n{:?}",
                plan.thoughts,
                plan.notices,
                self.log.entries().collect::<Vec<_>>()
            );
        }
        let id = format!("c{}", self.replies);
        let mut reply = Message::assistant(if self.dice.below(2) == 0 { "Looking." } else { "Let me see." });
        let thoughts = self.dice.below(3);
        let mut seals = Vec::new();
        for nth in 0..thoughts {
            let seal = format!("seal{}x{nth}", self.replies);
            let text = if self.dice.below(2) == 0 { "" } else { "Hm." };
            reply = reply
                .with_reasoning(Reasoning::signed(self.format, text, &*seal).with_id(format!("rs_{seal}")));
            seals.push((seal, Vec::new()));
        }
        self.server.made(&body, &seals);
        self.replies += 1;
        if calls {
            reply = reply.with_tool_calls([ToolCall::new(&*id, "look", "{}")]);
        }
        self.keep(&plan, reply);
        if calls {
            let result = self.dice.text(60);
            self.log.push(Message::tool(&*id, result));
        } else {
            self.log.complete_turn(&plan);
            let question = self.dice.text(30);
            self.log.push(Message::user(question));
        }
    }

    /// Adds a reply to the conversation in this caller's way.
    fn keep(&mut self, plan: &ContextPlan, reply: Message) {
        let commits = match self.keeps {
            Keeps::Committed => true,
            Keeps::Some => self.replies == 1 || self.dice.below(2) == 0,
            Keeps::Anchors | Keeps::OldAnchors | Keeps::File => false,
        };
        if commits {
            self.log.push_reply(plan, reply, None);
            return;
        }
        let saves = match self.keeps {
            Keeps::Anchors => true,
            Keeps::OldAnchors => self.anchor.is_none() || self.dice.below(4) > 0,
            Keeps::Committed | Keeps::Some | Keeps::File => false,
        };
        if saves {
            self.anchor = Some(plan.anchor());
        }
        if self.keeps == Keeps::File && !self.documents.is_empty() {
            let question = plan.live().cloned().unwrap();
            let documents = std::mem::take(&mut self.documents);
            // Documents of earlier questions are at the positions of those questions.
            let rows = plan.included.iter().rev().skip_while(|row| row.id != question).skip(1);
            let mut rows: Vec<_> = rows.take_while(|row| row.section == Section::Rag).collect();
            rows.reverse();
            let sent = rows.iter().filter_map(|row| documents.iter().find(|item| item.id == row.id));
            let sent: Vec<_> = sent.map(|item| self.managers[self.manager].sent_document(item)).collect();
            self.log.remember_documents(question, sent).unwrap();
        }
        self.log.push(reply);
    }

    /// Retrieves other documents, some of which occurred before.
    fn retrieve(&mut self) {
        let documents = self.dice.below(4);
        let document = |nth| {
            let text = self.dice.text(40);
            RagItem::new(format!("d{}", self.dice.below(9) * 10 + nth), 0.5, text)
        };
        self.documents = (0..documents).map(document).collect();
    }

    /// Makes a random change to the next prompt. For a file, only changes that the file can express are made.
    fn change(&mut self) {
        let dice = self.dice.below(13);
        match dice {
            0..=3 | 5..=7 | 9 | 11.. if self.keeps == Keeps::File => {}
            // Additions while the model works cannot be expressed in a file.
            8 if self.keeps == Keeps::File && self.log.messages().last().unwrap().role() != Role::User => {}
            0 => {
                let text = self.dice.text(20);
                let ttl = Ttl::turns(u32::try_from(1 + self.dice.below(3)).unwrap());
                self.log.pin(PinnedItem::new(format!("n{}", self.replies), text).with_ttl(ttl));
            }
            1 => drop(self.log.unpin(format!("n{}", self.dice.below(self.replies + 1)))),
            2 => {
                let at = self.dice.below(self.log.messages().len() as u64);
                let _ = self.log.pin_message(format!("m{at}"), Priority::Normal);
            }
            3 => self.log.push_system(format!("s{}", self.log.event_count()), "Never guess."),
            4 => {
                let manager = &self.managers[self.manager];
                if let Some(job) = manager.compactor().now(&PlanRequest::like_last(&self.log)).unwrap() {
                    let _ = manager.compactor().compact_without_model(&mut self.log, &job);
                }
            }
            5 => match self.dice.below(4) {
                0 => drop(self.tools.pop()),
                1 if !self.tools.is_empty() => self.tools[0].description.push('!'),
                _ => self.tools.push(Tool::new(format!("look{}", self.tools.len()), "Looks.", "{}")),
            },
            6 => self.limits = RequestLimits::prompt_budget(600 + self.dice.below(1_500)),
            7 | 11 | 12 => {
                self.manager = usize::try_from(self.dice.below(self.managers.len() as u64)).unwrap()
            }
            8 => self.retrieve(),
            9 => self.state = (self.dice.below(2) == 0).then(|| format!("It is {} o'clock.", self.replies)),
            _ => {
                let at = self.dice.below(self.log.messages().len() as u64);
                if self.log.rewind_before(format!("m{at}")).is_ok() {
                    self.log.push(Message::user("Once more: where is it?"));
                }
            }
        }
    }
}

/// For any change between two prompts, no block is sent that the model would refuse.
#[test]
fn no_refusable_block_is_sent() {
    lives(Keeps::Committed, cases(400, 1_200, 100_000));
}

/// The same holds for blocks of unknown origin if the last prompt is known.
#[test]
fn no_refusable_block_of_unknown_origin_is_sent() {
    lives(Keeps::Anchors, cases(150, 600, 50_000));
    lives(Keeps::OldAnchors, cases(150, 600, 50_000));
}

/// The same holds if only some replies are committed.
#[test]
fn no_refusable_block_between_committed_ones_is_sent() {
    lives(Keeps::Some, cases(300, 1_200, 100_000));
}

/// The same holds for a file that names everything that was sent and keeps its reasoning.
#[test]
fn no_refusable_block_of_a_file_is_sent() {
    lives(Keeps::File, cases(300, 1_200, 100_000));
}

/// Plays random conversations with this kind of storage in both formats.
fn lives(keeps: Keeps, count: u64) {
    let (mut sent, mut lost, mut refused, mut first) = (0, 0, 0, None);
    for seed in 1..=count {
        for format in [WireFormat::Anthropic, WireFormat::OpenAiResponses] {
            let budget = (keeps != Keeps::File).then_some(600 + seed % 1_500);
            let mut life = Life::new(seed, format, budget);
            life.keeps = keeps;
            for _ in 0..6 + life.dice.below(10) {
                for _ in 0..life.dice.below(3) {
                    life.change();
                }
                let calls = life.dice.below(4) > 0;
                life.ask(seed, calls);
            }
            (sent, lost, refused) = (sent + life.sent, lost + life.lost, refused + life.refused);
            first = first.or(life.first);
        }
    }
    eprintln!("{keeps:?}: {sent} thoughts sent, {lost} lost, {refused} refused");
    assert_eq!(refused, 0, "{}", first.unwrap_or_default());
    assert!(sent > lost / 10 && lost > 0, "{sent} sent, {lost} lost: one of the two is hardly tried");
}

/// With room for everything and no change before them, all blocks are sent, for any documents and state of
/// each prompt.
#[test]
fn with_room_no_block_is_lost() {
    for seed in 1..=cases(150, 150, 20_000) {
        for format in [WireFormat::Anthropic, WireFormat::OpenAiResponses] {
            let mut life = Life::new(seed, format, None);
            for at in 0..12 {
                if life.dice.below(2) == 0 {
                    life.retrieve();
                    life.state = Some(format!("It is {at} o'clock."));
                }
                let calls = life.dice.below(4) > 0;
                life.ask(seed, calls);
            }
            assert_eq!((life.lost, life.refused), (0, 0), "seed {seed}, {format:?}");
        }
    }
}

/// Asks twelve times in a row with room for everything, and checks that no block is lost or refused. `before`
/// changes the conversation before each question.
fn lose_no_block(keeps: Keeps, before: fn(&mut Life)) {
    for seed in 1..=cases(150, 150, 20_000) {
        for format in [WireFormat::Anthropic, WireFormat::OpenAiResponses] {
            let mut life = Life::new(seed, format, None);
            life.keeps = keeps;
            for _ in 0..12 {
                before(&mut life);
                let calls = life.dice.below(4) > 0;
                life.ask(seed, calls);
            }
            assert_eq!((life.lost, life.refused), (0, 0), "seed {seed}, {format:?}");
        }
    }
}

/// The anchor is enough for that if only the conversation is sent, for each way to store the reply.
#[test]
fn with_room_an_anchor_loses_no_block() {
    lose_no_block(Keeps::Anchors, |_| {});
}

/// A file is enough too if its questions name their documents: the same ones, and others with one id.
#[test]
fn with_room_a_file_loses_no_block() {
    lose_no_block(Keeps::File, |life| {
        let is_asked = life.log.messages().last().unwrap().role() == Role::User;
        if is_asked && life.dice.below(2) == 0 {
            life.retrieve();
        }
    });
}
