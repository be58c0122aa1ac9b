//! The methods of a recall: updates, searches, and the tool for the model. They are apart from the class,
//! because a request needs the class, and the tool needs a plan.

use crate::{
    argument,
    error::{input, raised},
    json,
    log::{Conversation, read},
    number::Number,
    plan::Plan,
    recall::{self as shared, Hit, Opened, RankedRecall, Recall, locked},
};
use context_window as core;
use context_window_recall as recall;
use pyo3::{prelude::*, types::PyDict};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

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
            options = options.with_dates(shared::dates(given)?);
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
        let dates = shared::dates(dates)?;
        py.detach(|| {
            let mut recall = locked(&self.inner);
            let options = recall.options().clone().with_dates(dates);
            *recall = std::mem::take(&mut *recall).with_options(options);
        });
        Ok(())
    }

    /// Searches the messages for a text, and returns the hits, best first. Use it for a view;
    /// `answer` is for the model. The live question is no hit while it is not answered.
    fn search(&self, py: Python<'_>, query: String) -> PyResult<Vec<Hit>> {
        let hits = self.with(py, move |recall, log| {
            recall.update(log);
            recall.search(log, &query)
        })?;
        Ok(hits.into_iter().map(Hit::from_core).collect())
    }

    /// Returns the recall with a ranking of messages by their ids, best first, such as one by embeddings. It
    /// is fused with the ranking by words by ranks.
    #[pyo3(signature = (ids, weight=Number(1)))]
    fn with_ranking(&self, ids: &Bound<'_, PyAny>, weight: Number<u8>) -> PyResult<RankedRecall> {
        RankedRecall::new((&self.inner, &self.log), &[], ids, weight)
    }

    /// Returns the definition of the tool `recall`, as a dict. Pass it to `Manager.plan` in `tools`, with
    /// your other tools: the option `conversation.tool_results = "offload"` needs it.
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
    /// `max_tokens` tokens; without it, 2,000, or fewer if the prompt of the plan leaves less room.
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
        let call = core::ToolCall::new(call_id, core::Tool::RECALL, arguments);
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
