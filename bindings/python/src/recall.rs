//! Recall: earlier messages of a conversation, found again for its questions.

use crate::{
    argument,
    error::{Fault, input, raised},
    json,
    log::{Conversation, SharedLog, read},
    number::Number,
    plan::Plan,
};
use context_window as core;
use context_window_recall as recall;
use pyo3::{prelude::*, types::PyDict};
use serde::{Deserialize, Serialize};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A recall that several threads can share.
type SharedRecall = Arc<Mutex<recall::Recall>>;

/// The index of a conversation's messages, which finds those that a question needs again. Pass it to
/// `Manager.plan` as `recall`.
///
/// `path` is the index file, which is created by the first `save`. It may be deleted at any time: it is built
/// again from the conversation. Without a path, the index is in memory only. `min_score` is the least score
/// of a hit, per mille of the sum of the rarities of the question's words. `max_hits` is the maximum number
/// of hits. `dates` are dates of messages by id, in seconds since 1970: hits begin with them.
///
/// Raises `RecallError` if the file cannot be read. A file that is damaged or of another conversation is no
/// error: `opened` has the reason.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Recall {
    /// The index and its options.
    inner: SharedRecall,
    log: SharedLog,
    path: Option<PathBuf>,
    opened: Option<Opened>,
}

/// The use that was made of an index file.
#[derive(Serialize)]
struct Opened {
    outcome: &'static str,
    /// The number of messages that were indexed.
    messages: usize,
    reason: Option<&'static str>,
}

impl Opened {
    /// Describes the outcome for an index of `total` messages.
    fn from_core(opened: recall::Opened, total: usize) -> Self {
        use recall::RebuildReason;
        let (outcome, messages, reason) = match opened {
            recall::Opened::Loaded => ("loaded", 0, None),
            recall::Opened::CaughtUp { messages } => ("caught_up", messages, None),
            recall::Opened::Rebuilt(RebuildReason::Missing) => ("rebuilt", total, Some("missing")),
            recall::Opened::Rebuilt(RebuildReason::Damaged) => ("rebuilt", total, Some("damaged")),
            recall::Opened::Rebuilt(RebuildReason::OtherVersion) => ("rebuilt", total, Some("other_version")),
            recall::Opened::Rebuilt(RebuildReason::OtherConversation) => {
                ("rebuilt", total, Some("other_conversation"))
            }
            // New reasons in the crate must not break existing Python programs.
            _ => ("rebuilt", total, Some("other")),
        };
        Self { outcome, messages, reason }
    }
}

/// Earlier messages that a search found: a message, a part of a long one, or several short ones.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Hit {
    /// The id of its first document in a plan: `recall:` and the id of its first message.
    id: String,
    /// The ids of its messages.
    ids: Vec<String>,
    /// The positions of its messages in the conversation as (start, end).
    messages: (usize, usize),
    /// The text, with the speaker of each message.
    text: String,
    /// The score. Higher is better. Scores of different questions cannot be compared.
    score: u64,
    /// The date of its first message in seconds since 1970, or None.
    date: Option<i64>,
}

impl Hit {
    pub(crate) const PICKLED: &str = "Hit";

    fn from_core(hit: recall::Hit) -> Self {
        Self {
            id: hit.id.to_string(),
            ids: hit.ids.iter().map(ToString::to_string).collect(),
            messages: (hit.messages.start, hit.messages.end),
            text: hit.text,
            score: hit.score,
            date: hit.date,
        }
    }
}

#[pymethods]
impl Hit {
    fn __repr__(&self) -> String {
        format!("Hit({:?}, {}, {} characters)", self.id, self.score, self.text.chars().count())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
    }
}

/// A recall with rankings of the application, such as one by embeddings. `Recall.with_ranking` creates it; pass
/// it to `Manager.plan` as `recall`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct RankedRecall {
    inner: SharedRecall,
    log: SharedLog,
    rankings: Vec<recall::MessageRanking>,
}

impl RankedRecall {
    fn new(
        (inner, log): (&SharedRecall, &SharedLog),
        earlier: &[recall::MessageRanking],
        ids: &Bound<'_, PyAny>,
        weight: Number<u8>,
    ) -> PyResult<Self> {
        let ids = argument::list(ids, "ids", |place, id| argument::string(id, place))?;
        let ranking = recall::MessageRanking::new(ids).with_weight(weight.0);
        let rankings = earlier.iter().cloned().chain([ranking]).collect();
        Ok(Self { inner: Arc::clone(inner), log: Arc::clone(log), rankings })
    }
}

