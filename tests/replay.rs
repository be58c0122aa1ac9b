//! Real sessions step by step, each prompt remembered by the conversation (rules S5, S7): how much of the last prompt
//! the next one repeats (needs `CONTEXT_WINDOW_DATA`; skips loudly without it).
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "a test"
)]
#![cfg(feature = "openai")]

mod support;

use context_window::{
    Anchor, Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest,
    RequestLimits, Role,
};
use support::{
    data,
    laws::{self, Case},
};

/// What a run of prompts repeats, and what it could: everything of a prompt but its newest message.
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
        self.cuts += u64::from(plan.notices.iter().any(|notice| notice.rule == "S5"));
        self.cleared += u64::from(plan.notices.iter().any(|notice| notice.rule == "S7"));
        let Some(last) = last else { return };
        let pairs = plan.included.iter().zip(&last.included);
        let same = pairs.take_while(|(new, old)| new.id == old.id && new.hash() == old.hash());
        self.repeated += same.map(|(row, _)| row.tokens.n).sum::<u64>();
        let newest = plan.included.last().map_or(0, |row| row.tokens.n);
        self.repeatable += plan.included.iter().map(|row| row.tokens.n).sum::<u64>() - newest;
    }
}

/// Plans before every assistant message and commits it as the reply; a forgetful caller throws the anchor away.
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
        let mut request = PlanRequest::new(&log).limits(RequestLimits::budget(budget));
        if forgetful {
            request = request.previous(Anchor::default());
        }
        let plan = manager.build_plan(&request).unwrap();
        // The laws read every row; every prompt of a long session would take them too long.
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

/// Reuse in per mille over all steps of these sessions, by preset and budget.
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
