//! Retrieved documents.

use crate::{argument::type_name, error::input, number::Number};
use context_window::{RagItem, RetrievedItems, Ttl};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict, types::PyTuple};

/// A retrieved document with its id, score (higher is better), text and source. `ttl` is the number of turns
/// for which it may be included again, or None for no limit.
///
/// `position` is the number of a chunk in its source, `span` its place there as (start, end), `date` the date
/// in seconds since 1970. `variants` are shorter texts that may be sent instead, as (name, text), the longest
/// first. `requires` are the ids of documents beside one of which this one is sent, such as its neighbour.
/// All documents with one `group` are sent, or none of them.
#[pyclass(frozen, get_all, eq, from_py_object, module = "context_window")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// The id, unique among the documents of a request.
    id: String,
    /// The score. Higher is better.
    score: f64,
    /// The text.
    text: String,
    /// The source that citations name.
    source: Option<String>,
    /// The number of turns for which the document may be included again, or None for no limit.
    ttl: Option<u32>,
    /// The number of the chunk in its source, or None.
    position: Option<u64>,
    /// The place of the text in its source as (start, end), or None.
    span: Option<(u64, u64)>,
    /// The date in seconds since 1970, or None.
    date: Option<i64>,
    /// Shorter texts that may be sent instead, as (name, text), the longest first.
    variants: Vec<(String, String)>,
    /// The ids of documents beside one of which this one is sent.
    requires: Vec<String>,
    /// The name of a group, whose documents are sent together or not at all, or None.
    group: Option<String>,
}

#[pymethods]
impl Document {
    /// Creates a document.
    #[new]
    #[pyo3(signature = (
        id, score, text, source=None, ttl=None, position=None, span=None, date=None, variants=None,
        requires=None, group=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword in Python")]
    fn new(
        id: String,
        score: f64,
        text: String,
        source: Option<String>,
        ttl: Option<Number<u32>>,
        position: Option<Number<u64>>,
        span: Option<(Number<u64>, Number<u64>)>,
        date: Option<i64>,
        variants: Option<Vec<(String, String)>>,
        requires: Option<Vec<String>>,
        group: Option<String>,
    ) -> Self {
        let position = position.map(|position| position.0);
        let span = span.map(|(start, end)| (start.0, end.0));
        Self {
            id,
            score,
            text,
            source,
            ttl: ttl.map(|ttl| ttl.0),
            position,
            span,
            date,
            variants: variants.unwrap_or_default(),
            requires: requires.unwrap_or_default(),
            group,
        }
    }

    fn __repr__(&self) -> String {
        format!("Document({:?}, {}, {} characters)", self.id, self.score, self.text.chars().count())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let place = (self.position, self.span, self.date);
        let texts = (&self.text, self.source.as_deref(), &self.variants, &self.requires, &self.group);
        let arguments = (
            &self.id, self.score, texts.0, texts.1, self.ttl, place.0, place.1, place.2, texts.2, texts.3,
            texts.4,
        )
            .into_pyobject(py)?;
        Ok((py.get_type::<Self>().into_any(), arguments))
    }
}

/// Converts the documents of a request: a list, or a dict of lists by name.
pub(crate) fn items(given: &Bound<'_, PyAny>) -> PyResult<RetrievedItems> {
    let list = |list: &Bound<'_, PyAny>, name: &str| -> PyResult<Vec<RagItem>> {
        let place = |at: usize| format!("documents{name}[{at}]");
        list.try_iter()?.enumerate().map(|(at, given)| item(&place(at), &given?)).collect()
    };
    let Ok(lists) = given.cast::<PyDict>() else { return Ok(list(given, "")?.into()) };
    let mut documents = RetrievedItems::default();
    for (name, items) in lists.iter() {
        let name: String = name
            .extract()
            .map_err(|_| input("documents: expected names of lists as the keys of the dict"))?;
        let items = list(&items, &format!(".{name}"))?;
        documents = documents.with_list(name, items);
    }
    Ok(documents)
}

