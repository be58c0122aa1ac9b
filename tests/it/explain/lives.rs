//! Explanations of conversations that were planned before: with reasoning that the model checks or the
//! options drop (rules K1 to K5), and with retained documents and state that are later evicted (rules S10 to
//! S12).

use super::{Brute, MOST};
use crate::support::generate;
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, RagItem,
    RequestLimits, ToolCall, Ttl, WireFormat,
    config::{Leave, Placement, RagFill, ReasoningPolicy, ToolResults},
    conversation::{Entry, Event},
    message::Reasoning,
    plan::{ExcludedItem, NoticeCode},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Additions to a prompt besides its messages.
#[derive(Debug, Clone, Default)]
struct Beside {
    /// Documents by number, each with the characters that it has more than usual.
    documents: Vec<(usize, usize)>,
    state: Option<usize>,
    /// A note pinned from this prompt on: its size, and true if it may be dropped.
    note: Option<(usize, bool)>,
    /// The size of a system text added with this prompt.
    system: Option<usize>,
}

/// A prompt and its reply.
#[derive(Debug, Clone)]
struct Step {
    /// The size of a user message before it, if any.
    asks: Option<usize>,
    beside: Beside,
    budget: u64,
    /// The size of the reply's reasoning, if any.
    thinks: Option<usize>,
    reply: usize,
    /// The size of the result of the reply's call, if any.
    result: Option<usize>,
    /// True if the reply is committed; otherwise it is a message without a known prompt.
    is_committed: bool,
    is_pinned: bool,
}

#[derive(Debug, Clone)]
struct Life {
    model: &'static str,
    config: Config,
    steps: Vec<Step>,
    asks: Option<usize>,
    beside: Beside,
    budget: u64,
}

fn beside() -> impl Strategy<Value = Beside> {
    let document = (0usize..5, prop_oneof![5 => Just(0usize), 1 => 1usize..40]);
    (
        prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(document, 1..4)],
        prop::option::weighted(0.3, prop_oneof![3 => Just(20usize), 1 => 1usize..60]),
        prop::option::weighted(0.1, (1usize..60, any::<bool>())),
        prop::option::weighted(0.1, 1usize..40),
    )
        .prop_map(|(documents, state, note, system)| Beside { documents, state, note, system })
}

fn step() -> impl Strategy<Value = Step> {
    (
        (prop::option::weighted(0.7, 1usize..60), beside(), 150u64..MOST),
        (prop::option::weighted(0.7, 1usize..80), 0usize..60, prop::option::weighted(0.4, 0usize..260)),
        (prop::bool::weighted(0.8), prop::bool::weighted(0.1)),
    )
        .prop_map(|((asks, beside, budget), (thinks, reply, result), (is_committed, is_pinned))| Step {
            asks,
            beside,
            budget,
            thinks,
            reply,
            result,
            is_committed,
            is_pinned,
        })
}

fn config() -> impl Strategy<Value = Config> {
    let reasoning = prop_oneof![
        5 => Just(ReasoningPolicy::Keep),
        2 => Just(ReasoningPolicy::Drop),
        1 => Just(ReasoningPolicy::Provider),
    ];
    let placement = prop_oneof![
        3 => Just(Placement::Auto),
        3 => Just(Placement::WithQuestion),
        1 => Just(Placement::BeforeQuestion),
    ];
    let results = prop_oneof![2 => Just(ToolResults::Clip), 1 => Just(ToolResults::Keep), 1 => Just(ToolResults::Clear)];
    (
        (reasoning, placement, results),
        (any::<bool>(), any::<bool>()),
        (1u16..=1000, 100u16..=1000, 0u16..=1000),
    )
        .prop_map(
            |(
                (reasoning, placement, results),
                (weighed, backfill),
                (low_mark, question_limit, pins_limit),
            )| {
                let mut config = Config::default();
                config.conversation.reasoning = reasoning;
                config.conversation.tool_results = results;
                config.conversation.low_mark = low_mark;
                (config.conversation.keep_results, config.conversation.clear_at_least) = (1, 40);
                config.rag.placement = placement;
                config.rag.leave = if weighed { Leave::Weighed } else { Leave::AtCut };
                config.rag.fill = if backfill { RagFill::Backfill } else { RagFill::Prefix };
                config.rag.question_limit = question_limit;
                config.sections.pins_limit = pins_limit;
                config
            },
        )
}

