//! One request, solved for any budget: what `build_plan` does once, and what explanations do again and again.
//!
//! Most of a request does not depend on its budget: its candidates, what they cost, what the sections could use. A
//! [`Solver`] holds that, and finds a [`Solution`] for a budget. How tool results are sent (rule S7) changes what
//! candidates cost, so each way of sending them is a [`Scenario`] with costs of its own; the solution says which
//! scenarios were tried, the last one taken.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    message::Role,
    plan::ContextPlan,
    planner::{
        assemble::{self, PlanContext},
        budget::{Available, Budgets, SectionDemands},
        candidates::{CandidateId, Candidates, Costs, Results},
        observer::{Observer, Unobserved},
        select::{Begun, Selection, Selector, Shorter, Trails, saved_by_merging},
    },
    provider::meter::Meter,
    provider::weight::Weight,
    tokens::TokenCount,
};
use std::{cell::RefCell, rc::Rc};

/// How often a prompt that its joins push over the budget is planned again with less (rule N3).
const TRIES: u32 = 3;

/// One request, with everything that does not depend on its budget.
pub(crate) struct Solver<'p, O = Unobserved> {
    candidates: &'p Candidates<'p>,
    meter: &'p Meter,
    config: &'p Config,
    observer: O,
    /// When solving for many budgets: the largest number of available tokens among them.
    ///
    /// Costs and demands are then counted up to that number, once for all budgets, and clipping is not tried. None for
    /// one budget.
    many_budgets: Option<u64>,
    scenarios: RefCell<Vec<Rc<Scenario<'p, O>>>>,
}

/// What candidates cost, and what the sections could use, with tool results sent in one way (rule S7).
pub(crate) struct Scenario<'p, O> {
    pub(crate) costs: Costs<'p>,
    pub(crate) demands: SectionDemands,
    trails: Trails,
    observer: O,
}

/// The documents that a solution is for.
#[derive(Clone, Copy)]
enum Documents {
    AsGiven,
    /// They are yet to come, and could use whatever they get.
    Expected,
}

/// How closely the candidates are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Each candidate with its reason, as a plan has it.
    EachReason,
    /// Only what is in.
    OnlyIncluded,
}

/// A scenario, and the budgets it was given.
type Divided<'p, O> = (Rc<Scenario<'p, O>>, Budgets);

/// The scenarios that were tried, the last one taken, and what of its selection is found already.
type Divisions<'p, O> = (Vec<Divided<'p, O>>, Option<Begun>);

/// One way of sending results that was tried, what was divided for it, and what was heard of the decisions about it.
pub(crate) struct Trial<'p, O: Observer> {
    pub(crate) scenario: Rc<Scenario<'p, O>>,
    pub(crate) budgets: Budgets,
    pub(crate) heard: O::Heard,
}

/// What is in at one budget.
pub(crate) struct Solution<'p, O: Observer = Unobserved> {
    pub(crate) chosen: Selection,
    /// Every way of sending results that was tried, the last one taken.
    pub(crate) trials: Vec<Trial<'p, O>>,
    /// What is available, and might be below zero; tokens.
    pub(crate) available: i128,
    /// What of that everything takes that is in, the wrapper around documents included, less what merging state saves;
    /// tokens.
    used: i128,
}

/// A plan, and how it came about.
pub(crate) struct Attempt<'p, O: Observer = Unobserved> {
    pub(crate) plan: ContextPlan,
    pub(crate) solution: Solution<'p, O>,
    /// Whether it was planned with less than there is.
    pub(crate) withholds: bool,
}

impl<'p> Solver<'p> {
    pub(crate) fn new(candidates: &'p Candidates<'p>, meter: &'p Meter, config: &'p Config) -> Self {
        Self {
            candidates,
            meter,
            config,
            observer: Unobserved,
            many_budgets: None,
            scenarios: RefCell::default(),
        }
    }

    /// For many budgets, of which none leaves more than `most` tokens; the observer hears each decision. Clipping (rule
    /// S7) is not tried then; see `divide`.
    pub(crate) fn observed<O: Observer + Clone>(self, observer: O, most: u64) -> Solver<'p, O> {
        let Self { candidates, meter, config, .. } = self;
        Solver {
            candidates,
            meter,
            config,
            observer,
            many_budgets: Some(most),
            scenarios: RefCell::default(),
        }
    }
}

