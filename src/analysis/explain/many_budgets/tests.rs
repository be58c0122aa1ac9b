//! Compares selections for many budgets with a selection for each budget by itself, which examines every pin
//! and every message.

use super::{ManyBudgets, PinSlots, tree::tests::visited};
use crate::{
    config::{Config, ToolResults},
    conversation::Conversation,
    item::{PinnedItem, Priority, Ttl},
    message::{Message, ToolCall},
    plan::Anchor,
    planner::{
        assemble::LAID_OUT, candidates::CandidateId, manager::ContextWindowManager, replan::Replan,
        request::PlanRequest, select::Walker, solve::Solution,
    },
    provider::model::{Model, RequestLimits},
    rag::RagItem,
    tokens::TokenCounter,
};
use proptest::prelude::*;
use std::{collections::BTreeSet, rc::Rc};

/// The largest budget, in tokens. Some of these conversations need more.
const MAX_BUDGET: u64 = 700;

/// Returns the number of conversations to try: few by default, many with `FULL=1`.
fn cases() -> ProptestConfig {
    let is_full = std::env::var_os("FULL").is_some_and(|full| full == "1");
    ProptestConfig::with_cases(if is_full { 10_000 } else { 60 })
}

#[derive(Debug, Clone)]
struct TestMessage {
    asks: bool,
    /// True for a tool call with its result instead of an answer.
    calls: bool,
    size: usize,
    pin: Option<(Priority, bool)>,
    /// A note that is pinned after the line: its size, its priority, true for an unlimited TTL.
    note: Option<(usize, Priority, bool)>,
}

#[derive(Debug, Clone)]
struct TestConversation {
    lines: Vec<TestMessage>,
    documents: Vec<usize>,
    state: Option<usize>,
    /// True if the conversation ends with tool results.
    waits: bool,
    /// The line at which the last prompt's window started.
    start: Option<usize>,
    /// The limit of pins, the share of their section and the low mark, per mille.
    options: (u16, u16, u16),
    cap: Option<u64>,
    budgets: Vec<u64>,
}

fn message_size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1usize..20, 2 => 20usize..90, 1 => 90usize..400, 1 => Just(900)]
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![2 => Just(Priority::Normal), 1 => Just(Priority::High), 1 => Just(Priority::Low)]
}

fn test_message(asks: u32, pinned: f64) -> impl Strategy<Value = TestMessage> {
    let unlimited = || prop::bool::weighted(0.05);
    let pin = prop::option::weighted(pinned, (priority(), unlimited()));
    let note = prop::option::weighted(0.15, (message_size(), priority(), unlimited()));
    let asks = prop::bool::weighted(f64::from(asks) / 11.0);
    (asks, prop::bool::weighted(0.2), message_size(), pin, note)
        .prop_map(|(asks, calls, size, pin, note)| TestMessage { asks, calls, size, pin, note })
}

fn test_conversation() -> impl Strategy<Value = TestConversation> {
    let lines =
        (prop_oneof![Just(0u32), Just(1), Just(4), Just(10)], prop_oneof![Just(0.3), Just(0.8), Just(0.98)])
            .prop_flat_map(|(asks, pinned)| prop::collection::vec(test_message(asks, pinned), 1..30));
    let limit = prop_oneof![3 => Just(500u16), 2 => 0u16..=1000];
    (
        (lines, prop::collection::vec(1usize..90, 0..4), prop::option::weighted(0.2, 1usize..40)),
        (prop::option::weighted(0.3, 0usize..30), prop::bool::weighted(0.2)),
        (limit, 0u16..=600, 1u16..=1000),
        prop::option::weighted(0.15, 0u64..300),
        prop::collection::vec(1u64..MAX_BUDGET, 1..40),
    )
        .prop_map(|((lines, documents, state), (start, waits), options, cap, budgets)| {
            TestConversation { lines, documents, state, waits, start, options, cap, budgets }
        })
}

