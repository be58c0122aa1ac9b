//! Tables for data frame libraries, without a dependency on one.

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray, builder::StringBuilder,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use context_window::{ContextPlan, ExcludedItem, PlannedItem, Ttl};
use pyo3::{
    exceptions::PyImportError,
    prelude::*,
    types::{PyCapsule, PyTuple},
};
use pyo3_arrow::{
    error::PyArrowResult,
    ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule},
};
use std::sync::Arc;

/// A table of Arrow columns. Convert it with `to_pandas`, `to_polars` or `to_pyarrow`, or pass it to any
/// library that reads Arrow streams, such as `polars.DataFrame(frame)` or `duckdb`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Frame {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl Frame {
    pub(crate) fn from_batches(batches: Vec<RecordBatch>, schema: SchemaRef) -> Self {
        Self { batches, schema }
    }
}

/// Imports an optional library for the method `needed_by`.
fn library<'py>(py: Python<'py>, name: &str, needed_by: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        if !error.is_instance_of::<PyImportError>(py) {
            return error;
        }
        let text = format!("{needed_by} needs {name}, which is not installed: pip install {name}");
        let missing = PyImportError::new_err(text);
        missing.set_cause(py, Some(error));
        missing
    })
}

#[pymethods]
impl Frame {
    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns a `pandas.DataFrame`. Raises `ImportError` if pandas is not installed, or if this version of
    /// pandas needs pyarrow and that is not installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let frames = library(py, "pandas", "to_pandas")?.getattr("DataFrame")?;
        // Since version 3, pandas reads Arrow streams itself.
        match frames.getattr_opt("from_arrow")? {
            Some(read) => read.call1((slf,)),
            None => {
                library(py, "pyarrow", "to_pandas")?.call_method1("table", (slf,))?.call_method0("to_pandas")
            }
        }
    }

    /// Returns a `polars.DataFrame`. Raises `ImportError` if polars is not installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars", "to_polars")?.call_method1("DataFrame", (slf,))
    }

    /// Returns a `pyarrow.Table`. Raises `ImportError` if pyarrow is not installed.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow", "to_pyarrow")?.call_method1("table", (slf,))
    }

    /// Exports the table as an Arrow stream (Arrow `PyCapsule` interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let field = Field::new_struct("", self.schema.fields().clone(), false);
        let arrays = self.batches.clone().into_iter().map(|batch| {
            let array: ArrayRef = Arc::new(StructArray::from(batch));
            Ok(array)
        });
        let arrays =
            ArrayIterator::new(arrays, Arc::new(field.with_metadata(self.schema.metadata().clone())));
        to_stream_pycapsule(py, Box::new(arrays), requested_schema)
    }

    /// Exports the types of the columns (Arrow `PyCapsule` interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema.as_ref())
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Frame({} rows: {})", self.num_rows(), self.column_names().join(", "))
    }

    /// Pickles the table through pyarrow.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let again = slf.py().import("context_window._core")?.getattr("_frame")?;
        Ok((again, (Self::to_pyarrow(slf)?,)))
    }
}

/// Restores a table from its pickle.
#[pyfunction]
pub(crate) fn _frame(table: pyo3_arrow::PyTable) -> Frame {
    let (batches, schema) = table.into_inner();
    Frame::from_batches(batches, schema)
}

/// A record batch that pyarrow reads. The class of `pyo3_arrow` would do the same, but brings every
/// conversion of every type, which makes the module larger.
#[pyclass(frozen, module = "context_window._core")]
struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    /// Exports the batch (Arrow `PyCapsule` interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyTuple>> {
        let field = Field::new_struct("", self.0.schema_ref().fields().clone(), false);
        let field = field.with_metadata(self.0.schema_ref().metadata().clone());
        to_array_pycapsules(py, Arc::new(field), &StructArray::from(self.0.clone()), requested_schema)
    }
}

/// Returns a record batch of pyarrow.
pub(crate) fn to_pyarrow(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    py.import("pyarrow")?.call_method1("record_batch", (Bound::new(py, Batch(batch))?,))
}

