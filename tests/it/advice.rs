//! Property tests of advice: a recommended change that is applied and planned again has its stated effect
//! (rule E6).

use crate::support::{
    data,
    generate::{self, Session},
};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Model, PlanRequest, RagItem, RequestLimits,
    TokenCounter,
    analysis::{Advice, AdvisedChange},
    config::{ReasoningPolicy, ToolResults},
    plan::{Kind, NoticeCode, Remedy},
};
use proptest::{prelude::*, test_runner::TestRunner};
use std::{cell::RefCell, collections::BTreeMap};

/// A plan request with the model, counter and options of its manager.
struct Case<'a> {
    model: Model,
    counter: TokenCounter,
    config: Config,
    request: PlanRequest<'a>,
}

/// Number of applications for each kind of advice.
type Applied = BTreeMap<&'static str, usize>;

impl Case<'_> {
    fn manager(&self, config: Config) -> ContextWindowManager {
        ContextWindowManager::new(self.model.clone(), self.counter.clone(), config).unwrap()
    }

    /// Applies the advice on this request's plan and each remedy of its overflow. Returns an error if one
    /// lacks its stated effect.
    fn check(&self, applied: &mut Applied) -> Result<(), String> {
        let manager = self.manager(self.config.clone());
        let Ok(plan) = manager.build_plan(&self.request) else { return Ok(()) };
        let explainer = manager.explainer(&self.request);
        if let Some(advice) = explainer.advice(&plan).map_err(|error| error.to_string())? {
            *applied.entry(name_of(advice.change)).or_default() += 1;
            self.check_advice(&plan, advice)?;
        }
        let Some(overflow) = &plan.overflow else { return Ok(()) };
        let confirmed = explainer.remedies().map_err(|error| error.to_string())?;
        let confirmed: Vec<&Remedy> = confirmed.iter().map(|one| &one.remedy).collect();
        *applied.entry("remedy").or_default() += confirmed.len();
        match confirmed == overflow.remedies.iter().collect::<Vec<_>>() {
            true => Ok(()),
            false => Err(format!("of {:?} only {confirmed:?} make it fit", overflow.remedies)),
        }
    }

    fn check_advice(&self, plan: &ContextPlan, advice: Advice) -> Result<(), String> {
        let mut config = self.config.clone();
        let mut log = self.request.log.clone();
        match advice.change {
            AdvisedChange::ClearResults { .. } => config.conversation.tool_results = ToolResults::Clear,
            AdvisedChange::LimitDocuments { max_items } => config.rag.max_items = Some(max_items),
            AdvisedChange::DropReasoning => config.conversation.reasoning = ReasoningPolicy::Drop,
            AdvisedChange::Compact { messages } => {
                let manager = self.manager(config.clone());
                let job = manager.compactor().now(&self.request).unwrap().ok_or("no compaction")?;
                let record = manager
                    .compactor()
                    .compact_without_model(&mut log, &job)
                    .map_err(|error| error.to_string())?;
                expect(record.messages_archived == messages, || format!("archives {record:?}"))?;
            }
            other => return Err(format!("{other:?} is not applied")),
        }
        let mut request = self.request.clone();
        request.log = &log;
        let manager = self.manager(config);
        let after = manager.build_plan(&request).unwrap();
        let count = |plan: &ContextPlan| match advice.change {
            AdvisedChange::ClearResults { .. } => tokens(plan, |kind| matches!(kind, Kind::ToolResults(_))),
            AdvisedChange::LimitDocuments { .. } => tokens(plan, |kind| matches!(kind, Kind::Documents(_))),
            AdvisedChange::DropReasoning => tokens(plan, |kind| *kind == Kind::Reasoning),
            _ => plan.estimated_tokens_total.tokens,
        };
        expect((advice.before, advice.after) == (count(plan), count(&after)), || {
            format!("{advice:?}, but {} become {}", count(plan), count(&after))
        })?;
        expect(advice.after * 10 <= advice.before * 9 && after.overflow.is_none(), || {
            format!("{advice:?} does not help")
        })?;
        if let AdvisedChange::ClearResults { results } = advice.change {
            let notice = after.notices.iter().find(|notice| notice.code == NoticeCode::ResultsCleared);
            let cleared = notice.map_or(0, |notice| notice.ids.len() as u64);
            expect(cleared == results, || format!("{cleared} of {results} results are stubs"))?;
        }
        // Advice that was followed is not given again.
        let again = manager.explainer(&request).advice(&after).unwrap();
        let is_same = again.is_some_and(|again| match (again.change, advice.change) {
            (AdvisedChange::Compact { .. }, _) => false,
            (again, before) => again == before,
        });
        expect(!is_same, || format!("{advice:?} is given again"))
    }
}

fn expect(holds: bool, said: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(said()) }
}

fn name_of(change: AdvisedChange) -> &'static str {
    match change {
        AdvisedChange::ClearResults { .. } => "clear",
        AdvisedChange::LimitDocuments { .. } => "documents",
        AdvisedChange::DropReasoning => "reasoning",
        AdvisedChange::Compact { .. } => "compact",
        _ => "other",
    }
}

