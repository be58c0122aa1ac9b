//! Errors of the crates as JavaScript errors: one class per kind, with the original text.

pub(crate) use context_window_bindings::Fault;
use context_window_bindings::FaultKind;
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

/// Returns the error that JavaScript throws for an error of a crate.
pub(crate) fn thrown(fault: impl Into<Fault>) -> JsValue {
    let fault = fault.into();
    let mut message = fault.to_string();
    // The error of an application's own counter is in the chain of sources.
    let mut source = std::error::Error::source(&fault);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    let kind = match fault.kind() {
        FaultKind::Core(kind) => format!("{kind:?}"),
        FaultKind::Store(kind) => format!("{kind:?}"),
        FaultKind::Recall => "Recall".into(),
    };
    create_error(&kind, &message)
}