#[pymethods]
impl RankedRecall {
    /// Adds a ranking of messages by their ids, best first.
    #[pyo3(signature = (ids, weight=Number(1)))]
    fn with_ranking(&self, ids: &Bound<'_, PyAny>, weight: Number<u8>) -> PyResult<Self> {
        Self::new((&self.inner, &self.log), &self.rankings, ids, weight)
    }

    fn __repr__(&self) -> String {
        format!("RankedRecall({} rankings)", self.rankings.len())
    }
}

/// The recall of a request.
#[derive(Debug, Clone)]
pub(crate) enum RequestRecall {
    /// An index that the application keeps, with the application's rankings.
    Kept(SharedRecall, Vec<recall::MessageRanking>),
    /// An index that is built for this request only.
    Once,
}

impl RequestRecall {
    /// Reads the argument `recall` of a request about `log`. Returns `None` for False.
    pub(crate) fn from_argument(given: &Bound<'_, PyAny>, log: &SharedLog) -> PyResult<Option<Self>> {
        let kept = match (given.cast::<Recall>(), given.cast::<RankedRecall>()) {
            (Ok(recall), _) => Some((&recall.get().inner, &recall.get().log, Vec::new())),
            (_, Ok(ranked)) => Some((&ranked.get().inner, &ranked.get().log, ranked.get().rankings.clone())),
            _ => None,
        };
        if let Some((recall, own, rankings)) = kept {
            // Another conversation would be indexed from its beginning, and replace the file of the first.
            if !Arc::ptr_eq(own, log) {
                let detail = "recall: is of another conversation; expected Recall(conversation) of this one";
                return Err(input(detail));
            }
            return Ok(Some(Self::Kept(Arc::clone(recall), rankings)));
        }
        let is_wanted: bool = given.extract().map_err(|_| {
            let found = argument::type_name(given);
            input(format!("recall: expected a Recall, True or None, not {found}"))
        })?;
        Ok(is_wanted.then_some(Self::Once))
    }

    /// Adds the messages that the live question of a request needs.
    pub(crate) fn for_request<'a>(&self, request: core::PlanRequest<'a>) -> core::PlanRequest<'a> {
        match self {
            Self::Kept(recall, rankings) => locked(recall).for_request_with(request, rankings),
            Self::Once => recall::Recall::new().for_request(request),
        }
    }
}

fn locked(recall: &SharedRecall) -> MutexGuard<'_, recall::Recall> {
    recall.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads dates by the ids of messages.
fn dates(given: &Bound<'_, PyDict>) -> PyResult<Vec<(String, i64)>> {
    let pair = |(id, date): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let (Ok(id), Ok(date)) = (id.extract(), date.extract()) else {
            return Err(input("dates: expected a dict of seconds since 1970 by the ids of messages"));
        };
        Ok((id, date))
    };
    given.iter().map(pair).collect()
}

impl Recall {
    /// Calls `work` with the index and the conversation. Other Python threads run in the meantime, and Ctrl-C
    /// ends the wait for long work.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut recall::Recall, &core::Conversation) -> T + Send + 'static,
    ) -> PyResult<T> {
        let recall = Arc::clone(&self.inner);
        // The conversation is always locked first, so that two calls cannot deadlock.
        read(py, &self.log, move |log| Ok::<_, Fault>(work(&mut locked(&recall), log)))
    }
}

#[pymethods]
impl Recall {
    /// Opens the index file of a conversation, or creates an index in memory, and indexes the messages.
    #[new]
    #[pyo3(signature = (conversation, path=None, *, min_score=None, max_hits=None, dates=None))]
    fn new(
        py: Python<'_>,
        conversation: &Conversation,
        path: Option<PathBuf>,
        min_score: Option<Number<u16>>,
        max_hits: Option<Number<usize>>,
        dates: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut options = recall::RecallOptions::new();
        if let Some(min_score) = min_score {
            options = options.with_min_score(min_score.0);
        }
        if let Some(max_hits) = max_hits {
            options = options.with_max_hits(max_hits.0);
        }
        if let Some(given) = dates {
            options = options.with_dates(self::dates(given)?);
        }
        let log = Arc::clone(conversation.shared());
        let file = path.clone();
        let (recall, opened) = read(py, &log, move |log| {
            let Some(file) = file else {
                let mut recall = recall::Recall::new();
                recall.update(log);
                return Ok((recall, None));
            };
            let (recall, opened) = recall::Recall::open(file, log)?;
            let opened = Opened::from_core(opened, recall.index().messages());
            Ok::<_, recall::Error>((recall, Some(opened)))
        })?;
        Ok(Self { inner: Arc::new(Mutex::new(recall.with_options(options))), log, path, opened })
    }

