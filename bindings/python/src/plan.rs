//! A plan, with its request bodies, explanations and reports.

use crate::{
    argument,
    error::{Fault, input, raised},
    explanation::{Change, Explanation},
    frame::{self, Frame},
    item::{ExcludedItem, IncludedItem, ItemMessage},
    json,
    log::{SharedLog, read, reading, shared},
    number::Number,
    planner::{MadeOf, Planner},
    request::{Asked, Beside},
    wire::{body_json, messages_json, messages_of, read_message, wire_format},
    work::{LONG, interruptible},
};
use context_window as core;
use context_window_formats::{Session, SessionTexts};
use context_window_report as report;
use core::{
    ContextPlan, PlanRequest,
    analysis::Diff,
    events::LogEvent,
    render,
    usage::{CacheLife, CostTerms},
};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyTuple},
};
use std::{collections::BTreeMap, sync::Arc};

/// The maximum number of plan rows that a notebook shows with explanations. More would take too long.
const EXPLAINED: usize = 500;

/// A planned prompt: included and excluded items, each with its reason and its tokens. `Manager.plan` creates
/// it, and it never changes.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Plan {
    made: Arc<MadePlan>,
    included: PyOnceLock<Py<PyTuple>>,
    excluded: PyOnceLock<Py<PyTuple>>,
}

/// A plan with its request, so that it can answer questions later.
pub(crate) struct MadePlan {
    inner: ContextPlan,
    planner: Planner,
    log: SharedLog,
    /// The number of log entries when the plan was made.
    entries: usize,
    asked: Asked,
}

impl MadePlan {
    pub(crate) fn core(&self) -> &ContextPlan {
        &self.inner
    }

    /// Returns the counter of the plan's tokens.
    pub(crate) fn counter(&self) -> &core::TokenCounter {
        self.planner.core().counter()
    }

    /// Returns a copy of the conversation as it was when the plan was made. A copy needs no lock while a
    /// question is answered.
    fn past(&self) -> Result<core::Conversation, core::Error> {
        let log = reading(&self.log);
        // Without new entries, a clone is cheaper than applying the entries again.
        if log.event_count() == self.entries {
            return Ok(log.clone());
        }
        core::Conversation::from_events(log.events().take(self.entries))
    }

    /// Calls `question` with the request of this plan.
    fn ask<T>(
        &self,
        question: impl FnOnce(&core::ContextWindowManager, &PlanRequest<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let past = self.past()?;
        question(self.planner.core(), &self.asked.request(&past))
    }
}

impl Plan {
    /// Plans a request.
    pub(crate) fn new(py: Python<'_>, planner: &Planner, log: &SharedLog, asked: Asked) -> PyResult<Self> {
        Self::planned(py, planner, log, asked, false, core::ContextWindowManager::build_plan)
    }

    /// Plans with the function `plan`. `smaller` is true if the plan chooses its own budget. Explanations
    /// then use that budget. Other Python threads run in the meantime, and Ctrl-C ends a long plan.
    pub(crate) fn planned(
        py: Python<'_>,
        planner: &Planner,
        log: &SharedLog,
        mut asked: Asked,
        smaller: bool,
        plan: impl FnOnce(&core::ContextWindowManager, &PlanRequest<'_>) -> Result<ContextPlan, core::Error>
        + Send
        + 'static,
    ) -> PyResult<Self> {
        let (planner, shared) = (planner.clone(), Arc::clone(log));
        let is_long_request = asked.document_bytes() >= LONG;
        let plan = move |log: &core::Conversation| {
            asked.find_recalled(log);
            // The lock is held for reading, so the log cannot change between the plan and the count of its
            // entries.
            let plan = plan(planner.core(), &asked.request(log))?;
            asked.kept.remember(log, smaller.then_some(plan.prompt_budget));
            let entries = log.event_count();
            Ok::<_, core::Error>(MadePlan { inner: plan, planner, log: shared, entries, asked })
        };
        let made = if is_long_request {
            let log = Arc::clone(log);
            interruptible(py, move |_| plan(&reading(&log)))?.map_err(raised)?
        } else {
            read(py, log, plan)?
        };
        Ok(Self { made: Arc::new(made), included: PyOnceLock::new(), excluded: PyOnceLock::new() })
    }

    pub(crate) fn made(&self) -> &Arc<MadePlan> {
        &self.made
    }

    /// Calls `question` with the request of this plan. Other Python threads run in the meantime, and Ctrl-C
    /// ends the call.
    fn answer<T: Send + 'static>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&MadePlan, &core::ContextWindowManager, &PlanRequest<'_>) -> Result<T, Fault>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let made = Arc::clone(&self.made);
        interruptible(py, move |_| made.ask(|manager, request| question(&made, manager, request)))?
            .map_err(raised)
    }
}

