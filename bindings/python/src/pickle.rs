//! Pickles of plain rows. A row is pickled as JSON.

use crate::{
    error::input,
    explanation::{Change, Explanation},
    item::{ExcludedItem, IncludedItem, ItemMessage},
    recall::Hit,
};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

/// Restores a row from its pickle.
#[pyfunction]
pub(crate) fn _row<'py>(py: Python<'py>, kind: &str, json: &str) -> PyResult<Bound<'py, PyAny>> {
    fn parsed<T: DeserializeOwned>(json: &str) -> PyResult<T> {
        serde_json::from_str(json).map_err(|error| input(format!("pickle of a row: {error}")))
    }
    Ok(match kind {
        IncludedItem::PICKLED => Bound::new(py, parsed::<IncludedItem>(json)?)?.into_any(),
        ExcludedItem::PICKLED => Bound::new(py, parsed::<ExcludedItem>(json)?)?.into_any(),
        ItemMessage::PICKLED => Bound::new(py, parsed::<ItemMessage>(json)?)?.into_any(),
        Explanation::PICKLED => Bound::new(py, parsed::<Explanation>(json)?)?.into_any(),
        Hit::PICKLED => Bound::new(py, parsed::<Hit>(json)?)?.into_any(),
        Change::PICKLED => Bound::new(py, parsed::<Change>(json)?)?.into_any(),
        other => return Err(input(format!("pickle of a row: `{other}` is no kind of row"))),
    })
}