impl<'p, O: Observer + Clone> Solver<'p, O> {
    /// From the candidates to the plan: the stages budget, select, assemble, conform and ledger.
    ///
    /// What a prompt takes beside its items is partly known only once it is put together: joins, and messages that the
    /// provider requires. Where that pushes it over the budget, it is planned again with so much less, [`TRIES`] times at
    /// the most (rules N3, H5).
    pub(crate) fn plan(&self, context: &PlanContext<'_>) -> Result<Attempt<'p, O>, Error> {
        let (candidates, meter) = (self.candidates, self.meter);
        let (mut withheld, mut tries) = (0, TRIES);
        loop {
            // Budget: the available tokens, divided among the sections, pins first (S2, B4, B5), with results as short as
            // they have to be (S7).
            let available = self.available(context, context.prompt_budget, withheld);
            let divisions = self.divide(available, Documents::AsGiven, Detail::EachReason)?;
            // Select: required, pinned, conversation, documents, then what is free once more (S2-S5, S8, S9, B6).
            let mut solution = self.select(available, divisions, Detail::EachReason)?;
            let (scenario, budgets) = solution.taken();
            self.selector(&scenario, Detail::EachReason).tell_why(&mut solution.chosen, &budgets)?;
            // Assemble: what was chosen, in prompt order (O1).
            let (chosen, costs) = (&solution.chosen, &scenario.costs);
            let mut draft = assemble::draft(candidates, costs, meter, chosen, context.placement)?;
            // Conform: the messages that the provider accepts (H4-H9).
            assemble::conform(&mut draft, candidates, meter, context)?;
            // Ledger: every token, what is out and why, and what would help (O2, N3, S6, U2).
            let plan = assemble::plan(context, candidates, costs, meter, &budgets, chosen, draft)?;
            match too_much(&plan, &solution, withheld).filter(|_| tries > 0) {
                Some(more) => (withheld, tries) = (more, tries - 1),
                None => return Ok(Attempt { plan, solution, withholds: withheld > 0 }),
            }
        }
    }

    /// What is included at a prompt budget: the stages budget and select.
    pub(crate) fn solve(&self, context: &PlanContext<'_>, budget: u64) -> Result<Solution<'p, O>, Error> {
        let available = self.available(context, budget, 0);
        self.select_included(available, Documents::AsGiven)
    }

    /// As if documents were to come that could use whatever they get.
    pub(crate) fn solve_expecting_documents(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
    ) -> Result<Solution<'p, O>, Error> {
        let available = Available { reserves_block: true, ..self.available(context, budget, 0) };
        self.select_included(available, Documents::Expected)
    }

    fn select_included(&self, available: Available, documents: Documents) -> Result<Solution<'p, O>, Error> {
        let detail = Detail::OnlyIncluded;
        self.select(available, self.divide(available, documents, detail)?, detail)
    }

