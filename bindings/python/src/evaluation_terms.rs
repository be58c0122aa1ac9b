//! The keyword arguments of an evaluation.

use crate::{
    argument::{day, list, string, type_name},
    batch::Threads,
    error::{input, raised, raised_at},
    planner::{config_text, file_text, is_toml, registered},
    work::interruptible,
};
use context_window::{
    Config, ContextWindowManager, Model,
    config::ConfigLayers,
    usage::{CacheLife, CostTerms},
};
use context_window_eval::{Baseline, Evaluation, Needles, Policy};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyDict, PyDictMethods, PyString, PyTuple},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

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
            let text = || string(&value, &name);
            match name.as_str() {
                "budgets" => terms.budgets = list(&value, &name, budget)?,
                "policies" => terms.policies = list(&value, &name, policy)?,
                "baselines" => terms.baselines = list(&value, &name, baseline)?,
                "every" => {
                    let fault = |_| input(format!("every: expected a whole number, 0 or more, not {value}"));
                    terms.every = value.extract().map_err(fault)?;
                }
                "needles" => terms.needles = seed(&value)?,
                "model" => terms.model = Some(text()?),
                "tokenizer" => terms.tokenizer = Some(value.str()?.extract()?),
                "models" => terms.models = Some(file_text(&value)?),
                "day" => terms.day = Some(day(&text()?)?),
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
        // Results of equal names and budgets would be added into one row, as if there were twice as many
        // sessions.
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
        interruptible(py, move |_| self.build())?.map_err(raised)
    }

    /// Returns the evaluation of these arguments.
    fn build(self) -> Result<Evaluation, context_window::Error> {
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

/// Returns a budget in tokens. `place` is that of the value, for errors.
fn budget(place: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    // A negative number would be a large one in an unsigned type, so the sign is read first.
    let tokens = given.extract::<i64>().ok().and_then(|tokens| u64::try_from(tokens).ok());
    let fault = || input(format!("{place}: expected a number of tokens, 1 or more, not {given}"));
    tokens.filter(|tokens| *tokens > 0).ok_or_else(fault)
}

/// Returns the baseline of a name.
fn baseline(place: &str, given: &Bound<'_, PyAny>) -> PyResult<Baseline> {
    let name: String =
        given.extract().map_err(|_| input(format!("{place}: expected a name, not {}", type_name(given))))?;
    name.parse().map_err(|error| input(format!("{place}: {error}")))
}

/// Returns the seed of needles. `True` is the tool's own seed.
fn seed(given: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    // Python's bools are numbers, so `False` would be the seed 0.
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
        return configured(&name, config_text(&options, place)?);
    }
    if given.is_instance_of::<PyDict>() {
        return configured("config", config_text(given, place)?);
    }
    let is_string = given.is_instance_of::<PyString>();
    let name = if is_string {
        given.extract()?
    } else {
        let path: PathBuf = given.extract().map_err(|_| {
            input(format!("{place}: expected a name, options, or a pair of both, not {}", type_name(given)))
        })?;
        path.to_string_lossy().into_owned()
    };
    let (base, recalls) = Policy::split_suffix(&name);
    // A path object is never the name of a preset.
    if is_string && (base == "default" || Config::presets().any(|preset| preset == base)) {
        return Policy::preset(base)
            .map(|policy| recalling(policy, recalls))
            .map_err(|error| raised_at(place, &error));
    }
    if Path::new(base).is_file() {
        let stem = Path::new(base).file_stem().unwrap_or_default().to_string_lossy();
        let options = file_text(PyString::new(given.py(), base).as_any())?;
        return configured(&stem, options).map(|policy| recalling(policy, recalls));
    }
    // Checked last: a path can contain characters of TOML.
    if is_toml(base) {
        return configured("config", (place.to_owned(), name));
    }
    let presets = Config::presets().collect::<Vec<_>>().join(", ");
    let expected = format!("expected default, {presets}, options, or their file");
    Err(input(format!("{place}: no preset or file `{base}`; {expected}")))
}

/// Creates a policy of options as TOML. Its name may end with `+recall`.
fn configured(name: &str, (file, options): (String, String)) -> PyResult<Policy> {
    let (base, recalls) = Policy::split_suffix(name);
    let loaded = ConfigLayers::new().with_text(&file, &options).load().map_err(raised)?;
    Ok(recalling(Policy::planner(base, loaded.config), recalls))
}

/// Returns a policy, with recall if its name had the suffix.
fn recalling(policy: Policy, recalls: bool) -> Policy {
    if recalls { policy.with_recall() } else { policy }
}