/// A row of the table of a plan.
enum Row<'a> {
    Included(&'a PlannedItem),
    Excluded(&'a ExcludedItem),
}

/// Returns the remaining turns. An expired item has 0 turns left; `None` means that it never expires.
pub(crate) fn turns(ttl: Ttl) -> Option<u32> {
    match ttl {
        Ttl::Limited(turns) => Some(turns.get()),
        Ttl::NoneRemaining => Some(0),
        Ttl::Unlimited => None,
    }
}

/// Builds the table of a plan: the included items in prompt order, then the excluded ones.
pub(crate) fn of_plan(plan: &ContextPlan) -> PyResult<Frame> {
    let included = plan.included.iter().map(Row::Included);
    let rows: Vec<Row<'_>> = included.chain(plan.excluded.iter().map(Row::Excluded)).collect();
    let batch = plan_batch(&rows).map_err(|error| crate::error::input(error.to_string()))?;
    let schema = batch.schema();
    Ok(Frame::from_batches(vec![batch], schema))
}

#[expect(clippy::too_many_lines, reason = "a list of columns")]
fn plan_batch(rows: &[Row<'_>]) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&Row<'_>) -> Option<String>| -> ArrayRef {
        let mut built = StringBuilder::new();
        built.extend(rows.iter().map(of));
        Arc::new(built.finish())
    };
    let number = |of: fn(&Row<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let signed = |n: u64| i64::try_from(n).ok();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            text(|row| {
                Some(match row {
                    Row::Included(item) => item.id.to_string(),
                    Row::Excluded(item) => item.id.to_string(),
                })
            }),
        ),
        (
            "last_id",
            text(|row| match row {
                Row::Included(_) => None,
                Row::Excluded(item) => item.last_id.as_ref().map(ToString::to_string),
            }),
        ),
        (
            "count",
            Arc::new(
                rows.iter()
                    .map(|row| match row {
                        Row::Included(_) => Some(1),
                        Row::Excluded(item) => signed(item.count),
                    })
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "included",
            Arc::new(rows.iter().map(|row| Some(matches!(row, Row::Included(_)))).collect::<BooleanArray>()),
        ),
        (
            "kind",
            text(|row| {
                Some(match row {
                    Row::Included(item) => item.kind.name().into(),
                    Row::Excluded(item) => item.kind.name().into(),
                })
            }),
        ),
        (
            "section",
            text(|row| {
                Some(match row {
                    Row::Included(item) => item.section.name().into(),
                    Row::Excluded(item) => item.section.name().into(),
                })
            }),
        ),
        (
            "source",
            text(|row| match row {
                Row::Included(item) => Some(item.source.name().into()),
                Row::Excluded(item) => item.source.map(|source| source.name().into()),
            }),
        ),
        (
            "role",
            text(|row| match row {
                Row::Included(item) => item.role.map(|role| role.name().into()),
                Row::Excluded(_) => None,
            }),
        ),
        (
            "reason",
            text(|row| {
                Some(match row {
                    Row::Included(item) => item.reason.name().into(),
                    Row::Excluded(item) => item.reason.name().into(),
                })
            }),
        ),
        (
            "why",
            text(|row| match row {
                Row::Included(_) => None,
                Row::Excluded(item) => Some(item.reason.to_string()),
            }),
        ),
        (
            "priority",
            text(|row| match row {
                Row::Included(item) => Some(item.priority.name().into()),
                Row::Excluded(_) => None,
            }),
        ),
        (
            "ttl",
            number(|row| match row {
                Row::Included(item) => item.ttl.and_then(turns).map(i64::from),
                Row::Excluded(_) => None,
            }),
        ),
        (
            "token_estimate",
            Arc::new(
                rows.iter()
                    .map(|row| match row {
                        Row::Included(item) => signed(item.token_estimate.tokens),
                        Row::Excluded(item) => signed(item.token_estimate.tokens),
                    })
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "certainty",
            text(|row| {
                Some(match row {
                    Row::Included(item) => item.token_estimate.certainty.name().into(),
                    Row::Excluded(item) => item.token_estimate.certainty.name().into(),
                })
            }),
        ),
        (
            "hash",
            Arc::new(
                rows.iter()
                    .map(|row| match row {
                        Row::Included(item) => Some(item.hash()),
                        Row::Excluded(_) => None,
                    })
                    .collect::<StringArray>(),
            ),
        ),
    ];
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect())
}
