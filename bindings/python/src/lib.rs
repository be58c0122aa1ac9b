//! The Python module `context_window._core`: the crate `context-window` with Python types.
//!
//! Python passes JSON strings or a few numbers, and receives frozen objects with plain fields. All planning,
//! counting, reading and writing lets other Python threads run in the meantime.

use pyo3::prelude::*;

mod error;
mod number;
mod argument;
mod work;
mod json;
mod wire;
mod log;
mod document;
mod recall;
mod request;
mod frame;
mod item;
mod explanation;
mod pickle;
mod planner;
mod plan;
mod recall_methods;
mod conversation;
mod compaction;
mod manager;
mod journal;
mod store;
mod batch;
mod scores;
mod evaluation_terms;
mod evaluation;
mod evaluation_batch;
mod tool;

/// The content of `import context_window`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<document::Document>()?;
    module.add_class::<log::Conversation>()?;
    module.add_class::<conversation::Committed>()?;
    module.add_class::<item::IncludedItem>()?;
    module.add_class::<item::ExcludedItem>()?;
    module.add_class::<item::ItemMessage>()?;
    module.add_class::<explanation::Explanation>()?;
    module.add_class::<explanation::Change>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<compaction::CompactionJob>()?;
    module.add_class::<manager::Manager>()?;
    module.add_class::<journal::Journal>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<recall::Recall>()?;
    module.add_class::<recall::RankedRecall>()?;
    module.add_class::<recall::Hit>()?;
    module.add_function(wrap_pyfunction!(manager::count, module)?)?;
    module.add_function(wrap_pyfunction!(manager::models, module)?)?;
    module.add_function(wrap_pyfunction!(manager::presets, module)?)?;
    module.add_function(wrap_pyfunction!(manager::is_context_overflow, module)?)?;
    module.add_function(wrap_pyfunction!(manager::is_reasoning_refusal, module)?)?;
    module.add_function(wrap_pyfunction!(json::bytes_handed_over, module)?)?;
    module.add_function(wrap_pyfunction!(conversation::_conversation, module)?)?;
    module.add_function(wrap_pyfunction!(conversation::_committed, module)?)?;
    module.add_function(wrap_pyfunction!(pickle::_row, module)?)?;
    module.add_function(wrap_pyfunction!(frame::_frame, module)?)?;
    module.add_function(wrap_pyfunction!(plan::_plan, module)?)?;
    module.add_function(wrap_pyfunction!(store::_store, module)?)?;
    module.add_function(wrap_pyfunction!(batch::plan_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batch::replay_batch, module)?)?;
    module.add_class::<scores::Scores>()?;
    module.add_function(wrap_pyfunction!(evaluation::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(evaluation_batch::evaluate_batch, module)?)?;
    module.add_function(wrap_pyfunction!(scores::_scores, module)?)?;
    module.add_function(wrap_pyfunction!(tool::_run_tool, module)?)?;
    Ok(())
}
