//! Evaluations of many sessions in one call, as rows of Arrow record batches.

use crate::{
    batch::{at, batches, in_parts, sessions},
    error::input,
    evaluation_terms::Terms,
    work::{Stop, interruptible},
};
use arrow_array::{ArrayRef, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use context_window_eval::{EvalCase, Evaluation};
use pyo3::{prelude::*, types::PyDict};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Evaluates one session. Returns its result as JSON, or an error.
fn result(evaluation: &Evaluation, session: Option<&str>) -> Result<String, String> {
    let text = session.ok_or("session is null; expected JSON")?;
    // A panic in one session must not lose the other rows.
    let done = catch_unwind(AssertUnwindSafe(|| {
        EvalCase::from_json(text).and_then(|case| evaluation.evaluate(&case))
    }));
    let bug = |_| "this session cannot be evaluated, because of a bug in the planner".to_owned();
    let result = done.map_err(bug)?.map_err(|error| error.to_string())?;
    serde_json::to_string(&result).map_err(|error| error.to_string())
}

/// Builds the output of a batch.
fn table(
    batch: &RecordBatch,
    evaluation: &Evaluation,
    sessions: &LargeStringArray,
    threads: usize,
    stop: &Stop,
) -> Result<RecordBatch, ArrowError> {
    let results = in_parts(batch.num_rows(), threads, |part| {
        let rows = part.take_while(|_| !stop.is_set());
        rows.map(|row| result(evaluation, at(Some(sessions), row))).collect()
    });
    // The rows of a stopped call are not wanted any more.
    let results = (0..batch.num_rows()).map(|row| results.get(row));
    let texts: StringArray = results.clone().map(|done| done.and_then(|done| done.as_deref().ok())).collect();
    let errors: StringArray = results.map(|done| done?.as_ref().err()).collect();
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    // The field is copied with its type, so that a join by id works on the output.
    if let Some((at, field)) = batch.schema_ref().column_with_name("id") {
        fields.push(field.clone());
        columns.push(Arc::clone(batch.column(at)));
    }
    for (name, column) in [("result", texts), ("error", errors)] {
        fields.push(Field::new(name, DataType::Utf8, true));
        columns.push(Arc::new(column));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Asks the questions of each session in a record batch, one session per row, as `evaluate` does. Takes the
/// keyword arguments of `evaluate` but `name`. `threads` is 1 by default.
///
/// Input columns: `session`, the JSON text of a session with questions, and as an option `id`, any value that
/// is copied to the output.
///
/// A record batch is returned as a `pyarrow.RecordBatch`. A table or a data frame is returned as a `Frame`.
///
/// Output columns:
///
/// - `id`: the value of the input.
/// - `result`: the result of the session as JSON, with a list of `cells`, one for each policy and budget.
///   `Scores.from_results` adds results up.
/// - `error`: the reason why the row has no result. Null otherwise.
#[pyfunction]
#[pyo3(signature = (batch, **options), text_signature = "(batch, *, budgets=(4096,), policies=('default',), baselines=('newest', 'langchain', 'bm25', 'best-score', 'oracle'), every=10, needles=None, model=None, tokenizer=None, models=None, day=None, hour_cache=False, threads=1)")]
pub(crate) fn evaluate_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let terms = Terms::from_arguments(options)?;
    let threads = terms.threads.unwrap_or(1);
    let (batches, shape) = batches(batch)?;
    let columns = batches.iter().map(sessions).collect::<PyResult<Vec<_>>>()?;
    let evaluation = terms.evaluation(py)?;
    // The whole batch runs without the interpreter lock.
    let made = interruptible(py, move |stop| {
        let tables = batches.iter().zip(&columns);
        let tables = tables.map(|(batch, sessions)| table(batch, &evaluation, sessions, threads, stop));
        tables.collect::<Result<Vec<_>, _>>()
    })?;
    shape.returned(py, made.map_err(|error| input(error.to_string()))?)
}
