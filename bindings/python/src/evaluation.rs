//! Evaluations of policies on sessions with questions.

use crate::{
    batch::Threads,
    error::{input, raised, raised_at},
    json,
    planner::{config_text, file_text, registered},
    scores::Scores,
    work::{Stop, interruptible},
};
use context_window::{
    Config, ContextWindowManager, Model,
    config::ConfigLayers,
    usage::{CacheLife, CostTerms},
};
use context_window_eval::{Baseline, CaseResult, Error, EvalCase, Evaluation, Needles, Policy, evaluate_all};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyDictMethods, PyString, PyTuple},
};
use std::{collections::BTreeSet, num::NonZeroUsize, path::Path, thread};

/// The maximum number of sessions that are read before they are evaluated.
const SESSIONS: usize = 256;

/// The maximum size of their JSON in bytes, but for the last one.
const BYTES: usize = 64 << 20;

/// The names of the keyword arguments of an evaluation.
const NAMES: &str = "budgets, policies, baselines, every, needles, model, tokenizer, models, day, \
    hour_cache, threads";

/// The keyword arguments of an evaluation.
pub(crate) struct Terms {
    budgets: Vec<u64>,
    policies: Vec<Policy>,
    baselines: Vec<Baseline>,
    every: usize,
    needles: Option<u64>,
    model: Option<String>,
    tokenizer: Option<String>,
    models: Option<(String, String)>,
    day: Option<String>,
    hour_cache: bool,
    pub(crate) threads: Option<usize>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            budgets: vec![4_096],
            policies: vec![Policy::planner("default", Config::default())],
            baselines: Baseline::ALL.to_vec(),
            every: 10,
            needles: None,
            model: None,
            tokenizer: None,
            models: None,
            day: None,
            hour_cache: false,
            threads: None,
        }
    }
}

impl Terms {
    /// Parses the keyword arguments. Raises a `TypeError` for an unknown name.
    pub(crate) fn from_arguments(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut terms = Self::default();
        for (name, value) in arguments.into_iter().flat_map(PyDictMethods::iter) {
            // None counts as absent, so that callers can pass optional values through.
            if value.is_none() {
                continue;
            }
            let name = name.extract::<String>()?;
            let text = || {
                let fault = |_| input(format!("{name}: expected a string, not {}", kind_name(&value)));
                value.extract::<String>().map_err(fault)
            };
            match name.as_str() {
                "budgets" => terms.budgets = listed(&value, &name, budget)?,
                "policies" => terms.policies = listed(&value, &name, policy)?,
                "baselines" => terms.baselines = listed(&value, &name, baseline)?,
                "every" => {
                    let fault = |_| input(format!("every: expected a whole number, 0 or more, not {value}"));
                    terms.every = value.extract().map_err(fault)?;
                }
                "needles" => terms.needles = seed(&value)?,
                "model" => terms.model = Some(text()?),
                "tokenizer" => terms.tokenizer = Some(value.str()?.extract()?),
                "models" => terms.models = Some(file_text(&value)?),
                "day" => terms.day = Some(text()?),
                "hour_cache" => terms.hour_cache = value.extract()?,
                "threads" => terms.threads = Some(value.extract::<Threads>()?.0),
                other => {
                    let detail =
                        format!("`{other}` is not an argument of an evaluation; expected one of {NAMES}");
                    return Err(PyTypeError::new_err(detail));
                }
            }
        }
        terms.check()?;
        Ok(terms)
    }

    /// Checks that every row of the result has its own policy and budget.
    fn check(&self) -> PyResult<()> {
        let mut budgets = BTreeSet::new();
        if let Some(twice) = self.budgets.iter().find(|budget| !budgets.insert(**budget)) {
            return Err(input(format!("budgets: {twice} is given twice")));
        }
        let policies = self.policies.iter().map(Policy::name);
        let mut names = BTreeSet::new();
        let twice =
            policies.chain(self.baselines.iter().map(|one| one.name())).find(|name| !names.insert(*name));
        if let Some(twice) = twice {
            return Err(input(format!(
                "policies: two are named `{twice}`; expected names of their own, as in (\"name\", options)"
            )));
        }
        if self.budgets.is_empty() {
            return Err(input("budgets: the list is empty; expected numbers of tokens"));
        }
        if names.is_empty() {
            return Err(input(
                "policies: the list is empty, and so are the baselines; expected at least one",
            ));
        }
        Ok(())
    }

    /// Builds the evaluation. Loading a tokenizer may take long.
    pub(crate) fn evaluation(self, py: Python<'_>) -> PyResult<Evaluation> {
        interruptible(py, move |_| self.built())?.map_err(raised)
    }

