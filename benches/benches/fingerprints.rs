//! Prints one line per file of real sessions: the number of plans made from it, and a hash over their
//! fingerprints. Two versions with the same decisions print the same lines. Needs
//! `CONTEXT_WINDOW_DATA`.
//!
//! `cargo bench -p context-window-benches --bench fingerprints`
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

use context_window::{Config, ContextWindowManager, Model, RequestLimits};
use context_window_formats::SessionFile;
use std::io::Read;

/// The models with the most different rules: OpenAI's wire format, and Anthropic's with checked reasoning.
const MODELS: [&str; 2] = ["gpt-4o", "claude-fable-5-1"];
const BUDGETS: [u64; 4] = [2_000, 8_000, 30_000, 128_000];
/// Number of sessions per file; the newest prompts of each are planned.
const SESSIONS: usize = 25;
const PROMPTS: usize = 6;

fn main() {
    let Some(folder) = std::env::var_os("CONTEXT_WINDOW_DATA") else {
        println!("CONTEXT_WINDOW_DATA names no folder: nothing is planned");
        return;
    };
    let only = std::env::args().skip(1).find(|word| !word.starts_with("--")).unwrap_or_default();
    let managers = MODELS.map(|name| {
        let model = Model::named(name).expect("in the registry");
        ContextWindowManager::configured(model, Config::default()).expect("the defaults are sound")
    });
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut all = 0;
    for path in paths.iter().filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        let mut json = Vec::new();
        let packed = std::fs::read(path).expect("readable");
        flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut json).expect("gzip");
        let Ok(file) = SessionFile::new(&name, json) else { continue };
        let (mut plans, mut hash) = (0, blake3::Hasher::new());
        let mut add = |fingerprint: String| {
            plans += 1;
            hash.update(fingerprint.as_bytes());
        };
        for id in file.ids().take(SESSIONS) {
            let Ok(session) = file.session(Some(&id)) else { continue };
            for (manager, budget) in
                managers.iter().flat_map(|manager| BUDGETS.map(|budget| (manager, budget)))
            {
                let request = session.request().with_limits(RequestLimits::prompt_budget(budget));
                match manager.build_plan(&request) {
                    Ok(plan) => add(plan.fingerprint()),
                    Err(error) => add(error.to_string()),
                }
                // Each prompt continues from the one before it.
                for step in manager.explainer(&request).replay_newest(PROMPTS) {
                    match step {
                        Ok(step) => add(step.plan.fingerprint()),
                        Err(error) => add(error.to_string()),
                    }
                }
            }
        }
        println!("{name:<32}{plans:>7} plans  {}", &hash.finalize().to_hex()[..16]);
        all += plans;
    }
    println!("{:<32}{all:>7} plans", "all");
}