#[pymethods]
impl Plan {
    /// The model of the plan.
    #[getter]
    fn model(&self) -> &str {
        &self.made.inner.model
    }

    /// The provider of the model.
    #[getter]
    fn provider(&self) -> &str {
        &self.made.inner.provider
    }

    /// The wire format in which the plan is counted.
    #[getter]
    fn wire_format(&self) -> &'static str {
        self.made.inner.wire_format.name()
    }

    /// The name of the tokenizer.
    #[getter]
    fn tokenizer(&self) -> &str {
        &self.made.inner.tokenizer
    }

    /// The prompt budget in tokens.
    #[getter]
    fn prompt_budget(&self) -> u64 {
        self.made.inner.prompt_budget
    }

    /// The tokens of the prompt.
    #[getter]
    fn estimated_tokens_total(&self) -> u64 {
        self.made.inner.estimated_tokens_total.tokens
    }

    /// The certainty of the total: `exact`, an `estimate` or a bound.
    #[getter]
    fn certainty(&self) -> &'static str {
        self.made.inner.estimated_tokens_total.certainty.name()
    }

    /// The remaining tokens of the budget.
    #[getter]
    fn left_over(&self) -> u64 {
        self.made.inner.left_over()
    }

    /// The included items in prompt order.
    #[getter]
    fn included<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        // Created at the first access and cached: most callers never read all rows.
        let made = self.included.get_or_try_init(py, || {
            let items = self.made.inner.included.iter().map(IncludedItem::from_core);
            PyTuple::new(py, items.collect::<Vec<_>>()).map(Bound::unbind)
        });
        Ok(made?.bind(py))
    }

    /// The excluded items: system texts and pins, then the conversation in log order, then documents.
    #[getter]
    fn excluded<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let made = self.excluded.get_or_try_init(py, || {
            let items = self.made.inner.excluded.iter().map(ExcludedItem::from_core);
            PyTuple::new(py, items.collect::<Vec<_>>()).map(Bound::unbind)
        });
        Ok(made?.bind(py))
    }

    /// The overflow, if the required items exceed the budget: a dict of `tokens` (those over the budget),
    /// `minimum`, `conflict` and `remedies`. None otherwise.
    #[getter]
    fn overflow<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(overflow) = &self.made.inner.overflow else { return Ok(None) };
        let found = self.to_dict(py)?.get_item("overflow")?;
        // The JSON of a plan has this number beside the overflow.
        found.set_item("tokens", overflow.tokens)?;
        Ok(Some(found))
    }

    /// The notices about repairs and questions. Each is a dict of `code`, `rule`, `text` and `ids`.
    #[getter]
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.made.inner.notices)
    }

    /// The lasting rules of the user that the prompt knows, sent or not. Each is a dict of `id`, `text`,
    /// `source`, and `message` if a message says it.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.made.inner.rules())
    }

    /// The ids of the documents that a reply can cite, by their labels, with the option `rag.labels`.
    #[getter]
    fn citations(&self) -> BTreeMap<u32, String> {
        let citations = self.made.inner.citations();
        citations.labels().map(|(label, id)| (label, id.to_string())).collect()
    }

    /// Checks the citations in a reply, such as `"take 5 days" [1]`, in their order. Each is a dict of
    /// `label`, `document` (None if no document has the label), `quote` (the quoted text before the label, or
    /// None), `start` and `end` of the label in the reply, and `verdict`: `valid`, `misquoted`, `not_sent`
    /// for a document of an earlier prompt, or `unknown`.
    fn check_citations<'py>(&self, py: Python<'py>, reply: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = self.made.inner.citations().check(reply);
        // Offsets in Python count characters. Ranges ascend, so one pass over the reply finds all.
        let (mut at, mut characters) = (0, 0);
        let mut offset = |byte: usize| {
            characters += reply[at.min(byte)..byte].chars().count();
            at = byte;
            characters
        };
        let mut known = None;
        let mut rows = Vec::with_capacity(found.len());
        for one in found {
            let range = match known {
                Some((start, range)) if start == one.range.start => range,
                _ => (offset(one.range.start), offset(one.range.end)),
            };
            known = Some((one.range.start, range));
            let row = PyDict::new(py);
            row.set_item("label", one.label)?;
            row.set_item("document", one.document.map(|id| id.to_string()))?;
            row.set_item("quote", one.quote.map(|quote| &reply[quote]))?;
            row.set_item("start", range.0)?;
            row.set_item("end", range.1)?;
            row.set_item("verdict", one.verdict.name())?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// The ids of the documents in the order of the provider's `document_index`, with the option
    /// `rag.format = "native"`. A block of the application has None.
    #[getter]
    fn native_documents(&self) -> Vec<Option<String>> {
        let citations = self.made.inner.citations();
        citations.native_documents().map(|id| id.map(ToString::to_string)).collect()
    }

    /// Checks the citations that Anthropic writes beside the text of a reply, which is a message as it came
    /// (a dict with role and content). Each is a dict of `document_index`, `document` (None if the prompt has
    /// no document with this number), `cited_text` and `verdict`: `valid`, `misquoted` or `unknown`.
    fn check_native_citations<'py>(
        &self,
        py: Python<'py>,
        reply: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let json = messages_json(reply)?;
        let reply = read_message(&json, core::WireFormat::Anthropic)
            .map_err(|detail| input(format!("reply: {detail}")))?;
        let row = |one: core::analysis::NativeCitation| {
            let row = PyDict::new(py);
            row.set_item("document_index", one.document_index)?;
            row.set_item("document", one.document.map(|id| id.to_string()))?;
            row.set_item("cited_text", one.cited_text)?;
            row.set_item("verdict", one.verdict.name())?;
            Ok(row)
        };
        self.made.inner.citations().check_native(&reply).into_iter().map(row).collect()
    }

    /// The use of the context window: a dict of tokens, `percent` and `level`.
    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.made.inner.usage)
    }

    /// The tokens that belong to no item. Each entry is a dict of `what` and `tokens`.
    #[getter]
    fn overhead<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.made.inner.overhead)
    }

    /// The id of the first message of the oldest retained exchange.
    #[getter]
    fn window_start(&self) -> Option<&str> {
        self.made.inner.window_start.as_ref().map(core::ItemId::as_str)
    }

    /// The HTTP headers that parts of this prompt need.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        self.made.inner.headers.clone()
    }

    /// The hash of the whole plan. Equal plans have equal hashes.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.made.inner.fingerprint())
    }

    /// The part of the last prompt that this one repeats, and that a cache may contain: a dict of `tokens`,
    /// `of` and the difference. None for a first prompt.
    #[getter]
    fn repeated<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.made.inner.repeated().map(|prefix| json::python(py, &prefix)).transpose()
    }

    /// Returns the body of a request: messages, tools and related fields of the provider, without the model's
    /// parameters. The default format is the model's own. `breakpoints=True` marks the ends of cacheable
    /// parts.
    #[pyo3(signature = (wire_format=None, *, breakpoints=false))]
    fn body<'py>(
        &self,
        py: Python<'py>,
        wire_format: Option<&str>,
        breakpoints: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = wire_format.map(self::wire_format).transpose()?.unwrap_or(self.made.inner.wire_format);
        let json = py.detach(|| {
            let body = render::body(&self.made.inner, form);
            // Marks change the body's bytes, so they are added only on request.
            let body = if breakpoints { body.with_breakpoints(CacheLife::FiveMinutes) } else { body };
            body_json(body).to_string()
        });
        json::loads(py, &json)
    }

    /// Returns only the messages of the body. Anthropic and Gemini have a separate field for the system text:
    /// use `body` for them.
    #[pyo3(signature = (wire_format=None))]
    fn messages<'py>(&self, py: Python<'py>, wire_format: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let form = wire_format.map(self::wire_format).transpose()?.unwrap_or(self.made.inner.wire_format);
        let json = py.detach(|| messages_of(body_json(render::body(&self.made.inner, form))).to_string());
        json::loads(py, &json)
    }

    /// Returns the prompt item by item, before the provider's format joins messages. Use it for frameworks
    /// that have their own messages.
    fn by_item(&self, py: Python<'_>) -> Vec<ItemMessage> {
        py.detach(|| {
            let log = reading(&self.made.log);
            self.made.inner.by_item().into_iter().map(|item| ItemMessage::from_core(item, &log)).collect()
        })
    }

    /// Returns the anchor of this prompt as JSON, for servers that store no conversation. Pass it to the next
    /// plan as `previous`.
    fn anchor(&self) -> PyResult<String> {
        serde_json::to_string(&self.made.inner.anchor()).map_err(|error| input(error.to_string()))
    }

    /// Explains why an item is included or excluded, and at which budgets that changes. If a document and a
    /// message share an id, use `rag:ID` or `item:ID`.
    fn explain(&self, py: Python<'_>, id: String) -> PyResult<Explanation> {
        let explained =
            self.answer(py, move |_, manager, request| Ok(manager.explainer(request).explain(&id)?))?;
        Explanation::from_core(&explained)
    }

    /// Explains every item.
    fn explain_all(&self, py: Python<'_>) -> PyResult<Vec<Explanation>> {
        let explained =
            self.answer(py, |_, manager, request| Ok(manager.explainer(request).explain_all()?))?;
        explained.iter().map(Explanation::from_core).collect()
    }

    /// Compares this plan with a later one. Returns each change with the single input that causes it.
    fn diff(&self, py: Python<'_>, later: &Bound<'_, Self>) -> PyResult<Vec<Change>> {
        let later = Arc::clone(later.get().made());
        let diff = self.answer(py, move |_, manager, request| {
            let before = manager.explainer(request);
            later.ask(|manager, request| Ok(Diff::between(&before, &manager.explainer(request))?))
        })?;
        Ok(diff.changes.iter().map(Change::from_core).collect())
    }

    /// Returns the cost of the input: a dict of `billionths` of a dollar, and of the tokens `read` from a
    /// cache, `written` to it and `uncached`. Returns None if the model has no price. `day` is the date of
    /// the prices, as in `2026-11-25`.
    #[pyo3(signature = (*, day=None, hour_cache=false))]
    fn cost<'py>(
        &self,
        py: Python<'py>,
        day: Option<&str>,
        hour_cache: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let life = if hour_cache { CacheLife::OneHour } else { CacheLife::FiveMinutes };
        let day = day.map(argument::day).transpose()?;
        let terms = CostTerms::default().with_day(day.as_deref()).with_life(life);
        let repeated = self.made.inner.repeated().map_or(0, |prefix| prefix.tokens);
        // Tokens at the repeated beginning are priced as read from the cache.
        let Some(cost) = self.made.planner.model().input_cost(
            self.made.inner.estimated_tokens_total.tokens,
            repeated,
            terms,
        ) else {
            return Ok(None);
        };
        json::python(
            py,
            &serde_json::json!({
                "billionths": cost.billionths, "read": cost.read, "written": cost.written, "uncached": cost.uncached,
            }),
        )
        .map(Some)
    }

    /// Returns the whole plan as JSON, with the same bytes as `plan-inspect --json`.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| self.made.inner.to_json())
    }

    /// Returns the whole plan as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = self.json(py);
        json::loads(py, &json)
    }

    /// Returns the rows of the plan as a table: the included items in prompt order, then the excluded ones.
    /// Convert it with `to_pandas`, `to_polars` or `to_pyarrow`, or pass it to a library that reads Arrow
    /// streams.
    fn to_frame(&self) -> PyResult<Frame> {
        frame::of_plan(&self.made.inner)
    }

    /// Returns lines for a snapshot test. They contain no text of the conversation.
    fn snapshot(&self, py: Python<'_>) -> String {
        py.detach(|| report::snapshot(&self.made.inner).to_string())
    }

    /// Returns the plan as a readable table, `width` columns wide.
    #[pyo3(signature = (*, width=Number(100), colour=false), text_signature = "($self, *, width=100, colour=False)")]
    fn text(&self, py: Python<'_>, width: Number<usize>, colour: bool) -> String {
        py.detach(|| report::text(&self.made.inner).with_width(width.0).with_colour(colour).to_string())
    }

    /// Returns the plan in Markdown.
    fn markdown(&self, py: Python<'_>) -> String {
        py.detach(|| report::markdown(&self.made.inner).to_string())
    }

    /// Returns the plan as a self-contained web page. It contains the texts of the prompt, unless `redact` is
    /// True. With `explain=True`, it lists for each item the budgets at which it is included. This takes
    /// seconds for thousands of items.
    #[pyo3(signature = (*, redact=false, explain=true))]
    fn html(&self, py: Python<'_>, redact: bool, explain: bool) -> PyResult<String> {
        self.answer(py, move |made, manager, request| {
            let model = made.planner.model();
            let explained = if explain { manager.explainer(request).explain_all()? } else { Vec::new() };
            let page = report::html(&made.inner).with_explanations(&explained).with_model(model);
            Ok(page.with_request(request).with_redaction(redact).render()?)
        })
    }

    /// Returns the page in a frame, for a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let page = self.html(py, false, self.made.inner.row_count() <= EXPLAINED)?;
        // Quotes and ampersands would end the attribute or change its meaning.
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        let frame = "width:100%;height:640px;border:1px solid #ccc;border-radius:6px;background:#fff";
        Ok(format!("<iframe srcdoc=\"{page}\" style=\"{frame}\" sandbox=\"allow-scripts\"></iframe>"))
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.text(py, Number(100), false)
    }

    fn __repr__(&self) -> String {
        let plan = &self.made.inner;
        let over = if plan.overflow.is_some() { ", overflow" } else { "" };
        let (rows, out) = (plan.included.len(), plan.excluded.len());
        format!(
            "Plan({}, {} of {} tokens, {rows} in, {out} out{over})",
            plan.model, plan.estimated_tokens_total.tokens, plan.prompt_budget
        )
    }

    /// Compares plans by their fingerprints.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            Arc::ptr_eq(&self.made, &other.get().made)
                || self.made.inner.fingerprint() == other.get().made.inner.fingerprint()
        })
    }

    fn __hash__(&self) -> u64 {
        u64::from_str_radix(&self.made.inner.fingerprint()[..16], 16).unwrap_or_default()
    }

    /// Pickles the request. Unpickling plans it again, because the same request gives the same plan.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let session = self.answer(py, |_, manager, request| {
            Ok(context_window_formats::session_json(manager, request, SessionTexts::Kept)?)
        })?;
        let made_of = self.made.planner.made_of().clone();
        let again = py.import("context_window._core")?.getattr("_plan")?;
        let fingerprint = self.made.inner.fingerprint();
        Ok((again, (made_of, session, self.made.asked.beside_a_session(), fingerprint).into_pyobject(py)?))
    }
}

