//! The results of an evaluation.

use crate::{
    argument::{self, type_name},
    error::input,
    frame::Frame,
    json,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{ArrowError, Field, Schema};
use context_window_eval as eval;
use eval::{CaseResult, CellResult, QuestionResult};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::{fmt::Display, sync::Arc};

/// The shares of evidence in the prompts of each policy at each budget, from `evaluate`.
///
/// Shares are in per cent, costs in billionths of a dollar. A figure that was not measured is None.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Scores {
    name: String,
    results: Vec<CaseResult>,
    sums: eval::Scores,
}

/// The pickle of scores: the function `_scores` with its arguments.
type Pickled<'py> = (Bound<'py, PyAny>, (String, Vec<String>));

/// A type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Number,
    Percent,
    Texts,
}

/// The columns of a row of scores, in the order of `Scores.to_csv`.
const SCORES: [(&str, Kind); 22] = [
    ("set", Kind::Text),
    ("policy", Kind::Text),
    ("baseline", Kind::Flag),
    ("prompt_budget", Kind::Number),
    ("sessions", Kind::Number),
    ("questions", Kind::Number),
    ("questions_whole", Kind::Number),
    ("whole_percent", Kind::Percent),
    ("whole_low_percent", Kind::Percent),
    ("whole_high_percent", Kind::Percent),
    ("evidence_percent", Kind::Percent),
    ("evidence_items", Kind::Number),
    ("evidence_found", Kind::Number),
    ("prompts", Kind::Number),
    ("estimated_tokens_total", Kind::Number),
    ("budget_used_percent", Kind::Percent),
    ("overflows", Kind::Number),
    ("turns", Kind::Number),
    ("prefix_kept_percent", Kind::Percent),
    ("cache_hit_percent", Kind::Percent),
    ("input_cost_billionths", Kind::Number),
    ("compactions", Kind::Number),
];

/// The columns of the result of a question.
const QUESTIONS: [(&str, Kind); 12] = [
    ("session", Kind::Text),
    ("question", Kind::Number),
    ("kind", Kind::Text),
    ("policy", Kind::Text),
    ("baseline", Kind::Flag),
    ("prompt_budget", Kind::Number),
    ("evidence_items", Kind::Number),
    ("evidence_found", Kind::Number),
    ("missing", Kind::Texts),
    ("estimated_tokens_total", Kind::Number),
    ("overflow", Kind::Number),
    ("input_cost_billionths", Kind::Number),
];

impl Scores {
    pub(crate) fn new(name: String, results: Vec<CaseResult>) -> Self {
        let mut sums = eval::Scores::default();
        for result in &results {
            sums.add(&name, result);
        }
        Self { name, results, sums }
    }

    /// Returns the result of each question, by session, policy, budget and question.
    fn question_rows(&self) -> Vec<Value> {
        let cells =
            self.results.iter().flat_map(|result| result.cells.iter().map(move |cell| (result, cell)));
        let rows = cells.flat_map(|(result, cell)| {
            cell.questions.iter().map(move |question| question_row(&result.session, cell, question))
        });
        rows.collect()
    }
}

/// Returns the result of a question with the keys of [`QUESTIONS`].
fn question_row(session: &str, cell: &CellResult, question: &QuestionResult) -> Value {
    json!({
        "session": session,
        "question": question.question,
        "kind": question.kind,
        "policy": cell.policy,
        "baseline": cell.is_baseline,
        "prompt_budget": question.budget,
        "evidence_items": question.evidence,
        "evidence_found": question.evidence - question.missing.len() as u64,
        "missing": question.missing,
        "estimated_tokens_total": question.tokens,
        "overflow": question.overflow,
        "input_cost_billionths": question.cost,
    })
}

/// Reads an item of the argument `results`.
fn given_result(place: &str, given: &Bound<'_, PyAny>) -> PyResult<CaseResult> {
    // The values of pyarrow's columns are not strings themselves.
    let plain = given.getattr_opt("as_py")?.map(|plain| plain.call0()).transpose()?;
    let text = plain.as_ref().unwrap_or(given);
    let expected =
        |_| input(format!("{place}: expected a JSON string of `results`, not {}", type_name(text)));
    case_result(place, &text.extract::<String>().map_err(expected)?)
}

/// Reads the result of a session from JSON.
fn case_result(place: &str, json: &str) -> PyResult<CaseResult> {
    let fault = |error: &dyn Display| input(format!("{place}: {error}; expected a JSON string of `results`"));
    let result: CaseResult = serde_json::from_str(json).map_err(|error| fault(&error))?;
    let mut questions = result.cells.iter().flat_map(|cell| &cell.questions);
    // The sums subtract the missing items from all.
    match questions.find(|question| question.missing.len() as u64 > question.evidence) {
        Some(question) => {
            let (missing, all) = (question.missing.len(), question.evidence);
            Err(fault(&format!(
                "question {}: {missing} of {all} pieces of evidence missing",
                question.question
            )))
        }
        None => Ok(result),
    }
}