impl TestConversation {
    fn config(&self) -> Config {
        let mut config = Config::default();
        let (limit, share, low_mark) = self.options;
        config.sections.pins_limit = limit;
        config.sections.system_pinned.cap = self.cap;
        (config.sections.system_pinned.share, config.sections.conversation.share) = (share, 900 - share);
        config.sections.rag.share = 100;
        config.conversation.low_mark = low_mark;
        // Clips depend on the exact budget, so no range of budgets can share them.
        config.conversation.tool_results = ToolResults::Keep;
        config
    }

    fn log(&self) -> Conversation {
        let mut log = Conversation::new();
        for (at, line) in self.lines.iter().enumerate() {
            let text = "x".repeat(line.size);
            let id = format!("l{at}");
            if line.asks {
                log.push(Message::user(text).with_id(&*id));
            } else if line.calls {
                let call = ToolCall::new(format!("c{at}"), "f", "{}");
                log.push(Message::assistant("").with_tool_calls([call]).with_id(&*id));
                log.push(Message::tool(format!("c{at}"), text));
            } else {
                log.push(Message::assistant(text).with_id(&*id));
            }
            if let Some((priority, unlimited)) = line.pin {
                log.pin_message(&*id, priority).unwrap();
                if unlimited {
                    log.set_ttl(&*id, Ttl::Unlimited).unwrap();
                }
            }
            if let Some((size, priority, unlimited)) = line.note {
                let note = PinnedItem::new(format!("n{at}"), "n".repeat(size)).with_priority(priority);
                log.pin(if unlimited { note.with_ttl(Ttl::Unlimited) } else { note });
            }
        }
        // Tool results after the live question keep state from being merged into it.
        if self.waits {
            log.push(Message::user("q"));
            log.push(Message::assistant("").with_tool_calls([ToolCall::new("now", "f", "{}")]));
            log.push(Message::tool("now", "result"));
        }
        log
    }

    fn request<'a>(&self, log: &'a Conversation) -> PlanRequest<'a> {
        let document =
            |(at, size): (u32, &usize)| RagItem::new(format!("d{at}"), -f64::from(at), "d".repeat(*size));
        let mut request =
            PlanRequest::new(log).with_rag((0..).zip(&self.documents).map(document)).with_limits(
                RequestLimits::prompt_budget(100).with_model_context_len(MAX_BUDGET).with_safety_buffer(0),
            );
        if let Some(size) = self.state {
            request = request.with_state("s", "s".repeat(size));
        }
        if let Some(start) = self.start {
            let window_start = Some(format!("l{}", start % self.lines.len()).into());
            request = request.with_previous(Anchor { window_start, ..Anchor::default() });
        }
        request
    }
}

fn manager(config: Config) -> ContextWindowManager {
    let bytes = TokenCounter::from_fn("bytes", |text| Ok::<_, std::fmt::Error>(text.len() as u64));
    ContextWindowManager::new(Model::custom("test"), bytes, config).unwrap()
}

/// The included candidates, the number of documents among them, and the tokens that are left.
type Facts = (BTreeSet<CandidateId>, usize, i128);

