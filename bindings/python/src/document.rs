//! Retrieved documents.

use crate::{argument::type_name, error::input, number::Number};
use context_window::{RagItem, Ttl};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict, types::PyTuple};

/// A retrieved document with its id, score (higher is better), text and source. `ttl` is the number of turns
/// for which it may be included again, or None for no limit.
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
}

#[pymethods]
impl Document {
    /// Creates a document.
    #[new]
    #[pyo3(signature = (id, score, text, source=None, ttl=None))]
    fn new(id: String, score: f64, text: String, source: Option<String>, ttl: Option<Number<u32>>) -> Self {
        Self { id, score, text, source, ttl: ttl.map(|ttl| ttl.0) }
    }

    fn __repr__(&self) -> String {
        format!("Document({:?}, {}, {} characters)", self.id, self.score, self.text.chars().count())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments =
            (&self.id, self.score, &self.text, self.source.as_deref(), self.ttl).into_pyobject(py)?;
        Ok((py.get_type::<Self>().into_any(), arguments))
    }
}

/// Converts a document of a request: a [`Document`], a dict of its fields, or a tuple of id, score and text.
/// `at` is its index, for errors.
pub(crate) fn item(at: usize, given: &Bound<'_, PyAny>) -> PyResult<RagItem> {
    let document = if let Ok(document) = given.cast::<Document>() {
        document.get().clone()
    } else if let Ok((id, score, text)) = given.extract::<(String, f64, String)>() {
        Document { id, score, text, source: None, ttl: None }
    // Only type errors need the index added: other errors come from Python itself and stay as they are.
    } else if let Ok(dict) = given.cast::<PyDict>() {
        let placed = |error: PyErr| input(format!("documents[{at}]: {}", error.value(given.py())));
        of_dict(dict).map_err(|error| {
            if error.is_instance_of::<PyTypeError>(given.py()) { placed(error) } else { error }
        })?
    } else {
        let detail = "expected a Document, a dict with id, score and text, or a tuple (id, score, text)";
        return Err(input(format!("documents[{at}]: {detail}; found {}", types(given))));
    };
    let Document { id, score, text, source, ttl } = document;
    let mut item = RagItem::new(id, score, text);
    if let Some(source) = source {
        item = item.with_origin(source);
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
    Ok(Document {
        id: needed("id")?.extract().map_err(typed("id", "a string"))?,
        score: needed("score")?.extract().map_err(typed("score", "a number"))?,
        text: needed("text")?.extract().map_err(typed("text", "a string"))?,
        source: source.transpose()?.flatten(),
        ttl: ttl.transpose()?.flatten(),
    })
}
