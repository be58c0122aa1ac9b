//! Plans of many sessions in one call. Sessions are rows of Arrow record batches, for engines that run Python
//! over columns.

use crate::{
    argument::type_name,
    error::{input, raised},
    frame::{self, Frame},
    planner::{Planner, config_text},
    work::{Stop, interruptible},
};
use arrow_array::{
    Array, ArrayRef, Int64Array, LargeStringArray, RecordBatch,
    builder::{Int64Builder, StringBuilder},
    cast::AsArray,
    types::Int64Type,
};
use arrow_schema::{DataType, Field, Schema};
use context_window::{ContextPlan, Error, PlanRequest, usage::CostTerms};
use context_window_formats::{FieldMap, Session};
use pyo3::{Borrowed, prelude::*};
use pyo3_arrow::{PyRecordBatch, PyTable};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The maximum number of cached planners. The sessions of one batch rarely need more than a few.
const MANAGERS: usize = 64;

/// The maximum number of threads, above the core count of any machine.
const THREADS: usize = 256;

/// The settings of the call. A row's own settings take precedence.
struct Settings {
    model: Option<String>,
    config: Option<String>,
    with_plan: bool,
    replay: bool,
}

/// The input columns of a batch.
struct Columns {
    session: LargeStringArray,
    documents: Option<LargeStringArray>,
    config: Option<LargeStringArray>,
    model: Option<LargeStringArray>,
    budget: Option<Int64Array>,
}

/// The outcome of one row.
#[derive(Default)]
struct Outcome {
    plan: Option<String>,
    fingerprint: Option<String>,
    prompts: Option<i64>,
    tokens: Option<i64>,
    reuse: Option<i64>,
    drops: Option<i64>,
    cost: Option<i64>,
    overflow: Option<i64>,
    error: Option<String>,
}

/// A cache of planners by model, tokenizer and options.
#[derive(Default)]
struct Managers(BTreeMap<[String; 4], Planner>);

impl Managers {
    /// Returns the manager for these settings, and creates it if necessary.
    fn find(&mut self, model: &str, tokenizer: Option<&str>, texts: [&str; 2]) -> Result<&Planner, Error> {
        let key = [model, tokenizer.unwrap_or_default(), texts[0], texts[1]].map(str::to_owned);
        // Clearing the whole cache keeps it bounded without tracking the order of use.
        if self.0.len() >= MANAGERS && !self.0.contains_key(&key) {
            self.0.clear();
        }
        match self.0.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => Ok(free.insert(Planner::layered(model, tokenizer, texts)?)),
        }
    }
}

impl Columns {
    fn from_batch(batch: &RecordBatch) -> PyResult<Self> {
        let budget = column(batch, "budget", &DataType::Int64, "numbers of tokens")?;
        Ok(Self {
            session: sessions(batch)?,
            documents: texts(batch, "documents")?,
            config: texts(batch, "config")?,
            model: texts(batch, "model")?,
            budget: budget.map(|budget| budget.as_primitive::<Int64Type>().clone()),
        })
    }
}

/// Returns the column `session`.
pub(crate) fn sessions(batch: &RecordBatch) -> PyResult<LargeStringArray> {
    texts(batch, "session")?.ok_or_else(|| {
        let names: Vec<&str> =
            batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        input(format!(
            "the batch has no column `session`; expected a column of JSON strings. Its columns: {}",
            names.join(", ")
        ))
    })
}

/// Returns a column of strings in one layout, whatever its layout in the batch. Returns `None` if it is
/// missing.
fn texts(batch: &RecordBatch, name: &str) -> PyResult<Option<LargeStringArray>> {
    let texts = column(batch, name, &DataType::LargeUtf8, "strings")?;
    Ok(texts.map(|texts| texts.as_string::<i64>().clone()))
}