fn life() -> impl Strategy<Value = Life> {
    let model = prop_oneof![
        4 => Just("claude-fable-5-2"),
        2 => Just("gpt-6.2-astra"),
        2 => Just("claude-sonnet-5"),
        2 => Just("deepseek-chat"),
        1 => Just("gpt-4o"),
    ];
    let last = (prop::option::weighted(0.7, 1usize..60), beside(), 1u64..MOST);
    (model, config(), prop::collection::vec(step(), 1..6), last).prop_map(
        |(model, config, steps, (asks, beside, budget))| Life { model, config, steps, asks, beside, budget },
    )
}

/// The size of each unchanged document, in characters.
const SIZES: [usize; 5] = [12, 30, 45, 70, 25];

impl Beside {
    /// Adds the instructions and pins of this prompt to the log.
    fn prepare(&self, log: &mut Conversation, number: usize) {
        if let Some((size, may_fall)) = self.note {
            let note = PinnedItem::new(format!("n{number}"), "N".repeat(size));
            log.pin(if may_fall { note } else { note.with_ttl(Ttl::Unlimited) });
        }
        if let Some(size) = self.system {
            log.push_system(format!("s{number}"), "S".repeat(size));
        }
    }

    fn request<'a>(&self, log: &'a Conversation) -> PlanRequest<'a> {
        // Each id has one text, because rows with the same name are indistinguishable here.
        let document = |(at, more): &(usize, usize)| {
            let id = if *more == 0 { format!("d{at}") } else { format!("d{at}x{more}") };
            RagItem::new(id, 5.0 - *at as f64, format!("{at}").repeat(SIZES[*at] + more))
        };
        let request = PlanRequest::new(log).with_rag(self.documents.iter().map(document));
        match self.state {
            Some(size) => request.with_state("st", "T".repeat(size)),
            None => request,
        }
    }
}

fn limits(budget: u64) -> RequestLimits {
    RequestLimits::prompt_budget(budget).with_model_context_len(MOST).with_safety_buffer(0)
}

impl Life {
    fn manager(&self) -> ContextWindowManager {
        let model = Model::named(self.model).unwrap();
        ContextWindowManager::new(model, generate::bytes(), self.config.clone()).unwrap()
    }

    fn log(&self, manager: &ContextWindowManager) -> Conversation {
        let format = Model::named(self.model).unwrap().wire_format;
        let mut log = Conversation::new();
        for (number, step) in self.steps.iter().enumerate() {
            if let Some(size) = step.asks {
                log.push(Message::user("q".repeat(size)));
            }
            step.beside.prepare(&mut log, number);
            let mut reply = Message::assistant("a".repeat(step.reply));
            if let Some(size) = step.thinks {
                reply = reply.with_reasoning(match format {
                    WireFormat::OpenAiChat => Reasoning::from("r".repeat(size)),
                    format => Reasoning::signed(format, "r".repeat(size), format!("seal{number}")),
                });
            }
            let call = format!("c{number}");
            if step.result.is_some() {
                reply = reply.with_tool_calls([ToolCall::new(&*call, "look", "{}")]);
            }
            let plan = manager.build_plan(&step.beside.request(&log).with_limits(limits(step.budget)));
            let at = log.messages().len() as u32;
            match plan {
                Ok(plan) if step.is_committed => drop(log.push_reply(&plan, reply, None)),
                _ => drop(log.push(reply)),
            }
            if step.is_pinned {
                let id = log.message_id(at);
                log.pin_message(id, context_window::Priority::Normal).unwrap();
            }
            if let Some(size) = step.result {
                log.push(Message::tool(&*call, "x".repeat(size)));
            }
        }
        if let Some(size) = self.asks {
            log.push(Message::user("q".repeat(size)));
        }
        self.beside.prepare(&mut log, self.steps.len());
        log
    }
}