    fn built(self) -> Result<Evaluation, context_window::Error> {
        let mut model = match &self.model {
            Some(name) => registered(name, self.models.as_ref())?,
            None => Model::custom("default"),
        };
        if let Some(tokenizer) = self.tokenizer {
            model.tokenizer = Some(tokenizer);
        }
        // The manager finds the model's tokenizer, or the default one.
        let manager = ContextWindowManager::configured(model.clone(), Config::default())?;
        let life = if self.hour_cache { CacheLife::OneHour } else { CacheLife::FiveMinutes };
        let policies = self.policies.into_iter().chain(self.baselines.into_iter().map(Policy::baseline));
        let evaluation = Evaluation::new(model, manager.counter().clone())
            .with_budgets(self.budgets)
            .with_policies(policies)
            .with_every(self.every)
            .with_costs(CostTerms::default().with_day(self.day.as_deref()).with_life(life));
        Ok(match self.needles {
            Some(seed) => evaluation.with_needles(Needles::from_seed(seed)),
            None => evaluation,
        })
    }
}

/// Returns the name of a value's type, for errors.
fn kind_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

/// Checks if a value is one item, although it is iterable.
fn is_single(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyDict>()
}

/// Reads each item of a list. The place of an item is passed on for errors.
fn listed<T>(
    value: &Bound<'_, PyAny>,
    name: &str,
    read: fn(&str, &Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let items = if is_single(value) { None } else { value.try_iter().ok() };
    let items = items.ok_or_else(|| input(format!("{name}: expected a list, not {}", kind_name(value))))?;
    items.enumerate().map(|(at, item)| read(&format!("{name}[{at}]"), &item?)).collect()
}

fn budget(place: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let tokens = given.extract::<i64>().ok().and_then(|tokens| u64::try_from(tokens).ok());
    let fault = || input(format!("{place}: expected a number of tokens, 1 or more, not {given}"));
    tokens.filter(|tokens| *tokens > 0).ok_or_else(fault)
}

fn baseline(place: &str, given: &Bound<'_, PyAny>) -> PyResult<Baseline> {
    let name: String =
        given.extract().map_err(|_| input(format!("{place}: expected a name, not {}", kind_name(given))))?;
    name.parse().map_err(|error| input(format!("{place}: {error}")))
}

/// Returns the seed of needles. `True` is the tool's own seed.
fn seed(given: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if let Ok(is_wanted) = given.cast::<PyBool>() {
        return Ok(is_wanted.is_true().then_some(1));
    }
    let fault = |_| input(format!("needles: expected a seed, 0 or more, or a bool, not {given}"));
    given.extract().map(Some).map_err(fault)
}

/// Reads a policy: a name, options, or a pair of both.
fn policy(place: &str, given: &Bound<'_, PyAny>) -> PyResult<Policy> {
    if let Ok(pair) = given.cast::<PyTuple>() {
        let (name, options) = pair.extract::<(String, Bound<'_, PyAny>)>().map_err(|_| {
            input(format!("{place}: expected a pair of a name and options, as in (\"name\", {{...}})"))
        })?;
        return configured(&name, config_text(&options)?);
    }
    if given.is_instance_of::<PyDict>() {
        return configured("config", config_text(given)?);
    }
    let name: String =
        if given.is_instance_of::<PyString>() { given.extract() } else { given.str()?.extract() }?;
    let (base, retrieves) = without_suffix(&name);
    if base == "default" || Config::presets().any(|preset| preset == base) {
        return Policy::preset(base)
            .map(|policy| retrieving(policy, retrieves))
            .map_err(|error| raised_at(place, &error));
    }
    if Path::new(base).is_file() {
        let stem = Path::new(base).file_stem().unwrap_or_default().to_string_lossy();
        let options = file_text(PyString::new(given.py(), base).as_any())?;
        return configured(&stem, options).map(|policy| retrieving(policy, retrieves));
    }
    if base.contains(['=', '[', '\n']) {
        return configured("config", (place.to_owned(), name));
    }
    let presets = Config::presets().collect::<Vec<_>>().join(", ");
    let expected = format!("expected default, {presets}, options, or their file");
    Err(input(format!("{place}: no preset or file `{base}`; {expected}")))
}

/// Creates a policy of options as TOML. Its name may end with `+bm25`.
fn configured(name: &str, (file, options): (String, String)) -> PyResult<Policy> {
    let (base, retrieves) = without_suffix(name);
    let loaded = ConfigLayers::new().with_text(&file, &options).load().map_err(raised)?;
    Ok(retrieving(Policy::planner(base, loaded.config), retrieves))
}

/// Splits the suffix of retrieved turns from the name of a policy.
fn without_suffix(name: &str) -> (&str, bool) {
    name.strip_suffix("+bm25").map_or((name, false), |base| (base, true))
}

fn retrieving(policy: Policy, retrieves: bool) -> Policy {
    if retrieves { policy.with_retrieved_turns(Policy::RETRIEVED_TURNS) } else { policy }
}