/// Returns the facts of a solution that includes these candidates.
fn facts<W: Walker>(ids: impl Iterator<Item = CandidateId>, solution: &Solution<'_, W>) -> Facts {
    (ids.collect(), solution.chosen.included.documents.len(), solution.left())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn many_budgets_give_the_results_of_single_ones(test_conversation in test_conversation()) {
        let log = test_conversation.log();
        let request = test_conversation.request(&log);
        let manager = manager(test_conversation.config());
        let context = manager.context(&request).unwrap();
        let candidates = manager.candidates(&request, manager.sticky(&request, &context), &Replan::default()).unwrap();
        let pins = Rc::new(PinSlots::new(&candidates.index().pins));
        let many = manager.solver(&candidates).for_many_budgets(ManyBudgets::new(MAX_BUDGET, None, pins), MAX_BUDGET);
        let mut before: Option<(Solution<'_, ManyBudgets>, BTreeSet<CandidateId>)> = None;
        let (up, down) = ((1..MAX_BUDGET).step_by(13), (1..MAX_BUDGET).rev().step_by(7));
        for budget in test_conversation.budgets.iter().copied().chain(up).chain(down) {
            let one = manager.solver(&candidates).solve(&context, budget, 0).unwrap();
            let found = many.solve(&context, budget, 0).unwrap();
            prop_assert_eq!(one.is_minimal(), found.is_minimal());
            let of_one = facts(one.chosen.included.ids(), &one);
            prop_assert_eq!(&facts(found.chosen.included.all_ids(), &found), &of_one, "{}", budget);
            let all = of_one.0;
            prop_assert!(all.iter().all(|id| found.chosen.has(*id)));
            if let Some((other, its)) = &before {
                let less: BTreeSet<_> = its.difference(&all).copied().collect();
                let more: BTreeSet<_> = all.difference(its).copied().collect();
                let (here, there) = (&found.chosen.included, &other.chosen.included);
                let (lost, came) = (there.without(here), here.without(there));
                prop_assert_eq!((lost.len(), came.len()), (less.len(), more.len()), "no key twice");
                prop_assert_eq!(lost.into_iter().collect::<BTreeSet<_>>(), less);
                prop_assert_eq!(came.into_iter().collect::<BTreeSet<_>>(), more);
            }
            before = Some((found, all));
        }
    }
}

type RequestBuilder = fn(&Conversation) -> PlanRequest<'_>;

/// A name, the message at each place, and the messages after them.
type Kind<'k> = (&'k str, &'k dyn Fn(usize) -> Message, &'k [Message]);

/// Returns the work of an answer among `count` pinned messages, in visited nodes of the trees.
fn work(count: usize, request: RequestBuilder, message: impl Fn(usize) -> Message) -> u64 {
    work_of(count, request, message, &manager(Config::default()), &[Message::user("And now?")]).0
}

/// Returns the work of an answer among `count` pinned messages followed by `last`: the number of visited tree
/// nodes, and of whole plans.
fn work_of(
    count: usize,
    request: RequestBuilder,
    message: impl Fn(usize) -> Message,
    manager: &ContextWindowManager,
    last: &[Message],
) -> (u64, u64) {
    let mut log: Conversation = (0..count).map(message).collect();
    for at in 0..count {
        let priority = [Priority::Normal, Priority::High, Priority::Low][at % 40 / 38 * (at % 3)];
        log.pin_message(format!("m{at}"), priority).unwrap();
    }
    for message in last {
        log.push(message.clone());
    }
    let limits = RequestLimits::prompt_budget(500).with_model_context_len(100_000).with_safety_buffer(0);
    let request = request(&log).with_limits(limits);
    visited();
    LAID_OUT.take();
    manager.explainer(&request).explain("m5").unwrap();
    (visited(), LAID_OUT.take())
}

/// Checks that the work of a selection follows the changes. Each pin that comes or goes takes a selection of
/// its own, so twice as many pins take twice the work. A little more is for the height of the trees.
#[test]
fn explanation_with_twice_the_pins_is_twice_the_work() {
    let text = |at: usize| format!("message {at} {}", "x".repeat(at * 7 % 30));
    let both = |at: usize| {
        if at.is_multiple_of(2) { Message::user(text(at)) } else { Message::assistant(text(at)) }
    };
    let one_turn = |at: usize| if at == 0 { Message::user("Go.") } else { Message::assistant(text(at)) };
    let large = |at: usize| if at == 190 { Message::user("x".repeat(30_000)) } else { both(at) };
    let plain: RequestBuilder = |log| PlanRequest::new(log);
    let with_state: RequestBuilder = |log| PlanRequest::new(log).with_state("s", "now");
    let sticky: RequestBuilder = |log| {
        let window_start = Some("m50".into());
        PlanRequest::new(log).with_previous(Anchor { window_start, ..Anchor::default() })
    };
    let kinds: [(&str, [u64; 2]); 6] = [
        ("both", [200, 400].map(|count| work(count, plain, both))),
        ("questions", [200, 400].map(|count| work(count, plain, |at| Message::user(text(at))))),
        ("one turn", [200, 400].map(|count| work(count, plain, one_turn))),
        ("behind a large one", [200, 400].map(|count| work(count, plain, large))),
        ("with state", [200, 400].map(|count| work(count, with_state, both))),
        ("under a last prompt", [200, 400].map(|count| work(count, sticky, both))),
    ];
    for (kind, [some, twice]) in kinds {
        assert!(some > 0, "{kind}: the pins were looked at one by one");
        assert!(twice < some * 3, "{kind}: {some} and {twice}");
    }
}

