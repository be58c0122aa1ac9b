//! Evaluations of policies on sessions with questions.

use crate::{
    argument::{is_single, type_name},
    error::{input, raised_at},
    evaluation_terms::Terms,
    json,
    scores::Scores,
    work::{Stop, interruptible},
};
use context_window_eval::{CaseResult, Error, EvalCase, Evaluation, evaluate_all};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use std::{num::NonZeroUsize, thread};

/// The maximum number of sessions that are read before they are evaluated.
const SESSIONS: usize = 256;

/// The maximum size of their JSON in bytes, but for the last one.
const BYTES: usize = 64 << 20;

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
/// `gold`, are read, too. A blank string is no session, so that a file may end with an empty line.
///
/// Keyword arguments:
///
/// - `name`: the name of the set of sessions in the rows.
/// - `budgets`: prompt budgets in tokens.
/// - `policies`: options of the planner: `"default"`, a preset, a dict, TOML text, a path, or a pair of a
///   name and options. With the suffix `+recall` of the name, earlier messages that a question needs come
///   back.
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
    let fault = || input(format!("sessions: expected a list of sessions, not {}", type_name(sessions)));
    let given = if is_single(sessions) { Err(fault()) } else { sessions.try_iter().map_err(|_| fault()) };
    let mut given = given?.enumerate();
    let terms = Terms::from_arguments(options)?;
    let threads = terms.threads.or_else(|| thread::available_parallelism().ok().map(NonZeroUsize::get));
    let evaluation = terms.evaluation(py)?;
    let mut results = Vec::new();
    let mut is_complete = false;
    while !is_complete {
        // The iterable may belong to this thread, so that no other one may read it.
        let (mut sessions, mut bytes) = (Vec::new(), 0);
        while sessions.len() < SESSIONS && bytes < BYTES {
            let Some((at, session)) = given.next() else {
                is_complete = true;
                break;
            };
            let json = session_json(&session?, &format!("sessions[{at}]"))?;
            bytes += json.len();
            if !json.trim().is_empty() {
                sessions.push((at, json));
            }
        }
        let (evaluation, threads) = (evaluation.clone(), threads.unwrap_or(1));
        let made = interruptible(py, move |stop| evaluated(&evaluation, sessions, threads, stop))?;
        results.extend(made.map_err(|failed| match failed {
            Some((at, error)) => raised_at(&format!("sessions[{at}]"), &error),
            // Only an interrupted call is stopped, and its exception is raised above.
            None => input("sessions: the evaluation was stopped"),
        })?);
    }
    Ok(Scores::new(name, results))
}
