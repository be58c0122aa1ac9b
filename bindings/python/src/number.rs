//! Whole numbers from Python.

use crate::error::input;
use pyo3::{Borrowed, exceptions::PyTypeError, prelude::*};

/// A whole number. Raises an `InputError` for a number that is out of range, as for any other value that
/// cannot be used.
pub(crate) struct Number<T>(pub(crate) T);

impl<'a, 'py, T: TryFrom<i64>> FromPyObject<'a, 'py> for Number<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let number = match given.extract::<i64>() {
            // The interpreter names the argument in errors about its type.
            Err(error) if error.is_instance_of::<PyTypeError>(given.py()) => return Err(error),
            number => number.ok().and_then(|number| T::try_from(number).ok()),
        };
        let fault = || input(format!("{}: expected a whole number, 0 or more", *given));
        number.map(Self).ok_or_else(fault)
    }
}