/// Returns a column cast to `as_type`, or `None` if it is missing.
fn column(batch: &RecordBatch, name: &str, as_type: &DataType, expected: &str) -> PyResult<Option<ArrayRef>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let fault = || input(format!("column `{name}` is of type {}; expected {expected}", column.data_type()));
    // A cast alone would turn text into null numbers and anything into text, so the type is checked first.
    // A dictionary column is judged by its values.
    let of = match column.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let fits = match as_type {
        DataType::Int64 => of.is_integer(),
        _ => of.is_string(),
    };
    if !fits && !of.is_null() {
        return Err(fault());
    }
    arrow_cast::cast(column, as_type).map(Some).map_err(|_| fault())
}

/// Returns the text of a row, or `None` if the column is missing or the value is null.
pub(crate) fn at(column: Option<&LargeStringArray>, row: usize) -> Option<&str> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Plans or replays one row. Records an error if this fails.
fn outcome(
    columns: &Columns,
    row: usize,
    settings: &Settings,
    managers: &mut Managers,
    stop: &Stop,
) -> Outcome {
    // A panic in one session must not lose the other rows.
    let done = catch_unwind(AssertUnwindSafe(|| planned(columns, row, settings, managers, stop)));
    let fault = |error: String| Outcome { error: Some(error), ..Outcome::default() };
    match done {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => fault(error),
        Err(_) => fault("this session cannot be planned, because of a bug in the planner".into()),
    }
}

fn planned(
    columns: &Columns,
    row: usize,
    settings: &Settings,
    managers: &mut Managers,
    stop: &Stop,
) -> Result<Outcome, String> {
    let said = |error: context_window_formats::Error| error.to_string();
    let text = at(Some(&columns.session), row).ok_or("session is null; expected JSON")?;
    let mut session = Session::from_json(text).map_err(said)?;
    // A session may name a tokenizer file, which comes from an untrusted row and must not be opened
    // (tokenizers of session files, rule J9).
    session.check_tokenizer().map_err(said)?;
    if let Some(documents) = at(columns.documents.as_ref(), row) {
        session.rag = FieldMap::new().with_name("documents").read_hits(documents).map_err(said)?.into();
    }
    if let Some(budget) = columns.budget.as_ref().filter(|budgets| budgets.is_valid(row)) {
        let budget = u64::try_from(budget.value(row))
            .map_err(|_| "budget is negative; expected a number of tokens")?;
        session.limits.prompt_budget = Some(budget);
    }
    // The row comes first, then its session, then the argument of the call.
    let model = at(columns.model.as_ref(), row).or(session.model.as_deref()).or(settings.model.as_deref());
    let model = model.ok_or(
        "no model is specified; expected one in the session, in the column `model`, or as an argument",
    )?;
    let options = session.options.as_deref().unwrap_or_default();
    let config = at(columns.config.as_ref(), row).or(settings.config.as_deref()).unwrap_or_default();
    let manager = managers
        // The options of the call override those of the session.
        .find(model, session.tokenizer.as_deref(), [options, config])
        .map_err(|error| error.to_string())?;
    let request = session.request();
    let outcome = if settings.replay { replayed(manager, &request, stop) } else { once(manager, &request) };
    let (last, mut outcome) = outcome.map_err(|error| error.to_string())?;
    outcome.plan = settings.with_plan.then(|| last.to_json_line());
    Ok(outcome)
}

/// The totals of one plan or a replay.
struct Figures {
    tokens: u64,
    reuse: u64,
    drops: u64,
    cost: Option<u64>,
    /// The tokens over the budget. `None` if the prompt fits.
    overflow: Option<u64>,
}

impl Figures {
    fn from_plan(manager: &Planner, plan: &ContextPlan) -> Self {
        let (tokens, reuse) =
            (plan.estimated_tokens_total.tokens, plan.repeated().map_or(0, |prefix| prefix.tokens));
        let cost = manager.model().input_cost(tokens, reuse, CostTerms::default());
        // A row of excluded messages may be a run, so its count is added.
        let drops = plan.excluded.iter().map(|item| item.count).sum();
        let overflow = plan.overflow.as_ref().map(|overflow| overflow.tokens);
        Self { tokens, reuse, drops, cost: cost.map(|cost| cost.billionths), overflow }
    }
}

