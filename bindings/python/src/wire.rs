//! Messages and request bodies in the formats of providers.

use crate::{error::input, json};
use context_window as core;
use context_window_bindings::placed_text;
pub(crate) use context_window_bindings::{body_json, messages_of, read_message, rendered};
use core::{ItemId, WireFormat};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyString},
};

/// Returns the wire format with this Python name.
pub(crate) fn wire_format(name: &str) -> PyResult<WireFormat> {
    context_window_bindings::wire_format(name).map_err(input)
}

/// Converts a message or a list of messages to JSON. Dicts are used unchanged, other objects are read by
/// their attributes.
pub(crate) fn messages_json(given: &Bound<'_, PyAny>) -> PyResult<String> {
    static WIRE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // The common case of a single dict needs no Python helper.
    if let Ok(dict) = given.cast::<PyDict>()
        && dict.contains("role")?
    {
        return json::dumps(given, "messages");
    }
    // A string is iterable, so without this check it would be read as a list of messages.
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(input(
            "messages: expected a dict or a list of dicts, not a str; pass {\"role\": \"user\", \"content\": ...}",
        ));
    }
    // The import is cached, because it happens for each call.
    let wire = WIRE.import(given.py(), "context_window._wire", "messages")?;
    json::dumps(&wire.call1((given,))?, "messages")
}

/// Returns an error about messages, with the text of [`placed_text`].
pub(crate) fn placed(error: &context_window_formats::Error) -> PyErr {
    input(placed_text(error))
}

/// Returns ids as strings.
pub(crate) fn texts(ids: &[ItemId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