/// Returns the JSON of a session.
fn session_json(given: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    if given.is_instance_of::<PyString>() {
        return given.extract().map_err(|error: PyErr| input(format!("{place}: {error}; expected JSON")));
    }
    json::dumps(given, place)
}

/// Evaluates sessions in their order. Returns the position of the first session that failed and its error, or
/// `None` if the results are not wanted any more.
fn evaluated(
    evaluation: &Evaluation,
    sessions: Vec<(usize, String)>,
    threads: usize,
    stop: &Stop,
) -> Result<Vec<CaseResult>, Option<(usize, Error)>> {
    let mut results = Vec::with_capacity(sessions.len());
    let threads = threads.min(sessions.len());
    let evaluate = |(at, json): (usize, String)| {
        if stop.is_set() {
            return Err(None);
        }
        let result = EvalCase::from_json(&json).and_then(|case| evaluation.evaluate(&case));
        result.map_err(|error| Some((at, error)))
    };
    evaluate_all(sessions.into_iter().map(Ok), threads, evaluate, |result| {
        results.push(result);
        Ok(())
    })?;
    Ok(results)
}

/// Asks the questions of sessions under several policies and budgets, and measures the share of the evidence
/// that is in the prompts. Equal arguments give equal results.
///
/// `sessions` is an iterable of dicts or JSON strings, such as the lines of a file. Each is a session with
/// `questions`, a list of dicts: `text`, `evidence` (ids of messages and documents), and as an option `after`
/// (the id of the message before the question) and `kind`. The key `qa`, and `query` with `passages` that are
/// `gold`, are read, too.
///
/// Keyword arguments:
///
/// - `name`: the name of the set of sessions in the rows.
/// - `budgets`: prompt budgets in tokens.
/// - `policies`: options of the planner: `"default"`, a preset, a dict, TOML text, a path, or a pair of a
///   name and options. With the suffix `+bm25` of the name, the best earlier turns are handed over as
///   documents.
/// - `baselines`: rules to compare with: `newest`, `langchain`, `bm25`, `best-score`, `oracle`.
/// - `every`: every k-th prompt before the questions is planned, and compacted when it is due. With 0, only
///   the questions are planned.
/// - `needles`: a seed. Facts and instructions are added to long sessions, to see if they survive
///   compactions.
/// - `model`: the model to plan for. By default, one with default limits and without a price.
/// - `tokenizer`: the name of another tokenizer or the path of a `tokenizer.json`.
/// - `models`: the path of a file of models.
/// - `day`, `hour_cache`: the terms of payment, as in `Plan.cost`.
/// - `threads`: the number of sessions that are evaluated at the same time. By default, one for each core.
///
/// Raises `InputError` for a session that cannot be read, and the planner's error for a prompt that cannot be
/// planned. The text begins with the place of the session, such as `sessions[3]`.
#[pyfunction]
#[pyo3(signature = (sessions, *, name="sessions".to_owned(), **options), text_signature = "(sessions, *, name='sessions', budgets=(4096,), policies=('default',), baselines=('newest', 'langchain', 'bm25', 'best-score', 'oracle'), every=10, needles=None, model=None, tokenizer=None, models=None, day=None, hour_cache=False, threads=None)")]
pub(crate) fn evaluate(
    py: Python<'_>,
    sessions: &Bound<'_, PyAny>,
    name: String,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Scores> {
    let fault = || input(format!("sessions: expected a list of sessions, not {}", kind_name(sessions)));
    let given = if is_single(sessions) { Err(fault()) } else { sessions.try_iter().map_err(|_| fault()) };
    let mut given = given?.enumerate();
    let terms = Terms::from_arguments(options)?;
    let threads = terms.threads.or_else(|| thread::available_parallelism().ok().map(NonZeroUsize::get));
    let evaluation = terms.evaluation(py)?;
    let mut results = Vec::new();
    loop {
        // The iterable may belong to this thread, so that no other one may read it.
        let (mut sessions, mut bytes) = (Vec::new(), 0);
        while sessions.len() < SESSIONS && bytes < BYTES {
            let Some((at, session)) = given.next() else { break };
            let json = session_json(&session?, &format!("sessions[{at}]"))?;
            bytes += json.len();
            // The last line of a file may be empty.
            if !json.trim().is_empty() {
                sessions.push((at, json));
            }
        }
        if sessions.is_empty() && bytes < BYTES {
            return Ok(Scores::new(name, results));
        }
        let (evaluation, threads) = (evaluation.clone(), threads.unwrap_or(1));
        let made = interruptible(py, move |stop| evaluated(&evaluation, sessions, threads, stop))?;
        results.extend(made.map_err(|failed| match failed {
            Some((at, error)) => raised_at(&format!("sessions[{at}]"), &error),
            // Only an interrupted call is stopped, and its exception is raised above.
            None => input("sessions: the evaluation was stopped"),
        })?);
    }
}