/// Plans the next prompt of a session.
fn once(manager: &Planner, request: &PlanRequest<'_>) -> Result<(ContextPlan, Outcome), Error> {
    let plan = manager.core().build_plan(request)?;
    let figures = Figures::from_plan(manager, &plan);
    let error = figures.overflow.map(|over| {
        let (tokens, budget) = (figures.tokens, plan.prompt_budget);
        format!("overflow: the required items need {tokens} tokens, {over} more than the budget of {budget}")
    });
    let outcome =
        Outcome { fingerprint: Some(plan.fingerprint()), error, ..Outcome::from_figures(1, &figures) };
    Ok((plan, outcome))
}

/// Plans every prompt of a session. Returns the last plan, the sums over all plans, and a hash over their
/// fingerprints.
fn replayed(
    manager: &Planner,
    request: &PlanRequest<'_>,
    stop: &Stop,
) -> Result<(ContextPlan, Outcome), Error> {
    let mut sum = Figures { tokens: 0, reuse: 0, drops: 0, cost: None, overflow: None };
    let mut hash = blake3::Hasher::new();
    let (mut prompts, mut over, mut last) = (0, 0, None);
    for step in manager.core().explainer(request).replay() {
        if stop.is_set() {
            break;
        }
        let plan = step?.plan;
        let figures = Figures::from_plan(manager, &plan);
        sum.tokens += figures.tokens;
        sum.reuse += figures.reuse;
        sum.drops += figures.drops;
        // Prompts without a price do not discard the sum of the others.
        sum.cost = figures.cost.map(|cost| sum.cost.unwrap_or(0) + cost).or(sum.cost);
        sum.overflow = figures.overflow.map(|tokens| sum.overflow.unwrap_or(0) + tokens).or(sum.overflow);
        over += u64::from(figures.overflow.is_some());
        hash.update(plan.fingerprint().as_bytes());
        prompts += 1;
        last = Some(plan);
    }
    let last = match last {
        Some(last) => last,
        // The last prompt of a replay is that of the request, so this is only a fallback.
        None => manager.core().build_plan(request)?,
    };
    let error = sum.overflow.map(|tokens| {
        format!("overflow: {over} of {prompts} prompts need more than their budget, together {tokens} tokens")
    });
    let fingerprint = Some(hash.finalize().to_hex().to_string());
    let outcome = Outcome { fingerprint, error, ..Outcome::from_figures(prompts, &sum) };
    Ok((last, outcome))
}

impl Outcome {
    fn from_figures(prompts: i64, figures: &Figures) -> Self {
        // The columns are signed; real figures are far below their limit.
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Self {
            prompts: Some(prompts),
            tokens: Some(signed(figures.tokens)),
            reuse: Some(signed(figures.reuse)),
            drops: Some(signed(figures.drops)),
            cost: figures.cost.map(signed),
            overflow: figures.overflow.map(signed),
            ..Self::default()
        }
    }
}

/// Computes the outcomes in row order, on several threads. The rows do not depend on each other.
fn outcomes(
    columns: &Columns,
    rows: usize,
    settings: &Settings,
    threads: usize,
    stop: &Stop,
) -> Vec<Outcome> {
    in_parts(rows, threads, |part| {
        // Each thread has its own cache, so the threads need no lock.
        let mut managers = Managers::default();
        part.take_while(|_| !stop.is_set())
            .map(|row| outcome(columns, row, settings, &mut managers, stop))
            .collect()
    })
}

