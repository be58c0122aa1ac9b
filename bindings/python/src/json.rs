//! Conversion between Python values and JSON, with Python's own `json` module.

use crate::error::input;
use pyo3::{
    exceptions::{PyRecursionError, PyTypeError, PyUnicodeEncodeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::PyDict,
};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of JSON bytes received from Python.
static HANDED_OVER: AtomicU64 = AtomicU64::new(0);

/// Returns the number of JSON bytes that this process has passed to the planner. It measures the cost of
/// conversations apart from planning.
#[pyfunction]
pub(crate) fn bytes_handed_over() -> u64 {
    HANDED_OVER.load(Ordering::Relaxed)
}

/// Calls `json.dumps`. With `ascii`, characters beyond ASCII are escaped, for strings that are not valid
/// Unicode.
fn dumps_with<'py>(py: Python<'py>, value: &Bound<'py, PyAny>, ascii: bool) -> PyResult<Bound<'py, PyAny>> {
    // The settings are built once per process, because every message passes through here.
    static DUMPS: PyOnceLock<(Py<PyAny>, Py<PyDict>, Py<PyDict>)> = PyOnceLock::new();
    let (dumps, plain, escaped) = DUMPS.get_or_try_init(py, || -> PyResult<_> {
        let default = py.import("context_window._wire")?.getattr("plain")?;
        let settings = |escapes: bool| -> PyResult<Py<PyDict>> {
            let settings = PyDict::new(py);
            settings.set_item("ensure_ascii", escapes)?;
            settings.set_item("separators", (",", ":"))?;
            settings.set_item("allow_nan", false)?;
            settings.set_item("default", &default)?;
            Ok(settings.unbind())
        };
        Ok((py.import("json")?.getattr("dumps")?.unbind(), settings(false)?, settings(true)?))
    })?;
    dumps.bind(py).call((value,), Some(if ascii { escaped.bind(py) } else { plain.bind(py) }))
}

/// Returns a value as JSON. `what` names the value in errors. Objects with `model_dump` or `to_dict` are
/// replaced by the results of these methods.
pub(crate) fn dumps(value: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    let py = value.py();
    let fault = |error: PyErr| match error {
        error if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) => {
            input(format!("{what}: {}; expected a value that JSON can represent", error.value(py)))
        }
        // A value that is nested too deeply is an input error, not a failure of the interpreter.
        error if error.is_instance_of::<PyRecursionError>(py) => {
            input(format!("{what}: nested too deeply; expected a value that JSON can represent"))
        }
        error => error,
    };
    let text = dumps_with(py, value, false).map_err(fault)?;
    let text: String = match text.extract::<String>() {
        // JSON can represent an unpaired UTF-16 surrogate with an escape, but UTF-8 cannot.
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => {
            dumps_with(py, value, true).map_err(fault)?.extract()?
        }
        read => read?,
    };
    // Relaxed is enough: the counter orders no other memory access.
    HANDED_OVER.fetch_add(text.len() as u64, Ordering::Relaxed);
    Ok(text)
}

/// Parses JSON to Python values.
pub(crate) fn loads<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((json,))
}

/// Converts plain data of the crate to Python values.
pub(crate) fn python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(value).map_err(|error| input(error.to_string()))?;
    loads(py, &json)
}

/// The pickle of a row: the function `_row` with the kind of row and its JSON.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, String));

/// Pickles a row as JSON, which `_row` restores.
pub(crate) fn reduced<'py>(
    py: Python<'py>,
    kind: &'static str,
    row: &impl Serialize,
) -> PyResult<Reduced<'py>> {
    let json = serde_json::to_string(row).map_err(|error| input(error.to_string()))?;
    Ok((py.import("context_window._core")?.getattr("_row")?, (kind, json)))
}