/// Converts a document of a request: a [`Document`], a dict of its fields, or a tuple of id, score and text.
/// `place` names it in errors.
pub(crate) fn item(place: &str, given: &Bound<'_, PyAny>) -> PyResult<RagItem> {
    let document = if let Ok(document) = given.cast::<Document>() {
        document.get().clone()
    } else if let Ok((id, score, text)) = given.extract::<(String, f64, String)>() {
        Document::new(id, score, text, None, None, None, None, None, None, None, None)
    // Only type errors need the index added: other errors come from Python itself and stay as they are.
    } else if let Ok(dict) = given.cast::<PyDict>() {
        let placed = |error: PyErr| input(format!("{place}: {}", error.value(given.py())));
        of_dict(dict).map_err(|error| {
            if error.is_instance_of::<PyTypeError>(given.py()) { placed(error) } else { error }
        })?
    } else {
        let detail = "expected a Document, a dict with id, score and text, or a tuple (id, score, text)";
        return Err(input(format!("{place}: {detail}; found {}", types(given))));
    };
    let Document { id, score, text, source, ttl, position, span, date, variants, requires, group } = document;
    let mut item = RagItem::new(id, score, text);
    if let Some(source) = source {
        item = item.with_origin(source);
    }
    if let Some(position) = position {
        item = item.with_position(position);
    }
    if let Some((start, end)) = span {
        item = item.with_span(start..end);
    }
    if let Some(date) = date {
        item = item.with_date(date);
    }
    for (name, text) in variants {
        item = item.with_variant(name, text);
    }
    for id in requires {
        item = item.with_required(id);
    }
    if let Some(group) = group {
        item = item.with_group(group);
    }
    Ok(match ttl {
        Some(turns) => item.with_ttl(Ttl::turns(turns)),
        None => item,
    })
}

/// Describes the type of a value. For a tuple, names the types of its elements.
fn types(given: &Bound<'_, PyAny>) -> String {
    let Ok(tuple) = given.cast::<PyTuple>() else { return type_name(given) };
    let elements: Vec<String> = tuple.iter().map(|element| type_name(&element)).collect();
    format!("a tuple ({})", elements.join(", "))
}

/// Converts shorter texts: pairs of name and text, or dicts as in a session file.
fn variants(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let variant = |one: PyResult<Bound<'_, PyAny>>| {
        let one = one?;
        match one.cast::<PyDict>() {
            Ok(fields) => Ok((
                fields.as_any().get_item("name")?.extract()?,
                fields.as_any().get_item("text")?.extract()?,
            )),
            Err(_) => one.extract(),
        }
    };
    if given.is_none() { Ok(Vec::new()) } else { given.try_iter()?.map(variant).collect() }
}

fn of_dict(dict: &Bound<'_, PyDict>) -> PyResult<Document> {
    let get = |key: &str| dict.get_item(key);
    let needed = |key: &str| {
        get(key)?.ok_or_else(|| PyTypeError::new_err(format!("has no `{key}`; expected id, score and text")))
    };
    let typed = |key: &str, expected: &str| {
        let expected = format!("its `{key}` is not {expected}");
        move |_: PyErr| PyTypeError::new_err(expected.clone())
    };
    let source = get("source")?.map(|source| source.extract().map_err(typed("source", "a string")));
    let ttl = get("ttl")?.map(|ttl| ttl.extract().map_err(typed("ttl", "a number of turns")));
    let position =
        get("position")?.map(|at| at.extract().map_err(typed("position", "a number of 0 or more")));
    let span = get("span")?.map(|span| span.extract().map_err(typed("span", "a pair of numbers")));
    let pairs = "a list of pairs (name, text), or of dicts with name and text";
    let variants = get("variants")?.map(|given| variants(&given).map_err(typed("variants", pairs)));
    let requires = get("requires")?.map(|ids| ids.extract().map_err(typed("requires", "a list of ids")));
    let group = get("group")?.map(|group| group.extract().map_err(typed("group", "a string")));
    let date = get("date")?.map(|date| date.extract().map_err(typed("date", "seconds since 1970")));
    Ok(Document {
        id: needed("id")?.extract().map_err(typed("id", "a string"))?,
        score: needed("score")?.extract().map_err(typed("score", "a number"))?,
        text: needed("text")?.extract().map_err(typed("text", "a string"))?,
        source: source.transpose()?.flatten(),
        ttl: ttl.transpose()?.flatten(),
        position: position.transpose()?.flatten(),
        span: span.transpose()?.flatten(),
        date: date.transpose()?.flatten(),
        variants: variants.transpose()?.unwrap_or_default(),
        requires: requires.transpose()?.flatten().unwrap_or_default(),
        group: group.transpose()?.flatten(),
    })
}
