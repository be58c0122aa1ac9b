//! `plan-inspect eval`: asks the questions of sessions under several policies and budgets, and shows how much
//! of the evidence is in the prompts.

mod journal;
mod table;

use crate::stdout::print;
use crate::{
    args::{Compactions, Eval, EvalFormat, Screen},
    input, json,
    output::Outputs,
    progress::Progress,
    stderr,
};
use anyhow::{Context, Result, bail, ensure};
use context_window::{Config, ContextWindowManager, Model, config::ConfigLayers};
use context_window_eval::{EvalCase, Evaluation, Needles, Policy, Scores, evaluate_all};
use context_window_report as report;
use journal::{Journal, Key};
use serde_json::value::RawValue;
use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

pub(crate) fn run(args: &Eval, screen: &Screen) -> Result<ExitCode> {
    // Options and models are inputs, too: no result may replace them.
    let read = args.files.iter().cloned().chain(args.models.file()).chain(policy_files(args));
    let mut outputs = Outputs::for_inputs(read);
    let output = outputs.claim("--output", args.output.as_deref())?;
    outputs.claim("--journal", args.journal.as_deref())?;
    let evaluation = evaluation(args)?;
    let scores = scores(args, &evaluation)?;
    let text = match args.format {
        EvalFormat::Text => table::text(&scores, screen),
        EvalFormat::Json => json::indented_text(&scores.to_json()),
        EvalFormat::Csv => scores.to_csv(),
        EvalFormat::Html => page(&scores)?,
    };
    match output {
        Some(output) => output.save(&text)?,
        None => print(&text)?,
    }
    Ok(ExitCode::from(u8::from(is_under(args, &scores))))
}

/// Builds the evaluation of the flags.
fn evaluation(args: &Eval) -> Result<Evaluation> {
    let mut model = match &args.model {
        Some(name) => args.models.registry()?.model(name),
        None => Model::custom("default"),
    };
    if let Some(tokenizer) = &args.tokenizer {
        model.tokenizer = Some(tokenizer.clone());
    }
    // The manager finds the model's tokenizer, or the default one.
    let manager = ContextWindowManager::configured(model.clone(), Config::default())?;
    let mut policies = args.policies.iter().map(|name| policy(name)).collect::<Result<Vec<_>>>()?;
    policies.extend(args.baselines()?.into_iter().map(Policy::baseline));
    ensure_unique("FILES", args.files.iter().map(|path| set_name(path)))?;
    ensure_unique("--budget", args.budgets().map(report::grouped))?;
    ensure_unique("--policy and --baseline", policies.iter().map(|policy| policy.name().to_owned()))?;
    let evaluation = Evaluation::new(model, manager.counter().clone())
        .with_budgets(args.budgets())
        .with_policies(policies)
        .with_every(args.every)
        .with_costs(args.costs.terms());
    let needles = Needles::from_seed(args.seed);
    Ok(match args.needles {
        None => evaluation,
        Some(Compactions::Digest) => evaluation.with_needles(needles),
        Some(Compactions::Summary) => evaluation.with_needles(needles.with_empty_summaries()),
    })
}

/// Checks that no value occurs twice. Their results would be added into one row.
fn ensure_unique(flag: &str, values: impl Iterator<Item = String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for value in values {
        ensure!(seen.insert(value.clone()), "{flag}: {value} is given twice; expected different ones");
    }
    Ok(())
}

/// Loads a policy: `default`, a preset, or a file of options.
fn policy(name: &str) -> Result<Policy> {
    let (base, recalls) = Policy::split_suffix(name);
    let policy = if is_file(base) {
        let loaded = ConfigLayers::new().with_file(Path::new(base))?.load()?;
        let stem = Path::new(base).file_stem().unwrap_or_default();
        Policy::planner(stem.to_string_lossy(), loaded.config)
    } else if is_preset(base) {
        Policy::preset(base)?
    } else {
        let presets = Config::presets().collect::<Vec<_>>().join(", ");
        bail!("--policy {base}: no such file or preset; expected default, {presets}, or a file of options");
    };
    Ok(if recalls { policy.with_recall() } else { policy })
}

/// Checks if the name of a policy is the path of a file.
fn is_file(name: &str) -> bool {
    !is_preset(name) && Path::new(name).exists()
}

/// Checks if the name of a policy is `default` or a preset.
fn is_preset(name: &str) -> bool {
    name == "default" || Config::presets().any(|preset| preset == name)
}

/// Returns the files of options among the policies.
fn policy_files(args: &Eval) -> impl Iterator<Item = PathBuf> {
    let bases = args.policies.iter().map(|name| Policy::split_suffix(name).0);
    bases.filter(|name| is_file(name)).map(PathBuf::from)
}

/// A session, before it is evaluated.
struct Work {
    key: Key,
    json: Box<RawValue>,
    /// The name of the session in errors.
    place: String,
}

/// Evaluates the sessions of all files.
fn scores(args: &Eval, evaluation: &Evaluation) -> Result<Scores> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let settings = evaluation.settings();
    let (mut journal, known) = Journal::open(args.journal.as_deref())?;
    let mut scores = Scores::default();
    let shown = Progress::counter("evaluating sessions");
    for path in &args.files {
        let (name, set) = (input::name(path), set_name(path));
        let works =
            input::values(path)?.enumerate().take(args.first.unwrap_or(usize::MAX)).map(|(at, json)| {
                let json = json?;
                let place = format!("{name}, value {}", at + 1);
                Ok(Work { key: Key::new(&settings, json.get()), json, place })
            });
        let evaluate = |work: Work| {
            if let Some(result) = known.get(&work.key) {
                return Ok((work.key, result.clone()));
            }
            let case = EvalCase::from_json(work.json.get()).with_context(|| work.place.clone())?;
            let result = evaluation.evaluate(&case).with_context(|| work.place)?;
            Ok((work.key, result))
        };
        let mut sessions = 0;
        evaluate_all(works, threads, evaluate, |(key, result)| {
            if !known.contains_key(&key) {
                journal.add(key, &result)?;
            }
            scores.add(&set, &result);
            sessions += 1;
            shown.step();
            Ok::<_, anyhow::Error>(())
        })?;
        // No file becomes an empty table: that would look like a measurement.
        if sessions == 0 {
            bail!("{name}: no sessions; expected JSON lines, each a session with questions");
        }
    }
    Ok(scores)
}

/// Returns the name of a file without its endings.
fn set_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy().into_owned());
    // A packed file is the same set of sessions.
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

#[cfg(feature = "html")]
fn page(scores: &Scores) -> Result<String> {
    Ok(context_window_eval::page(scores)?)
}

#[cfg(not(feature = "html"))]
fn page(_: &Scores) -> Result<String> {
    crate::missing_feature::fail("--format html", "html")
}

/// Checks if a policy is below a bound of the flags, and names each of these on standard error.
fn is_under(args: &Eval, scores: &Scores) -> bool {
    let mut under = false;
    for (metric, least) in &args.fail_under {
        for row in scores.rows().iter().filter(|row| !row.is_baseline) {
            let value = row.per_mille(*metric);
            if value.is_some_and(|value| value < *least) {
                under = true;
                let value = table::percent(value);
                let least = table::percent(Some(*least));
                stderr::note(&format!(
                    "{} at {} tokens in {}: {metric} is {value} %, below {least} %",
                    report::brief(&row.policy),
                    report::grouped(row.budget),
                    report::brief(&row.set),
                ));
            }
        }
    }
    under
}