/// Builds a table of rows.
fn table(columns: &[(&str, Kind)], rows: &[Value]) -> Result<Frame, ArrowError> {
    let built: Vec<ArrayRef> = columns.iter().map(|(name, kind)| column(name, *kind, rows)).collect();
    let named = columns.iter().zip(&built);
    let fields = named.map(|((name, _), column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), built)?;
    Ok(Frame::from_batches(vec![batch], schema))
}

/// Returns the values of one column.
fn column(name: &str, kind: Kind, rows: &[Value]) -> ArrayRef {
    let values = rows.iter().map(|row| &row[name]);
    match kind {
        Kind::Text => Arc::new(values.map(Value::as_str).collect::<StringArray>()),
        Kind::Flag => Arc::new(values.map(Value::as_bool).collect::<BooleanArray>()),
        Kind::Number => Arc::new(values.map(Value::as_i64).collect::<Int64Array>()),
        Kind::Percent => Arc::new(values.map(Value::as_f64).collect::<Float64Array>()),
        Kind::Texts => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for value in values {
                let texts = value.as_array().into_iter().flatten().map(Value::as_str);
                lists.append_value(texts);
            }
            Arc::new(lists.finish())
        }
    }
}

#[pymethods]
impl Scores {
    /// The sums of each policy at each budget, as dicts with the keys of `to_json`.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, &self.sums.to_json())?.get_item("scores")
    }

    /// The result of each question for each policy at each budget, as dicts.
    ///
    /// `missing` has the ids of the evidence that is not in the prompt. `overflow` is the number of tokens
    /// above the budget. A question without evidence has 0 `evidence_items`.
    #[getter]
    fn questions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.question_rows())
    }

    /// Returns the rows as a JSON object with the key `scores`, as `plan-inspect eval --format json` prints
    /// it in several lines.
    fn to_json(&self) -> String {
        self.sums.to_json()
    }

    /// Returns the rows as CSV, with the same bytes as `plan-inspect eval --format csv`.
    fn to_csv(&self) -> String {
        self.sums.to_csv()
    }

    /// Returns the rows as a table with the columns of `to_csv`. Convert it with `to_pandas`, `to_polars` or
    /// `to_pyarrow`, or pass it to a library that reads Arrow streams.
    fn to_frame(&self) -> PyResult<Frame> {
        let object: Value =
            serde_json::from_str(&self.sums.to_json()).map_err(|error| input(error.to_string()))?;
        let rows = object["scores"].as_array().map(Vec::as_slice).unwrap_or_default();
        table(&SCORES, rows).map_err(|error| input(error.to_string()))
    }

    /// Returns the results of the questions as a table with the keys of `questions` as columns.
    fn questions_to_frame(&self) -> PyResult<Frame> {
        table(&QUESTIONS, &self.question_rows()).map_err(|error| input(error.to_string()))
    }

    /// Returns the result of each session as JSON, for `from_results`.
    fn results(&self) -> PyResult<Vec<String>> {
        let texts = self.results.iter().map(serde_json::to_string);
        texts.collect::<Result<_, _>>().map_err(|error| input(error.to_string()))
    }

    /// Adds up the results of sessions: those of `results`, or the column `result` of `evaluate_batch`.
    /// `name` is the name of the set in the rows.
    ///
    /// Raises `InputError` for a text that is not such a result, and for None, which a session has that
    /// cannot be evaluated.
    #[staticmethod]
    #[pyo3(signature = (results, *, name="sessions".to_owned()), text_signature = "(results, *, name='sessions')")]
    fn from_results(results: &Bound<'_, PyAny>, name: String) -> PyResult<Self> {
        Ok(Self::new(name, argument::list(results, "results", given_result)?))
    }

    fn __len__(&self) -> usize {
        self.sums.rows().len()
    }

    fn __repr__(&self) -> String {
        format!("Scores({:?}: {} sessions, {} rows)", self.name, self.results.len(), self.sums.rows().len())
    }

    /// Pickles the results of the sessions.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py>> {
        let again = py.import("context_window._core")?.getattr("_scores")?;
        Ok((again, (self.name.clone(), self.results()?)))
    }
}

/// Restores scores from their pickle.
#[pyfunction]
pub(crate) fn _scores(name: String, results: Vec<String>) -> PyResult<Scores> {
    let read = results.iter().map(|text| case_result("pickle of scores", text));
    Ok(Scores::new(name, read.collect::<PyResult<_>>()?))
}
