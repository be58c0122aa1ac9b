//! Errors of the crates as JavaScript errors: one class per kind, with the original text.

use context_window as core;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(raw_module = "./errors.js")]
extern "C" {
    /// Creates an error of the class for a kind.
    #[wasm_bindgen(js_name = createError)]
    fn create_error(kind: &str, message: &str) -> JsValue;
}

/// Returns an error about an argument.
pub(crate) fn input(message: impl AsRef<str>) -> JsValue {
    create_error("Input", message.as_ref())
}

/// An error of any of the crates.
pub(crate) enum Fault {
    Core(core::Error),
    Formats(context_window_formats::Error),
    Page(context_window_report::Error),
}

impl From<core::Error> for Fault {
    fn from(error: core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<core::tokens::Error> for Fault {
    fn from(error: core::tokens::Error) -> Self {
        Self::Core(error.into())
    }
}

impl From<context_window_formats::Error> for Fault {
    fn from(error: context_window_formats::Error) -> Self {
        Self::Formats(error)
    }
}

impl From<context_window_report::Error> for Fault {
    fn from(error: context_window_report::Error) -> Self {
        Self::Page(error)
    }
}

/// Returns the error that JavaScript throws for an error of a crate.
pub(crate) fn thrown(fault: impl Into<Fault>) -> JsValue {
    match fault.into() {
        Fault::Core(error) => of_core(&error),
        Fault::Formats(error) => match error.core() {
            Some(core) => of_core(core),
            None => input(error.to_string()),
        },
        Fault::Page(error) => input(error.to_string()),
    }
}

fn of_core(error: &core::Error) -> JsValue {
    let mut message = error.to_string();
    // The error of an application's own counter is in the chain of sources.
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    create_error(&format!("{:?}", error.kind()), &message)
}
