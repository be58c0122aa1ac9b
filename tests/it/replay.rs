//! Replays real sessions step by step, with each prompt remembered by the conversation (rules S5, S7), and
//! measures the part of the last prompt that the next one repeats. Needs `CONTEXT_WINDOW_DATA` and reports a
//! skip without it.

use crate::support::{
    data,
    laws::{self, Case},
};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits,
    Role, plan::Anchor,
};

/// The tokens that a series of prompts repeats, and the repeatable ones: each prompt without its newest
/// message.
#[derive(Default)]
struct Totals {
    prompts: u64,
    repeated: u64,
    repeatable: u64,
    cuts: u64,
    cleared: u64,
}

impl Totals {
    fn add(&mut self, plan: &ContextPlan, last: Option<&ContextPlan>) {
        self.prompts += 1;
        self.cuts += u64::from(plan.notices.iter().any(|notice| notice.rule() == "S5"));
        self.cleared += u64::from(plan.notices.iter().any(|notice| notice.rule() == "S7"));
        let Some(last) = last else { return };
        let pairs = plan.included.iter().zip(&last.included);
        let same = pairs.take_while(|(new, old)| new.id == old.id && new.hash() == old.hash());
        self.repeated += same.map(|(row, _)| row.token_estimate.tokens).sum::<u64>();
        let newest = plan.included.last().map_or(0, |row| row.token_estimate.tokens);
        self.repeatable += plan.included.iter().map(|row| row.token_estimate.tokens).sum::<u64>() - newest;
    }
}

/// Plans before every assistant message and commits it as the reply. A forgetful caller discards the anchor.
fn replay(
    manager: &ContextWindowManager,
    config: &Config,
    messages: &[Message],
    budget: u64,
    forgetful: bool,
    totals: &mut Totals,
) {
    let mut log = Conversation::new();
    let mut last: Option<ContextPlan> = None;
    for (at, message) in messages.iter().enumerate() {
        if message.role() != Role::Assistant || log.messages().is_empty() {
            log.push(message.clone());
            continue;
        }
        let mut request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        if forgetful {
            request = request.with_previous(Anchor::default());
        }
        let plan = manager.build_plan(&request).unwrap();
        // The general properties read every row, which would take too long for every prompt of a long
        // session.
        if at % 16 == 1 {
            let messages = log.messages();
            laws::hold(&Case { manager, request: &request, messages, rag: Vec::new(), config, plan: &plan })
                .unwrap();
        }
        totals.add(&plan, last.as_ref());
        log.push_reply(&plan, message.clone(), None);
        last = Some(plan);
    }
}

/// Returns the reuse in per mille over all steps of these sessions, by preset and budget.
fn reuse(prefix: &str, budget: u64, preset: Option<&str>) -> Option<u64> {
    let config = preset.map_or_else(Config::default, |name| Config::preset(name).unwrap());
    let manager = ContextWindowManager::configured(Model::custom("default"), config.clone()).unwrap();
    let (mut totals, mut forgetful) = (Totals::default(), Totals::default());
    for file in data::files(&[prefix]) {
        for session in file.sessions().take(12) {
            let session = session.unwrap();
            replay(&manager, &config, session.log.messages(), budget, false, &mut totals);
            replay(&manager, &config, session.log.messages(), budget, true, &mut forgetful);
        }
    }
    if totals.prompts == 0 {
        return None;
    }
    let reuse = totals.repeated * 1000 / totals.repeatable.max(1);
    let without = forgetful.repeated * 1000 / forgetful.repeatable.max(1);
    assert!(reuse >= without, "{reuse} with an anchor, {without} without");
    let name = preset.unwrap_or("default");
    eprintln!(
        "{prefix} at {budget} ({name}): {} prompts, {} cut, {} with cleared results, {reuse} per mille of each repeats the last ({without} without an anchor)",
        totals.prompts, totals.cuts, totals.cleared
    );
    Some(reuse)
}

