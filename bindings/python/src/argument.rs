//! Values of arguments, read from Python.

use crate::error::input;
use context_window::{text::plain::short, usage::CostTerms};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyString},
};

/// Returns the name of a value's type, for errors.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

/// Reads a string. `name` is that of the argument, for errors.
pub(crate) fn string(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    value.extract().map_err(|_| input(format!("{name}: expected a string, not {}", type_name(value))))
}

/// Checks if a value is one item, although it is iterable.
pub(crate) fn is_single(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyDict>()
}

/// Reads each item of a list. `read` gets the place of the item, such as `budgets[2]`, for errors.
pub(crate) fn list<T>(
    value: &Bound<'_, PyAny>,
    name: &str,
    read: fn(&str, &Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let items = if is_single(value) { None } else { value.try_iter().ok() };
    let items = items.ok_or_else(|| input(format!("{name}: expected a list, not {}", type_name(value))))?;
    items.enumerate().map(|(at, item)| read(&format!("{name}[{at}]"), &item?)).collect()
}

/// Checks the form of a day. The prices of any other text would be those of another day.
pub(crate) fn day(text: &str) -> PyResult<String> {
    if CostTerms::is_day(text) {
        return Ok(text.to_owned());
    }
    Err(input(format!("day: `{}` is no day; expected year, month and day, as in 2026-12-01", short(text))))
}