impl Life {
    /// Builds the request for the last prompt.
    fn request<'a>(&self, log: &'a Conversation) -> PlanRequest<'a> {
        let request = self.beside.request(log).with_limits(limits(self.budget)).with_excluded_messages();
        // The state after the last prompt is assumed at every budget (rule E1).
        match log.anchor() {
            Some(anchor) => request.with_previous(generate::without_limits(anchor)),
            None => request,
        }
    }
}

/// The documents that the request repeats, each with the position of the message after it. A document that is
/// sent again has a second row, and both are one item: at other budgets only one of them exists.
struct Places(BTreeMap<String, u32>);

impl Places {
    fn new(log: &Conversation, request: &PlanRequest<'_>) -> Self {
        let (mut places, mut position) = (BTreeMap::new(), 0);
        for entry in log.entries() {
            match entry {
                Entry::Message(_) => position += 1,
                Entry::Event(Event::SentWith { question, documents, .. }) => {
                    let at = question.as_ref().and_then(|id| log.position_of(id)).unwrap_or(position);
                    places.extend(documents.iter().map(|sent| (sent.id.to_string(), at)));
                }
                _ => {}
            }
        }
        places.retain(|id, _| request.rag.iter().any(|item| item.id.as_str() == *id));
        Self(places)
    }

    /// Returns the id without its position if the request repeats the document.
    fn bare(&self, id: &str) -> String {
        let Some((bare, place)) = id.split_once('@') else { return id.into() };
        let stands = self.0.get(bare.trim_start_matches("rag:")).is_some_and(|at| at.to_string() == place);
        if stands { bare.into() } else { id.into() }
    }
}

fn every_answer_agrees(life: &Life) -> Result<(), TestCaseError> {
    let manager = life.manager();
    let log = life.log(&manager);
    let request = life.request(&log);
    let Ok(plan) = manager.build_plan(&request) else { return Ok(()) };
    let places = Places::new(&log, &request);
    let mut brute = Brute::force(&manager, &request, limits(life.budget));
    brute.rename(|id| places.bare(id));
    let all = manager.explainer(&request).explain_all().unwrap();
    let name = |document: bool, id: &str| format!("{}:{id}", if document { "rag" } else { "item" });
    let names: Vec<String> = all.iter().map(|got| name(got.document, got.id.as_str())).collect();
    for (got, id) in all.iter().zip(&names) {
        let is_twice = names.iter().filter(|other| *other == id).count() > 1;
        let is_placeholder = got.id.as_str().starts_with("synth:") && !super::is_demanded(id);
        if !is_twice && !is_placeholder {
            let mut got = got.clone();
            let leaves = got.leaves_then.into_iter();
            got.leaves_then = leaves.map(|id| places.bare(id.as_str()).into()).collect();
            brute.agrees(&places.bare(id), life.budget, &got).map_err(TestCaseError::fail)?;
        }
    }
    // An explanation by id equals the one in the list of all.
    if let Some((got, id)) = all.iter().zip(&names).nth(life.budget as usize % all.len().max(1))
        && names.iter().filter(|other| *other == id).count() == 1
    {
        let alone = manager.explainer(&request).explain(id).unwrap();
        prop_assert_eq!(&alone, got, "alone, and among all");
    }
    let map = manager.explainer(&request).budget_map(usize::MAX).unwrap();
    let step = map.step(life.budget).expect("the map holds the present budget");
    prop_assert_eq!(step.total, plan.estimated_tokens_total);
    Ok(())
}

proptest! {
    #![proptest_config(generate::cases(150, 20_000))]

    #[test]
    fn counterfactuals_of_a_replayed_conversation_agree_with_planning_at_every_budget(life in life()) {
        every_answer_agrees(&life)?;
    }
}