/// Checks that a target with placeholder messages needs no plan for each budget to know their tokens.
#[test]
fn placeholder_messages_are_counted_without_a_plan_of_each_budget() {
    let text = |at: usize| format!("message {at} {}", "x".repeat(at * 7 % 30));
    let both = |at: usize| {
        if at.is_multiple_of(2) { Message::user(text(at)) } else { Message::assistant(text(at)) }
    };
    let calls = |at: usize| match at % 3 {
        0 => Message::assistant("").with_tool_calls([ToolCall::new(format!("c{at}"), "f", "{}")]),
        1 => Message::tool(format!("c{}", at - 1), text(at)),
        _ => Message::user(text(at)),
    };
    let plain: RequestBuilder = |log| PlanRequest::new(log);
    let question = [Message::user("And now?")];
    for name in ["claude-sonnet-5", "claude-3-opus", "mistral-large-latest", "gemini-2.5-pro", "gpt-4o"] {
        let work = |count: usize, message: &dyn Fn(usize) -> Message, last: &[Message]| {
            let bytes = TokenCounter::from_fn("bytes", |text| Ok::<_, std::fmt::Error>(text.len() as u64));
            let model = Model::named(name).unwrap();
            let manager = ContextWindowManager::new(model, bytes, Config::default()).unwrap();
            work_of(count, plain, message, &manager, last)
        };
        let kinds: [Kind<'_>; 3] =
            [("both", &both, &question), ("calls", &calls, &question), ("answered", &both, &[])];
        // Claude 3 trims a reply that it continues, and only a whole plan knows the result.
        let goes_on = |last: &[Message]| name == "claude-3-opus" && last.is_empty();
        for (kind, message, last) in kinds.into_iter().filter(|(.., last)| !goes_on(last)) {
            let (some, twice) = (work(200, message, last), work(400, message, last));
            assert!(some.0 > 0 && twice.0 < some.0 * 3, "{name}, {kind}: {} and {} nodes", some.0, twice.0);
            assert!(twice.1 < 5, "{name}, {kind}: {} whole plans", twice.1);
        }
    }
}

/// Checks state that no budget merges into the question, because tool results always follow it.
#[test]
fn explanation_with_state_and_results_is_linear_in_pins() {
    let text = |at: usize| format!("message {at} {}", "x".repeat(at * 7 % 30));
    let both = |at: usize| {
        if at.is_multiple_of(2) { Message::user(text(at)) } else { Message::assistant(text(at)) }
    };
    let with_state: RequestBuilder = |log| PlanRequest::new(log).with_state("s", "now");
    let last = [
        Message::user("And now?"),
        Message::assistant("").with_tool_calls([ToolCall::new("now", "f", "{}")]),
        Message::tool("now", "5 o'clock"),
    ];
    let [some, twice] =
        [200, 400].map(|count| work_of(count, with_state, both, &manager(Config::default()), &last).0);
    assert!(some > 0, "the pins were looked at one by one");
    assert!(twice < some * 3, "{some} and {twice}");
}