/// Computes the values of all rows in their order, each part of the rows on its own thread.
pub(crate) fn in_parts<T: Send>(
    rows: usize,
    threads: usize,
    part: impl Fn(Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let each = rows.div_ceil(threads.clamp(1, THREADS)).max(1);
    // A single part needs no thread.
    if each >= rows {
        return part(0..rows);
    }
    let part = &part;
    std::thread::scope(|scope| {
        // The parts are contiguous and joined in order, which keeps the order of rows.
        let parts = (0..rows).step_by(each).map(|from| from..rows.min(from + each));
        let started: Vec<_> = parts.map(|rows| scope.spawn(move || part(rows))).collect();
        started.into_iter().flat_map(|one| one.join().unwrap_or_default()).collect()
    })
}

/// Builds the output batch: the ids of the input, and a column for each field of an outcome.
fn table(
    batch: &RecordBatch,
    outcomes: &[Outcome],
    settings: &Settings,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    // The field is copied with its type, so that a join by id works on the output.
    if let Some((at, field)) = batch.schema_ref().column_with_name("id") {
        fields.push(field.clone());
        columns.push(Arc::clone(batch.column(at)));
    }
    let mut text = |name: &str, of: fn(&Outcome) -> Option<&str>| {
        let mut built = StringBuilder::new();
        built.extend(outcomes.iter().map(of));
        fields.push(Field::new(name, DataType::Utf8, true));
        columns.push(Arc::new(built.finish()));
    };
    if settings.with_plan {
        text("plan", |outcome| outcome.plan.as_deref());
    }
    text("fingerprint", |outcome| outcome.fingerprint.as_deref());
    let mut number = |name: &str, of: fn(&Outcome) -> Option<i64>| {
        let mut built = Int64Builder::new();
        built.extend(outcomes.iter().map(of));
        fields.push(Field::new(name, DataType::Int64, true));
        columns.push(Arc::new(built.finish()));
    };
    if settings.replay {
        number("prompts", |outcome| outcome.prompts);
    }
    number("tokens", |outcome| outcome.tokens);
    number("reuse", |outcome| outcome.reuse);
    number("drops", |outcome| outcome.drops);
    number("cost", |outcome| outcome.cost);
    number("overflow", |outcome| outcome.overflow);
    let mut errors = StringBuilder::new();
    errors.extend(outcomes.iter().map(|outcome| outcome.error.as_deref()));
    fields.push(Field::new("error", DataType::Utf8, true));
    columns.push(Arc::new(errors.finish()));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// A number of threads. Any other value is an `InputError`.
pub(crate) struct Threads(pub(crate) usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Threads {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let threads = given.extract::<i64>().ok().and_then(|threads| usize::try_from(threads).ok());
        let fault = || input(format!("threads: expected a whole number, 1 or more, not {}", *given));
        threads.filter(|threads| *threads > 0).map(Self).ok_or_else(fault)
    }
}

/// Plans or replays the rows of batches. Raises an error if the settings or the columns are invalid.
fn run<'py>(
    py: Python<'py>,
    given: &Bound<'py, PyAny>,
    settings: Settings,
    Threads(threads): Threads,
) -> PyResult<Bound<'py, PyAny>> {
    // Invalid settings affect every row, so they raise one error before any row is planned.
    if let Some(model) = &settings.model {
        Planner::layered(model, None, [settings.config.as_deref().unwrap_or_default()]).map_err(raised)?;
    }
    let (batches, shape) = batches(given)?;
    let columns = batches.iter().map(Columns::from_batch).collect::<PyResult<Vec<_>>>()?;
    // The whole batch runs without the interpreter lock.
    let made = interruptible(py, move |stop| {
        let tables = batches.iter().zip(&columns).map(|(batch, columns)| {
            let outcomes = outcomes(columns, batch.num_rows(), &settings, threads, stop);
            table(batch, &outcomes, &settings)
        });
        tables.collect::<Result<Vec<_>, _>>()
    })?;
    shape.returned(py, made.map_err(|error| input(error.to_string()))?)
}

/// The shape of an argument, in which the result is returned.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// One record batch, which comes back as one of pyarrow, for the engines.
    Batch,
    /// Anything else comes back as a `Frame`, which needs no library.
    Table,
}