/// Restores a plan from its pickle.
#[pyfunction]
pub(crate) fn _plan(
    py: Python<'_>,
    made_of: MadeOf,
    session: String,
    beside: Beside,
    fingerprint: &str,
) -> PyResult<Plan> {
    let (session, log) = interruptible(py, move |_| request_and_log(&session))??;
    let asked = Asked::of_session(&session, beside);
    let plan = Plan::new(py, &Planner::made(py, made_of)?, &shared(log), asked)?;
    // Another version may plan differently; a plan with other decisions must not pass as the pickled one.
    if plan.made.inner.fingerprint() != fingerprint {
        let detail =
            "this plan was pickled by another version, or with files that have changed since; plan again";
        return Err(input(detail));
    }
    Ok(plan)
}

/// Parses a session's request and its conversation. The conversation may be empty here, although a session
/// file without messages is an error.
fn request_and_log(session: &str) -> PyResult<(Session, core::Conversation)> {
    let fault = |error: serde_json::Error| input(format!("pickle of a plan: {error}"));
    let mut session: serde_json::Value = serde_json::from_str(session).map_err(fault)?;
    // The session is parsed with a placeholder message, and the real entries are applied separately.
    let events = session["context_window"]["events"].take();
    let events: Vec<LogEvent> = serde_json::from_value(events).map_err(fault)?;
    session["context_window"]["events"] = serde_json::json!([]);
    session["messages"] = serde_json::json!([{"role": "user", "content": "."}]);
    let session = Session::from_json(&session.to_string()).map_err(raised)?;
    Ok((session, core::Conversation::from_events(events).map_err(raised)?))
}