    fn select(
        &self,
        available: Available,
        (divided, begun): Divisions<'p, O>,
        detail: Detail,
    ) -> Result<Solution<'p, O>, Error> {
        let (scenario, budgets) = &divided[divided.len() - 1];
        let chosen = self.selector(scenario, detail).choose(budgets, begun)?;
        let heard = |(scenario, budgets): Divided<'p, O>| {
            let heard = scenario.observer.take();
            Trial { scenario, budgets, heard }
        };
        let trials = divided.into_iter().map(heard).collect();
        let block = if chosen.has_documents() { i128::from(available.block) } else { 0 };
        let merged = i128::from(saved_by_merging(self.candidates.index(), &available, &chosen));
        let used = chosen.used() + block - merged;
        Ok(Solution { chosen, trials, available: available.tokens, used })
    }

    /// The budgets, and the costs they were made with: where tool results have to be shorter, with those.
    fn divide(
        &self,
        available: Available,
        documents: Documents,
        detail: Detail,
    ) -> Result<Divisions<'p, O>, Error> {
        let mut results = Results::remembered(self.candidates);
        let mut divided = Vec::new();
        loop {
            let scenario = self.scenario(results, available.total())?;
            let (demands, observer) = (scenario.demands, &scenario.observer);
            let demands = match documents {
                Documents::AsGiven => demands,
                Documents::Expected => demands.with_any_documents(),
            };
            let budgets = if demands.overflow(&available, observer) {
                demands.only_minimums(available, self.config)
            } else {
                let pins = self.selector(&scenario, detail).pins_first(&available)?;
                demands.divide(available, pins, self.config, observer)
            };
            let shorter = self.selector(&scenario, detail).shorter_results(&budgets)?;
            divided.push((scenario, budgets));
            match shorter {
                Shorter::Yes(shorter) => results = shorter,
                Shorter::No(begun) => return Ok((divided, begun)),
            }
        }
    }

    fn selector<'s>(&'s self, scenario: &'s Scenario<'p, O>, detail: Detail) -> Selector<'s, O> {
        Selector {
            index: self.candidates.index(),
            costs: &scenario.costs,
            config: self.config,
            observer: &scenario.observer,
            trails: &scenario.trails,
            lays_out_pins: detail == Detail::OnlyIncluded,
        }
    }

    /// The costs with results sent like this, and what the sections could use of `total`: found once for all budgets that
    /// are asked about.
    fn scenario(&self, results: Results, total: u64) -> Result<Rc<Scenario<'p, O>>, Error> {
        let known = self.scenarios.borrow().iter().find(|one| *one.costs.results() == results).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let clipped = results.clips();
        let costs = Costs::new(self.candidates, self.meter, results).for_many_budgets(self.many_budgets);
        let most = self.many_budgets.unwrap_or(total);
        let demands = SectionDemands::of(most, self.config, self.candidates.index(), &costs)?;
        let (trails, observer) = (Trails::default(), self.observer.clone());
        let scenario = Rc::new(Scenario { costs, demands, trails, observer });
        if !clipped {
            self.scenarios.borrow_mut().push(Rc::clone(&scenario));
        }
        Ok(scenario)
    }

    /// What a document may take of all that a solution leaves; tokens.
    pub(crate) fn left_for_documents(&self, solution: &Solution<'p, O>) -> u64 {
        let (scenario, budgets) = solution.taken();
        self.selector(&scenario, Detail::OnlyIncluded)
            .left_for_documents(&budgets.available, &solution.chosen)
    }

    /// What a candidate costs, counted no further than to `limit` tokens.
    pub(crate) fn cost(&self, id: CandidateId, limit: u64) -> Result<TokenCount, Error> {
        let results = Results::remembered(self.candidates);
        Ok(match self.scenario(results, limit)?.costs.weigh(id, limit)? {
            Weight::Exactly(n) => {
                let log = self.candidates.log();
                let messages = self.candidates.members(id).into_iter().map(|at| log.message(at));
                let certainty =
                    messages.map(|message| self.meter.counted_message(message, n).certainty).max();
                certainty.map_or_else(|| self.meter.counted(n), |certainty| TokenCount { n, certainty })
            }
            Weight::Over => TokenCount { n: limit.saturating_add(1), certainty: self.meter.at_least() },
        })
    }

    pub(crate) fn config(&self) -> &'p Config {
        self.config
    }

    fn available(&self, context: &PlanContext<'_>, budget: u64, withheld: u64) -> Available {
        let index = self.candidates.index();
        let merged = if index.state_comes_last { index.states() } else { 0 };
        Available {
            tokens: context.total(budget) - i128::from(withheld),
            block: self.meter.block(),
            reserves_block: index.competing_documents().next().is_some(),
            merge: self.meter.saved_by_merging(Role::User) * merged,
            caps: Section::ALL.map(|section| self.config.sections.of(section).cap),
        }
    }
}

impl<'p, O: Observer> Solution<'p, O> {
    /// The scenario that was taken, and its budgets.
    fn taken(&self) -> Divided<'p, O> {
        let taken = &self.trials[self.trials.len() - 1];
        (Rc::clone(&taken.scenario), taken.budgets)
    }

    /// What the documents' share holds, and no more than their budget; tokens.
    pub(crate) fn document_share(&self) -> u64 {
        self.trials[self.trials.len() - 1].budgets.document_share()
    }

    /// Documents and state before this position are not sent (rule S10).
    pub(crate) fn released_before(&self) -> u32 {
        self.trials[self.trials.len() - 1].scenario.costs.results().released_before
    }

    /// Whether only the minimum is included, because it exceeds the budget.
    pub(crate) fn is_minimal(&self) -> bool {
        self.trials[self.trials.len() - 1].budgets.overflow
    }

    /// Available tokens not used; may be negative.
    pub(crate) fn left(&self) -> i128 {
        self.available - self.used
    }
}

