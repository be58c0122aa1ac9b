//! Token counters: encodings that are loaded, estimates, and functions of the application.

use crate::{error::thrown, json};
use context_window::TokenCounter;
use send_wrapper::SendWrapper;
use std::fmt;
use wasm_bindgen::prelude::*;

/// The error of a counter of the application.
#[derive(Debug)]
struct CounterError(String);

impl fmt::Display for CounterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CounterError {}

/// Returns a counter that calls a function of the application. Counts of recurring texts are cached.
pub(crate) fn of_function(function: js_sys::Function) -> TokenCounter {
    // There is one thread, which never hands the function to another.
    let function = SendWrapper::new(function);
    TokenCounter::from_fn("own", move |text: &str| {
        let counted = function
            .call1(&JsValue::NULL, &JsValue::from_str(text))
            .map_err(|error| CounterError(format!("it threw {}", json::described(&error))))?;
        // A fraction would make counts depend on the order of sums.
        let tokens = counted.as_f64().and_then(json::whole);
        tokens.ok_or_else(|| {
            CounterError(format!("expected a number of tokens, found {}", json::described(&counted)))
        })
    })
}

/// Loads an encoding from its file. `loadEncoding` fetches the file.
#[wasm_bindgen(js_name = installEncoding)]
pub fn install_encoding(name: &str, file: &[u8]) -> Result<(), JsValue> {
    TokenCounter::load_encoding(name, file).map_err(thrown)
}

/// Counts the tokens of a string. `tokenizer` is `o200k_base` or `cl100k_base` once it is loaded, or an
/// estimate: `chars/4`, `chars/3.5`, `bytes`.
#[wasm_bindgen]
pub fn count(text: &str, tokenizer: Option<String>) -> Result<f64, JsValue> {
    let counter = TokenCounter::named(tokenizer.as_deref().unwrap_or("o200k_base")).map_err(thrown)?;
    Ok(counter.count(text).map_err(thrown)?.tokens as f64)
}