    /// The use that was made of the index file: a dict of `outcome` (`loaded`, `caught_up` or `rebuilt`),
    /// `messages` (the number of those that were indexed) and `reason` (of a rebuilt index). None without a
    /// file.
    #[getter]
    fn opened<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.opened.as_ref().map(|opened| json::python(py, opened)).transpose()
    }

    /// Indexes the new messages of the conversation, and returns their number. Plans and searches do so too.
    fn update(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, recall::Recall::update)
    }

    /// Appends the new part of the index to its file. Save the conversation first. Does nothing without a
    /// file. Raises `RecallError` if the file cannot be written.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| locked(&self.inner).save()).map_err(raised)
    }

    /// Removes messages from the index by their ids, and returns the number of those that were indexed. They
    /// are not indexed again. The next `save` replaces the file by one without their words.
    fn forget(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let ids = argument::list(ids, "ids", |place, id| argument::string(id, place))?;
        self.with(py, move |recall, log| recall.forget(log, ids))
    }

    /// Adds dates of messages: a dict of seconds since 1970 by id.
    fn add_dates(&self, py: Python<'_>, dates: &Bound<'_, PyDict>) -> PyResult<()> {
        let dates = self::dates(dates)?;
        py.detach(|| {
            let mut recall = locked(&self.inner);
            let options = recall.options().clone().with_dates(dates);
            *recall = std::mem::take(&mut *recall).with_options(options);
        });
        Ok(())
    }

    /// Searches the messages for a text, and returns the hits, best first. Use it for a tool of the model or
    /// for a view. The live question is no hit while it is not answered.
    fn search(&self, py: Python<'_>, query: String) -> PyResult<Vec<Hit>> {
        let hits = self.with(py, move |recall, log| {
            recall.update(log);
            recall.search(log, &query)
        })?;
        Ok(hits.into_iter().map(Hit::from_core).collect())
    }

    /// Returns the recall with a ranking of messages by their ids, best first, such as one by embeddings. It is
    /// fused with the ranking by words by ranks.
    #[pyo3(signature = (ids, weight=Number(1)))]
    fn with_ranking(&self, ids: &Bound<'_, PyAny>, weight: Number<u8>) -> PyResult<RankedRecall> {
        RankedRecall::new((&self.inner, &self.log), &[], ids, weight)
    }

    /// Returns the definition of the tool `recall`, as a dict in the format of OpenAI. Pass it to
    /// `Manager.plan` in `tools`, with your other tools: the option `conversation.tool_results = "offload"`
    /// needs it.
    #[staticmethod]
    fn tool(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let core::Tool { name, description, schema, .. } = recall::Recall::tool();
        let parameters: serde_json::Value =
            serde_json::from_str(&schema).map_err(|error| input(error.to_string()))?;
        let function =
            serde_json::json!({"name": name, "description": description, "parameters": parameters});
        json::python(py, &serde_json::json!({"type": "function", "function": function}))
    }

    /// Answers a call of the tool `recall` by the reply to a plan, and returns the result as a message for
    /// `Conversation.push`. `arguments` is a dict, or the JSON that the model wrote. The result has at most
    /// `max_tokens` tokens; without it, as many as the prompt of the plan leaves free.
    ///
    /// A call that cannot be answered is no error: its result names the mistake, so that the model can call
    /// again.
    #[pyo3(signature = (plan, call_id, arguments, *, max_tokens=None))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        call_id: String,
        arguments: &Bound<'py, PyAny>,
        max_tokens: Option<Number<u64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = match arguments.extract::<String>() {
            Ok(json) => json,
            Err(_) => json::dumps(arguments, "arguments")?,
        };
        let call = core::ToolCall::new(call_id, recall::Recall::tool().name, arguments);
        let made = Arc::clone(plan.made());
        let answered = self.with(py, move |recall, log| {
            let most = max_tokens.map_or_else(|| recall::Recall::room(made.core()), |most| most.0);
            recall.answer(log, &call, made.counter(), most)
        })?;
        let message = answered.map_err(raised)?;
        json::python(
            py,
            &serde_json::json!({"role": "tool", "tool_call_id": message.answers(), "content": message.text()}),
        )
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let messages = py.detach(|| locked(&self.inner).index().messages());
        let path = self.path.as_ref().map(|path| format!("{:?}, ", path.display().to_string()));
        format!("Recall({}{messages} messages)", path.unwrap_or_default())
    }
}