/// Each prompt of a replay equals that of a caller who plans, sends and commits. It also equals a plan of the
/// conversation at that point, continued from the prompt before.
#[test]
fn replay_equals_the_prompts_of_a_caller() {
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let mut prompts = 0;
    for name in ["support-chat", "long-talk", "overflow", "pins-ttl", "agent-parallel-tools"] {
        let text = std::fs::read_to_string(format!("examples/{name}.json")).unwrap();
        let session = context_window_formats::Session::from_json(&text).unwrap();
        for budget in [150, 300, 100_000] {
            let request = session.request().with_limits(RequestLimits::prompt_budget(budget));
            let steps: Vec<_> = manager.explainer(&request).replay().map(Result::unwrap).collect();
            assert_eq!(steps.len(), manager.explainer(&request).count_prompts());
            let mut anchor = Anchor::default();
            for (at, step) in steps.iter().enumerate() {
                let log = session.log.as_of(step.messages);
                assert_eq!(log.messages().len(), step.messages);
                assert_eq!(log.compactions().count(), step.compactions);
                let mut own = PlanRequest::new(&log)
                    .with_limits(RequestLimits::prompt_budget(budget))
                    .with_tools(&session.tools);
                if at + 1 == steps.len() {
                    own = session.request().with_limits(RequestLimits::prompt_budget(budget));
                }
                let plan = manager.build_plan(&own.with_previous(anchor)).unwrap();
                assert_eq!(
                    plan.fingerprint(),
                    step.plan.fingerprint(),
                    "{name} at {budget}, prompt {}",
                    step.prompt
                );
                anchor = plan.anchor();
                prompts += 1;
            }
            // A prompt remembered by the request affects no prompt of a replay.
            let plan =
                manager.build_plan(&request.clone().with_limits(RequestLimits::prompt_budget(140))).unwrap();
            let remembering = request.clone().with_previous(plan.anchor());
            for (step, again) in
                steps.iter().zip(manager.explainer(&remembering).replay().map(Result::unwrap))
            {
                assert_eq!(step.plan.fingerprint(), again.plan.fingerprint(), "{name} at {budget}");
            }
            let newest: Vec<_> = manager.explainer(&request).replay_newest(2).map(Result::unwrap).collect();
            assert_eq!(newest.len(), steps.len().min(2));
            let last = (steps.last().unwrap(), newest.last().unwrap());
            assert_eq!(
                (last.0.prompt, last.0.turn, last.0.messages),
                (last.1.prompt, last.1.turn, last.1.messages)
            );
        }
    }
    assert!(prompts > 60, "{prompts}");
}

/// A sent log, with provider reports and a compaction in between, replays to the sent prompts byte for byte.
/// The conversation before each of them plans to the same prompt.
#[test]
fn log_replays_to_the_sent_prompts() {
    let model = Model::custom("m");
    let counter = context_window::TokenCounter::named("chars/4").unwrap();
    let manager = ContextWindowManager::new(model, counter, Config::default()).unwrap();
    for budget in [120, 200, 4_000] {
        let limits = RequestLimits::prompt_budget(budget);
        let mut log = Conversation::from([Message::system("Be brief.")]);
        let mut sent: Vec<ContextPlan> = Vec::new();
        let mut margins = 0;
        for turn in 0..12 {
            log.push(Message::user(format!(
                "Question {turn}: how many boats came in on day {turn}, and why?"
            )));
            if turn == 5 {
                log.pin(context_window::PinnedItem::new("note", "The harbour is closed on Sundays."));
                let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits)).unwrap();
                manager.compactor().compact_without_model(&mut log, &job.unwrap()).unwrap();
            }
            if turn == 9 {
                log.start_fresh();
                log.push(Message::user("Where were we?"));
            }
            let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
            margins += u64::from(plan.calibration.is_some());
            let usage = context_window::Usage::openai(plan.estimated_tokens_total.tokens * 5 / 4 + 3, 0, 9);
            log.push_reply(
                &plan,
                Message::assistant(format!("On day {turn} it was {turn}, for the wind.")),
                usage,
            );
            sent.push(plan);
        }
        assert!(margins > 8, "reports have to matter: {margins}");
        assert_eq!(log.compactions().count(), 2);
        let request = PlanRequest::new(&log).with_limits(limits);
        let replayed: Vec<_> = manager.explainer(&request).replay().map(Result::unwrap).collect();
        assert_eq!(replayed.len(), sent.len() + 1);
        for (step, plan) in replayed.iter().zip(&sent) {
            assert_eq!(
                step.plan.fingerprint(),
                plan.fingerprint(),
                "budget {budget}, prompt {}",
                step.prompt
            );
            assert_eq!(step.plan.repeated(), plan.repeated(), "budget {budget}, prompt {}", step.prompt);
            let past = log.as_of(step.messages);
            let again = manager.build_plan(&PlanRequest::new(&past).with_limits(limits)).unwrap();
            assert_eq!(
                again.estimated_tokens_total, plan.estimated_tokens_total,
                "budget {budget}, as of {}",
                step.messages
            );
            assert_eq!(again.calibration, plan.calibration, "budget {budget}, as of {}", step.messages);
        }
    }
}

#[test]
fn real_agents_keep_most_of_every_prompt() {
    for (prefix, budget, preset, least) in [
        ("conv_claudecode", 16_000, None, 800),
        ("conv_claudecode", 16_000, Some("agent"), 800),
        ("conv_sweagent", 12_000, None, 800),
        ("conv_miniswe", 12_000, None, 800),
        ("conv_taubench", 2_000, None, 700),
    ] {
        if let Some(reuse) = reuse(prefix, budget, preset) {
            assert!(reuse >= least, "{prefix} at {budget}: {reuse}");
        }
    }
}
