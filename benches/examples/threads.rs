//! Makes 10,000 plans on one thread and on two: CPU time per plan, and total time. With `threads own`, each
//! thread has its own conversation and manager.
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
    ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits, Role,
};
use rustix::time::{ClockId, clock_gettime};
use std::{hint::black_box, thread, time::Instant};

const PLANS: usize = 10_000;

fn talk() -> Conversation {
    let message = |at: usize| {
        let role = [Role::User, Role::Assistant][at % 2];
        Message::new(role, format!("message {at} {}", "of some words about boats ".repeat(at % 40)))
    };
    Conversation::from_iter((0..999).map(message))
}

/// Returns the CPU time of the process, in us.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn main() {
    let own = std::env::args().nth(1).as_deref() == Some("own");
    let manager = || ContextWindowManager::for_model("gpt-4o").expect("in the registry");
    let limits = RequestLimits::prompt_budget(8_000);
    let document = |at: usize| RagItem::new(format!("d{at}"), at as f64, format!("{at} words ").repeat(60));
    let documents: Vec<RagItem> = (0..20).map(document).collect();
    let (shared, log) = (manager(), talk());
    let run = |threads: usize| {
        let plans = || {
            let its_own = own.then(|| (manager(), talk()));
            let (manager, log) = its_own.as_ref().map_or((&shared, &log), |(manager, log)| (manager, log));
            for _ in 0..PLANS / threads {
                let request = PlanRequest::new(log).with_rag(documents.clone()).with_limits(limits);
                black_box(manager.build_plan(&request).expect("a plan"));
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(plans))));
    };
    run(1);
    for threads in [1, 2, 1, 2, 1, 2] {
        let (from, used) = (Instant::now(), cpu());
        run(threads);
        let (plan, all) = ((cpu() - used) / PLANS as f64, from.elapsed().as_millis());
        println!("{threads} threads: {plan:.1} us of CPU time a plan, {all} ms in all");
    }
}