/// Reads record batches from a batch, a table or a data frame. The list is never empty.
pub(crate) fn batches(given: &Bound<'_, PyAny>) -> PyResult<(Vec<RecordBatch>, Shape)> {
    if let Ok(batch) = given.extract::<PyRecordBatch>() {
        return Ok((vec![batch.into_inner()], Shape::Batch));
    }
    let fault = |_| {
        let kind = type_name(given);
        input(format!("batch: expected a record batch of Arrow or a data frame, not a {kind}"))
    };
    let (batches, schema) = given.extract::<PyTable>().map_err(fault)?.into_inner();
    // Without a batch there is no schema of the output either.
    let batches = if batches.is_empty() { vec![RecordBatch::new_empty(schema)] } else { batches };
    Ok((batches, Shape::Table))
}

impl Shape {
    /// Returns the results of all batches.
    pub(crate) fn returned(self, py: Python<'_>, mut made: Vec<RecordBatch>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Batch => frame::to_pyarrow(py, made.remove(0)),
            Self::Table => {
                let schema = made[0].schema();
                Ok(Bound::new(py, Frame::from_batches(made, schema))?.into_any())
            }
        }
    }
}

/// Returns the options as TOML.
fn options(config: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    Ok(config.map(|given| config_text(given, "config")).transpose()?.map(|(_, text)| text))
}

/// Plans the next prompt of each session in a record batch, one session per row.
///
/// Input columns, of which only `session` is required. A row's values take precedence over the arguments:
///
/// - `session`: the JSON text of a session.
/// - `id`: any value, copied to the output.
/// - `documents`: a JSON list.
/// - `config`: options as TOML.
/// - `model`: the name of a model.
/// - `budget`: the prompt budget in tokens.
///
/// A record batch is returned as a `pyarrow.RecordBatch`. A table or a data frame is returned as a `Frame`.
///
/// Output columns. A row that cannot be planned has only an `error`:
///
/// - `id`: the value of the input.
/// - `plan`: the plan as JSON, with `plans=True`.
/// - `fingerprint`: a hash of the plan.
/// - `tokens`: the tokens of the prompt.
/// - `reuse`: the tokens of the last prompt that are repeated at the same place.
/// - `drops`: the number of excluded items.
/// - `cost`: the cost of the input in billionths of a dollar.
/// - `overflow`: the tokens over the budget, if the required items do not fit. Null otherwise.
/// - `error`: the reason why the row cannot be planned, or a text about the overflow.
#[pyfunction]
#[pyo3(signature = (batch, *, model=None, config=None, plans=true, threads=Threads(1)), text_signature = "(batch, *, model=None, config=None, plans=True, threads=1)")]
pub(crate) fn plan_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    model: Option<String>,
    config: Option<&Bound<'py, PyAny>>,
    plans: bool,
    threads: Threads,
) -> PyResult<Bound<'py, PyAny>> {
    let config = options(config)?;
    run(py, batch, Settings { model, config, with_plan: plans, replay: false }, threads)
}

/// Plans every prompt of each session in a record batch in sequence, as an application would have sent them.
///
/// The input columns are those of `plan_batch`. Output columns: `id`, `plan` (the last one, with
/// `plans=True`), `fingerprint` (a hash over those of all plans), `prompts`, sums over all prompts (`tokens`,
/// `reuse`, `drops`, `cost`, `overflow`), and `error`.
#[pyfunction]
#[pyo3(signature = (batch, *, model=None, config=None, plans=false, threads=Threads(1)), text_signature = "(batch, *, model=None, config=None, plans=False, threads=1)")]
pub(crate) fn replay_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    model: Option<String>,
    config: Option<&Bound<'py, PyAny>>,
    plans: bool,
    threads: Threads,
) -> PyResult<Bound<'py, PyAny>> {
    let config = options(config)?;
    run(py, batch, Settings { model, config, with_plan: plans, replay: true }, threads)
}