/// Reasoning that the options drop costs nothing, also in an excluded message.
#[test]
fn dropped_reasoning_is_counted_at_no_budget() {
    let mut config = Config::default();
    config.conversation.reasoning = ReasoningPolicy::Drop;
    let model = Model::named("deepseek-chat").unwrap();
    let manager = ContextWindowManager::new(model, generate::bytes(), config).unwrap();
    let reply = Message::assistant("a".repeat(30)).with_reasoning(Reasoning::from("r".repeat(100)));
    let mut log = Conversation::from([Message::user("q"), reply, Message::user("now ".repeat(10))]);
    log.pin_message("m1", context_window::Priority::Normal).unwrap();
    let request = PlanRequest::new(&log).with_rag([RagItem::new("d", 0.9, "x".repeat(20))]);
    for budget in [60, 100, 200] {
        super::all_agree(&manager, &request, budget);
    }
    let limits = RequestLimits::prompt_budget(60).with_model_context_len(MOST).with_safety_buffer(0);
    let got = manager.explainer(&request.with_limits(limits)).explain("m1").unwrap();
    assert_eq!((got.included, got.tokens), (false, Some(30 + 12)));
}

/// If the minimum does not fit with the documents of an earlier question, they are evicted. Others are
/// included before that budget is reached.
#[test]
fn explanations_evict_documents_at_the_same_budgets_as_plans() {
    let mut config = Config::default();
    config.rag.placement = Placement::WithQuestion;
    let model = Model::named("gpt-4o").unwrap();
    let manager = ContextWindowManager::new(model, generate::bytes(), config).unwrap();
    let calls = [ToolCall::new("c", "look", "{}")];
    let mut log = Conversation::from([
        Message::user("Before that?"),
        Message::assistant("Yes."),
        Message::user("Where is it?"),
        Message::assistant("Looking.").with_tool_calls(calls),
        Message::tool("c", "x".repeat(60)),
    ]);
    log.pin(PinnedItem::new("n", "Be brief."));
    let document = RagItem::new("d", 0.5, "D".repeat(40));
    log.remember_documents("m2", [manager.sent_document(&document)]).unwrap();
    for again in [Vec::new(), vec![document]] {
        let request = PlanRequest::new(&log).with_rag(again);
        for budget in [60, 120, 150, 200, 240, 300] {
            super::all_agree(&manager, &request, budget);
        }
    }
}

/// Reasoning of unknown origin is sent if everything before it is (rule K5). At other budgets it costs
/// nothing.
#[test]
fn withheld_reasoning_is_computed_at_each_budget() {
    let model = Model::named("claude-fable-5-2").unwrap();
    let format = model.wire_format;
    let manager = ContextWindowManager::new(model, generate::bytes(), Config::default()).unwrap();
    let reply = |at: usize| {
        let thought = Reasoning::signed(format, "t".repeat(60), format!("seal{at}"));
        Message::assistant(format!("Answer {at}.")).with_reasoning(thought)
    };
    let turn = |at: usize| [Message::user(format!("Question {at}?")), reply(at)];
    let log = Conversation::from_iter((0..3).flat_map(turn).chain([Message::user("And now?")]));
    let request = PlanRequest::new(&log).with_excluded_messages();
    for budget in [30, 80, 150, 260, 400] {
        super::all_agree(&manager, &request, budget);
    }
}

/// A prompt with these documents whose reply is committed.
fn sent(budget: u64, documents: &[(usize, usize)], reply: usize) -> Step {
    Step {
        asks: None,
        beside: Beside { documents: documents.to_vec(), ..Beside::default() },
        budget,
        thinks: None,
        reply,
        result: None,
        is_committed: true,
        is_pinned: false,
    }
}

/// A message of the user, and a reply without a known prompt.
fn said(asks: usize, reply: usize) -> Step {
    Step { asks: Some(asks), is_committed: false, ..sent(150, &[], reply) }
}

fn small_marks(question_limit: u16) -> Config {
    let mut config = Config::default();
    (config.conversation.low_mark, config.rag.question_limit) = (1, question_limit);
    (config.rag.fill, config.sections.pins_limit) = (RagFill::Prefix, 0);
    config
}