/// How many tokens to withhold next, where a prompt that holds more than the minimum is over its budget by what is known
/// only once it is put together.
fn too_much<O: Observer>(plan: &ContextPlan, solution: &Solution<'_, O>, withheld: u64) -> Option<u64> {
    let excess = plan.overflow_tokens();
    let required = plan.included.iter().filter(|row| row.kind.is_required_by_provider());
    let required: u64 = required.map(|row| row.tokens.n).sum();
    (excess > 0 && !solution.is_minimal()).then(|| withheld.saturating_add(excess).max(required))
}

/// Selections of many budgets against those of each budget by itself, which look at every pin and every message.
#[cfg(test)]
mod tests {
    use crate::{
        config::{Config, ToolResults},
        conversation::Conversation,
        item::{PinnedItem, Priority, RagItem, Ttl},
        message::{Message, ToolCall},
        plan::Anchor,
        planner::{
            candidates::CandidateId,
            manager::ContextWindowManager,
            observer::{Constraint, Observer},
            request::PlanRequest,
            select::visited,
            solve::Solution,
        },
        provider::model::{Model, RequestLimits},
        tokens::TokenCounter,
    };
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The largest budget: less than some of these conversations need.
    const MOST: u64 = 700;

    const CASES: u32 = match option_env!("SELECTIONS") {
        Some(_) => 10_000,
        None => 60,
    };

    /// Hears nothing, and leaves it to the selection how it walks.
    #[derive(Clone)]
    struct Deaf;

    impl Observer for Deaf {
        type Heard = ();

        fn count_to(&self, _offer: Constraint, left: u64) -> u64 {
            left.max(MOST)
        }

        fn follows_the_walk(&self) -> bool {
            false
        }

        fn take(&self) {}
    }

    #[derive(Debug, Clone)]
    struct Line {
        asks: bool,
        /// A call with its result in place of an answer.
        calls: bool,
        size: usize,
        pin: Option<(Priority, bool)>,
        /// A note that is pinned after it.
        note: Option<(usize, Priority, bool)>,
    }

    #[derive(Debug, Clone)]
    struct Talk {
        lines: Vec<Line>,
        documents: Vec<usize>,
        state: Option<usize>,
        /// Where the last prompt's window started.
        start: Option<usize>,
        /// Per mille: the limit of pins, the share of their section, the low mark.
        options: (u16, u16, u16),
        cap: Option<u64>,
        budgets: Vec<u64>,
    }

    fn size() -> impl Strategy<Value = usize> {
        prop_oneof![4 => 1usize..20, 2 => 20usize..90, 1 => 90usize..400, 1 => Just(900)]
    }

    fn priority() -> impl Strategy<Value = Priority> {
        prop_oneof![2 => Just(Priority::Normal), 1 => Just(Priority::High), 1 => Just(Priority::Low)]
    }

    fn line(asks: u32, pinned: f64) -> impl Strategy<Value = Line> {
        let unlimited = || prop::bool::weighted(0.05);
        let pin = prop::option::weighted(pinned, (priority(), unlimited()));
        let note = prop::option::weighted(0.15, (size(), priority(), unlimited()));
        let asks = prop::bool::weighted(f64::from(asks) / 11.0);
        (asks, prop::bool::weighted(0.2), size(), pin, note).prop_map(|(asks, calls, size, pin, note)| Line {
            asks,
            calls,
            size,
            pin,
            note,
        })
    }

    fn talk() -> impl Strategy<Value = Talk> {
        let lines = (
            prop_oneof![Just(0u32), Just(1), Just(4), Just(10)],
            prop_oneof![Just(0.3), Just(0.8), Just(0.98)],
        )
            .prop_flat_map(|(asks, pinned)| prop::collection::vec(line(asks, pinned), 1..30));
        let limit = prop_oneof![3 => Just(500u16), 2 => 0u16..=1000];
        (
            (lines, prop::collection::vec(1usize..90, 0..4), prop::option::weighted(0.2, 1usize..40)),
            prop::option::weighted(0.3, 0usize..30),
            (limit, 0u16..=600, 1u16..=1000),
            prop::option::weighted(0.15, 0u64..300),
            prop::collection::vec(1u64..MOST, 1..40),
        )
            .prop_map(|((lines, documents, state), start, options, cap, budgets)| Talk {
                lines,
                documents,
                state,
                start,
                options,
                cap,
                budgets,
            })
    }