fn tokens(plan: &ContextPlan, is: impl Fn(&Kind) -> bool) -> u64 {
    plan.composition(0).kinds.iter().filter(|(kind, _)| is(kind)).map(|(_, tokens)| tokens).sum()
}

/// Generates a session with long tool results before its question.
fn with_results() -> impl Strategy<Value = Session> {
    (generate::session(), prop::collection::vec(60usize..400, 4..9), 300u64..1_500, 0usize..3).prop_map(
        |(mut session, sizes, budget, turn)| {
            let plain = generate::Life { pin: None, ttl: None };
            let line = |role, size, calls: &[&'static str], answers| generate::Line {
                role,
                size,
                calls: calls.to_vec(),
                answers,
                life: plain.clone(),
            };
            session.lines.clear();
            for (at, size) in sizes.into_iter().enumerate() {
                if at % 3 == 0 {
                    session.lines.push(line(context_window::Role::User, 9, &[], None));
                }
                session.lines.push(line(context_window::Role::Assistant, 3, &["x"], None));
                session.lines.push(line(context_window::Role::Tool, size, &[], Some("x")));
            }
            session.lines.push(line(context_window::Role::User, 9, &[], None));
            session.budget = budget;
            (session.rag, session.notes) = (Vec::new(), Vec::new());
            session.quotes.clear();
            let before = generate::Before {
                start: turn * 7,
                set: Vec::new(),
                ranks: Vec::new(),
                joined: Vec::new(),
                same_question: false,
                cleared: None,
                forms: Vec::new(),
                variants: Vec::new(),
            };
            session.before = Some(before);
            session.config = Config::default();
            session.declares_recall = false;
            session.config.conversation.clear_at_least = 100;
            // With kept results, the window is cut so far that the prompt is nearly full.
            session.config.conversation.low_mark = 950;
            session.config.conversation.keep_results = 1;
            session
        },
    )
}

#[test]
fn advice_on_generated_sessions_has_its_stated_effect() {
    let applied = RefCell::new(Applied::new());
    let mut runner = TestRunner::new(generate::cases(3_000, 40_000));
    let sessions = prop_oneof![2 => generate::session(), 1 => generate::crowded(), 2 => with_results()];
    let ran = runner.run(&sessions, |session| {
        let log = session.log();
        let case = Case {
            model: Model::custom("test"),
            counter: generate::bytes(),
            config: session.config.clone(),
            request: session.request(&log),
        };
        case.check(&mut applied.borrow_mut()).map_err(TestCaseError::fail)
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    let applied = applied.into_inner();
    for kind in ["clear", "documents", "compact", "remedy"] {
        assert!(applied.get(kind).is_some_and(|count| *count >= 20), "{applied:?}");
    }
}

/// Checks the advice on the real sessions of the files with this prefix, at each budget.
fn check_real(prefix: &str, model: &str, budgets: &[u64], applied: &mut Applied) {
    for file in data::files(&[prefix]) {
        for session in file.sessions().take(if generate::is_full() { usize::MAX } else { 25 }) {
            let session = session.unwrap();
            let model = Model::named(model).unwrap();
            for budget in budgets {
                let documents: Vec<RagItem> = session.rag.to_vec();
                let limits = RequestLimits::prompt_budget(*budget);
                let counter = TokenCounter::chars_per_4();
                let manager =
                    ContextWindowManager::new(model.clone(), counter.clone(), Config::default()).unwrap();
                let past: Conversation = session.log.as_of(session.log.messages().len().saturating_sub(3));
                let anchor = manager.build_plan(&PlanRequest::new(&past).with_limits(limits)).ok();
                let request = PlanRequest::new(&session.log).with_rag(documents).with_limits(limits);
                let mut requests = vec![request.clone()];
                requests.extend(anchor.map(|plan| request.clone().with_previous(plan.anchor())));
                for request in requests {
                    let case = Case {
                        model: model.clone(),
                        counter: counter.clone(),
                        config: Config::default(),
                        request,
                    };
                    case.check(applied).unwrap_or_else(|error| panic!("{prefix}, {budget}: {error}"));
                }
            }
        }
    }
}

#[test]
fn advice_on_real_sessions_has_its_stated_effect() {
    if data::folder().is_none() {
        return;
    }
    let mut applied = Applied::new();
    for (prefix, model) in [
        ("conv_claudecode", "claude-sonnet-4-5"),
        ("conv_tau2", "gpt-4o"),
        ("conv_taubench", "gpt-4o"),
        ("conv_sweagent", "claude-opus-5-5"),
        ("conv_reasontool", "claude-opus-5-5"),
        ("conv_whowhen", "gpt-4o"),
        ("conv_small", "gemini-2.5-pro"),
        ("rag_cookcode", "gpt-4o"),
    ] {
        check_real(prefix, model, &[300, 3_000, 60_000], &mut applied);
    }
    for kind in ["documents", "compact", "remedy"] {
        assert!(applied.get(kind).is_some_and(|count| *count >= 5), "{applied:?}");
    }
}
