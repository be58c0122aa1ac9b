//! The models and presets that are known by name.

use crate::{data::KnownModel, error::thrown, json};
use context_window::{Config, Registry, usage};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A list of models.
    #[wasm_bindgen(typescript_type = "KnownModel[]")]
    pub type KnownModels;
}

/// Returns the models that are known by name, with their limits in tokens.
#[wasm_bindgen]
pub fn models() -> Result<KnownModels, JsValue> {
    let registry = Registry::built_in().map_err(thrown)?;
    let all: Vec<_> = registry.entries().iter().map(KnownModel::from).collect();
    Ok(json::value(&all)?.unchecked_into())
}

/// Returns the names of the presets, which are named sets of options.
#[wasm_bindgen]
pub fn presets() -> Vec<String> {
    Config::presets().map(str::to_owned).collect()
}

/// Returns true if a provider's error, or its text, says that a prompt exceeds its context window.
#[wasm_bindgen(js_name = isContextOverflow)]
pub fn is_context_overflow(#[wasm_bindgen(unchecked_param_type = "unknown")] error: &JsValue) -> bool {
    usage::is_context_overflow(&json::described(error))
}

/// Returns true if a provider's error, or its text, says that it refuses earlier reasoning.
#[wasm_bindgen(js_name = isReasoningRefusal)]
pub fn is_reasoning_refusal(#[wasm_bindgen(unchecked_param_type = "unknown")] error: &JsValue) -> bool {
    usage::is_reasoning_refusal(&json::described(error))
}