    impl Talk {
        fn config(&self) -> Config {
            let mut config = Config::default();
            let (limit, share, low_mark) = self.options;
            config.sections.system_pinned.pins_limit = limit;
            config.sections.system_pinned.cap = self.cap;
            (config.sections.system_pinned.share, config.sections.conversation.share) = (share, 900 - share);
            config.sections.rag.share = 100;
            config.conversation.low_mark = low_mark;
            // Results are clipped for one budget only.
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
            log
        }

        fn request<'a>(&self, log: &'a Conversation) -> PlanRequest<'a> {
            let document =
                |(at, size): (u32, &usize)| RagItem::new(format!("d{at}"), -f64::from(at), "d".repeat(*size));
            let mut request = PlanRequest::new(log)
                .with_rag((0..).zip(&self.documents).map(document))
                .with_limits(RequestLimits::budget(100).with_context_len(MOST).with_safety_buffer(0));
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

    /// What is in, and what is left.
    fn included<O: Observer>(solution: &Solution<'_, O>) -> (BTreeSet<CandidateId>, usize, i128) {
        let chosen = &solution.chosen;
        (chosen.kept.ids().collect(), chosen.documents.len(), solution.left())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]

        #[test]
        fn many_budgets_are_solved_as_each_by_itself(talk in talk()) {
            let log = talk.log();
            let request = talk.request(&log);
            let manager = manager(talk.config());
            let context = manager.context(&request).unwrap();
            let candidates = manager.candidates(&request, manager.sticky(&request, &context)).unwrap();
            let many = manager.solver(&candidates).observed(Deaf, MOST);
            let mut before: Option<(Solution<'_, Deaf>, BTreeSet<CandidateId>)> = None;
            for budget in talk.budgets.iter().copied().chain((1..MOST).step_by(13)).chain((1..MOST).rev().step_by(7)) {
                let one = manager.solver(&candidates).solve(&context, budget).unwrap();
                let found = many.solve(&context, budget).unwrap();
                prop_assert_eq!(one.is_minimal(), found.is_minimal());
                prop_assert_eq!(included(&found), included(&one), "{}", budget);
                let all = included(&one).0;
                prop_assert!(all.iter().all(|id| found.chosen.has(*id)));
                if let Some((other, its)) = &before {
                    let less: BTreeSet<_> = its.difference(&all).copied().collect();
                    let more: BTreeSet<_> = all.difference(its).copied().collect();
                    let (lost, came) =
                        (other.chosen.kept.without(&found.chosen.kept), found.chosen.kept.without(&other.chosen.kept));
                    prop_assert_eq!((lost.len(), came.len()), (less.len(), more.len()), "no key twice");
                    prop_assert_eq!(lost.into_iter().collect::<BTreeSet<_>>(), less);
                    prop_assert_eq!(came.into_iter().collect::<BTreeSet<_>>(), more);
                }
                before = Some((found, all));
            }
        }
    }

    type Asks = fn(&Conversation) -> PlanRequest<'_>;

    /// Pins of so many messages: the work of an answer among them, in nodes of the trees that find what fits.
    fn work(count: usize, request: Asks, message: impl Fn(usize) -> Message) -> u64 {
        let mut log: Conversation = (0..count).map(message).collect();
        for at in 0..count {
            let priority = [Priority::Normal, Priority::High, Priority::Low][at % 40 / 38 * (at % 3)];
            log.pin_message(format!("m{at}"), priority).unwrap();
        }
        log.push(Message::user("And now?"));
        let manager = manager(Config::default());
        let limits = RequestLimits::budget(500).with_context_len(100_000).with_safety_buffer(0);
        let request = request(&log).with_limits(limits);
        visited();
        manager.explainer(&request).explain("m5").unwrap();
        visited()
    }

    /// Each pin that comes or goes takes a selection that costs what changes: twice as many cost twice as much, and a little for
    /// the height of the trees.
    #[test]
    fn an_answer_among_twice_as_many_pins_is_twice_the_work() {
        let text = |at: usize| format!("message {at} {}", "x".repeat(at * 7 % 30));
        let both = |at: usize| {
            if at.is_multiple_of(2) { Message::user(text(at)) } else { Message::assistant(text(at)) }
        };
        let one_turn = |at: usize| if at == 0 { Message::user("Go.") } else { Message::assistant(text(at)) };
        let large = |at: usize| if at == 190 { Message::user("x".repeat(30_000)) } else { both(at) };
        let plain: Asks = |log| PlanRequest::new(log);
        let with_state: Asks = |log| PlanRequest::new(log).with_state("s", "now");
        let sticky: Asks = |log| {
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
}