/// A document whose retained copy left in one round competes in the next one. The copy does not come back
/// beside it, although withheld reasoning frees tokens for it.
#[test]
fn a_text_that_left_does_not_come_back_beside_its_copy() {
    let mut config = small_marks(100);
    config.rag.leave = Leave::AtCut;
    let life = Life {
        model: "claude-fable-5-2",
        config,
        steps: vec![
            sent(1_049, &[(3, 0)], 1),
            Step { thinks: Some(21), ..said(44, 11) },
            Step { thinks: Some(72), ..sent(204, &[], 56) },
        ],
        asks: None,
        beside: sent(304, &[(3, 0), (0, 0)], 0).beside,
        budget: 304,
    };
    every_answer_agrees(&life).unwrap();
    // The text leaves with the notice about it, also in the round that sends it again.
    let (manager, log) = (life.manager(), life.log(&life.manager()));
    let plan = manager.build_plan(&life.request(&log)).unwrap();
    let has_left = plan.notices.iter().any(|notice| notice.code == NoticeCode::DocumentsReleased);
    assert!(has_left, "{:?}", plan.notices);
}

/// A text has two old copies, because the first had left when the second was sent. If the second has left,
/// too, a pin does not bring the first back beside the new one.
#[test]
fn a_pin_does_not_bring_an_older_copy_back() {
    let first =
        Step { thinks: Some(60), result: Some(73), is_pinned: true, ..sent(494, &[(1, 0), (2, 0)], 6) };
    let second = Step { asks: Some(8), result: Some(167), ..sent(454, &[(0, 18), (1, 0), (4, 0)], 0) };
    let mut steps = vec![first, second, Step { asks: Some(39), ..sent(150, &[], 0) }];
    steps[0].beside.state = Some(20);
    let mut config = small_marks(299);
    config.rag.leave = Leave::AtCut;
    let beside = sent(1, &[(1, 0)], 0).beside;
    let life = Life { model: "claude-fable-5-2", config, steps, asks: None, beside, budget: 1 };
    every_answer_agrees(&life).unwrap();
    let log = life.log(&life.manager());
    // The pin has room here.
    let plan = life.manager().build_plan(&life.request(&log).with_limits(limits(495))).unwrap();
    let rows =
        |id: &str| plan.included.iter().filter(|row| row.id.as_str().split('@').next() == Some(id)).count();
    assert_eq!((rows("m0"), rows("d1")), (1, 1), "{:?}", plan.included);
}

/// A caller that keeps the anchor but not the sent texts brings the documents again. At a budget that holds
/// them, they come before their question, and a note does not wait for the next one.
#[test]
fn a_note_that_waits_is_included_where_documents_are_not_given_up() {
    let mut steps = vec![said(58, 0), sent(150, &[], 0), sent(1_128, &[(4, 0), (2, 38)], 25)];
    steps[2].beside.system = Some(20);
    let mut beside = sent(1, &[(4, 0)], 0).beside;
    (beside.state, beside.note) = (Some(20), Some((1, true)));
    let mut config = small_marks(160);
    (config.rag.leave, config.rag.placement) = (Leave::AtCut, Placement::WithQuestion);
    let life = Life { model: "deepseek-chat", config, steps, asks: None, beside, budget: 1 };
    every_answer_agrees(&life).unwrap();
    let log = life.log(&life.manager());
    let plan = life.manager().build_plan(&life.request(&log)).unwrap();
    let waits = |row: &ExcludedItem| format!("{:?}", row.reason).contains("NextQuestion");
    assert!(plan.excluded.iter().any(waits), "{:?}", plan.excluded);
}

/// A pin that has no room in one round, and has in the next, does not bring the texts before it back beside
/// their copies.
#[test]
fn a_pin_does_not_bring_a_text_back_beside_its_copy() {
    let pinned = Step { thinks: Some(39), is_pinned: true, ..sent(559, &[(2, 0), (4, 0)], 53) };
    let mut calls = Step { asks: Some(4), result: Some(28), ..sent(150, &[], 2) };
    calls.beside.state = Some(20);
    let life = Life {
        model: "claude-fable-5-2",
        config: small_marks(253),
        steps: vec![said(27, 0), pinned, calls],
        asks: Some(53),
        beside: sent(539, &[(2, 0), (3, 0)], 0).beside,
        budget: 539,
    };
    every_answer_agrees(&life).unwrap();
}
