//! Recall: earlier messages of a conversation, found again for its questions.

use crate::{
    argument,
    error::{Fault, input},
    json,
    log::{SharedLog, read},
    number::Number,
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
    pub(crate) inner: SharedRecall,
    pub(crate) log: SharedLog,
    pub(crate) path: Option<PathBuf>,
    pub(crate) opened: Option<Opened>,
}

/// The use that was made of an index file.
#[derive(Serialize)]
pub(crate) struct Opened {
    outcome: &'static str,
    /// The number of messages that were indexed.
    messages: usize,
    reason: Option<&'static str>,
}

impl Opened {
    /// Describes the outcome for an index of `total` messages.
    pub(crate) fn from_core(opened: recall::Opened, total: usize) -> Self {
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

    pub(crate) fn from_core(hit: recall::Hit) -> Self {
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

/// A recall with rankings of the application, such as one by embeddings. `Recall.with_ranking` creates it;
/// pass it to `Manager.plan` as `recall`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct RankedRecall {
    inner: SharedRecall,
    log: SharedLog,
    rankings: Vec<recall::MessageRanking>,
}

impl RankedRecall {
    pub(crate) fn new(
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

pub(crate) fn locked(recall: &SharedRecall) -> MutexGuard<'_, recall::Recall> {
    recall.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads dates by the ids of messages.
pub(crate) fn dates(given: &Bound<'_, PyDict>) -> PyResult<Vec<(String, i64)>> {
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
    pub(crate) fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut recall::Recall, &core::Conversation) -> T + Send + 'static,
    ) -> PyResult<T> {
        let recall = Arc::clone(&self.inner);
        // The conversation is always locked first, so that two calls cannot deadlock.
        read(py, &self.log, move |log| Ok::<_, Fault>(work(&mut locked(&recall), log)))
    }
}
